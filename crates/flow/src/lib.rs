//! Information-flow labels, after Asbestos ("Labels and Event Processes in the Asbestos Operating System", SOSP 2005), as the
//! design restates them.
//!
//! A *handle* names a compartment. A *label* gives each handle a *level*: ★ < 0 < 1 < 2 < 3. A domain has a send label S (how
//! tainted it is) and a receive label R (how much taint it accepts). S(h) = ★ is ownership of h.
//!
//! - [`Handles`]: where handles come from.
//! - [`Pool`]: labels, and what is done with them.
//! - [`rules`]: the rules of information flow, and their effect on labels.
//! - `specification`: the same without cleverness. Tests compare both.
//! - `trace`: a log of events between domains, as text that others can write, too.
//!
//! The last two come with the features `alloc` and `std`; memory for a pool from an allocator comes with the first.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod handles;
mod level;
mod operations;
mod pool;
pub mod rules;

#[cfg(feature = "alloc")]
mod heap;
#[cfg(feature = "alloc")]
pub mod specification;
#[cfg(feature = "std")]
pub mod trace;

pub use handles::{Handles, MAX_TRIES, Next};
#[cfg(feature = "alloc")]
pub use heap::Heap;
pub use level::{Bounds, Handle, Level};
pub use pool::{Exhausted, Id, LEAF, Label, Memory, Node, Owner, Pool, State};
