//! Models of what several CPUs do at the same time, run by `loom`: every interleaving, within a bound of
//! preemptions where three CPUs take part, and every value that a load may give by the language's memory model.
//!
//! The files of the crate are compiled here with atomic types of `loom` ([`atomic`]). Around them [`machine`] has what the
//! nucleus adds: CPUs with interrupts, domains and work left to them. Each model is made with a [`machine::Fault`] too: one
//! step left out or put elsewhere, as nobody must write it; then it has to go wrong. [`orders`] does the
//! same to each memory order in the crate.
//!
//! The limits of `loom`: an exchange or addition always sees the newest value, a sequentially consistent access is
//! no more than acquire and release (so the models use fences), and no load sees what is stored later.

macro_rules! constant {
    ($(#[$attribute:meta])* pub fn $($rest:tt)*) => { $(#[$attribute])* pub fn $($rest)* };
}
pub(crate) use constant;

mod atomic;
#[path = "../../src/lock.rs"]
#[allow(dead_code)]
mod lock;
#[path = "../../src/quiescent.rs"]
#[allow(dead_code)]
mod quiescent;
#[path = "../../src/ring.rs"]
#[allow(dead_code)]
mod ring;
#[path = "../../src/tokens.rs"]
#[allow(dead_code)]
mod tokens;

mod chains;
mod deaths;
mod entries;
mod exclusion;
mod load_table;
mod machine;
mod orders;
mod pools;
mod rings;
mod semaphores;
mod shootdown;
mod sleep;
mod stopped;
mod window_chains;
mod window_deaths;
mod window_migrations;
mod window_pages;
mod windows;
