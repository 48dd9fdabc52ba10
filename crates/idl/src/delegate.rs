//! Entries that travel with a message.

use abi::{Control, rights};

/// An entry that arrived: the index of our table where it stands. The taker of one out of a message owns
/// it, and removes it when done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the entry stays in the table until it is removed"]
pub struct Delegated(pub usize);

/// An entry given along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delegate {
    index: usize,
    rights: u8,
    badge: Option<u64>,
}

impl Delegate {
    /// A copy of the entry at `index` with `rights`.
    pub const fn entry(index: usize, rights: u8) -> Self {
        Self { index, rights, badge: None }
    }

    /// A call entry with `badge`, made from the service of ours at `index`.
    pub const fn mint(index: usize, badge: u64) -> Self {
        Self { index, rights: rights::ALL, badge: Some(badge) }
    }

    /// The control word that says so.
    pub const fn control(self) -> Control {
        let control = Control(0).delegate(self.index, self.rights);
        if self.badge.is_some() { control.with(Control::MINT) } else { control }
    }

    /// Word 4: the badge, or 0.
    pub const fn badge(self) -> u64 {
        match self.badge {
            Some(badge) => badge,
            None => 0,
        }
    }
}
