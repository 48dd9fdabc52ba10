//! Traps: faults, exceptions, interrupts.

use super::processor::{self, read};
use super::{firmware, interrupts, timer};
use crate::pointer::Held;
use crate::{cpu, deadline, fault, info, interrupt, schedule, trace};

/// Vectors from here on are no exceptions of ESR_EL1.EC.
pub(super) const INTERRUPT: u64 = 64;
/// SError.
pub(super) const SYSTEM_ERROR: u64 = 65;

/// ESR_EL1.EC (Arm ARM D19.2.37): instruction and data aborts of users.
const FETCH_ABORT: u64 = 0x20;
const DATA_ABORT: u64 = 0x24;

/// Fault status codes without the level: translation, access flag, permission.
const TRANSLATION: u64 = 1;
const PERMISSION: u64 = 3;
const WRITES: u64 = 1 << 6;
const MAINTAINS_CACHE: u64 = 1 << 8;

/// What a page fault was (`abi`): the page is there, it was written to, a user did it, it was fetched from.
const CODE_PRESENT: u64 = 1;
const CODE_WRITE: u64 = 2;
const CODE_USER: u64 = 4;
const CODE_FETCH: u64 = 16;

/// The code of a page fault, if that is what it was.
fn page_fault_code(vector: u64, syndrome: u64) -> Option<u64> {
    let fetches = match vector {
        FETCH_ABORT => CODE_FETCH,
        DATA_ABORT => 0,
        _ => return None,
    };
    let present = match syndrome >> 2 & 0xf {
        TRANSLATION => 0,
        PERMISSION => CODE_PRESENT,
        _ => return None,
    };
    let writes = fetches == 0 && syndrome & WRITES != 0 && syndrome & MAINTAINS_CACHE == 0;
    Some(CODE_USER | present | fetches | if writes { CODE_WRITE } else { 0 })
}

/// From user mode; all registers are in the running activation.
#[unsafe(no_mangle)]
extern "C" fn trap_from_user(vector: u64, syndrome: u64) -> ! {
    // SAFETY: the way here took the lock.
    let held = unsafe { Held::new() };
    if cfg!(feature = "checked") {
        processor::audit();
    }
    if cpu::this(held).disturbed.get() {
        // While it waited for the lock. A fault comes again if it is one that goes on.
        if vector >= INTERRUPT {
            take_interrupt(held, vector);
        }
        schedule::go_on(held)
    }
    let Some(activation) = cpu::this(held).activation.get() else { panic!("a trap without an activation") };
    if vector >= INTERRUPT {
        take_interrupt(held, vector);
        schedule::after_interrupt(held)
    }
    match page_fault_code(vector, syndrome) {
        Some(code) => fault::page_fault(activation, fault_address(), code),
        None => fault::exception(activation, vector, syndrome),
    }
}

/// From the nucleus: only the idle CPU takes interrupts there, and operations at their preemption points.
#[unsafe(no_mangle)]
extern "C" fn trap_from_nucleus(vector: u64, syndrome: u64, pc: u64, sp: u64, frame: u64) -> ! {
    // SAFETY: the way here took the lock.
    let held = unsafe { Held::new() };
    let cpu = cpu::this(held);
    if vector == INTERRUPT && (cpu.idle.get() || cpu.window.get()) {
        cpu.window.set(false);
        cpu.catch_up();
        take_interrupt(held, vector);
        schedule::after_interrupt(held)
    }
    crate::panic::trap(vector, syndrome, pc, sp, frame, fault_address())
}

fn take_interrupt(held: Held, vector: u64) {
    if vector == SYSTEM_ERROR {
        panic!("the machine reports an error (SError), syndrome {:#x}", read!("esr_el1"));
    }
    info::counters(held).interrupts.up();
    cpu::this(held).counts.interrupts.update(|count| count + 1);
    let claimed = interrupts::claim();
    // Version 2: the upper bits say which CPU sent it.
    let number = claimed & 0x3ff;
    trace::interrupt(held, number as u64);
    if number < interrupts::SPURIOUS {
        if number == firmware::get().timer {
            timer::fired(held);
            interrupts::complete(claimed);
            schedule::deadline_passed(held);
            timer::arm_no_later_than(held, deadline::earliest(held));
        } else if number == interrupts::OTHER_CPU {
            interrupts::complete(claimed);
            cpu::this(held).kicked.set(false);
        } else {
            let line = number.wrapping_sub(interrupts::FIRST_LINE) as usize;
            if line < interrupts::LINES {
                interrupt::came(held, line);
            }
            interrupts::complete(claimed);
        }
    }
    trace::interrupt_over(held);
}

fn fault_address() -> u64 {
    read!("far_el1")
}
