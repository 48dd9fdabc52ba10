//! A check, and the functions that checks use.

use runtime::{Entry, op};

/// A check: its name and what it finds wrong.
pub type Check = (&'static str, fn() -> Result<(), &'static str>);

/// Says what is wrong unless it holds.
pub fn hold(condition: bool, what: &'static str) -> Result<(), &'static str> {
    if condition { Ok(()) } else { Err(what) }
}

/// Free frames of the machine.
pub fn frames() -> Result<u64, &'static str> {
    frames_record().map(|frames| frames.free)
}

/// Where the frames of the machine are.
pub fn frames_record() -> Result<runtime::abi::info::Frames, &'static str> {
    op::record(Entry::SPECIAL, 0).map(|(frames, _)| frames).map_err(|error| error.text())
}
