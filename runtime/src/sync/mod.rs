//! Synchronisation: words in memory while nobody waits, semaphores when somebody does.
//!
//! There are no spin locks: with strict priorities a spinning thread could keep the holder from ever
//! running.

mod channel;
mod condvar;
mod kernel;
mod mutex;
mod once;
mod wait_slot;

pub use channel::Channel;
pub use condvar::Condvar;
pub use kernel::{Kernel, Nucleus};
pub(crate) use kernel::{prepare_wait, private_semaphore};
pub use mutex::{Mutex, MutexGuard, RawMutex};
pub use once::Once;
pub use wait_slot::{Received, WaitSlot};

#[cfg(test)]
mod tests;
