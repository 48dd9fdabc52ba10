//! Negative tests and code of children that are an ISA's own: one folder per ISA, the same names in each.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

use core::sync::atomic::AtomicU64;

/// For [`remove_ourselves`]. 1: the thread may begin; 2: it has begun; 3: it was not removed.
pub static START: AtomicU64 = AtomicU64::new(0);
