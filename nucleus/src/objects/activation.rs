//! Activations: each is a place for one flow of control in one domain.
//!
//! An activation is *free* in its domain's pool, the *top* of a thread's chain, or *calling*. In a chain, `callee` leads up
//! and `caller` leads down. `frame` says which registers are saved.

use super::arch::{FpuState, Registers};
use super::{Domain, Mapping, Queue, Semaphore, Thread};
use crate::pointer::{Link, Ref};
use abi::Error;
use core::cell::Cell;
use core::sync::atomic::{AtomicU8, Ordering};
use portalgen::specification::REGISTER_WORDS;
use structures::deadlines::{self, Timed};

/// Which of the saved registers are valid, and how the activation resumes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SavedFrame {
    /// In a kernel operation: preserved registers, status and word 0.
    Light = 0,
    /// Preserved registers, status, all words, control word.
    Words = 1,
    /// In a call: preserved registers; the return delivers the words.
    Call = 2,
    /// Interrupted or faulted: all registers.
    Full = 3,
    /// As `Call`, with a deadline.
    Bounded = 4,
    /// As `Full`, but its domain dies instead of resuming it: see [`Ref::condemn`].
    Condemned = 5,
    /// As `Words`, woken to restart its call: [`Wait::Called`].
    WordsAgain = 6,
    /// As `Full`, woken to restart its call.
    FullAgain = 7,
    /// As `Words`, woken at a port: it takes a message when it resumes.
    Receives = 8,
}

/// Place in a chain.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// In its domain's pool.
    Free = 0,
    /// The top of a chain: it runs, is ready, or waits.
    Top = 1,
    /// In a call, until `callee` returns.
    Calling = 2,
}

/// Reason why the top of a chain waits.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Wait {
    /// It does not wait.
    No = 0,
    /// A semaphore (`waits_on`).
    Semaphore = 1,
    /// A free activation of the domain `waits_on`.
    Pool = 2,
    /// Its turn on the orphan thread of the domain `waits_on`.
    Orphans = 3,
    /// Its wait is over: an activation of the domain `waits_on` became free, and it restarts its call.
    Called = 4,
}

/// Label change of its domain that an activation began.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Changes {
    /// None.
    Nothing = 0,
    /// A raise of the labels that its operation requires.
    Raise = 1,
    /// A change requested by its operation.
    Own = 2,
    /// The requested change is complete.
    Made = 3,
    /// Another thread did the step in which the requested change was refused.
    Refused = 4,
    /// None; its operation has restarted after a verdict.
    Judged = 5,
    /// The same, twice: as often as an operation has operands that are judged.
    JudgedTwice = 6,
}

/// In `receive_state`: the receive was woken. If it waits again it is the first of its priority.
pub const WOKEN: u64 = 1 << 63;
/// In `receive_state`: it was cancelled after that. It does not wait again.
pub const CANCELLED: u64 = 1 << 62;

// Every domain pays for these: besides the saved registers they stay small.
const _: () = assert!(size_of::<Activation>() <= size_of::<Registers>() + 304);

