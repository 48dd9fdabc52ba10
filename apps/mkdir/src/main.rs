//! `mkdir [-p] PATH…`: makes directories.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use tool::{Arguments, USAGE, files};

runtime::entry!(main);

const HELP: &str = "\
usage: mkdir [-p] PATH...

Makes directories.

  -p  those above as well, and no error if it exists
";

fn main() -> u8 {
    let mut arguments = Arguments::new("mkdir", HELP);
    let Some(options) = arguments.options("p") else { return USAGE };
    if arguments.words().is_empty() {
        return arguments.wrong("PATH is missing");
    }
    let mut status = 0;
    for word in arguments.words() {
        let path = files::absolute(word);
        let made = if options.contains('p') { files::make_directories(&path) } else { files::make_directory(&path) };
        if let Err(error) = made {
            status = arguments.fail(word, error);
        }
    }
    status
}
