//! AArch64: the system call, the places where the nucleus enters a domain, and the stack register.
//!
//! The binding of words to registers is [`abi::registers`]. A system call destroys `x6`, `x7` and `x9` to `x18`; a kernel
//! operation answers in word 0 and clears the other words, so the stubs give all of them up. `x19` to `x30` survive.

mod call;
mod enter;
mod operation;
mod random;

pub use call::{call, call_all_words, call_short, leave, port, semaphore, thread_exit_after_v};
pub use enter::{all_words_entry, program_entry, service_entry, short_entry, thread_entry, word_entry};
pub use operation::{operation0, operation1, operation2, operation3, operation4, operation5, operation6, question};
pub use random::RandomInstruction;

use core::arch::asm;

use loader::Machine;

/// The machine number in the ELF header of programs for this ISA.
pub const MACHINE: Machine = Machine::AArch64;

/// Pages of stack that the deepest calls of a server take: those that put messages together beside another call.
pub const DEEP_STACK_PAGES: u64 = 3;

/// `svc` with the registers that every system call destroys.
macro_rules! system_call {
    ($($operands:tt)*) => {
        core::arch::asm!(
            "svc #0",
            $($operands)*
            lateout("x6") _, lateout("x7") _, lateout("x9") _, lateout("x10") _, lateout("x11") _, lateout("x12") _,
            lateout("x13") _, lateout("x14") _, lateout("x15") _, lateout("x16") _, lateout("x17") _, lateout("x18") _,
            options(nostack)
        )
    };
}
use system_call;

/// The stack pointer.
#[inline(always)]
pub fn stack_pointer() -> u64 {
    let value;
    // SAFETY: only copies a register.
    unsafe { asm!("mov {}, sp", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Informs the compiler that system calls may read and write what `pointer` leads to, although no system
/// call names it. Without this a `&mut` to the message area counts as untouched by them.
#[inline(always)]
pub fn expose<T>(pointer: *mut T) {
    // SAFETY: no instructions; the compiler may not assume so.
    unsafe { asm!("/* {} */", in(reg) pointer, options(nostack, preserves_flags)) };
}

/// The cycle counter. The length of a tick depends on the machine (in an emulator that counts them, an instruction).
#[inline(always)]
pub fn ticks() -> u64 {
    let value;
    // SAFETY: only reads a counter, which the nucleus lets users read.
    unsafe { asm!("mrs {}, pmccntr_el0", out(reg) value, options(nostack, preserves_flags)) };
    value
}

/// A hint to the CPU: this is a spin loop.
pub fn relax() {
    // SAFETY: a hint. (`core::hint::spin_loop` is a barrier here, which does not let others run.)
    unsafe { asm!("yield", options(nomem, nostack, preserves_flags)) };
}

/// The name of an exception, for people: classes of ESR_EL1 (Arm ARM D19.2.37).
pub fn exception(vector: u64) -> Option<&'static str> {
    Some(match vector {
        0x00 => "undefined or privileged instruction",
        0x01 => "instruction that waits",
        0x07 => "floating-point unit not available",
        0x0d => "branch to where none may lead",
        0x0e => "illegal execution state",
        0x18 => "privileged register or instruction",
        0x19 | 0x1d => "vector unit not available",
        0x1c => "pointer authentication failed",
        0x20 | 0x24 => "unaligned access, or no memory there",
        0x22 => "jump to an address that is not aligned",
        0x26 => "stack pointer not aligned",
        0x2c => "floating-point error",
        0x2f => "error of the machine (SError)",
        0x3c => "breakpoint",
        _ => return None,
    })
}
