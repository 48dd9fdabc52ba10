//! The block of a CPU, reached through GS.

use crate::activation::Activation;
use crate::domain::Domain;
use crate::pointer::{Link, Nucleus, Ref};
use crate::thread::Thread;

/// What runs on this CPU, and where its stack is. The fields up to `longest_by` are used by `entry.s`.
#[repr(C)]
pub struct Cpu {
    /// Where the running flow of control keeps its registers.
    pub activation: Link<Activation>,
    /// The running domain's table, and its bytes minus those of an entry.
    pub table: usize,
    /// See `table`.
    pub limit: usize,
    /// The running domain.
    pub domain: Link<Domain>,
    /// The running thread; while `sched` runs, none.
    pub thread: Link<Thread>,
    /// Top of the one kernel stack.
    pub stack: usize,
    /// One word for the first instructions of a trap.
    pub scratch: usize,
    /// In a measuring build: the time of the last entry, and of what (index * 64, or 0x1000 + vector).
    pub entered: u64,
    /// See `entered`.
    pub entered_by: u64,
    /// The longest time from an entry to leaving, and of what.
    pub longest: u64,
    /// See `longest`.
    pub longest_by: u64,
    /// An operation that can be made again lets interrupts in.
    pub window: bool,
    /// The CPU sleeps in `idle_wait`.
    pub idle: bool,
    /// The loaded thread pointer.
    pub pointer: u64,
    /// Whose floating-point registers are loaded.
    pub fpu: Link<Activation>,
    /// Not zero: one of the two above is.
    pub special: u8,
    /// Something that precedes the running thread became ready.
    pub preempt: bool,
}

static CPU: Nucleus<Cpu> = Nucleus::new(Cpu {
    activation: None,
    table: 0,
    limit: 0,
    domain: None,
    thread: None,
    stack: 0,
    scratch: 0,
    entered: 0,
    entered_by: 0,
    longest: 0,
    longest_by: 0,
    window: false,
    idle: false,
    pointer: 0,
    fpu: None,
    special: 0,
    preempt: false,
});

/// The block of this CPU.
pub fn this() -> Ref<Cpu> {
    CPU.reference()
}
