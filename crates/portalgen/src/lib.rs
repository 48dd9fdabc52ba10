//! From the specification of a portal to the machine code of a crossing: the call, and the return that belongs to it.
//!
//! Code is made for a *shape*, which is a [`Specification`] and nothing else. The operands that name a domain, a badge or a
//! constant are read from the entry, so all entries of a shape share its code. Choices of the specification are made here: the code has
//! no branch for them. The code checks all that can change between two crossings: whether the flow is allowed, whether an activation is
//! free, how deep the chain is, how many bytes go along. A crossing that needs more goes on in the nucleus (the slow path,
//! `Targets::call_slowly`), with nothing changed; so does each crossing of a domain with floating point or, on x86-64, a thread pointer.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "listing"))]
extern crate std;

pub mod aarch64;
pub mod code;
pub mod specification;
pub mod x86_64;

pub use code::{AT_ONCE, Code, Extent, Nucleus, Offsets, Progress, Targets};
pub use specification::{Letter, Letters, Reading, Refusal, Specification, State, Why};
