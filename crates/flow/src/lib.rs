//! Information-flow labels, after Asbestos ("Labels and Event Processes in the Asbestos Operating System", SOSP 2005), as the
//! design restates them.
//!
//! A *handle* names a compartment. A *label* gives each handle a *level*: ★ < 0 < 1 < 2 < 3. A domain has a send label S (how
//! tainted it is) and a receive label R (how much taint it accepts). S(h) = ★ is ownership of h.
//!
//! - [`Handles`]: where handles come from.
//! - [`Pool`]: labels, and what is done with them.
//! - [`rules`]: who may tell whom, and what follows for the labels.
//! - `specification`: the same without cleverness. Tests compare both.
//! - `trace`: what happened between domains, as text that others can write, too.
//!
//! The last two, and memory for a pool on the host, come with the feature `std`.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

mod handles;
mod level;
mod operations;
mod pool;
pub mod rules;

#[cfg(feature = "std")]
mod heap;
#[cfg(feature = "std")]
pub mod specification;
#[cfg(feature = "std")]
pub mod trace;

pub use handles::{Handles, MAX_TRIES, Next};
#[cfg(feature = "std")]
pub use heap::Heap;
pub use level::{Bounds, Handle, Level};
pub use pool::{Exhausted, Id, LEAF, Label, Memory, Node, Owner, Pool, State};
