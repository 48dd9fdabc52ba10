//! Activations: a place for one flow of control in one domain.
//!
//! An activation is *free* in its domain's pool, or the *top* of a thread's chain, or *calling*: then
//! `callee` is the next one up and `caller` leads back. How its registers are kept says `frame`.

use crate::arch::registers::Registers;
use crate::arch::special::{self, FpuState};
use crate::arch::{entry, memory, paging};
use crate::cpu;
use crate::deadline::Place;
use crate::domain::{self, Domain};
use crate::frames::{self, Use};
use crate::mapping::Mapping;
use crate::pointer::{Fresh, Link, Ref};
use crate::semaphore::Semaphore;
use crate::thread::Thread;
use crate::{account, lending, slab, space};
use abi::Error;
use abi::layout::{MAX_ACTIVATIONS, MESSAGE_START, USER_END};
use core::cell::Cell;
use core::sync::atomic::{AtomicU8, Ordering};

/// Which of the saved registers count.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Frame {
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
}

/// See the module.
#[repr(C)]
pub struct Activation {
    /// How they are saved.
    pub frame: Cell<Frame>,
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
    pub receive: Cell<u16>,
    /// While it waits: the number of the thread to which it lent its priority; 0 = none.
    pub raised: Cell<u16>,
    /// While it waits: the priority that it lends; for the orphan thread of its domain: the one with which it waits.
    pub amount: Cell<u8>,
    /// The priority that its chain has because of it, at least: by the ceiling of the portal that led here, or, at the bottom of
    /// an orphan, that of the thread from which it was cut off.
    pub base: Cell<u8>,
    /// Its number in its domain, from 1: that of its message area.
    pub number: u8,
    /// It may be the `holder` of others.
    pub is_holder: Cell<bool>,
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
    /// Who called.
    pub caller: Cell<Link<Activation>>,
    /// Whose chain this is in; nothing for an orphan that waits for its domain's orphan thread.
    pub thread: Cell<Link<Thread>>,
    /// Who was called.
    pub callee: Cell<Link<Activation>>,
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
    /// A scheduler's seat: where it is entered.
    pub entry: Cell<u64>,
    /// How far the operation got that is made again; see the operation.
    pub progress: Cell<u64>,
    /// How far it got among the mappings derived from `cursor_root`, which outlives them.
    pub cursor: Cell<Link<Mapping>>,
    /// See `cursor`; only compared.
    pub cursor_root: Cell<usize>,
    /// The domain's list of activations.
    pub domain_next: Cell<Link<Activation>>,
}

/// A user address that may be jumped to or used as a stack (0 is allowed for a stack that is not used).
pub fn check_address(address: u64) -> Result<u64, Error> {
    if address < USER_END { Ok(address) } else { Err(Error::BadAddress) }
}

/// A new activation of `domain` with its message area; in no pool and no chain.
pub fn new(domain: Ref<Domain>, stack: u64) -> Result<Ref<Activation>, Error> {
    let held = domain.held();
    check_address(stack)?;
    if let Some(kept) = domain.spare.take() {
        let (message, message_kernel, fpu) = (kept.message, kept.message_kernel, kept.fpu);
        // SAFETY: an activation that is kept is in no chain, pool or queue.
        let kept = unsafe { Fresh::new(kept.pointer()) };
        return Ok(enlist(domain, kept, stack, message, message_kernel, fpu));
    }
    let slot = (!domain.message_slots.get()).trailing_zeros() as usize;
    if slot >= MAX_ACTIVATIONS {
        return Err(Error::LimitReached);
    }
    let message = MESSAGE_START + (slot * frames::FRAME) as u64;
    let frame = domain.account.allocate_clear(Use::Kernel)?;
    let made = space::map_nucleus_page(domain, message, frame).and_then(|()| {
        slab::allocate_as_it_is::<Activation>(domain.account)
            .inspect_err(|_| space::unmap_nucleus_page(domain, message))
    });
    match made {
        Ok(activation) => {
            let fpu = match new_fpu(domain) {
                Ok(fpu) => fpu,
                Err(error) => {
                    slab::free(activation.share());
                    space::unmap_nucleus_page(domain, message);
                    account::release(held, frame, 0);
                    return Err(error);
                }
            };
            domain.message_slots.update(|value| value | 1 << slot);
            Ok(enlist(domain, activation, stack, message, frames::address_of(frame), fpu))
        }
        Err(error) => {
            account::release(held, frame, 0);
            Err(error)
        }
    }
}

