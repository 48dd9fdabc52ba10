//! The peer's queries about its caller.

use runtime::abi::{Error, level};
use runtime::entry::Entry;
use runtime::op::{self, LabelFrom};
use runtime::server;

use crate::measure::average;

/// Handles of a label, as in the paper that the budgets are compared with.
pub const MANY: u64 = 300;
/// Numbers that differ as handles do; those of one kind are no other kind's.
pub fn number(of: u64, kind: u64) -> u64 {
    ((of << 2 | kind) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3
}

/// The peer's service that asks so many times what its caller may do with what has the label of an entry. The answer is what that costs.
pub struct Asks;

impl server::ServeWord for Asks {
    fn serve(_badge: u64, words: [u64; 5]) -> u64 {
        let label = Entry(words[0] as usize);
        let mut right = op::label_caller(label) == Ok((false, true));
        let value = average(words[1], || right &= op::label_caller(label) == Ok((false, true)));
        if right { value } else { 0 }
    }
}

/// Our send label gets handles of nobody's of these numbers, with the level that all accept.
pub fn taint(first: u64, end: u64) -> Result<(), Error> {
    (first..end).try_for_each(|of| op::label_send(number(of, 0), level::TWO))
}

/// A label of [`MANY`] handles, of the peer.
pub fn made() -> Result<Entry, Error> {
    let label = op::label_new(LabelFrom::Level(2))?;
    (0..MANY).try_for_each(|of| op::label_put(label, number(of, 0), 3))?;
    Ok(label)
}
