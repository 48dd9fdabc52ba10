//! The types of the nucleus's objects, the links between them, and what can be read from a single object. The folders above
//! operate on them.

mod account;
mod activation;
pub mod arch;
mod cpu;
mod debts;
mod domain;
mod entry;
mod labels;
mod mapping;
mod numbers;
mod outcome;
mod page;
mod port;
mod queue;
mod seat;
mod semaphore;
mod thread;

pub use account::{Account, PLAIN};
pub use activation::{Activation, CANCELLED, Changes, NO_ADDRESS, SavedFrame, State, WOKEN, Wait};
pub use cpu::Cpu;
pub use debts::Debts;
#[allow(unused_imports, reason = "on some ISAs it is a register like others")]
pub use domain::SLOW_POINTER;
pub use domain::{Domain, NEAR_PAGES, PerCpu, SLOW_AT, SLOW_DEAD, SLOW_FPU, SLOW_LABELS, SLOW_LENT, per_cpu_at};
pub use entry::{CEILING_MARK, CEILING_SHIFT, Entry, LABEL_SHIFT, Node, OfKind, Operation, SHAPE_SHIFT};
pub use labels::{Labelled, NOTHING_RECEIVED, OPEN, Part, PortalLabels, Stage, TRUSTED, USUAL, owns_all};
pub use mapping::Mapping;
pub use numbers::{Marks, Numbers};
pub use outcome::{Interrupt, Outcome, Rate, Reply, STEPS, Stop, Trap};
pub use page::{FRAME, Frame, MAX_TABLE_BYTES, Memory, Own, PageEntry, RAM_END, RECORD_BYTES, Table, index};
pub use port::{Message, PLAIN_MESSAGE, Port};
pub use queue::{Queue, Ranked};
pub use seat::Seat;
pub use semaphore::Semaphore;
pub use thread::{Runs, Thread, is_seat};
