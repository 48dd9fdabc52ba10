//! A negative test, and what must come of it.

use alloc::format;
use alloc::string::{String, ToString};
use runtime::abi::Error;
use tool::println;

/// A step of a test, and its right outcome.
pub enum Expected {
    /// The domain dies.
    Dies(fn()),
    /// The nucleus refuses it so.
    Refused(Error, fn() -> Result<(), Error>),
    /// Nothing happens.
    Harmless(fn() -> Result<(), Error>),
    /// The test itself reports the outcome, or what is wrong with it.
    Tried(fn() -> Result<String, String>),
}

/// A negative test.
pub struct Case {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its description.
    pub what: &'static str,
    /// How it is done, and with which outcome.
    pub expected: Expected,
}

impl Case {
    pub const fn death(name: &'static str, what: &'static str, die: fn()) -> Self {
        Self { name, what, expected: Expected::Dies(die) }
    }
    pub const fn refusal(
        name: &'static str,
        what: &'static str,
        error: Error,
        attempt: fn() -> Result<(), Error>,
    ) -> Self {
        Self { name, what, expected: Expected::Refused(error, attempt) }
    }
    pub const fn harmless(name: &'static str, what: &'static str, attempt: fn() -> Result<(), Error>) -> Self {
        Self { name, what, expected: Expected::Harmless(attempt) }
    }
    pub const fn tried(name: &'static str, what: &'static str, attempt: fn() -> Result<String, String>) -> Self {
        Self { name, what, expected: Expected::Tried(attempt) }
    }

    /// Runs the test and reports the outcome; true if that is right.
    pub fn run(&self) -> bool {
        match self.expected {
            Expected::Dies(die) => {
                die();
                println!("{}: nothing happened: that must not be", self.name);
                false
            }
            Expected::Refused(right, attempt) => match attempt() {
                Err(error) if error == right => {
                    println!("{}: refused: {error}", self.name);
                    true
                }
                Err(error) => {
                    println!("{}: refused: {error}, but it should be: {right}", self.name);
                    false
                }
                Ok(()) => {
                    println!("{}: not refused: that must not be", self.name);
                    false
                }
            },
            Expected::Harmless(attempt) => match attempt() {
                Ok(()) => {
                    println!("{}: no harm done", self.name);
                    true
                }
                Err(error) => {
                    println!("{}: {error}", self.name);
                    false
                }
            },
            Expected::Tried(attempt) => match attempt() {
                Ok(text) => {
                    println!("{}: {text}", self.name);
                    true
                }
                Err(text) => {
                    println!("{}: {text}: that must not be", self.name);
                    false
                }
            },
        }
    }
}

/// An error, for what is [tried](Expected::Tried).
pub fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Fails with both values if they differ.
pub fn expect<T: PartialEq + core::fmt::Debug>(what: &str, is: T, right: T) -> Result<(), String> {
    if is == right { Ok(()) } else { Err(format!("{what}: {is:?} instead of {right:?}")) }
}
