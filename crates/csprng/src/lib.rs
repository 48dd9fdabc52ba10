//! A cryptographically secure pseudo-random number generator (CSPRNG), its policy, and the checks of its sources.
//!
//! - [`Generator`]: ChaCha20 with fast key erasure. A later reader of its memory does not find out what it
//!   gave before.
//! - [`Pool`]: a generator, what contributed to it, and when it wants to be seeded again. It gives nothing before
//!   a source that passed its checks has contributed a whole seed.
//! - [`Health`]: the checks.
//! - [`key`]: a key for callers that cannot wait for a pool.
//!
//! The caller passes seeds and the time.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod generator;
mod health;
mod key;
mod pool;

pub use generator::{Generator, KEY_BYTES, works};
pub use health::{Health, Unhealthy};
pub use key::key;
pub use pool::{Due, NotReady, Pool, RESEED_BYTES, RESEED_NANOSECONDS, RETRY_NANOSECONDS, SEED_BYTES, SOURCES};
