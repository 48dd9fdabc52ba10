//! Marks for the emulator's plugin (`xtask/counter`): instructions that do nothing. One file per ISA, the same names in each.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::{adds, mark};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{adds, mark};

/// The four marks: counting begins; counting ends, and the count is added to the row's; the row is kept; the row is dropped.
pub const BEGIN: u16 = 1;
/// See [`BEGIN`].
pub const END: u16 = 2;
/// See [`BEGIN`].
pub const KEEP: u16 = 3;
/// See [`BEGIN`].
pub const DROP: u16 = 4;
