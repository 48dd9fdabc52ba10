//! `cat [FILE…]`: writes files one after the other.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::ops::ControlFlow;

use tool::{Arguments, files};

runtime::entry!(main);

const HELP: &str = "\
usage: cat [FILE...]

Writes files to standard output, one after the other. Without a file, or for -,
standard input up to its end (Ctrl-D at the console).
";

fn main() -> u8 {
    let arguments = Arguments::new("cat", HELP);
    let words = if arguments.words().is_empty() { &["-"][..] } else { arguments.words() };
    let mut status = 0;
    for word in words {
        let mut lost = None;
        let read = files::each_block(word, |bytes| {
            let written = runtime::stream::write(bytes).and_then(|()| runtime::stream::STDOUT.lock().flush());
            lost = written.err();
            if lost.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if let Some(error) = lost {
            use runtime::idl::Failure;
            use runtime::protocols::stream::StreamError;
            if error == Failure::Refused(StreamError::Closed) {
                // Nobody reads any more: that is no error.
                return runtime::program::STATUS_OF_CLOSED as u8;
            }
            return arguments.fail("standard output", error);
        }
        if let Err(cause) = read {
            status = arguments.fail(word, cause);
        }
    }
    status
}
