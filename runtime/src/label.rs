//! Compartments, for a server that judges by itself: its caller's rights to a thing of a compartment.
//!
//! A thing belongs to a compartment at a level: 8 · handle + level, or 0 if it belongs to none. With level 3 it is a secret: its label is {handle 3, 1}. With level
//! 0 all may observe it, and only a domain that owns the handle, or has it at 0, changes it: {handle 0, 1}. A thing of no compartment has
//! {1}. The nucleus answers from the caller's labels (`LABEL_CALLER`). The server must have S = {★} and R = {3}: be `trusted` in the
//! description.

use crate::entry::{Entry, Owned};
use crate::op::{self, LabelFrom};
use crate::sync::Mutex;
use abi::op::{CALLER_OWNS_ALL, CALLER_USUAL};
use abi::{Error, level};

/// Labels that a server has at the same time; of more, each is made for its question.
const KNOWN: usize = 16;

/// A caller's rights to a thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct May {
    /// Learn what it contains.
    pub observe: bool,
    /// Change it, without an answer.
    pub change: bool,
}

impl May {
    /// A caller's rights if they cannot be found out.
    pub const NOTHING: Self = Self { observe: false, change: false };

    /// Change it, and learn what came of that.
    pub const fn both(self) -> bool {
        self.observe && self.change
    }
}

/// The label {handle `at`, `elsewhere`}, or {`elsewhere`} for 0.
pub fn label(handle: u64, at: u64, elsewhere: u64) -> Result<Owned, Error> {
    let label = Owned::new(op::label_new(LabelFrom::Level(elsewhere))?);
    if handle != 0 {
        op::label_put(label.entry(), handle, at)?;
    }
    Ok(label)
}

/// The compartment of this handle, as secrets have it.
pub const fn secret(handle: u64) -> u64 {
    handle << 3 | level::THREE
}

/// Whether a thing of this compartment is a secret: only programs in the compartment observe it.
pub const fn is_secret(compartment: u64) -> bool {
    compartment & 7 == level::THREE
}

/// Whether this names a compartment: 8 · handle + a level that things have, or 0.
pub const fn is_compartment(compartment: u64) -> bool {
    compartment == 0 || matches!(compartment & 7, level::ZERO | level::THREE)
}

/// Labels of a domain that has compartments when it starts.
pub struct Labels {
    /// Its taints, and the handles that it owns or has at 0.
    pub send: Owned,
    /// The taints that it accepts.
    pub receive: Owned,
}

impl Labels {
    /// Those of a domain with these compartments: 8 · handle + the level in its send label. It accepts the taint of all but those that it has at 0.
    pub fn new(compartments: impl Iterator<Item = u64>) -> Result<Self, Error> {
        let (send, receive) = (label(0, 0, level::ONE)?, label(0, 0, level::TWO)?);
        for compartment in compartments {
            let (handle, at) = (compartment >> 3, compartment & 7);
            op::label_put(send.entry(), handle, at)?;
            if at != level::ZERO {
                op::label_put(receive.entry(), handle, level::THREE)?;
            }
        }
        Ok(Self { send, receive })
    }

    /// Whether what a compartment contains may become a part of the domain: it is tainted with it, or owns it.
    pub fn contain(&self, compartment: u64) -> bool {
        let handle = compartment >> 3;
        let mut is_there = false;
        // There are fewer than one answer holds.
        let _ = op::label_read(self.send.entry(), 0, |other, at| {
            is_there |= other == handle && matches!(at, level::STAR | level::THREE);
        });
        is_there
    }
}

/// Labels of compartments that a server was asked about.
pub struct Compartments(Mutex<State>);

struct State {
    /// Compartments, and their labels.
    known: [(u64, Option<Owned>); KNOWN],
    /// The one that gives way next.
    next: usize,
}

impl Default for Compartments {
    fn default() -> Self {
        Self::new()
    }
}

impl Compartments {
    /// None is known.
    pub const fn new() -> Self {
        Self(Mutex::new(State { known: [const { (0, None) }; KNOWN], next: 0 }))
    }

    /// The caller's rights to a thing of this compartment. Nothing if there is no room for its label.
    #[inline]
    pub fn caller_may(&self, compartment: u64) -> May {
        match op::caller() {
            // {1} is below {2}, and {handle 3, 1} is not; {1} is below {handle 3, 1}, and not below {handle 0, 1}.
            CALLER_USUAL => May { observe: !is_secret(compartment), change: compartment & 7 != level::ZERO },
            CALLER_OWNS_ALL => May { observe: true, change: true },
            _ => self.other_caller_may(compartment),
        }
    }

    #[inline(never)]
    fn other_caller_may(&self, compartment: u64) -> May {
        let mut state = self.0.lock();
        let State { known, next } = &mut *state;
        let place = known.iter().position(|(known, label)| *known == compartment && label.is_some());
        let place = place.unwrap_or_else(|| {
            *next = (*next + 1) % KNOWN;
            known[*next] = (compartment, label(compartment >> 3, compartment & 7, level::ONE).ok());
            *next
        });
        known[place].1.as_ref().map_or(May::NOTHING, |label| may(label.entry()))
    }
}

/// The caller's rights to a thing that has this label.
pub fn may(label: Entry) -> May {
    op::label_caller(label).map_or(May::NOTHING, |(observe, change)| May { observe, change })
}

/// Whether the caller owns this handle.
pub fn caller_owns(handle: u64) -> bool {
    // S is below {handle ★, 3} only if S(handle) is ★.
    label(handle, level::STAR, level::THREE).is_ok_and(|label| may(label.entry()).change)
}
