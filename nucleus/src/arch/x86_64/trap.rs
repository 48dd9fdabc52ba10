//! The meaning of a trap (Intel SDM volume 3, 6.15).

use crate::objects::Trap;
use core::arch::asm;

const NMI: u64 = 2;
const PAGE_FAULT: u64 = 14;
const EXCEPTIONS: u64 = 32;

/// The meaning of a trap from user mode.
#[inline(always)]
pub fn of_user(vector: u64, code: u64) -> Trap {
    match vector {
        PAGE_FAULT => Trap::PageFault(fault_address(), code),
        NMI => Trap::Nothing,
        0..EXCEPTIONS => Trap::Exception,
        _ => Trap::Interrupt,
    }
}

/// Whether it is an interrupt, which the nucleus accepts where it enables them.
pub fn is_interrupt(vector: u64) -> bool {
    vector >= EXCEPTIONS
}

/// The address of the last page fault.
pub fn fault_address() -> u64 {
    let address;
    // SAFETY: only reads a register.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nostack, nomem)) }
    address
}
