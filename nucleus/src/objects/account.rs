//! Accounts: every frame in use is charged to exactly one.

use super::Frame;
use crate::pointer::Ref;
use core::cell::Cell;
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
}
