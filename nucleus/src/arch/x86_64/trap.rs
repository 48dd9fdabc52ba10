//! Traps: faults, exceptions, interrupts.

use super::{interrupts, timer};
use crate::{cpu, deadline, fault, info, interrupt, schedule, trace};
use core::arch::asm;

const NMI: u64 = 2;
const PAGE_FAULT: u64 = 14;

/// From user mode; all registers are in the running activation.
#[unsafe(no_mangle)]
extern "C" fn trap_from_user(vector: u64, code: u64) -> ! {
    if cpu::this().disturbed {
        // While it waited for the lock. A fault comes again if it is one that goes on.
        if vector >= 32 {
            take_interrupt(vector);
        }
        schedule::go_on()
    }
    let Some(activation) = cpu::this().activation else { panic!("a trap without an activation") };
    match vector {
        PAGE_FAULT => fault::page_fault(activation, fault_address(), code),
        NMI => activation.leave(),
        0..32 => fault::exception(activation, vector, code),
        _ => {
            take_interrupt(vector);
            schedule::after_interrupt()
        }
    }
}

/// From the nucleus: only the idle CPU takes interrupts there, and operations at their preemption points.
#[unsafe(no_mangle)]
extern "C" fn trap_from_nucleus(vector: u64, code: u64, pc: u64, sp: u64, frame: u64) -> ! {
    let mut cpu = cpu::this();
    if vector >= 32 && (cpu.idle || cpu.window) {
        cpu.window = false;
        cpu.catch_up();
        take_interrupt(vector);
        schedule::after_interrupt()
    }
    crate::panic::trap(vector, code, pc, sp, frame, fault_address())
}

fn take_interrupt(vector: u64) {
    info::counters().interrupts += 1;
    cpu::this().counts.interrupts += 1;
    trace::interrupt(vector);
    match vector as usize {
        interrupts::TIMER => {
            interrupts::acknowledge();
            timer::fired();
            schedule::deadline_passed();
            timer::arm_no_later_than(deadline::earliest());
        }
        interrupts::OTHER_CPU => {
            interrupts::acknowledge();
            cpu::this().kicked = false;
        }
        interrupts::SPURIOUS => {}
        vector => {
            let line = vector.wrapping_sub(interrupts::FIRST_LINE);
            if line < interrupts::LINES {
                interrupt::came(line);
            }
            interrupts::acknowledge();
        }
    }
    trace::interrupt_over();
}

fn fault_address() -> u64 {
    let address;
    // SAFETY: only reads a register.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nostack, nomem)) }
    address
}
