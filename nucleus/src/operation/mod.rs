//! Kernel operations: what stands behind portal indices 0 to 31. Their contract is `abi::op`.

mod entries;
mod memory;
mod objects;
mod running;

use crate::account::Account;
use crate::activation::Activation;
use crate::arch::{entry, memory as memory_layout};
use crate::cpu;
use crate::domain::{self, Domain};
use crate::pointer::Ref;
use crate::semaphore::{Reply, Semaphore};
use crate::table::{Entry, PLACES_LOOKED_AT};
use crate::{frames, info, schedule};
use abi::Error;
use abi::rights::Kind;
use abi::sched::Event;

/// Steps (pages, entries, activations) between two preemption points.
pub const STEPS: u32 = 5;

/// In the progress of an operation: it looked for a free place once. Below, progress is an index.
pub const LOOKED: usize = 1 << 16;

/// An operation that ends at once, with words 0 1 2 5 3 4.
type Light = extern "C" fn(u64, u64, u64, u64, u64, u64) -> Reply;
/// An operation that can be repeated, with the activation in which its words stand.
type Full = extern "C" fn(Ref<Activation>) -> Reply;

/// How an operation is entered: what an entry for it holds.
#[derive(Clone, Copy)]
pub struct Operation {
    /// Where the system call jumps.
    pub code: *const (),
    /// The function that this calls.
    pub function: *const (),
}

// SAFETY: addresses of code, which is only read.
unsafe impl Sync for Operation {}

impl Operation {
    /// In `entry.s` alone.
    const fn assembly(code: unsafe extern "C" fn()) -> Self {
        Self { code: code as *const (), function: core::ptr::null() }
    }
    const fn light(function: Light) -> Self {
        Self { code: entry::op_light as *const (), function: function as *const () }
    }
    /// As `light`, with fewer words.
    const fn light2(function: extern "C" fn(u64, u64) -> Reply) -> Self {
        Self { code: entry::op_light as *const (), function: function as *const () }
    }
    const fn full(function: Full) -> Self {
        Self { code: entry::op_full as *const (), function: function as *const () }
    }
}

