//! What a crime is, and what must come of it.

use alloc::format;
use alloc::string::{String, ToString};
use runtime::abi::Error;
use tool::println;

/// What is done, and what must come of it.
pub enum Deed {
    /// The domain dies.
    Dies(fn()),
    /// The nucleus refuses it so.
    Refused(Error, fn() -> Result<(), Error>),
    /// Nothing.
    Harmless(fn() -> Result<(), Error>),
    /// It tells by itself what came of it, or what is wrong with that.
    Tried(fn() -> Result<String, String>),
}

/// A crime.
pub struct Crime {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// How it is done.
    pub deed: Deed,
}

impl Crime {
    pub const fn death(name: &'static str, what: &'static str, die: fn()) -> Self {
        Self { name, what, deed: Deed::Dies(die) }
    }
    pub const fn refusal(
        name: &'static str,
        what: &'static str,
        error: Error,
        commit: fn() -> Result<(), Error>,
    ) -> Self {
        Self { name, what, deed: Deed::Refused(error, commit) }
    }
    pub const fn harmless(name: &'static str, what: &'static str, commit: fn() -> Result<(), Error>) -> Self {
        Self { name, what, deed: Deed::Harmless(commit) }
    }
    pub const fn tried(name: &'static str, what: &'static str, commit: fn() -> Result<String, String>) -> Self {
        Self { name, what, deed: Deed::Tried(commit) }
    }

    /// Commits it and tells what happened; true if that is right.
    pub fn run(&self) -> bool {
        match self.deed {
            Deed::Dies(die) => {
                die();
                println!("{}: nothing happened: that must not be", self.name);
                false
            }
            Deed::Refused(right, commit) => match commit() {
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
            Deed::Harmless(commit) => match commit() {
                Ok(()) => {
                    println!("{}: no harm done", self.name);
                    true
                }
                Err(error) => {
                    println!("{}: {error}", self.name);
                    false
                }
            },
            Deed::Tried(commit) => match commit() {
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

/// An error, for what is [tried](Deed::Tried).
pub fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Fails with both values if they differ.
pub fn expect<T: PartialEq + core::fmt::Debug>(what: &str, is: T, right: T) -> Result<(), String> {
    if is == right { Ok(()) } else { Err(format!("{what}: {is:?} instead of {right:?}")) }
}