fn new_fpu(domain: Ref<Domain>) -> Result<Link<FpuState>, Error> {
    if domain.slow.get() & domain::SLOW_FPU == 0 {
        Ok(None)
    } else {
        slab::allocate::<FpuState>(domain.account).map(|state| Some(state.share()))
    }
}

fn enlist(
    domain: Ref<Domain>,
    mut activation: Fresh<Activation>,
    stack: u64,
    message: u64,
    message_kernel: usize,
    fpu: Link<FpuState>,
) -> Ref<Activation> {
    // SAFETY: all zeros are a valid activation.
    unsafe { core::ptr::write_bytes(&raw mut *activation, 0, 1) };
    domain.activation_count.update(|value| value + 1);
    (activation.domain, activation.stack) = (domain, stack);
    (activation.message, activation.message_kernel, activation.fpu) = (message, message_kernel, fpu);
    activation.number = ((message - MESSAGE_START) as usize / frames::FRAME) as u8 + 1;
    let activation = activation.share();
    activation.reset_fpu();
    activation.domain_next.set(domain.activations.get());
    domain.activations.set(Some(activation));
    activation
}

/// An activation that is in no chain, pool or queue goes. Its domain keeps the newest for the next: an operation may
/// have removed what it runs in, and ends there.
pub fn free(activation: Ref<Activation>) {
    let domain = activation.domain;
    delist(activation);
    let gone = if domain.is_dead() { Some(activation) } else { domain.spare.replace(Some(activation)) };
    if let Some(gone) = gone {
        release(gone);
    }
}

/// Frees the first activation of a domain's list with all it has; see [`free`].
pub fn free_first(domain: Ref<Domain>) {
    if let Some(activation) = domain.activations.get() {
        delist(activation);
        release(activation);
    }
}

fn delist(activation: Ref<Activation>) {
    let domain = activation.domain;
    if domain.activations.get() == Some(activation) {
        domain.activations.set(activation.domain_next.get());
    } else {
        let mut previous = domain.activations.get();
        // At most `MAX_ACTIVATIONS`.
        while let Some(candidate) = previous {
            if candidate.domain_next.get() == Some(activation) {
                candidate.domain_next.set(activation.domain_next.get());
                break;
            }
            previous = candidate.domain_next.get();
        }
    }
    activation.forget_cursor();
    lending::set_lent(activation, 0);
    domain.activation_count.update(|value| value - 1);
}

/// Frees an activation that is in no list any more.
pub fn release(activation: Ref<Activation>) {
    let held = activation.held();
    let domain = activation.domain;
    domain.message_slots.update(|value| value & !(1 << (activation.number - 1)));
    space::unmap_nucleus_page(domain, activation.message);
    account::release(held, frames::frame_of(activation.message_kernel), 0);
    if let Some(state) = activation.fpu {
        special::forget(activation);
        slab::free(state);
    }
    slab::free(activation);
}

