//! Accounts: every frame in use is charged to exactly one.
//!
//! A child's limit is taken from its parent's when it is made and returns when it ends. What is still
//! charged to an account when its owner removes it stays charged: the account lives on without an
//! owner, shrinks with every frame given back, passes those to its parent, and is freed at the last.

use crate::arch::memory::{DIRECT, physical};
use crate::frames::{self, Frame, Use};
use crate::pointer::{Link, Nucleus, Ref};
use crate::slab;
use abi::Error;

/// Nesting of accounts.
const MAX_DEPTH: u16 = 8;

/// A quota of frames and what was taken from it.
#[repr(C, align(64))]
pub struct Account {
    /// Frames it may have, those passed to children included.
    pub limit: usize,
    /// Frames charged, limits of children included.
    pub used: usize,
    /// Limits of children.
    pub passed: usize,
    parent: Link<Account>,
    /// First of the pages of small objects that have room.
    pub partial: Frame,
    depth: u16,
    ownerless: bool,
    /// Its original entry is being removed.
    pub is_going: bool,
    /// Numbers of threads in use by domains that it pays for, and by those that its children pay for.
    numbers: u16,
    /// How many there may be.
    most_numbers: u16,
}

static ROOT: Nucleus<Account> = Nucleus::new(Account {
    limit: 0,
    used: 0,
    passed: 0,
    parent: None,
    partial: 0,
    depth: 0,
    ownerless: false,
    is_going: false,
    numbers: 0,
    most_numbers: u16::MAX,
});

static CHARGED: Nucleus<usize> = Nucleus::new(0);

/// The account from which all others are filled.
pub fn root() -> Ref<Account> {
    // Seen through the direct map, as all accounts are.
    // SAFETY: the same object.
    unsafe { Ref::new((DIRECT + physical(ROOT.reference().address())) as *mut Account) }
}

/// Frames charged to all accounts together.
pub fn charged() -> usize {
    *CHARGED.get()
}

/// Gives the root account all free frames.
pub fn init() {
    root().limit = frames::numbers().1;
}

/// Gives the root account frames that became free.
pub fn add(frames: usize) {
    root().limit += frames;
}

impl Ref<Account> {
    /// Frames left.
    pub fn left(self) -> usize {
        self.limit - self.used
    }

    /// Charges one frame and takes it.
    #[inline]
    pub fn allocate_one(self, used: Use) -> Result<Frame, Error> {
        if self.left() < 1 {
            return Err(Error::AccountExhausted);
        }
        let frame = frames::allocate_one().ok_or(Error::NoFrames)?;
        self.charge(frame, used);
        Ok(frame)
    }

    /// Charges 2^order frames and takes them.
    pub fn allocate(mut self, order: usize, used: Use) -> Result<Frame, Error> {
        if self.left() < 1 << order {
            return Err(Error::AccountExhausted);
        }
        let frame = frames::allocate(order).ok_or(Error::NoFrames)?;
        self.used += 1 << order;
        *CHARGED.get() += 1 << order;
        // Few instructions for each: there can be many.
        for record in frames::records(frame, order) {
            record.charge(self, used);
        }
        Ok(frame)
    }

    /// Charges one clear frame and takes it.
    #[inline]
    pub fn allocate_clear(self, used: Use) -> Result<Frame, Error> {
        if self.left() < 1 {
            return Err(Error::AccountExhausted);
        }
        let frame = frames::allocate_clear().ok_or(Error::NoFrames)?;
        self.charge(frame, used);
        Ok(frame)
    }

    #[inline]
    fn charge(mut self, frame: Frame, used: Use) {
        self.used += 1;
        *CHARGED.get() += 1;
        frames::record(frame).charge(self, used);
    }

    /// One more thread gets a number: it counts here and in all accounts above, at most `MAX_DEPTH` of them.
    pub fn take_number(self) -> Result<(), Error> {
        if self.up().any(|account| account.numbers >= account.most_numbers) {
            return Err(Error::LimitReached);
        }
        self.up().for_each(|mut account| account.numbers += 1);
        Ok(())
    }

    /// A thread gives its number back.
    pub fn release_number(self) {
        self.up().for_each(|mut account| account.numbers -= 1);
    }

    /// This account and all above.
    fn up(self) -> impl Iterator<Item = Ref<Account>> {
        core::iter::successors(Some(self), |account| account.parent)
    }

    /// A child with `limit` frames taken from this account; it pays for at most so many `numbers` of threads, 0 = as many as
    /// this one.
    pub fn new_child(mut self, limit: usize, numbers: u64) -> Result<Ref<Account>, Error> {
        if self.depth == MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        // The account itself is an object in a slab page of its parent: have that first.
        let mut child: Ref<Account> = slab::allocate(self)?;
        if self.left() < limit {
            slab::free(child);
            return Err(Error::AccountExhausted);
        }
        self.used += limit;
        self.passed += limit;
        (child.limit, child.parent, child.depth) = (limit, Some(self), self.depth + 1);
        child.most_numbers = if numbers == 0 { u16::MAX } else { numbers.min(u16::MAX as u64) as u16 };
        Ok(child)
    }

    /// Moves unused frames between parent and child, whichever way.
    pub fn move_to(mut self, mut to: Ref<Account>, frames: usize) -> Result<(), Error> {
        if self.left() < frames {
            return Err(Error::AccountExhausted);
        }
        if to.parent == Some(self) {
            self.used += frames;
            self.passed += frames;
            to.limit += frames;
        } else if self.parent == Some(to) {
            to.used -= frames;
            to.passed -= frames;
            self.limit -= frames;
        } else {
            return Err(Error::BadArgument);
        }
        Ok(())
    }

    /// The owner is gone: what is unused goes back to the parent now, the rest as it is given back.
    pub fn disown(mut self) {
        self.ownerless = true;
        self.shrink();
    }

    fn uncharge(mut self, frames: usize) {
        self.used -= frames;
        *CHARGED.get() -= frames;
        if self.ownerless {
            self.shrink();
        }
    }

    /// Passes what is unused to the parent, frees the account when nothing is charged to it any more, and
    /// goes on with a parent that has no owner either: at most `MAX_DEPTH` of them.
    fn shrink(mut self) {
        let Some(mut parent) = self.parent else { return };
        let unused = self.left();
        self.limit -= unused;
        parent.used -= unused;
        parent.passed -= unused;
        // The slab page of the account may be charged to the parent and go with it: the parent waits.
        let ownerless = core::mem::replace(&mut parent.ownerless, false);
        if self.used == 0 {
            slab::free(self);
        }
        parent.ownerless = ownerless;
        if ownerless {
            parent.shrink();
        }
    }
}

/// Gives 2^order frames back to the allocator and their account.
pub fn release(frame: Frame, order: usize) {
    let account = frames::record(frame).account();
    for record in frames::records(frame, order) {
        record.used = Use::Inside;
    }
    frames::release(frame, order);
    account.uncharge(1 << order);
}

/// As [`release`], of a page table without entries, for which `account` pays: it is full of zeros.
pub fn release_table(account: Ref<Account>, frame: Frame) {
    frames::record(frame).used = Use::Inside;
    frames::release_clear(frame);
    account.uncharge(1);
}
