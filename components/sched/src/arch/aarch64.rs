//! AArch64. The registers are those of `abi::registers`.

use crate::{enter, enter_one_of_several, enter_slowly, refused};
use abi::sched::{RUN, Ring, SEVERAL_CPUS, ThreadWord};
use abi::{layout, op};
use core::arch::{asm, global_asm};

// Both are entered with the ring in x6, the first where there is one CPU.
global_asm!(
    ".balign 16",
    ".globl _start",
    "_start:",
    "mov x2, x6",
    "b {enter}",
    ".org _start + {several}",
    "mov x3, x6",
    "b {enter_one_of_several}",
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
            "svc #0",
            inlateout("x8") OPERATION * layout::ENTRY_BYTES => status,
            inlateout("x0") what => _, inlateout("x1") number => _,
            lateout("x2") _, lateout("x3") _, lateout("x4") _, lateout("x5") _, lateout("x6") _, lateout("x7") _,
            lateout("x9") _, lateout("x10") _, lateout("x11") _, lateout("x12") _, lateout("x13") _, lateout("x14") _,
            lateout("x15") _, lateout("x16") _, lateout("x17") _, lateout("x18") _,
            options(nostack),
        );
    }
    status
}

/// Lets a thread run; on a refusal goes on with [`refused`]. The values that it needs wait on the stack, which costs less than
/// registers that are kept.
#[inline(always)]
pub fn run(number: usize, ring: *mut Ring) -> ! {
    // SAFETY: the system call touches no memory of this domain and keeps the stack pointer, and nothing on the stack is used
    // any more: the function that is called never returns.
    unsafe {
        asm!(
            "stp x1, x2, [sp, #-16]!",
            "svc #0",
            "ldp x0, x2, [sp], #16",
            "mov x1, x8",
            "bl {refused}",
            refused = sym refused,
            in("x8") op::DISPATCH * layout::ENTRY_BYTES, in("x0") RUN, in("x1") number, in("x2") ring,
            options(noreturn),
        );
    }
}

/// Goes on with [`enter_slowly`] by a jump: a call saves where to come back to before it is known that it calls.
#[inline(always)]
pub fn go_on_slowly(event: u64, woken: ThreadWord, ring: *mut Ring, current: ThreadWord) -> ! {
    // SAFETY: a function that never returns gets its arguments where it expects them, and nothing on the stack is used any more.
    unsafe {
        asm!(
            "b {slowly}",
            slowly = sym enter_slowly,
            in("x0") event, in("x1") u64::from(woken.0), in("x2") ring, in("x3") u64::from(current.0),
            options(noreturn),
        );
    }
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
    let ticks;
    // SAFETY: only reads a counter.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) }
    ticks
}

/// Ends the domain: the standby takes over.
pub fn die() -> ! {
    // SAFETY: an invalid instruction.
    unsafe { asm!("udf #0", options(noreturn)) }
}
