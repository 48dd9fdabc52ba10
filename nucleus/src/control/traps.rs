//! Traps: faults, exceptions, interrupts.

use super::dispatch::{end_idle, enter, give_way, go_on, idle, wake_up};
use super::ready::{is_unread, seats};
use super::seats::PATIENCE_MICROSECONDS;
use super::{chain, deadline, death, fault, interrupt};
use crate::arch::{interrupts, trap};
use crate::cpus::{counters, cpu, lock, timer};
use crate::objects::{Interrupt, Trap, is_seat};
use crate::pointer::Held;
use crate::report::log::{self, Part};
use crate::report::{panic, trace};
use abi::sched::Event;

/// How often a scheduler gets more time to dispatch, each time half its patience.
const EXTENSIONS: u8 = 3;

/// A trap from user mode. The running activation has all registers saved.
#[unsafe(no_mangle)]
extern "C" fn trap_from_user(vector: u64, code: u64) -> ! {
    // SAFETY: the path through `entry.s` to here took the lock.
    let held = unsafe { Held::new() };
    let trap = trap::of_user(vector, code);
    if cpu::this(held).needs_recheck.get() {
        // Another CPU changed what runs here while this one waited for the lock. A fault recurs if its cause persists.
        if let Trap::Interrupt = trap {
            take_interrupt(held, vector);
        }
        go_on(held)
    }
    let Some(activation) = cpu::this(held).activation.get() else { panic!("a trap without an activation") };
    match trap {
        Trap::PageFault(address, code) => fault::page_fault(activation, address, code),
        Trap::Exception => fault::exception(activation, vector, code),
        Trap::Interrupt => {
            take_interrupt(held, vector);
            after_interrupt(held)
        }
        Trap::Nothing => activation.leave(),
    }
}

/// A trap from the nucleus. Only interrupts are expected, of an idle CPU or at a preemption point.
#[unsafe(no_mangle)]
extern "C" fn trap_from_nucleus(vector: u64, code: u64, pc: u64, sp: u64, frame: u64) -> ! {
    // SAFETY: the path through `entry.s` to here took the lock.
    let held = unsafe { Held::new() };
    let cpu = cpu::this(held);
    if trap::is_interrupt(vector) && (cpu.idle.get() || cpu.at_preemption_point.get()) {
        cpu.at_preemption_point.set(false);
        lock::catch_up(cpu);
        take_interrupt(held, vector);
        after_interrupt(held)
    }
    panic::trap(vector, code, pc, sp, frame, trap::fault_address())
}

fn take_interrupt(held: Held, vector: u64) {
    counters::all(held).interrupts.up();
    cpu::this(held).counts.interrupts.update(|count| count + 1);
    let claimed = interrupts::claim(vector);
    trace::interrupt(held, claimed as u64);
    match interrupts::meaning(claimed) {
        Interrupt::Timer => {
            timer::fired(held);
            interrupts::complete(claimed);
            deadline_passed(held);
            timer::arm_no_later_than(held, deadline::earliest(held));
        }
        Interrupt::OtherCpu => {
            interrupts::complete(claimed);
            cpu::this(held).ipi_pending.set(false);
        }
        Interrupt::Line(line) => {
            if line < interrupts::LINES {
                interrupt::came(held, line);
            }
            interrupts::complete(claimed);
        }
        Interrupt::Nothing => {}
    }
    trace::interrupt_over(held);
}

/// After an interrupt: resumes what was interrupted, or preempts it and enters `sched`.
fn after_interrupt(held: Held) -> ! {
    let cpu = cpu::this(held);
    if cpu.idle.get() {
        if cpu.seat.get().is_some() && is_unread(cpu.ring.get()) {
            wake_up(held)
        }
        end_idle(held);
        idle(held)
    }
    let now = timer::now();
    let Some(thread) = cpu.thread.get() else { enter(held, Event::Choose, 0) };
    if is_seat(thread) {
        if now >= cpu.patience_ends.get() && cpu.extensions_of.get() != cpu.counts.dispatches.get() {
            cpu.extensions.set(0);
            cpu.extensions_of.set(cpu.counts.dispatches.get());
        }
        if now >= cpu.patience_ends.get() && cpu.extensions.get() < EXTENSIONS {
            // Gives it more time: in an emulator the CPU itself may not have run.
            cpu.patience_ends.set(now + seats(held).patience.get() / 2);
            cpu.extensions.update(|value| value + 1);
        }
        if now >= cpu.patience_ends.get() {
            let patience = Part::Number(PATIENCE_MICROSECONDS);
            log::line(
                held,
                &[Part::Text("the scheduler did not dispatch within its patience, in microseconds: "), patience],
            );
            let domain = thread.home;
            death::die(domain, abi::info::status::KILLED);
            enter(held, Event::Choose, 0)
        }
        timer::arm_no_later_than(held, cpu.patience_ends.get());
    } else if seats(held).taken.get() == 0 {
        // Before a scheduler takes its seat, one thread runs until it ends.
    } else if cpu.preempt.get() || cpu.seat.get().is_none() || now >= cpu.short_slice_ends.get() {
        cpu.short_slice_ends.set(u64::MAX);
        give_way(held, Event::Preempted)
    } else if now >= thread.slice_end.get() {
        give_way(held, Event::SliceEnded)
    } else {
        timer::arm_no_later_than(held, thread.slice_end.get().min(cpu.short_slice_ends.get()));
    }
    go_on(held)
}

/// Ends the wait or call with the earliest deadline, if that has passed. If another has passed, too, the timer's next
/// interrupt comes at once.
fn deadline_passed(held: Held) {
    if let Some(activation) = deadline::due(held, timer::now()) {
        chain::time_out(activation);
    }
}
