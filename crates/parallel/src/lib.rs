//! What several CPUs do to the same words at the same time: the nucleus lock, the count of a semaphore, the ring of a
//! scheduler. Everything else in the nucleus is touched by one CPU at a time.
//!
//! Each module says which orders of memory accesses it counts on. The tests run every interleaving, and every reordering
//! that the language's memory model allows, with `loom` (`RUSTFLAGS='--cfg loom'`).
#![cfg_attr(not(loom), no_std)]
#![forbid(unsafe_code)]

pub mod lock;
pub mod ring;
pub mod tokens;

#[cfg(not(loom))]
pub(crate) use core::sync::atomic;
#[cfg(loom)]
pub(crate) use loom::sync::atomic;
