//! Accounts: every frame in use is charged to exactly one. [`structures::quota`] does the arithmetic.

use super::frames::{self, Use};
use super::{labels, slab};
use crate::arch::memory::{DIRECT, physical};
use crate::cpus::cpu;
use crate::objects::{Account, Frame, PLAIN};
use crate::pointer::{Fresh, Held, Nucleus, Ref};
use abi::Error;
use core::cell::Cell;
use structures::quota::{Paying, Quota};

static ROOT: Nucleus<Account> = Nucleus::new(Account {
    quota: Quota::root(),
    partial: Cell::new(0),
    is_going: Cell::new(false),
    label: Cell::new(PLAIN),
});

static CHARGED: Nucleus<Cell<usize>> = Nucleus::new(Cell::new(0));

/// The root account: all others get their frames from it.
pub fn root(held: Held) -> Ref<Account> {
    // Its address in the direct map, as for all accounts.
    // SAFETY: this is `ROOT`, a static, which the direct map shows at this address.
    unsafe { Ref::new((DIRECT + physical(ROOT.reference(held).address())) as *mut Account) }
}

/// Frames charged to all accounts together.
pub fn charged(held: Held) -> usize {
    CHARGED.get(held).get()
}

/// Gives the root account all free frames.
pub fn init(held: Held) {
    root(held).quota.limit.set(frames::numbers(held).1);
}

/// Gives the root account frames that became free.
pub fn add(held: Held, frames: usize) {
    root(held).quota.limit.update(|value| value + frames);
}

impl Paying for Ref<Account> {
    fn quota(&self) -> &Quota<Self> {
        &self.quota
    }
    fn end(self) {
        if let Some(parent) = self.parent() {
            labels::release_of(parent, self.label.get());
        }
        slab::free(self);
    }
    /// Says whose account it is, the running domain's or another.
    #[cold]
    fn exhausted(self) -> Error {
        let is_own = cpu::this(self.held()).domain_there().is_some_and(|domain| domain.account == self);
        if is_own { Error::AccountExhausted } else { Error::OtherExhausted }
    }
}

impl Ref<Account> {
    /// Allocates one frame and charges it.
    #[inline]
    pub fn allocate_one(self, used: Use) -> Result<Frame, Error> {
        let held = self.held();
        self.check(1)?;
        let frame = frames::allocate_one(held).ok_or(Error::NoFrames)?;
        self.charge_one(frame, used);
        Ok(frame)
    }

    /// Allocates one cleared frame and charges it.
    #[inline]
    pub fn allocate_clear(self, used: Use) -> Result<Frame, Error> {
        let held = self.held();
        self.check(1)?;
        let frame = frames::allocate_clear(held).ok_or(Error::NoFrames)?;
        self.charge_one(frame, used);
        Ok(frame)
    }

    /// As [`Self::allocate_one`], not inlined: for callers whose size counts more than their speed.
    #[inline(never)]
    pub fn allocate_apart(self, used: Use) -> Result<Frame, Error> {
        self.allocate_one(used)
    }

    /// As [`Self::allocate_clear`], not inlined.
    #[inline(never)]
    pub fn allocate_clear_apart(self, used: Use) -> Result<Frame, Error> {
        self.allocate_clear(used)
    }

    #[inline]
    fn charge_one(self, frame: Frame, used: Use) {
        let held = self.held();
        self.charge(1);
        CHARGED.get(held).update(|charged| charged + 1);
        frames::record(held, frame).charge(self, used);
    }

    /// Makes a child with `limit` frames, taken from this account. It pays for at most `numbers` thread numbers; 0 = as many
    /// as this account.
    pub fn new_child(self, limit: usize, numbers: u64) -> Result<Ref<Account>, Error> {
        self.check_depth()?;
        // The child is an object that this account pays for: allocated first, before `limit` is taken.
        let mut child: Fresh<Account> = slab::allocate(self)?;
        match self.child(limit, numbers) {
            Ok(quota) => {
                child.quota = quota;
                child.label = Cell::new(PLAIN);
            }
            Err(error) => {
                slab::free(child.share());
                return Err(error);
            }
        }
        Ok(child.share())
    }

    fn give_back(self) {
        CHARGED.get(self.held()).update(|charged| charged - 1);
        self.uncharge(1);
    }
}

/// Frees a frame and uncharges its account.
pub fn release(held: Held, frame: Frame) {
    release_for(frames::record(held, frame).account(), frame);
}

/// Charges a frame of user memory to another account, which has room for it.
pub fn pass_on(held: Held, frame: Frame, to: Ref<Account>) {
    let from = frames::record(held, frame).account();
    if from != to {
        to.charge(1);
        frames::record(held, frame).charge(to, Use::User);
        from.uncharge(1);
    }
}

/// As [`release`], for a frame that `account` pays for and whose record does not name it.
#[inline(never)]
pub fn release_for(account: Ref<Account>, frame: Frame) {
    let held = account.held();
    frames::record(held, frame).used.set(Use::Inside);
    frames::release(held, frame, 0);
    account.give_back();
}

/// As [`release_for`], for a page table without entries: it is full of zeros, so it is kept as a cleared frame.
pub fn release_table(account: Ref<Account>, frame: Frame) {
    let held = account.held();
    frames::record(held, frame).used.set(Use::Inside);
    frames::release_clear(held, frame);
    account.give_back();
}
