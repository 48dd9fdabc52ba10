//! `mkdir [-p] PATH…`: makes directories.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use runtime::abi::rights;
use runtime::entry::Entry;
use runtime::interface::{Delegate, Failure};
use runtime::interfaces::file::{FileError, Kind};
use runtime::stream::FILE_SYSTEM;
use tool::files::{self, Refusal};
use tool::{Arguments, USAGE};

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
        let made = if options.contains('p') { make_all(&path) } else { make(&path) };
        if let Err(error) = made {
            status = arguments.fail(word, error);
        }
    }
    status
}

fn make(path: &str) -> Result<(), Refusal> {
    FILE_SYSTEM.make_directory(path, Delegate::entry(Entry::ACCOUNT.0, rights::COPY | rights::READ | rights::WRITE))
}

fn make_all(path: &str) -> Result<(), Refusal> {
    let ends = path.bytes().enumerate().skip(1).filter(|(_, byte)| *byte == b'/').map(|(at, _)| at);
    for end in ends.chain([path.len()]) {
        match make(&path[..end]) {
            Ok(()) => {}
            Err(Failure::Refused(FileError::Exists)) if files::stat(&path[..end])?.kind == Kind::Directory => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
