//! Kernel operations: what stands behind portal indices 0 to 31. Their contract is `abi::operations`.

mod entries;
mod memory;
mod objects;
mod running;

use crate::account::Account;
use crate::activation::Activation;
use crate::arch::{entry, memory as memory_layout};
use crate::cpu;
use crate::domain::{self, Domain};
use crate::pointer::{Held, Ref};
use crate::semaphore::{Reply, Semaphore};
use crate::table::{Entry, OfKind, PLACES_LOOKED_AT};
use crate::{frames, info, schedule};
use abi::Error;
use abi::op::{self, Class, Each};
use abi::rights::Kind;
use abi::sched::Event;

/// Steps (pages, entries, activations) between two preemption points.
pub const STEPS: u32 = 5;

/// In the progress of an operation: it looked for a free place once. Below, progress is an index.
pub const LOOKED: usize = 1 << 16;

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

/// An operation, and how it is entered, to be compared with the contract.
type Entered = (Class, Operation);

/// In `entry.s` alone.
const fn assembly(code: unsafe extern "C" fn()) -> Entered {
    (Class::Assembly, Operation { code: code as *const (), function: core::ptr::null() })
}
const fn full(function: Full) -> Entered {
    (Class::Full, Operation { code: entry::op_full as *const (), function: function as *const () })
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

/// An operation that ends at once, with words 0 1 2 5 3 4, or the first of them.
macro_rules! light {
    ($function:path, $($word:ident),*) => {
        light!(Light op_light, $function, $($word),*)
    };
    ($class:ident $code:ident, $function:path, $($word:ident),*) => {{
        extern "C" fn handler($($word: u64),*) -> Reply {
            // SAFETY: the way here took the lock.
            $function(unsafe { Held::new() }, $($word),*)
        }
        (Class::$class, Operation { code: entry::$code as *const (), function: handler as *const () })
    }};
}

macro_rules! full {
    ($function:path) => {{
        extern "C" fn handler(activation: Ref<Activation>) -> Reply {
            finish(activation, $function(&Operands(activation)))
        }
        full(handler)
    }};
}

/// By portal index.
pub static TABLE: [Operation; op::COUNT] = in_order(Each {
    r#return: assembly(entry::entry_return),
    thread_id: assembly(entry::op_thread_id),
    clock: light!(running::clock, a, b),
    r#yield: light!(schedule::yield_, a, b),
    exit: light!(running::exit, a, b),
    domain_new: full!(objects::domain_new),
    domain_kill: full!(objects::domain_kill),
    domain_set: full!(objects::domain_set),
    account_new: full!(objects::account_new),
    account_move: full!(objects::account_move),
    activation_new: full!(objects::activation_new),
    thread_new: full!(objects::thread_new),
    thread_schedule: full!(running::thread_schedule),
    thread_ex_regs: full!(running::thread_ex_regs),
    entry_copy: full!(entries::copy),
    entry_remove: full!(entries::remove),
    entry_revoke: full!(entries::revoke),
    map: full!(memory::map),
    unmap: full!(memory::unmap),
    draw: full!(memory::draw),
    service_new: full!(entries::service_new),
    portal_new: full!(entries::portal_new),
    semaphore_new: full!(objects::semaphore_new),
    interrupt_bind: full!(objects::interrupt_bind),
    port: light!(running::port, a, b, c, d, e, f),
    dispatch: light!(Dispatch op_dispatch, schedule::dispatch, a, b),
    info: full!(running::info),
    machine: full!(objects::machine),
    log: light!(running::log, a, b),
    activation_set: light!(running::activation_set, a, b),
    entry_info: full!(entries::info),
    ipc: full!(reserved),
});

/// By portal index; each is entered as the contract says.
const fn in_order(each: Each<Entered>) -> [Operation; op::COUNT] {
    let entered = each.in_order();
    let mut table = [entered[0].1; op::COUNT];
    let mut index = 0;
    while index < op::COUNT {
        assert!(entered[index].0 as u8 == op::TABLE[index].class as u8, "entered otherwise than the contract says");
        table[index] = entered[index].1;
        index += 1;
    }
    table
}

fn reserved(_: &Operands) -> Outcome {
    Err(Error::BadArgument.into())
}

/// Leaves a full operation: to its caller, or to whatever its effects put in the caller's place.
fn finish(activation: Ref<Activation>, outcome: Outcome) -> Reply {
    let held = activation.held();
    if !matches!(outcome, Err(Stop::Repeat)) {
        activation.forget_progress();
    }
    match outcome {
        Ok(value) => activation.set_result(Ok(value)),
        Err(Stop::Refused(error)) => activation.set_result(Err(error)),
        Err(Stop::Repeat) => {
            info::counters(held).restarts.up();
            activation.repeat_system_call();
        }
    }
    let cpu = cpu::this(held);
    if activation.domain.is_dead() {
        domain::leave_dead(held)
    }
    if activation.thread.get().is_none() || activation.thread.get() != cpu.thread.get() {
        // The chain was split below this activation, and the orphan thread is busy.
        schedule::enter(held, Event::Choose, 0)
    }
    if cpu.preempt.get() {
        schedule::give_way(held, Event::Preempted)
    }
    activation.leave()
}

/// Sees to it that an operation finds so many clear frames at hand; each is cleared in a stretch of its own.
fn have_clear(operands: &Operands, frames: usize) {
    let held = operands.held();
    in_stretches(operands, || frames::clear_ahead(held, frames));
}

/// Sees to it that a block, and a few frames besides, need be neither split nor joined.
fn have_block(operands: &Operands, order: u64) {
    let held = operands.held();
    in_stretches(operands, || frames::prepare(held, order as usize) || frames::prepare(held, 0));
}

/// Makes steps, each in a stretch of its own, until one says that there is nothing left to do. An interrupt in between makes the
/// operation start again, so nothing may have been done before.
#[inline(always)]
fn in_stretches(operands: &Operands, step: impl Fn() -> bool) {
    while step() {
        let activation = operands.0;
        activation.repeat_system_call();
        schedule::preemption_point(operands.held());
        activation.registers.pc.update(|pc| pc + memory_layout::SYSTEM_CALL_BYTES);
    }
}

/// The words of a full operation, read as operands.
pub struct Operands(pub Ref<Activation>);

impl Operands {
    /// Who has operands has the lock.
    pub fn held(&self) -> Held {
        self.0.held()
    }
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
    /// The object of an entry of the caller's table.
    #[inline(always)]
    pub fn object<T: OfKind>(&self, word: usize, rights: u8) -> Result<Ref<T>, Error> {
        self.own().object(self.index(word), rights)
    }
    /// A domain operand: 0 = the caller's own.
    pub fn domain(&self, word: usize, rights: u8) -> Result<Ref<Domain>, Error> {
        if self.word(word) == 0 {
            return Ok(self.own());
        }
        let domain: Ref<Domain> = self.object(word, rights)?;
        if domain.is_dead() { Err(Error::PeerDied) } else { Ok(domain) }
    }
    /// An account operand: 0 = the caller's own.
    pub fn account(&self, word: usize, rights: u8) -> Result<Ref<Account>, Error> {
        if self.word(word) == 0 {
            return Ok(self.own().account);
        }
        self.object(word, rights)
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
        let activation = self.0;
        activation.progress.update(|value| value + LOOKED as u64);
        let looked_at = activation.progress.get() as usize / LOOKED * PLACES_LOOKED_AT;
        Err(if looked_at < domain.table_entries() { Stop::Repeat } else { Error::TableFull.into() })
    }
    /// A semaphore operand.
    pub fn semaphore(&self, word: usize, rights: u8) -> Result<Ref<Semaphore>, Error> {
        self.object(word, rights)
    }
}
