//! `mv FROM TO`: gives a file or directory another name.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use runtime::protocols::file::Kind;
use runtime::stream::FILE_SYSTEM;
use tool::{Arguments, USAGE, files};

runtime::entry!(main);

const HELP: &str = "\
usage: mv FROM... TO

Gives a file or directory another name. If TO is a directory, each goes into it
under its own name. A file that is there already is replaced.
";

fn main() -> u8 {
    let arguments = Arguments::new("mv", HELP);
    let Some((to, from)) = arguments.words().split_last().filter(|(_, from)| !from.is_empty()) else {
        arguments.wrong("FROM and TO are needed");
        return USAGE;
    };
    let target = files::absolute(to);
    let into = files::stat(&target).is_ok_and(|stat| stat.kind == Kind::Directory);
    if from.len() > 1 && !into {
        return arguments.fail(to, "several need a directory to go to");
    }
    let mut status = 0;
    for word in from {
        let source = files::absolute(word);
        let target = if into { files::join(&target, files::last(&source)) } else { target.clone() };
        if let Err(error) = FILE_SYSTEM.rename(&source, &target) {
            status = arguments.fail(word, error);
        }
    }
    status
}
