//! Interrupt lines: an interrupt is a V on the semaphore of who holds the line.

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

/// An entry for the line is made: nobody else gets one.
pub fn take(held: Held, line: usize) -> Result<(), Error> {
    let line = TABLE.get(held).get(line).ok_or(Error::BadArgument)?;
    if line.taken.replace(true) {
        return Err(Error::Taken);
    }
    Ok(())
}

/// The original entry of the line is gone.
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

/// The line gives interrupts to this CPU.
fn unmask(held: Held, number: usize) {
    interrupts::unmask(number, cpu::this(held).identity.get(), cpu::identity_of(held, 0));
}

/// The device was served: the line is enabled again.
pub fn enable(held: Held, number: usize) {
    if TABLE.get(held)[number].semaphore.get().is_some() {
        unmask(held, number);
    }
}

/// The line's interrupt came.
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
