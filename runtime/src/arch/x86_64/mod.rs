//! x86-64: the system call, the places where the nucleus enters a domain, and the stack register.
//!
//! The binding of words to registers is [`abi::registers`]. A kernel operation answers in word 0 and
//! clears the other words, so the stubs give all of them up; `rbx`, `rbp` and `r12` to `r15` survive.

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
pub const MACHINE: Machine = Machine::X86_64;

/// Pages of stack that the deepest calls of a server take: those that put messages together beside another call.
pub const DEEP_STACK_PAGES: u64 = 2;

/// The stack pointer.
#[inline(always)]
pub fn stack_pointer() -> u64 {
    let value;
    // SAFETY: only copies a register.
    unsafe { asm!("mov {}, rsp", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Informs the compiler that system calls may read and write what `pointer` leads to, although no system
/// call names it. Without this a `&mut` to the message area counts as untouched by them.
#[inline(always)]
pub fn expose<T>(pointer: *mut T) {
    // SAFETY: no instructions; the compiler may not assume so.
    unsafe { asm!("/* {} */", in(reg) pointer, options(nostack, preserves_flags)) };
}

/// The time-stamp counter. It starts at reset; what a tick is depends on the machine (in an emulator that counts
/// them, an instruction).
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: only reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// A hint to the CPU: this is a spin loop.
pub fn relax() {
    core::hint::spin_loop();
}

/// The name of an exception, for people (AMD64, volume 2, 8.2).
pub fn exception(vector: u64) -> Option<&'static str> {
    const TEXTS: [&str; 22] = [
        "division error",
        "single step",
        "non-maskable interrupt",
        "breakpoint",
        "overflow",
        "bound range exceeded",
        "undefined instruction",
        "floating-point unit not available",
        "double fault",
        "coprocessor overrun",
        "invalid task state",
        "segment not present",
        "stack address not canonical",
        "privileged instruction, or an address that is not canonical",
        "page fault",
        "reserved exception",
        "floating-point error",
        "unaligned access",
        "machine check",
        "vector floating-point error",
        "virtualisation exception",
        "control protection",
    ];
    TEXTS.get(usize::try_from(vector).ok()?).copied()
}
