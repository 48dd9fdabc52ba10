//! Faults of users: calls through the upcall portals of the faulting domain's own table.

use super::{call, death, dispatch, flows};
use crate::cpus::{counters, cpu};
use crate::memory::{lend, space};
use crate::objects::arch::Registers;
use crate::objects::{Activation, NO_ADDRESS, is_seat};
use crate::pointer::Ref;
use crate::report::log::{self, Part};
use crate::report::reason::reason as text_of;
use crate::report::trace;
use abi::info::status;
use abi::layout::{EXCEPTION, PAGE_FAULT, WINDOWS, WINDOWS_END};
use abi::rights::Kind;
use abi::{Control, Error};
use core::cell::Cell;

/// Handles a page fault: calls the portal of the first range that contains `address`, with `(address, instruction pointer,
/// error code)`. The handler answers 0 in word 0 to retry the access. Faults on windows are handled by `lend::fault`.
pub fn page_fault(activation: Ref<Activation>, address: u64, code: u64) -> ! {
    let held = activation.held();
    counters::all(held).faults.up();
    trace::page_fault(activation, address, code);
    if (WINDOWS..WINDOWS_END).contains(&address) {
        match lend::fault(activation, address) {
            Ok(()) => activation.leave(),
            Err(error) => {
                activation.condemn(status::PAGE_FAULT, [address, code, error as u64]);
                condemned(activation)
            }
        }
    }
    let range = activation.domain.ranges.iter().map(Cell::get).position(|(start, end)| (start..end).contains(&address));
    let error = match range {
        Some(slot) => {
            activation.entry.set(address);
            upcall(activation, PAGE_FAULT[slot], [address, activation.registers.pc.get(), code, 0, 0], 0)
        }
        None => Error::NoHandler,
    };
    activation.condemn(status::PAGE_FAULT, [address, code, error as u64]);
    condemned(activation)
}

/// Handles another exception: calls its portal with `(vector, error code, instruction pointer, stack pointer)`, and the
/// registers in the message area.
pub fn exception(activation: Ref<Activation>, vector: u64, code: u64) -> ! {
    trace::exception(activation, vector, code);
    let saved = &activation.registers;
    // SAFETY: the message area is a page of the nucleus, with room for the registers.
    unsafe { (activation.message_kernel as *mut Registers).copy_from(saved, 1) };
    let bytes = size_of::<Registers>();
    activation.entry.set(NO_ADDRESS);
    let error = upcall(activation, EXCEPTION, [vector, code, saved.pc.get(), saved.sp.get(), 0], bytes);
    activation.condemn(status::EXCEPTION + vector, [vector, code, error as u64]);
    condemned(activation)
}

/// Calls an upcall portal for the faulting activation. Returns only on failure.
#[inline(always)]
fn upcall(activation: Ref<Activation>, index: usize, words: [u64; 5], bytes: usize) -> Error {
    let held = activation.held();
    if cpu::this(held).thread.get().is_some_and(is_seat) {
        return Error::IsScheduler;
    }
    let entry = match activation.domain.entry(index, Kind::Call, 0) {
        Ok(entry) => entry,
        Err(Error::Empty) => return Error::NoHandler,
        Err(error) => return error,
    };
    call::upcall(activation, entry, words, Control::bytes(bytes))
}

/// Kills the domain of the running activation, with a status that is logged.
pub fn ended(activation: Ref<Activation>, status: u64) -> ! {
    activation.condemn(status, [0; 3]);
    condemned(activation)
}

/// Words of the stack that one step checks.
const STACK_WORDS: u64 = 2;
/// Steps that check words of the stack.
const STACK_STEPS: u64 = 256;
/// Steps of [`condemned`]: place, registers and stack go into a line of their own, then the domain dies.
const PLACE: u64 = 3;
const REGISTERS: u64 = PLACE + 1;
const STACK: u64 = REGISTERS + 1;
const STACK_ENDS: u64 = STACK + STACK_STEPS;
const DIES: u64 = STACK_ENDS + 1;

