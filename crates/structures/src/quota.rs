//! Quotas: of frames, each taken from the one above, and of numbers of threads, which count in all above.
//!
//! A child's limit is taken from its parent's when it is made and returns when it ends. The memory still
//! charged to an account when its owner removes it stays charged: the account lives on without an
//! owner, shrinks with every frame given back, passes those to its parent, and ends with the last.

use abi::{Error, MAX_ACCOUNT_DEPTH};
use core::cell::Cell;

#[cfg(test)]
mod tests;

/// The limit of an account, and the amount that was taken from it.
#[repr(C)]
pub struct Quota<P> {
    /// Frames it may have, those passed to children included.
    pub limit: Cell<usize>,
    /// Frames charged, limits of children included.
    pub used: Cell<usize>,
    parent: Option<P>,
    depth: u16,
    ownerless: Cell<bool>,
    /// Numbers of threads in use by domains that it pays for, and by those that its children pay for.
    numbers: Cell<u16>,
    /// How many there may be.
    most_numbers: u16,
}

impl<P> Quota<P> {
    /// The one from which all others are filled; it has nothing.
    pub const fn root() -> Self {
        Self::new(0, None, 0, u16::MAX)
    }
    const fn new(limit: usize, parent: Option<P>, depth: u16, most_numbers: u16) -> Self {
        let [used, limit] = [Cell::new(0), Cell::new(limit)];
        Self { limit, used, parent, depth, ownerless: Cell::new(false), numbers: Cell::new(0), most_numbers }
    }
}

/// A pointer to an account.
pub trait Paying: Copy + PartialEq {
    /// Its quota.
    fn quota(&self) -> &Quota<Self>;
    /// Frees it: nobody owns it, and nothing is charged to it. That may give frames back to its parent.
    fn end(self);

    /// Of whom it was filled.
    fn parent(self) -> Option<Self> {
        self.quota().parent
    }

    /// Frames left.
    fn left(self) -> usize {
        self.quota().limit.get() - self.quota().used.get()
    }
    /// The error if it has too few frames left.
    fn exhausted(self) -> Error;
    /// Whether so many frames are left.
    #[inline(always)]
    fn check(self, frames: usize) -> Result<(), Error> {
        if self.left() < frames { Err(self.exhausted()) } else { Ok(()) }
    }
    /// Charges frames, which are left.
    #[inline(always)]
    fn charge(self, frames: usize) {
        self.quota().used.update(|used| used + frames);
    }
    /// Ends that.
    fn uncharge(self, frames: usize) {
        self.quota().used.update(|used| used - frames);
        if self.quota().ownerless.get() {
            self.shrink();
        }
    }
    /// Whether it may have children.
    fn check_depth(self) -> Result<(), Error> {
        if self.quota().depth == MAX_ACCOUNT_DEPTH as u16 { Err(Error::AccountsTooNested) } else { Ok(()) }
    }
    /// The quota of a child, with `limit` frames taken from this one; it pays for at most so many `numbers` of threads, 0 = as
    /// many as this one.
    fn child(self, limit: usize, numbers: u64) -> Result<Quota<Self>, Error> {
        self.check_depth()?;
        self.check(limit)?;
        self.charge(limit);
        let most_numbers = if numbers == 0 { u16::MAX } else { numbers.min(u16::MAX as u64) as u16 };
        Ok(Quota::new(limit, Some(self), self.quota().depth + 1, most_numbers))
    }
    /// Moves unused frames between parent and child, whichever way.
    fn move_to(self, to: Self, frames: usize) -> Result<(), Error> {
        self.check(frames)?;
        if to.quota().parent == Some(self) {
            self.charge(frames);
            to.quota().limit.update(|limit| limit + frames);
        } else if self.quota().parent == Some(to) {
            to.quota().used.update(|used| used - frames);
            self.quota().limit.update(|limit| limit - frames);
        } else {
            return Err(Error::NotParent);
        }
        Ok(())
    }
    /// The owner is gone: the unused part goes back to the parent now, the rest as it is given back.
    fn disown(self) {
        self.quota().ownerless.set(true);
        self.shrink();
    }
    /// Passes what is unused to the parent, ends the account when nothing is charged to it any more, and
    /// goes on with a parent that has no owner either: at most `MAX_ACCOUNT_DEPTH` of them.
    fn shrink(self) {
        let Some(parent) = self.quota().parent else { return };
        let unused = self.left();
        self.quota().limit.update(|limit| limit - unused);
        parent.quota().used.update(|used| used - unused);
        // The account's own memory may be charged to the parent and go with it: the parent waits.
        let ownerless = parent.quota().ownerless.replace(false);
        if self.quota().used.get() == 0 {
            self.end();
        }
        parent.quota().ownerless.set(ownerless);
        if ownerless {
            parent.shrink();
        }
    }

    /// One more thread gets a number: it counts here and in all accounts above, at most `MAX_ACCOUNT_DEPTH` of them.
    fn take_number(self) -> Result<(), Error> {
        if self.up().any(|account| account.quota().numbers.get() >= account.quota().most_numbers) {
            return Err(Error::AccountThreads);
        }
        self.up().for_each(|account| account.quota().numbers.update(|numbers| numbers + 1));
        Ok(())
    }
    /// A thread gives its number back.
    fn release_number(self) {
        self.up().for_each(|account| account.quota().numbers.update(|numbers| numbers - 1));
    }
    /// This account and all above.
    fn up(self) -> impl Iterator<Item = Self> {
        core::iter::successors(Some(self), |account| account.quota().parent)
    }
}
