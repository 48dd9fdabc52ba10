//! Where the nucleus enters a minion: one file per ISA, the same names in each.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::{service_entry, thread_entry};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{service_entry, thread_entry};
