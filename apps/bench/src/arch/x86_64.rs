//! x86-64.

use core::arch::asm;

/// A NOP of seven bytes, of which the last four say what it means.
#[inline(always)]
pub fn mark<const WHAT: u16>() {
    // SAFETY: does nothing.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x80; .long 0x43410000 + {}", const WHAT, options(nostack, preserves_flags)) };
}
