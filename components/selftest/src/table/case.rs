//! A case, and the functions that cases use.

use abi::Error;

use super::places::{Turn, When};

/// Something that is tried.
pub struct Case {
    pub name: &'static str,
    /// Instants that make sense for it.
    pub whens: &'static [When],
    pub run: fn(&mut Turn) -> Result<(), &'static str>,
}

/// The name of an error.
pub fn text(error: Error) -> &'static str {
    error.text()
}

/// The result must be one of these.
pub fn one_of(result: u64, allowed: &[u64]) -> Result<(), &'static str> {
    match Error::from_status(result) {
        _ if allowed.contains(&result) => Ok(()),
        Ok(()) => Err("it succeeded, which is the result of neither order"),
        // The text of the error says which.
        Err(error) => Err(error.text()),
    }
}
