//! AArch64.

use core::arch::asm;

/// A MOVZ to the register that is always zero: the value says what it means.
#[inline(always)]
pub fn mark<const WHAT: u16>() {
    // SAFETY: does nothing.
    unsafe { asm!("movz xzr, #0xca00 + {}", const WHAT, options(nostack, preserves_flags)) };
}
