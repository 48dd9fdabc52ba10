//! `rm [-r] [-f] PATH…`: removes files and directories.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

use runtime::idl::Failure;
use runtime::protocols::file::{FileError, Kind};
use runtime::stream::FILE_SYSTEM;
use tool::files::{self, Refusal};
use tool::{Arguments, USAGE};

runtime::entry!(main);

const HELP: &str = "\
usage: rm [-r] [-f] PATH...

Removes files and empty directories.

  -r  directories with all that is in them
  -f  a path that does not exist is no error
";

fn main() -> u8 {
    let mut arguments = Arguments::new("rm", HELP);
    let Some(options) = arguments.options("rf") else { return USAGE };
    if arguments.words().is_empty() {
        return arguments.wrong("PATH is missing");
    }
    let mut status = 0;
    for word in arguments.words() {
        let path = files::absolute(word);
        let removed = if options.contains('r') { remove_all(&path) } else { FILE_SYSTEM.remove(&path) };
        match removed {
            Ok(()) => {}
            Err(Failure::Refused(FileError::NotFound)) if options.contains('f') => {}
            Err(error) => status = arguments.fail(word, error),
        }
    }
    status
}

/// Removes what is below first. Without recursion: a tree may be deep, and stacks are small.
fn remove_all(path: &str) -> Result<(), Refusal> {
    let mut pending = Vec::from([(alloc::string::String::from(path), false)]);
    while let Some((path, emptied)) = pending.pop() {
        if !emptied && files::stat(&path)?.kind == Kind::Directory {
            let names = files::directory(&path)?;
            pending.push((path.clone(), true));
            pending.extend(names.into_iter().map(|entry| (files::join(&path, &entry.name), !entry.is_directory)));
            continue;
        }
        FILE_SYSTEM.remove(&path)?;
    }
    Ok(())
}
