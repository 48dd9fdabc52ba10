//! Common parts of all syscall fuzzers: numbers from a seed, and counts of the answers.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod histogram;
pub use tool::random;
