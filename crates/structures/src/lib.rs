//! Lists, trees and sums of the nucleus, without the nucleus: nothing here has a system call, touches hardware or
//! allocates. The nucleus says what is linked: its pointers (`Ref`) implement the trait of each structure. The tests
//! implement it for plain references, and compare each structure with a plain model.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

/// Steps of a property test; Miri is slow.
#[cfg(test)]
const STEPS: usize = if cfg!(miri) { 10 } else { 200 };

pub mod blocks;
pub mod deadlines;
pub mod derivation;
pub mod granules;
pub mod queue;
pub mod quota;
