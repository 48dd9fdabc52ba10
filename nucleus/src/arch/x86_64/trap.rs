//! Traps: faults, exceptions, interrupts.

use super::{interrupts, timer};
use crate::pointer::Held;
use crate::{cpu, deadline, fault, info, interrupt, schedule, trace};
use core::arch::asm;

const NMI: u64 = 2;
const PAGE_FAULT: u64 = 14;

/// From user mode; all registers are in the running activation.
#[unsafe(no_mangle)]
extern "C" fn trap_from_user(vector: u64, code: u64) -> ! {
    // SAFETY: the way here took the lock.
    let held = unsafe { Held::new() };
    if cpu::this(held).disturbed.get() {
        // While it waited for the lock. A fault comes again if it is one that goes on.
        if vector >= 32 {
            take_interrupt(held, vector);
        }
        schedule::go_on(held)
    }
    let Some(activation) = cpu::this(held).activation.get() else { panic!("a trap without an activation") };
    match vector {
        PAGE_FAULT => fault::page_fault(activation, fault_address(), code),
        NMI => activation.leave(),
        0..32 => fault::exception(activation, vector, code),
        _ => {
            take_interrupt(held, vector);
            schedule::after_interrupt(held)
        }
    }
}

/// From the nucleus: only the idle CPU takes interrupts there, and operations at their preemption points.
#[unsafe(no_mangle)]
extern "C" fn trap_from_nucleus(vector: u64, code: u64, pc: u64, sp: u64, frame: u64) -> ! {
    // SAFETY: the way here took the lock.
    let held = unsafe { Held::new() };
    let cpu = cpu::this(held);
    if vector >= 32 && (cpu.idle.get() || cpu.window.get()) {
        cpu.window.set(false);
        cpu.catch_up();
        take_interrupt(held, vector);
        schedule::after_interrupt(held)
    }
    crate::panic::trap(vector, code, pc, sp, frame, fault_address())
}

fn take_interrupt(held: Held, vector: u64) {
    info::counters(held).interrupts.up();
    cpu::this(held).counts.interrupts.update(|count| count + 1);
    trace::interrupt(held, vector);
    match vector as usize {
        interrupts::TIMER => {
            interrupts::acknowledge();
            timer::fired(held);
            schedule::deadline_passed(held);
            timer::arm_no_later_than(held, deadline::earliest(held));
        }
        interrupts::OTHER_CPU => {
            interrupts::acknowledge();
            cpu::this(held).kicked.set(false);
        }
        interrupts::SPURIOUS => {}
        vector => {
            let line = vector.wrapping_sub(interrupts::FIRST_LINE);
            if line < interrupts::LINES {
                interrupt::came(held, line);
            }
            interrupts::acknowledge();
        }
    }
    trace::interrupt_over(held);
}

fn fault_address() -> u64 {
    let address;
    // SAFETY: only reads a register.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nostack, nomem)) }
    address
}
