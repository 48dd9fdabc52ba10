//! Control flow: threads and chains of activations, scheduling, calls, faults, interrupts, death and removal.

pub mod activation;
pub mod call;
pub mod chain;
pub mod deadline;
pub mod death;
pub mod dispatch;
pub mod domain;
pub mod fault;
pub mod flows;
pub mod interrupt;
pub mod lending;
pub mod lent;
pub mod numbers;
pub mod port;
pub mod priorities;
pub mod ready;
pub mod removal;
pub mod seats;
pub mod semaphore;
pub mod thread;
pub mod traps;
