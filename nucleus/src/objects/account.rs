//! Accounts: every frame in use is charged to exactly one.

use super::Frame;
use crate::pointer::Ref;
use core::cell::Cell;
use flow::{Label, Level};
use structures::quota::Quota;

/// A quota of frames and what was taken from it.
#[repr(C, align(64))]
pub struct Account {
    /// What it may have.
    pub quota: Quota<Ref<Account>>,
    /// First of the pages of small objects that have room.
    pub partial: Cell<Frame>,
    /// Its original entry is being removed.
    pub is_going: Cell<bool>,
    /// The label of what it pays for, for good; its parent pays for that.
    pub label: Cell<Label>,
}

/// The label of what no account pays for, and of nearly all accounts.
pub const PLAIN: Label = Label::of(Level::One);

const _: () = assert!(size_of::<Account>() == 64);
