//! Accounts: every frame in use is charged to exactly one.

use super::Frame;
use crate::pointer::Ref;
use core::cell::Cell;
use flow::{Label, Level};
use structures::quota::Quota;

/// A quota of frames, with the charges to it.
#[repr(C, align(64))]
pub struct Account {
    /// Limit and use, in frames.
    pub quota: Quota<Ref<Account>>,
    /// First page of its list of small-object pages with room.
    pub partial: Cell<Frame>,
    /// Its original entry is being removed.
    pub is_going: Cell<bool>,
    /// Label of all objects charged to it; never changes. Its parent pays for the label.
    pub label: Cell<Label>,
}

/// {1}: the label of nearly all accounts, and of objects that no account pays for.
pub const PLAIN: Label = Label::of(Level::One);

const _: () = assert!(size_of::<Account>() == 64);
