//! Faults of users: calls through the upcall portals of the faulting domain's own table.

use crate::activation::Activation;
use crate::arch::registers::Registers;
use crate::cpu;
use crate::domain;
use crate::log::{self, Part};
use crate::pointer::Ref;
use crate::{chain, info, schedule, trace};
use abi::info::status;
use abi::layout::{EXCEPTION, PAGE_FAULT};
use abi::rights::Kind;
use abi::{Control, Error, MESSAGE_BYTES};

/// A page fault at `address`: the portal of the first range that holds it is called with
/// `(address, instruction pointer, error code)`; word 0 of its answer is 0 to try again.
pub fn page_fault(activation: Ref<Activation>, address: u64, code: u64) -> ! {
    info::counters().faults += 1;
    trace::page_fault(activation, address, code);
    let range = activation.domain.ranges.iter().position(|(start, end)| (*start..*end).contains(&address));
    let error = match range {
        Some(slot) => upcall(activation, PAGE_FAULT[slot], [address, activation.registers.pc, code, 0, 0], 0),
        None => Error::Empty,
    };
    activation.condemn(status::PAGE_FAULT, [address, code, error as u64]);
    condemned(activation)
}

/// Another exception: `(vector, error code, instruction pointer, stack pointer)` and the registers in
/// the message area.
pub fn exception(activation: Ref<Activation>, vector: u64, code: u64) -> ! {
    trace::exception(activation, vector, code);
    let saved = activation.registers;
    // SAFETY: the message area is a page of the nucleus.
    unsafe { (activation.message_kernel as *mut Registers).write(saved) };
    let bytes = size_of::<Registers>();
    let error = upcall(activation, EXCEPTION, [vector, code, saved.pc, saved.sp, 0], bytes);
    activation.condemn(status::EXCEPTION + vector, [vector, code, error as u64]);
    condemned(activation)
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

/// The message area of an activation whose domain needs it no more.
fn area(activation: Ref<Activation>) -> &'static mut [u8] {
    // SAFETY: a page of the nucleus; the reference is not kept.
    unsafe { core::slice::from_raw_parts_mut(activation.message_kernel as *mut u8, MESSAGE_BYTES) }
}

/// The domain of the running activation, which is condemned, dies: why is put together in two steps, told, and done, and
/// the activation is left, each in a stretch of its own. After an interrupt it goes on here; how far it got says the
/// status that is saved. The words are those of [`Ref::condemn`].
pub fn condemned(mut activation: Ref<Activation>) -> ! {
    loop {
        schedule::pause();
        let (step, words) = (activation.registers.status(), activation.registers.words());
        let [status, length, ..] = words;
        let done = (length as usize).min(MESSAGE_BYTES);
        let (line, rest) = area(activation).split_at_mut(done);
        let written = match step {
            0 => log::compose(&domain::death_line(&activation.domain, status), rest),
            1 => compose_reason(activation.registers.pc, words, rest),
            2 => {
                domain::tell_death(activation.domain, status, Some(line));
                0
            }
            3 => {
                domain::die(activation.domain, status);
                0
            }
            _ => domain::leave_dead(),
        };
        let [status, _, which, code, error] = words;
        activation.registers.set_words([status, (done + written) as u64, which, code, error], 0);
        activation.registers.set_status(step + 1);
    }
}

fn compose_reason(pc: u64, [died, _, which, code, error]: [u64; 5], bytes: &mut [u8]) -> usize {
    let pc = Part::Hex(pc);
    let Err(error) = Error::from_status(error) else {
        return log::compose(&[Part::Text(": its handler gave up, pc "), pc], bytes);
    };
    if code == 0 && died == status::PAGE_FAULT {
        return log::compose(&[Part::Text(": its handler ended without an answer, pc "), pc], bytes);
    }
    let (what, which) = match died {
        status::PAGE_FAULT => (": page fault at ", Part::Hex(which)),
        _ => (": exception ", Part::Number(which)),
    };
    let code = Part::Hex(code);
    let [what, at, with, why, error] = [what, ", pc ", ", code ", ": ", error.text()].map(Part::Text);
    log::compose(&[what, which, at, pc, with, code, why, error], bytes)
}
