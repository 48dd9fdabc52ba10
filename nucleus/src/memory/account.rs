//! Accounts: every frame in use is charged to exactly one.
//!
//! A child's limit is taken from its parent's when it is made and returns when it ends. What is still
//! charged to an account when its owner removes it stays charged: the account lives on without an
//! owner, shrinks with every frame given back, passes those to its parent, and is freed at the last.

use super::frames::{self, Use};
use super::slab;
use crate::arch::memory::{DIRECT, physical};
use crate::objects::{Account, Frame};
use crate::pointer::{Fresh, Held, Nucleus, Ref};
use abi::Error;
use core::cell::Cell;

/// Nesting of accounts.
const MAX_DEPTH: u16 = abi::MAX_ACCOUNT_DEPTH as u16;

static ROOT: Nucleus<Account> = Nucleus::new(Account {
    limit: Cell::new(0),
    used: Cell::new(0),
    passed: Cell::new(0),
    parent: None,
    partial: Cell::new(0),
    depth: 0,
    ownerless: Cell::new(false),
    is_going: Cell::new(false),
    numbers: Cell::new(0),
    most_numbers: u16::MAX,
});

static CHARGED: Nucleus<Cell<usize>> = Nucleus::new(Cell::new(0));

/// The account from which all others are filled.
pub fn root(held: Held) -> Ref<Account> {
    // Seen through the direct map, as all accounts are.
    // SAFETY: this is `ROOT`, which lives for ever; the direct map has it at this address.
    unsafe { Ref::new((DIRECT + physical(ROOT.reference(held).address())) as *mut Account) }
}

/// Frames charged to all accounts together.
pub fn charged(held: Held) -> usize {
    CHARGED.get(held).get()
}

/// Gives the root account all free frames.
pub fn init(held: Held) {
    root(held).limit.set(frames::numbers(held).1);
}

/// Gives the root account frames that became free.
pub fn add(held: Held, frames: usize) {
    root(held).limit.update(|value| value + frames);
}

impl Ref<Account> {
    /// Frames left.
    pub fn left(self) -> usize {
        self.limit.get() - self.used.get()
    }

    /// Charges one frame and takes it.
    #[inline]
    pub fn allocate_one(self, used: Use) -> Result<Frame, Error> {
        let held = self.held();
        if self.left() < 1 {
            return Err(Error::AccountExhausted);
        }
        let frame = frames::allocate_one(held).ok_or(Error::NoFrames)?;
        self.charge(frame, used);
        Ok(frame)
    }

    /// Charges 2^order frames and takes them.
    pub fn allocate(self, order: usize, used: Use) -> Result<Frame, Error> {
        let held = self.held();
        if self.left() < 1 << order {
            return Err(Error::AccountExhausted);
        }
        let frame = frames::allocate(held, order).ok_or(Error::NoFrames)?;
        self.used.update(|value| value + (1 << order));
        CHARGED.get(held).update(|charged| charged + (1 << order));
        // Few instructions for each: there can be many.
        for record in frames::records(held, frame, order) {
            record.charge(self, used);
        }
        Ok(frame)
    }

    /// Charges one clear frame and takes it.
    #[inline]
    pub fn allocate_clear(self, used: Use) -> Result<Frame, Error> {
        let held = self.held();
        if self.left() < 1 {
            return Err(Error::AccountExhausted);
        }
        let frame = frames::allocate_clear(held).ok_or(Error::NoFrames)?;
        self.charge(frame, used);
        Ok(frame)
    }

    #[inline]
    fn charge(self, frame: Frame, used: Use) {
        let held = self.held();
        self.used.update(|value| value + 1);
        CHARGED.get(held).update(|charged| charged + 1);
        frames::record(held, frame).charge(self, used);
    }

    /// One more thread gets a number: it counts here and in all accounts above, at most `MAX_DEPTH` of them.
    pub fn take_number(self) -> Result<(), Error> {
        if self.up().any(|account| account.numbers.get() >= account.most_numbers) {
            return Err(Error::LimitReached);
        }
        self.up().for_each(|account| account.numbers.update(|value| value + 1));
        Ok(())
    }

    /// A thread gives its number back.
    pub fn release_number(self) {
        self.up().for_each(|account| account.numbers.update(|value| value - 1));
    }

    /// This account and all above.
    fn up(self) -> impl Iterator<Item = Ref<Account>> {
        core::iter::successors(Some(self), |account| account.parent)
    }

    /// A child with `limit` frames taken from this account; it pays for at most so many `numbers` of threads, 0 = as many as
    /// this one.
    pub fn new_child(self, limit: usize, numbers: u64) -> Result<Ref<Account>, Error> {
        if self.depth == MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        // The account itself is an object in a slab page of its parent: have that first.
        let mut child: Fresh<Account> = slab::allocate(self)?;
        if self.left() < limit {
            slab::free(child.share());
            return Err(Error::AccountExhausted);
        }
        self.used.update(|value| value + limit);
        self.passed.update(|value| value + limit);
        child.limit.set(limit);
        child.parent = Some(self);
        child.depth = self.depth + 1;
        child.most_numbers = if numbers == 0 { u16::MAX } else { numbers.min(u16::MAX as u64) as u16 };
        Ok(child.share())
    }

    /// Moves unused frames between parent and child, whichever way.
    pub fn move_to(self, to: Ref<Account>, frames: usize) -> Result<(), Error> {
        if self.left() < frames {
            return Err(Error::AccountExhausted);
        }
        if to.parent == Some(self) {
            self.used.update(|value| value + frames);
            self.passed.update(|value| value + frames);
            to.limit.update(|value| value + frames);
        } else if self.parent == Some(to) {
            to.used.update(|value| value - frames);
            to.passed.update(|value| value - frames);
            self.limit.update(|value| value - frames);
        } else {
            return Err(Error::BadArgument);
        }
        Ok(())
    }

    /// The owner is gone: what is unused goes back to the parent now, the rest as it is given back.
    pub fn disown(self) {
        self.ownerless.set(true);
        self.shrink();
    }

    fn uncharge(self, frames: usize) {
        let held = self.held();
        self.used.update(|value| value - frames);
        CHARGED.get(held).update(|charged| charged - frames);
        if self.ownerless.get() {
            self.shrink();
        }
    }

    /// Passes what is unused to the parent, frees the account when nothing is charged to it any more, and
    /// goes on with a parent that has no owner either: at most `MAX_DEPTH` of them.
    fn shrink(self) {
        let Some(parent) = self.parent else { return };
        let unused = self.left();
        self.limit.update(|value| value - unused);
        parent.used.update(|value| value - unused);
        parent.passed.update(|value| value - unused);
        // The slab page of the account may be charged to the parent and go with it: the parent waits.
        let ownerless = parent.ownerless.replace(false);
        if self.used.get() == 0 {
            slab::free(self);
        }
        parent.ownerless.set(ownerless);
        if ownerless {
            parent.shrink();
        }
    }
}

/// Gives 2^order frames back to the allocator and their account.
pub fn release(held: Held, frame: Frame, order: usize) {
    let account = frames::record(held, frame).account();
    for record in frames::records(held, frame, order) {
        record.used.set(Use::Inside);
    }
    frames::release(held, frame, order);
    account.uncharge(1 << order);
}

/// As [`release`], of a page table without entries, for which `account` pays: it is full of zeros.
pub fn release_table(account: Ref<Account>, frame: Frame) {
    let held = account.held();
    frames::record(held, frame).used.set(Use::Inside);
    frames::release_clear(held, frame);
    account.uncharge(1);
}
