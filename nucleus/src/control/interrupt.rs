//! Interrupt lines: an interrupt does a V on the semaphore that is bound to its line.

use crate::arch::interrupts::{self, LINES};
use crate::cpus::cpu;
use crate::objects::Semaphore;
use crate::pointer::{Held, Link, Nucleus, Ref};
use abi::Error;
use core::cell::Cell;

struct Line {
    taken: Cell<bool>,
    semaphore: Cell<Link<Semaphore>>,
}

static TABLE: Nucleus<[Line; LINES]> =
    Nucleus::new([const { Line { taken: Cell::new(false), semaphore: Cell::new(None) } }; LINES]);

/// Takes the line for its one original entry.
pub fn take(held: Held, line: usize) -> Result<(), Error> {
    let line = TABLE.get(held).get(line).ok_or(Error::NotThere)?;
    if line.taken.replace(true) {
        return Err(Error::Taken);
    }
    Ok(())
}

/// Masks and unbinds a line whose original entry is gone.
pub fn release(held: Held, number: usize) {
    interrupts::mask(number);
    let line = &TABLE.get(held)[number];
    line.taken.set(false);
    if let Some(semaphore) = line.semaphore.take() {
        semaphore.drop_hold();
    }
}

/// Binds the line to a semaphore and enables it.
pub fn bind(number: usize, semaphore: Ref<Semaphore>) {
    let held = semaphore.held();
    let line = &TABLE.get(held)[number];
    semaphore.hold();
    if let Some(old) = line.semaphore.replace(Some(semaphore)) {
        old.drop_hold();
    }
    unmask(held, number);
}

/// Unmasks the line and routes it to this CPU, or to the first one if the controller cannot name this one.
fn unmask(held: Held, number: usize) {
    interrupts::unmask(number, cpu::this(held).identity.get(), cpu::identity_of(held, 0));
}

/// Enables the line again, after its device was served.
pub fn enable(held: Held, number: usize) {
    if TABLE.get(held)[number].semaphore.get().is_some() {
        unmask(held, number);
    }
}

/// Handles an interrupt of the line. A level-triggered line is masked until [`enable`]; an unbound one for good.
pub fn came(held: Held, number: usize) {
    match TABLE.get(held)[number].semaphore.get() {
        Some(semaphore) => {
            if interrupts::is_level(number) {
                interrupts::mask(number);
            }
            semaphore.signal();
        }
        None => interrupts::mask(number),
    }
}
