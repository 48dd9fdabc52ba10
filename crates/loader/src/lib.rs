//! Programs as bytes: a strict parser of executables ([`program`]), and the page in which a program
//! finds its arguments ([`startup`]). Pure: its callers map pages.
#![no_std]
#![forbid(unsafe_code)]

pub mod program;
pub mod startup;

pub use program::{Machine, Program, ProgramError, Segment};
pub use startup::{Startup, StartupError};
