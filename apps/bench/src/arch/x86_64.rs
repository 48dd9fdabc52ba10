//! x86-64.

use core::arch::{asm, naked_asm};

/// A NOP of seven bytes, of which the last four say what it means.
#[inline(always)]
pub fn mark<const WHAT: u16>() {
    // SAFETY: does nothing.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x80; .long 0x43410000 + {}", const WHAT, options(nostack, preserves_flags)) };
}

/// A service behind portals of the specification `npciii>i`, for a domain in which nothing else is: adds constant and words, without a stack.
///
/// # Safety
/// Only the nucleus enters here.
#[unsafe(naked)]
pub unsafe extern "C" fn adds() -> ! {
    naked_asm!("add rdi, rsi", "add rdi, rdx", "add rdi, r8", "xor eax, eax", "syscall", "ud2")
}
