//! Faults of users: calls through the upcall portals of the faulting domain's own table.

use crate::activation::Activation;
use crate::arch::timer;
use crate::cpu;
use crate::domain;
use crate::log::Part;
use crate::pointer::Ref;
use crate::{chain, info, schedule};
use abi::info::status;
use abi::layout::{EXCEPTION, PAGE_FAULT};
use abi::rights::Kind;
use abi::{Control, Error};

/// Exceptions that are told after the instruction that caused them: single step, breakpoint, overflow.
const TRAPS: [u64; 3] = [status::EXCEPTION + 1, status::EXCEPTION + 3, status::EXCEPTION + 4];

/// A page fault at `address`: the portal of the first range that holds it is called with
/// `(address, instruction pointer, error code)`; word 0 of its answer is 0 to try again.
pub fn page_fault(activation: Ref<Activation>, address: u64, code: u64) -> ! {
    info::counters().faults += 1;
    let range = activation.domain.ranges.iter().position(|(start, end)| (*start..*end).contains(&address));
    let error = match range {
        Some(slot) => upcall(activation, PAGE_FAULT[slot], [address, activation.registers.rip, code, 0, 0], 0),
        None => Error::Empty,
    };
    end(activation, status::PAGE_FAULT, [Part::Text(": page fault at "), Part::Hex(address)], code, error)
}

/// Another exception: `(vector, error code, instruction pointer, stack pointer)` and the registers in
/// the message area.
pub fn exception(activation: Ref<Activation>, vector: u64, code: u64) -> ! {
    let saved = activation.registers;
    // SAFETY: the message area is a page of the nucleus.
    unsafe { (activation.message_kernel as *mut crate::activation::Registers).write(saved) };
    let bytes = size_of::<crate::activation::Registers>();
    let error = upcall(activation, EXCEPTION, [vector, code, saved.rip, saved.rsp, 0], bytes);
    let what = [Part::Text(": exception "), Part::Number(vector)];
    end(activation, status::EXCEPTION + vector, what, code, error)
}

/// Calls an upcall portal on behalf of the faulting activation; returns only if that cannot be done.
#[inline(always)]
fn upcall(activation: Ref<Activation>, index: usize, words: [u64; 5], bytes: usize) -> Error {
    if cpu::this().thread.is_some_and(schedule::is_seat) {
        return Error::NotRunnable;
    }
    let entry = match activation.domain.entry(index, Kind::Call, 0) {
        Ok(entry) => entry,
        Err(error) => return error,
    };
    chain::upcall(activation, entry, words, Control::bytes(bytes))
}

/// Ends the domain of a fault that nobody handles; `error` says why nobody does.
fn end(activation: Ref<Activation>, status: u64, [what, which]: [Part; 2], code: u64, error: Error) -> ! {
    let (pc, code) = (Part::Hex(activation.registers.rip), Part::Hex(code));
    let because =
        [what, which, Part::Text(", pc "), pc, Part::Text(", code "), code, Part::Text(": "), Part::Text(error.text())];
    // Each of these is a stretch of its own; after an interrupt a fault comes again, a trap would not.
    let comes_again = !TRAPS.contains(&status);
    if comes_again {
        schedule::preemption_point();
    }
    domain::tell_death(activation.domain, status, &because);
    if comes_again {
        schedule::preemption_point();
    }
    domain::die(activation.domain, status);
    if let Some(mut thread) = cpu::this().thread {
        thread.used += timer::now() - thread.started;
        thread.started = timer::now();
    }
    domain::leave_dead()
}
