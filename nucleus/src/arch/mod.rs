//! The hardware abstraction layer: one folder per ISA, the same module names in each. This is the one place where the ISA
//! is chosen.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
