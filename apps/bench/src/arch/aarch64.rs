//! AArch64.

use core::arch::{asm, naked_asm};

/// A MOVZ to the register that is always zero: the value says what it means.
#[inline(always)]
pub fn mark<const WHAT: u16>() {
    // SAFETY: does nothing.
    unsafe { asm!("movz xzr, #0xca00 + {}", const WHAT, options(nostack, preserves_flags)) };
}

/// A service behind portals of the specification `npciii>i`, for a domain in which nothing else is: adds constant and words, without a stack.
///
/// # Safety
/// Only the nucleus enters here.
#[unsafe(naked)]
pub unsafe extern "C" fn adds() -> ! {
    naked_asm!("add x0, x0, x1", "add x0, x0, x2", "add x0, x0, x4", "mov x8, xzr", "svc #0", "udf #0")
}
