//! Activations: a place for one flow of control in one domain.
//!
//! An activation is *free* in its domain's pool, or the *top* of a thread's chain, or *calling*: then
//! `callee` is the next one up and `caller` leads back. How its registers are kept says `frame`.

use super::arch::{FpuState, Registers};
use super::{Domain, Mapping, Queue, Semaphore, Thread};
use crate::pointer::{Link, Ref};
use abi::Error;
use core::cell::Cell;
use core::sync::atomic::{AtomicU8, Ordering};
use portalgen::specification::REGISTER_WORDS;
use structures::deadlines::{self, Timed};

/// Which of the saved registers count.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SavedFrame {
    /// In a kernel operation: the preserved ones, status and word 0.
    Light = 0,
    /// The preserved ones, status, all words, control.
    Words = 1,
    /// In a call: the preserved ones; the return brings the words.
    Call = 2,
    /// Interrupted or faulted: all.
    Full = 3,
    /// In a call that has a deadline; otherwise as `Call`.
    Bounded = 4,
    /// As `Full`, but when it goes on its domain dies: see [`Ref::condemn`].
    Condemned = 5,
    /// As `Words`, of one that was woken to call again: [`Wait::Called`].
    WordsAgain = 6,
    /// As `Full`, of such a one.
    FullAgain = 7,
    /// As `Words`, of one that was woken at a port: it takes a message when it goes on.
    Receives = 8,
}

/// Where in a chain it is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// In its domain's pool.
    Free = 0,
    /// The end of a chain: it runs, is ready, or waits.
    Top = 1,
    /// In a call; `callee` goes on.
    Calling = 2,
}

/// What the top of a chain waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Wait {
    /// Nothing.
    No = 0,
    /// A semaphore (`waits_on`).
    Semaphore = 1,
    /// A free activation of the domain `waits_on`.
    Pool = 2,
    /// The orphan thread of the domain `waits_on`.
    Orphans = 3,
    /// Nothing any more: an activation of the domain `waits_on` became free, and it makes its call again.
    Called = 4,
}

/// What an activation does to the labels of its domain.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Changes {
    /// Nothing.
    Nothing = 0,
    /// It began a raise, for what it is about to do.
    Raise = 1,
    /// It began a change, which is its operation.
    Own = 2,
    /// That was made.
    Made = 3,
}

/// See the module.
#[repr(C)]
pub struct Activation {
    /// How they are saved.
    pub frame: Cell<SavedFrame>,
    /// Where it is.
    pub state: Cell<State>,
    /// Activations below it in its chain. `entry.s` moves frame, state and depth as one, to the begin of the activation.
    pub depth: Cell<u16>,
    /// It may always be first in a chain, never in the pool.
    pub bottom: Cell<bool>,
    /// What it waits for.
    pub wait: Cell<Wait>,
    /// Highest priority lent to it.
    pub lent: Cell<u8>,
    /// Index where delegated entries go; 0 = none are accepted.
    pub receive: Cell<u32>,
    /// While it waits: the number of the thread to which it lent its priority; 0 = none.
    pub raised: Cell<u16>,
    /// While it waits: the priority with which it does, and which it lends.
    pub amount: Cell<u8>,
    /// The priority that its chain has because of it, at least: by the ceiling of the portal that led here, or, at the bottom of
    /// an orphan, that of the thread from which it was cut off.
    pub base: Cell<u8>,
    /// Its number in its domain, from 1: that of its message area.
    pub number: u8,
    /// It may be the `holder` of others.
    pub is_holder: Cell<bool>,
    /// Where torn pages go; 0 = none are accepted.
    pub torn: Cell<u64>,
    /// The CPU, plus one, that has the entries of its window although its thread went elsewhere; 0 = that of its thread.
    pub left_behind: Cell<u8>,
    /// What it does to the labels of its domain.
    pub changes: Cell<Changes>,
    /// Saved registers.
    pub registers: Registers,
    /// Thread pointer.
    pub pointer: Cell<u64>,
    /// Floating-point registers, if its domain has them.
    pub fpu: Link<FpuState>,
    /// Next in the pool or in a queue of waiters.
    pub next: Cell<Link<Activation>>,
    /// Previous in a queue of waiters.
    pub previous: Cell<Link<Activation>>,
    /// In a queue of waiters: those behind it that wait with the same priority.
    pub behind: Queue,
    /// Who called.
    pub caller: Cell<Link<Activation>>,
    /// Whose chain this is in; nothing for an orphan that waits for its domain's orphan thread.
    pub thread: Cell<Link<Thread>>,
    /// The window that its caller opened for it, 0 = none: see `memory::lend`.
    pub window: Cell<u64>,
    /// Where it sees that, 0 = it gets none, and bytes to the entry of that page.
    pub slot: u64,
    /// See `slot`.
    pub slot_offset: usize,
    /// Who was called.
    pub callee: Cell<Link<Activation>>,
    /// Where its return goes on: in the code of a portal, or at `return_any` of `entry.s`.
    pub back: Cell<usize>,
    /// Where it runs.
    pub domain: Ref<Domain>,
    /// Top of its user stack.
    pub stack: u64,
    /// The message area: user address, and the same page in the direct map.
    pub message: u64,
    /// See `message`.
    pub message_kernel: usize,
    /// While it waits: the activation of its domain that holds what it waits for, to which it lends its priority.
    pub holder: Cell<Link<Activation>>,
    /// The semaphore or domain it waits on.
    pub waits_on: Cell<usize>,
    /// When its wait or its call ends, in ticks; 0 = never.
    pub deadline: Cell<u64>,
    /// Where it is among the deadlines.
    pub place: Place,
    /// A scheduler's seat: where it is entered. Of others, once they had a fault that a handler was called for: the address of the last page
    /// fault, or [`NO_ADDRESS`].
    pub entry: Cell<u64>,
    /// How far the operation that is restarted got; see the operation.
    pub progress: Cell<u64>,
    /// How far it got among the mappings derived from `cursor_root`, which outlives them.
    pub cursor: Cell<Link<Mapping>>,
    /// See `cursor`; only compared.
    pub cursor_root: Cell<usize>,
    /// The domain's list of activations.
    pub domain_next: Cell<Link<Activation>>,
}

