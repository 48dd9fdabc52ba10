//! The start and the end of a program, and its startup data.

pub use crate::startup::{
    Arguments, STATUS_OF_CLOSED, STATUS_OF_NO_DEVICE, argument, environment, heap_start, image_end, name, number,
    portal, schedule, startup, variable,
};

use crate::startup::{begin, end};
use crate::{hooks, stream};

/// The types that `main` may return.
pub trait ExitStatus {
    /// The status, 0 = well.
    fn status(self) -> u64;
}

impl ExitStatus for () {
    fn status(self) -> u64 {
        0
    }
}

impl ExitStatus for u8 {
    fn status(self) -> u64 {
        self.into()
    }
}

impl ExitStatus for bool {
    fn status(self) -> u64 {
        (!self).into()
    }
}

impl ExitStatus for core::convert::Infallible {
    fn status(self) -> u64 {
        match self {}
    }
}

/// A function that a program can start with: `fn main()` or `fn main(arguments: Arguments)`.
pub trait Main<Parameters> {
    /// Runs it.
    fn run(self) -> u64;
}

impl<R: ExitStatus, F: FnOnce() -> R> Main<()> for F {
    fn run(self) -> u64 {
        self().status()
    }
}

impl<R: ExitStatus, F: FnOnce(Arguments) -> R> Main<(Arguments,)> for F {
    fn run(self) -> u64 {
        self(arguments()).status()
    }
}

#[cfg(not(test))]
unsafe extern "Rust" {
    safe fn cairn_program() -> u64;
}

#[cfg(test)]
fn cairn_program() -> u64 {
    0
}

/// First Rust code of a program.
pub(crate) extern "C" fn start(argument: u64) -> ! {
    begin(argument);
    exit(cairn_program())
}

/// The program's arguments, that of its own name first.
pub fn arguments() -> Arguments {
    // A program with arguments is one that a person starts: it reports a panic to that person.
    stream::enable();
    Arguments { next: 0 }
}

/// Ends the program with a status below 256; buffered output is written first.
pub fn exit(status: u64) -> ! {
    hooks::flush();
    end(status)
}

/// Names the function with which the program starts: `fn main()` or `fn main(arguments: Arguments)`,
/// giving nothing, a status (`u8`), or success as `bool`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        #[unsafe(no_mangle)]
        extern "Rust" fn cairn_program() -> u64 {
            $crate::program::Main::run($main)
        }
    };
}