/// Kills the domain of the running activation, which is condemned. Logs the death and its reason; after an exception or a
/// panic also where it happened. Then kills the domain and leaves the activation. A tainted domain writes no line.
///
/// A preemption point precedes each step. The saved status counts the steps, so that this continues where it was. The words
/// are those of [`Ref::condemn`]. Users can write none of these.
pub fn condemned(activation: Ref<Activation>) -> ! {
    let held = activation.held();
    loop {
        dispatch::yield_lock(held);
        let (step, words) = (activation.registers.status(), activation.registers.words());
        let owner = activation.address();
        let mut next = step + 1;
        match step {
            // Nor does it replace the one line that another death may be composing.
            0 if flows::may_change(activation.domain).is_err() => next = DIES,
            0 => log::begin(held, owner, &death::death_line(&activation.domain, words[0])),
            1 if words[0] < status::EXCEPTION => {}
            1 => log::go_on(held, owner, &reason(activation.registers.pc.get(), words)),
            2 => death::report_death(activation.domain, words[0], owner),
            PLACE if words[0] < status::EXCEPTION && words[0] & 0xff != status::PANICKED => next = DIES,
            PLACE => log::begin(held, owner, &owner_of(&activation)),
            REGISTERS => log::go_on(held, owner, &place(activation)),
            STACK..STACK_ENDS => report_stack(activation, (step - STACK) * STACK_WORDS),
            STACK_ENDS => death::report_place(activation.domain, owner),
            DIES => death::die(activation.domain, words[0]),
            _ => death::leave_dead(held),
        }
        activation.registers.set_words(words, 0);
        activation.registers.set_status(next);
    }
}

/// Start of the line about the place: the domain.
fn owner_of(activation: &Ref<Activation>) -> [Part<'_>; 4] {
    let (number, name) = (Part::Number(activation.domain.number), Part::Foreign(activation.domain.name_bytes()));
    [Part::Text("domain "), number, Part::Text(" "), name]
}

/// Where it happened: instruction pointer, stack pointer, and the link register, if the processor has one.
fn place(activation: Ref<Activation>) -> [Part<'static>; 6] {
    let Registers { pc, sp, .. } = &activation.registers;
    let [at, stack, link] = [" was at ", ", stack ", ", link "].map(Part::Text);
    let [link, from] = match activation.registers.link() {
        Some(from) => [link, Part::Hex(from)],
        None => [Part::Text(""); 2],
    };
    [at, Part::Hex(pc.get()), stack, Part::Hex(sp.get()), link, from]
}

/// Adds to the line those of the next stack words that could be return addresses, each with its offset from the stack
/// pointer in bytes. Nothing else of a stack goes into a log.
fn report_stack(activation: Ref<Activation>, first: u64) {
    let (held, domain) = (activation.held(), activation.domain);
    for offset in (first..first + STACK_WORDS).map(|word| word * 8) {
        let address = activation.registers.sp.get().wrapping_add(offset);
        let word = space::stack_word(domain, address).filter(|word| space::is_code(domain, *word));
        if let Some(word) = word {
            let [space, colon] = [" ", ":"].map(Part::Text);
            log::go_on(held, activation.address(), &[space, Part::Hex(offset), colon, Part::Hex(word)]);
        }
    }
}

/// The reason of a death, as the end of its line.
fn reason(pc: u64, [died, _, which, code, error]: [u64; 5]) -> [Part<'static>; 8] {
    let [at, with, why] = [", pc ", ", code ", ": "].map(Part::Text);
    let (none, pc) = (Part::Text(""), Part::Hex(pc));
    let handled = |text| match (which, died) {
        (NO_ADDRESS, _) => [Part::Text(text), none, at, pc, none, none, none, none],
        (_, status::STACK_OVERFLOW) => {
            [Part::Text(": stack overflow at "), Part::Hex(which), at, pc, none, none, none, none]
        }
        _ => [Part::Text(": page fault at "), Part::Hex(which), at, pc, Part::Text(text), none, none, none],
    };
    let Err(error) = Error::from_status(error) else { return handled(": its handler gave up") };
    if code == 0 && died == status::PAGE_FAULT {
        return handled(": its handler ended without an answer");
    }
    let (what, which) = match died {
        status::PAGE_FAULT => (": page fault at ", Part::Hex(which)),
        _ => (": exception ", Part::Number(which)),
    };
    [Part::Text(what), which, at, pc, with, Part::Hex(code), why, Part::Text(text_of(error))]
}