/// The last fault that a handler was called for was no page fault.
pub const NO_ADDRESS: u64 = u64::MAX;

/// An activation's place in the tree of deadlines.
pub type Place = deadlines::Place<Ref<Activation>>;

impl Timed for Ref<Activation> {
    fn deadline(&self) -> u64 {
        self.deadline.get()
    }
    fn place(&self) -> &Place {
        &self.place
    }
}

impl Ref<Activation> {
    /// Sets what a light frame comes back with.
    #[inline(always)]
    pub fn set_result(self, result: Result<u64, Error>) {
        let (status, value) = match result {
            Ok(value) => (0, value),
            Err(error) => (error as u64, 0),
        };
        self.registers.set_result(status, value);
        self.frame.set(SavedFrame::Light);
    }
    /// Words 0 to 4 as saved.
    pub fn words(self) -> [u64; 5] {
        self.registers.words()
    }
    /// Words 0 to 8.
    pub fn all_words(self) -> [u64; REGISTER_WORDS] {
        let ([a, b, c, d, e], more) = (self.words(), self.registers.more_words());
        [a, b, c, d, e, more[0].get(), more[1].get(), more[2].get(), more[3].get()]
    }
    /// Sets the first so many of these words, at least five, and the control word.
    pub fn set_all_words(self, words: &[u64; REGISTER_WORDS], count: usize, control: u64) {
        let (first, more) = words.split_at(5);
        self.set_words(core::array::from_fn(|word| first[word]), control);
        let passed = more.iter().zip(self.registers.more_words()).take(count.saturating_sub(5));
        passed.for_each(|(word, place)| place.set(*word));
    }
    /// Sets words 0 to 4 and the control word.
    pub fn set_words(self, words: [u64; 5], control: u64) {
        self.registers.set_words(words, control);
    }
    /// The next operation starts from the beginning.
    pub fn forget_progress(self) {
        self.progress.set(0);
        self.changes.set(Changes::Nothing);
        self.forget_cursor();
    }
    /// Lets the cursor go.
    pub fn forget_cursor(self) {
        if let Some(mapping) = self.cursor.take() {
            mapping.visitor.set(None);
        }
    }
    /// Where it is, of one that may be in the chain of a thread that runs on another CPU: that changes it meanwhile. What that CPU did
    /// before is seen from here on.
    pub fn state_there(self) -> State {
        // SAFETY: an aligned byte.
        match unsafe { AtomicU8::from_ptr(self.state.as_ptr().cast()).load(Ordering::Acquire) } {
            0 => State::Free,
            1 => State::Top,
            _ => State::Calling,
        }
    }
    /// The domain whose pool or orphan thread it waits for.
    pub fn awaited_domain(self) -> Ref<Domain> {
        // SAFETY: `wait` is `Pool`, `Called` or `Orphans`; the domain lets its waiters go before it goes.
        unsafe { Ref::new(self.waits_on.get() as *mut Domain) }
    }
    /// The semaphore it waits on.
    pub fn semaphore(self) -> Ref<Semaphore> {
        // SAFETY: `wait` is `Semaphore`; the semaphore wakes its waiters before it goes.
        unsafe { Ref::new(self.waits_on.get() as *mut Semaphore) }
    }
}
