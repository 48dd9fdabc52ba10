//! State that several CPUs change at the same time: the nucleus lock, stopping a CPU, the count of a semaphore,
//! the ring of a scheduler. Everything else in the nucleus is touched by one CPU at a time.
//!
//! Each module says which orders of memory accesses it counts on. `tests/models` compiles the same files with the atomic
//! types of `loom`, which runs every interleaving, and every reordering that the language's memory model allows; there each
//! order is weakened in turn, and a model must see it. docs/book/cpus.md says what follows for the nucleus.
#![no_std]
#![forbid(unsafe_code)]

/// A constructor: `const` here, an ordinary function where the atomic types are those of `loom`.
macro_rules! constant {
    ($(#[$attribute:meta])* pub fn $($rest:tt)*) => { $(#[$attribute])* pub const fn $($rest)* };
}
pub(crate) use constant;
pub(crate) use core::sync::atomic;

pub mod lock;
pub mod quiescent;
pub mod ring;
pub mod tokens;
