//! Synchronisation: words in memory while nobody waits, semaphores when somebody does.
//!
//! There are no spin locks: with strict priorities a spinning thread could keep the holder from ever
//! running.

mod channel;
mod condvar;
mod kernel;
mod mutex;
mod once;

pub use channel::Channel;
pub use condvar::Condvar;
pub(crate) use kernel::private_semaphore;
pub use kernel::{Kernel, Nucleus};
pub use mutex::{Mutex, MutexGuard, RawMutex};
pub use once::Once;

#[cfg(test)]
mod tests;