impl Ref<Activation> {
    /// Floating-point registers, if there are any, are as at a start; they are not the loaded ones.
    pub fn reset_fpu(self) {
        if let Some(state) = self.fpu {
            special::forget(self);
            // SAFETY: nobody has it loaded.
            unsafe { (*state.pointer()).reset() };
        }
    }
    /// Sets what a light frame comes back with.
    #[inline(always)]
    pub fn set_result(self, result: Result<u64, Error>) {
        let (status, value) = match result {
            Ok(value) => (0, value),
            Err(error) => (error as u64, 0),
        };
        self.registers.set_result(status, value);
        self.frame.set(Frame::Light);
    }
    /// Words 0 to 4 as saved.
    pub fn words(self) -> [u64; 5] {
        self.registers.words()
    }
    /// Sets words 0 to 4 and the control word.
    pub fn set_words(self, words: [u64; 5], control: u64) {
        self.registers.set_words(words, control);
    }
    /// The system call is made again when this activation runs next.
    pub fn repeat_system_call(self) {
        self.registers.pc.update(|pc| pc - memory::SYSTEM_CALL_BYTES);
        self.frame.set(Frame::Words);
    }
    /// Enters a scheduler's seat anew with two words; it is current.
    #[inline(always)]
    pub fn leave_to_entry(self, word0: u64, word1: u64) -> ! {
        let held = self.held();
        crate::ledger::check_before_leaving(held);
        // SAFETY: entry and stack were checked when the seat was taken; all other registers are cleared.
        unsafe { entry::leave_to_entry(word0, word1, self.address()) }
    }
    /// Enters a service in this activation, which was just called and is current.
    #[inline(always)]
    pub fn leave_to_service(self, pc: u64, badge: u64, words: &[u64; 5], control: u64) -> ! {
        let held = self.held();
        crate::ledger::check_before_leaving(held);
        // SAFETY: entry address and stack were checked when they were given; all other registers are cleared.
        unsafe { entry::leave_to_service(self.address(), pc, badge, words, control) }
    }
    /// Whether [`Self::make_current`] has more to do than [`Self::make_current_plainly`].
    #[inline(always)]
    pub fn is_special(self) -> bool {
        let held = self.held();
        self.domain.slow.get() | cpu::this(held).special.get() != 0
    }
    /// Makes this activation, whose thread is the running one, the running activation of the CPU.
    pub fn make_current(self) {
        if self.is_special() {
            special::load(self);
        }
        self.make_current_plainly();
    }
    /// As [`Self::make_current`], when neither this nor the last activation has special state.
    #[inline(always)]
    pub fn make_current_plainly(self) {
        let held = self.held();
        let cpu = cpu::this(held);
        let domain = self.domain;
        if cpu.domain.get() != Some(domain) {
            let (table, limit) = (domain.table, domain.limit.get());
            cpu.domain.set(Some(domain));
            cpu.table.set(table);
            cpu.limit.set(limit);
            paging::load_root(held, domain.root);
        }
        cpu.activation.set(Some(self));
    }
    /// Leaves the nucleus to this activation, which is current.
    #[inline(always)]
    pub fn leave(self) -> ! {
        let held = self.held();
        crate::ledger::check_before_leaving(held);
        // SAFETY: the frame says which registers were saved; all were user's or checked.
        unsafe {
            match self.frame.get() {
                Frame::Light => entry::leave_to_light(self.address()),
                Frame::Words | Frame::Call | Frame::Bounded => entry::leave_to_words(self.address()),
                Frame::Full => entry::leave_to_full(self.address()),
                Frame::Condemned => crate::fault::condemned(self),
            }
        }
    }
    /// As [`Self::leave`], when the frame is light most of the time: nothing else is looked at then.
    #[inline(always)]
    pub fn leave_lightly(self) -> ! {
        let held = self.held();
        crate::ledger::check_before_leaving(held);
        if self.frame.get() != Frame::Light {
            self.leave_with_more()
        }
        // SAFETY: the frame is light, so these registers were saved; all were user's or checked.
        unsafe { entry::leave_to_light(self.address()) }
    }
    #[inline(never)]
    fn leave_with_more(self) -> ! {
        self.leave()
    }
    /// When it goes on, its domain dies with this status. Why: the address or vector, the processor's code, and the
    /// error that kept the fault from being handled, or 0 if its handler gave up. A page fault without a code: it ended
    /// without an answer.
    pub fn condemn(self, status: u64, [which, code, error]: [u64; 3]) {
        self.registers.set_words([status, 0, which, code, error], 0);
        self.registers.set_status(0);
        self.frame.set(Frame::Condemned);
    }
    /// The operation starts anew when it is made next.
    pub fn forget_progress(self) {
        self.progress.set(0);
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
        // SAFETY: `wait` is `Pool` or `Orphans`; the domain lets its waiters go before it goes.
        unsafe { Ref::new(self.waits_on.get() as *mut Domain) }
    }
    /// The semaphore it waits on.
    pub fn semaphore(self) -> Ref<Semaphore> {
        // SAFETY: `wait` is `Semaphore`; the semaphore wakes its waiters before it goes.
        unsafe { Ref::new(self.waits_on.get() as *mut Semaphore) }
    }
}
