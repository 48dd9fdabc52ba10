//! x86-64. The registers are those of `abi::registers`.

use crate::{enter, enter_one_of_several, enter_slowly, refused};
use abi::sched::{RUN, Ring, SEVERAL_CPUS, ThreadWord};
use abi::{layout, op};
use core::arch::{asm, global_asm};

// Both are entered with the ring in rbx, the first where there is one CPU.
global_asm!(
    ".balign 16",
    ".globl _start",
    "_start:",
    "mov rdx, rbx",
    "jmp {enter}",
    ".org _start + {several}",
    "mov rcx, rbx",
    "jmp {enter_one_of_several}",
    enter = sym enter,
    enter_one_of_several = sym enter_one_of_several,
    several = const SEVERAL_CPUS,
);

/// An operation with two words; gives its status. `DISPATCH` lets a thread run, or hands it to a CPU; of the first it comes back only
/// with a refusal.
#[inline(always)]
pub fn system_call<const OPERATION: usize>(what: u64, number: usize) -> u64 {
    let status;
    // SAFETY: the system call touches no memory of this domain.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") OPERATION * layout::ENTRY_BYTES => status,
            inlateout("rdi") what => _, inlateout("rsi") number => _,
            lateout("rdx") _, lateout("rcx") _, lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
            options(nostack),
        );
    }
    status
}

/// Lets a thread run; on a refusal goes on with [`refused`]. No register is kept for that, which costs less where it counts.
#[inline(always)]
pub fn run(number: usize, ring: *mut Ring) -> ! {
    // SAFETY: the system call touches no memory of this domain and keeps the stack pointer, and nothing on the stack is used
    // any more: the function that is called never returns.
    unsafe {
        asm!(
            "push rsi",
            "push rdx",
            "syscall",
            "pop rdx",
            "pop rdi",
            "mov rsi, rax",
            "and rsp, -16",
            "call {refused}",
            refused = sym refused,
            in("rax") op::DISPATCH * layout::ENTRY_BYTES, in("rdi") RUN, in("rsi") number, in("rdx") ring,
            options(noreturn),
        );
    }
}

/// Goes on with [`enter_slowly`].
#[inline(always)]
pub fn go_on_slowly(event: u64, woken: ThreadWord, ring: *mut Ring, current: ThreadWord) -> ! {
    enter_slowly(event, woken.0.into(), ring, current.0.into())
}

/// The same pointer, which the compiler keeps in a register: it would load the address of each field again.
#[inline(always)]
pub fn in_register<T>(mut pointer: *mut T) -> *mut T {
    // SAFETY: there are no instructions.
    unsafe { asm!("/* {0} */", inout(reg) pointer, options(pure, readonly, nostack, preserves_flags)) };
    pointer
}

/// Ticks.
pub fn now() -> u64 {
    // SAFETY: only reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Ends the domain: the standby takes over.
pub fn die() -> ! {
    // SAFETY: an invalid instruction.
    unsafe { asm!("ud2", options(noreturn)) }
}
