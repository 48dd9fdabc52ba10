//! Accounts: every frame in use is charged to exactly one.

use super::Frame;
use crate::pointer::Link;
use core::cell::Cell;

/// A quota of frames and what was taken from it.
#[repr(C, align(64))]
pub struct Account {
    /// Frames it may have, those passed to children included.
    pub limit: Cell<usize>,
    /// Frames charged, limits of children included.
    pub used: Cell<usize>,
    /// Limits of children.
    pub passed: Cell<usize>,
    /// Whose frames these were.
    pub parent: Link<Account>,
    /// First of the pages of small objects that have room.
    pub partial: Cell<Frame>,
    /// Accounts above it.
    pub depth: u16,
    /// Its original entry is gone.
    pub ownerless: Cell<bool>,
    /// Its original entry is being removed.
    pub is_going: Cell<bool>,
    /// Numbers of threads in use by domains that it pays for, and by those that its children pay for.
    pub numbers: Cell<u16>,
    /// How many there may be.
    pub most_numbers: u16,
}