/// Why an operation stops.
pub enum Stop {
    /// It is refused.
    Refused(Error),
    /// It came to a preemption point and is made again.
    Repeat,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// The outcome of a full operation.
pub type Outcome = Result<u64, Stop>;

macro_rules! full {
    ($function:path) => {{
        extern "C" fn handler(activation: Ref<Activation>) -> Reply {
            finish(activation, $function(&Operands(activation)))
        }
        Operation::full(handler)
    }};
}

/// By portal index.
pub static TABLE: [Operation; 32] = [
    Operation::assembly(entry::entry_return),
    Operation::assembly(entry::op_thread_id),
    Operation::light2(running::clock),
    Operation::light2(schedule::yield_),
    Operation::light2(running::exit),
    full!(objects::domain_new),
    full!(objects::domain_kill),
    full!(objects::domain_set),
    full!(objects::account_new),
    full!(objects::account_move),
    full!(objects::activation_new),
    full!(objects::thread_new),
    full!(running::thread_schedule),
    full!(running::thread_ex_regs),
    full!(entries::copy),
    full!(entries::remove),
    full!(entries::revoke),
    full!(memory::map),
    full!(memory::unmap),
    full!(memory::draw),
    full!(entries::service_new),
    full!(entries::portal_new),
    full!(objects::semaphore_new),
    full!(objects::interrupt_bind),
    Operation::light(running::port),
    Operation { code: entry::op_dispatch as *const (), function: schedule::dispatch as *const () },
    full!(running::info),
    full!(objects::machine),
    Operation::light2(running::log),
    Operation::light2(running::activation_set),
    full!(entries::info),
    full!(reserved),
];

fn reserved(_: &Operands) -> Outcome {
    Err(Error::BadArgument.into())
}

/// Leaves a full operation: to its caller, or to whatever its effects put in the caller's place.
fn finish(activation: Ref<Activation>, outcome: Outcome) -> Reply {
    if !matches!(outcome, Err(Stop::Repeat)) {
        activation.forget_progress();
    }
    match outcome {
        Ok(value) => activation.set_result(Ok(value)),
        Err(Stop::Refused(error)) => activation.set_result(Err(error)),
        Err(Stop::Repeat) => {
            info::counters().restarts += 1;
            activation.repeat_system_call();
        }
    }
    let cpu = cpu::this();
    if activation.domain.is_dead() {
        domain::leave_dead()
    }
    if activation.thread.is_none() || activation.thread != cpu.thread {
        // The chain was split below this activation, and the orphan thread is busy.
        schedule::enter(Event::Choose, 0)
    }
    if cpu.preempt {
        schedule::give_way(Event::Preempted)
    }
    activation.leave()
}

/// Sees to it that an operation finds so many clear frames at hand; each is cleared in a stretch of its own.
/// An interrupt in between makes the operation start again, so nothing may have been done before.
fn have_clear(operands: &Operands, frames: usize) {
    while frames::clear_ahead(frames) {
        let mut activation = operands.0;
        activation.repeat_system_call();
        schedule::preemption_point();
        activation.registers.pc += memory_layout::SYSTEM_CALL_BYTES;
    }
}

/// Sees to it that a block, and a few frames besides, need be neither split nor joined; otherwise as [`have_clear`].
fn have_block(operands: &Operands, order: u64) {
    while frames::prepare(order as usize) || frames::prepare(0) {
        let mut activation = operands.0;
        activation.repeat_system_call();
        schedule::preemption_point();
        activation.registers.pc += memory_layout::SYSTEM_CALL_BYTES;
    }
}

/// The words of a full operation, read as operands.
pub struct Operands(pub Ref<Activation>);

impl Operands {
    /// The caller's domain.
    pub fn own(&self) -> Ref<Domain> {
        self.0.domain
    }
    /// Word 0 to 5.
    pub fn word(&self, index: usize) -> u64 {
        self.0.registers.word(index)
    }
    /// A word as index of a table.
    pub fn index(&self, word: usize) -> usize {
        usize::try_from(self.word(word)).unwrap_or(usize::MAX)
    }
    /// An entry of the caller's table.
    pub fn entry(&self, word: usize, kind: Kind, rights: u8) -> Result<Ref<Entry>, Error> {
        self.own().entry(self.index(word), kind, rights)
    }
    /// A domain operand: 0 = the caller's own.
    pub fn domain(&self, word: usize, rights: u8) -> Result<Ref<Domain>, Error> {
        if self.word(word) == 0 {
            return Ok(self.own());
        }
        let entry = self.entry(word, Kind::Domain, rights)?;
        // SAFETY: the kind was checked.
        let domain: Ref<Domain> = unsafe { entry.object_as() };
        if domain.is_dead() { Err(Error::PeerDied) } else { Ok(domain) }
    }
    /// An account operand: 0 = the caller's own.
    pub fn account(&self, word: usize, rights: u8) -> Result<Ref<Account>, Error> {
        if self.word(word) == 0 {
            return Ok(self.own().account);
        }
        // SAFETY: the kind was checked.
        Ok(unsafe { self.entry(word, Kind::Account, rights)?.object_as() })
    }
    /// The place that an index to fill names: a free one of `domain`, or with 0 the next that is free. That is looked for in
    /// steps: the progress of the operation counts them, in units of [`LOOKED`].
    pub fn vacancy(&self, domain: Ref<Domain>, word: usize) -> Result<(Ref<Entry>, usize), Stop> {
        if self.word(word) != 0 {
            return Ok(domain.vacancy(self.index(word))?);
        }
        if let Some(found) = domain.find_vacancy() {
            return Ok(found);
        }
        let mut activation = self.0;
        activation.progress += LOOKED as u64;
        let looked_at = activation.progress as usize / LOOKED * PLACES_LOOKED_AT;
        Err(if looked_at < domain.table_entries() { Stop::Repeat } else { Error::TableFull.into() })
    }
    /// A semaphore operand.
    pub fn semaphore(&self, word: usize, rights: u8) -> Result<Ref<Semaphore>, Error> {
        // SAFETY: the kind was checked.
        Ok(unsafe { self.entry(word, Kind::Semaphore, rights)?.object_as() })
    }
}
