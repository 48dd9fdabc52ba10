//! `cp FROM TO`: copies a file.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use runtime::protocols::file::{EXECUTABLE, Kind};
use tool::files::{self, File};
use tool::{Arguments, USAGE};

runtime::entry!(main);

const HELP: &str = "\
usage: cp FILE... TO

Copies a file. If TO is a directory, each file is copied into it under its own
name; what is there under that name is replaced.
";

fn main() -> u8 {
    let arguments = Arguments::new("cp", HELP);
    let Some((to, from)) = arguments.words().split_last().filter(|(_, from)| !from.is_empty()) else {
        arguments.wrong("FILE and TO are needed");
        return USAGE;
    };
    let target = files::absolute(to);
    let into = files::stat(&target).is_ok_and(|stat| stat.kind == Kind::Directory);
    if from.len() > 1 && !into {
        return arguments.fail(to, "several files need a directory to go to");
    }
    let mut status = 0;
    for word in from {
        let source = files::absolute(word);
        let target = if into { files::join(&target, files::last(&source)) } else { target.clone() };
        if source == target {
            status = arguments.fail(word, "is the same file");
        } else if let Err((what, error)) = copy(&source, &target) {
            status = arguments.fail(what, error);
        }
    }
    status
}

fn copy<'a>(source: &'a str, target: &'a str) -> Result<(), (&'a str, files::Refusal)> {
    let of = |path: &'a str| move |error| (path, error);
    let stat = files::stat(source).map_err(of(source))?;
    let from = File::open(source).map_err(of(source))?;
    let to = File::create(target, if stat.executable { EXECUTABLE } else { 0 }).map_err(of(target))?;
    let mut buffer = files::Buffer::new();
    let mut offset = 0;
    loop {
        let count = from.read(offset, buffer.bytes()).map_err(of(source))?;
        if count == 0 {
            return Ok(());
        }
        to.write(offset, &buffer.bytes()[..count]).map_err(of(target))?;
        buffer.read(count);
        offset += count as u64;
    }
}