/// See the module.
#[repr(C)]
pub struct Activation {
    /// Which registers are saved.
    pub frame: Cell<SavedFrame>,
    /// Place in its chain.
    pub state: Cell<State>,
    /// Number of activations below it in its chain. Portal code accesses frame, state and depth as one aligned word, at the
    /// start of the activation.
    pub depth: Cell<u16>,
    /// It is the bottom of a thread's own chain, and never in the pool.
    pub bottom: Cell<bool>,
    /// Reason why it waits.
    pub wait: Cell<Wait>,
    /// Highest priority lent to it.
    pub lent: Cell<u8>,
    /// Index where a delegated entry is put; 0 = none is accepted.
    pub receive: Cell<u32>,
    /// While it waits: the number of the thread to which it lent its priority; 0 = none.
    pub raised: Cell<u16>,
    /// While it waits: its priority in the queue, which it also lends.
    pub amount: Cell<u8>,
    /// Least priority of its chain due to it: the ceiling of the portal that led here. At the bottom of an orphan also the
    /// priority of the thread from which it was split, up to the domain's maximum.
    pub base: Cell<u8>,
    /// Number in its domain, from 1; also that of its message area.
    pub number: u8,
    /// Others may name it as their `holder`.
    pub is_holder: Cell<bool>,
    /// Address where a torn page is mapped; 0 = none is accepted.
    pub torn: Cell<u64>,
    /// Number plus 1 of the CPU that has the page-table entries of its window, if its thread migrated; 0 = its thread's CPU.
    pub left_behind: Cell<u8>,
    /// Label change of its domain that it began.
    pub changes: Cell<Changes>,
    /// Saved registers.
    pub registers: Registers,
    /// Thread pointer.
    pub pointer: Cell<u64>,
    /// Floating-point registers, if its domain uses them.
    pub fpu: Link<FpuState>,
    /// Next in the pool or in a queue of waiters.
    pub next: Cell<Link<Activation>>,
    /// Previous in a queue of waiters.
    pub previous: Cell<Link<Activation>>,
    /// In a queue of waiters: later ones of the same priority.
    pub behind: Queue,
    /// Its caller.
    pub caller: Cell<Link<Activation>>,
    /// Thread of its chain; None for an orphan that has no thread: see `control::chain`.
    pub thread: Cell<Link<Thread>>,
    /// Window that its caller opened for it; 0 = none: see `memory::lend`.
    pub window: Cell<u64>,
    /// Address where it sees its window, 0 = it takes none; and the offset in bytes of the slot's first page-table entry.
    pub slot: u64,
    /// See `slot`.
    pub slot_offset: usize,
    /// The activation that it called; stale after a return on the fast path.
    pub callee: Cell<Link<Activation>>,
    /// Code address that handles its return: in portal code, or `return_any` in `entry.s`.
    pub back: Cell<usize>,
    /// Domain in which it runs.
    pub domain: Ref<Domain>,
    /// Top of its user stack.
    pub stack: u64,
    /// Message area: its user address, and its address in the direct map.
    pub message: u64,
    /// See `message`.
    pub message_kernel: usize,
    /// While it waits: the activation of its domain that holds what it waits for, and borrows its priority.
    pub holder: Cell<Link<Activation>>,
    /// Address of the semaphore or domain that it waits on; `wait` says which.
    pub waits_on: Cell<usize>,
    /// Deadline of its wait or its call, in ticks; 0 = none.
    pub deadline: Cell<u64>,
    /// Place in the tree of deadlines.
    pub place: Place,
    /// A scheduler's seat: its entry point. Others, after an upcall: the address of the last page fault, or [`NO_ADDRESS`].
    pub entry: Cell<u64>,
    /// Progress of a restarted operation; its meaning depends on the operation.
    pub progress: Cell<u64>,
    /// In a receive: the number of the message for which it began a change of labels; 0 = none.
    pub begun_for: Cell<u64>,
    /// In a receive: [`WOKEN`], [`CANCELLED`]; and if it has dropped messages, the number of the last one that was there before.
    pub receive_state: Cell<u64>,
    /// Address of the port of that receive: compared, never dereferenced. A receive may end without an operation of the nucleus, when its
    /// entry goes: its state then means nothing for other ports, and no other operation depends on it.
    pub receives_at: Cell<usize>,
    /// Place where its unmap continues, among the mappings derived from `cursor_root`, which outlives them.
    pub cursor: Cell<Link<Mapping>>,
    /// See `cursor`; compared, never dereferenced.
    pub cursor_root: Cell<usize>,
    /// Next in the domain's list of activations.
    pub domain_next: Cell<Link<Activation>>,
}

/// In `entry`: the last upcall was not for a page fault.
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
    /// Sets the result of an operation, as a light frame.
    #[inline(always)]
    pub fn set_result(self, result: Result<u64, Error>) {
        let (status, value) = match result {
            Ok(value) => (0, value),
            Err(error) => (error as u64, 0),
        };
        self.registers.set_result(status, value);
        self.frame.set(SavedFrame::Light);
    }
    /// Saved words 0 to 4.
    pub fn words(self) -> [u64; 5] {
        self.registers.words()
    }
    /// Saved words 0 to 8.
    pub fn all_words(self) -> [u64; REGISTER_WORDS] {
        let ([a, b, c, d, e], more) = (self.words(), self.registers.more_words());
        [a, b, c, d, e, more[0].get(), more[1].get(), more[2].get(), more[3].get()]
    }
    /// Sets the first `count` of these words, at least five, and the control word.
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
    /// Resets all progress: the next operation starts from the beginning.
    pub fn forget_progress(self) {
        self.progress.set(0);
        self.changes.set(Changes::Nothing);
        self.begun_for.set(0);
        self.receive_state.set(0);
        self.forget_cursor();
    }
    /// Drops the cursor.
    pub fn forget_cursor(self) {
        if let Some(mapping) = self.cursor.take() {
            mapping.visitor.set(None);
        }
    }
    /// The state of an activation that another CPU may be changing on a fast path. Acquire: later reads see all that the CPU
    /// wrote before it.
    pub fn state_there(self) -> State {
        // SAFETY: an aligned byte, which lives as long as the activation.
        match unsafe { AtomicU8::from_ptr(self.state.as_ptr().cast()).load(Ordering::Acquire) } {
            0 => State::Free,
            1 => State::Top,
            _ => State::Calling,
        }
    }
    /// The domain on whose pool or orphan thread it waits.
    pub fn awaited_domain(self) -> Ref<Domain> {
        // SAFETY: `wait` is `Pool`, `Called` or `Orphans`: `waits_on` is a domain. It wakes its waiters before it is freed.
        unsafe { Ref::new(self.waits_on.get() as *mut Domain) }
    }
    /// The semaphore it waits on.
    pub fn semaphore(self) -> Ref<Semaphore> {
        // SAFETY: `wait` is `Semaphore`: `waits_on` is a semaphore. It wakes its waiters before it is freed.
        unsafe { Ref::new(self.waits_on.get() as *mut Semaphore) }
    }
}
