//! Interrupt lines: an interrupt is a V on the semaphore of who holds the line.

use crate::arch::interrupts::{self, LINES};
use crate::pointer::{Link, Nucleus, Ref};
use crate::semaphore::Semaphore;
use abi::Error;

#[derive(Clone, Copy)]
struct Line {
    taken: bool,
    semaphore: Link<Semaphore>,
}

static TABLE: Nucleus<[Line; LINES]> = Nucleus::new([Line { taken: false, semaphore: None }; LINES]);

/// An entry for the line is made: nobody else gets one.
pub fn take(line: usize) -> Result<(), Error> {
    let line = TABLE.get().get_mut(line).ok_or(Error::BadArgument)?;
    if line.taken {
        return Err(Error::Busy);
    }
    line.taken = true;
    Ok(())
}

/// The original entry of the line is gone.
pub fn release(number: usize) {
    interrupts::mask(number);
    let line = &mut TABLE.get()[number];
    line.taken = false;
    if let Some(semaphore) = line.semaphore.take() {
        semaphore.drop_hold();
    }
}

/// Binds the line to a semaphore and enables it.
pub fn bind(number: usize, semaphore: Ref<Semaphore>) {
    let line = &mut TABLE.get()[number];
    semaphore.hold();
    if let Some(old) = line.semaphore.replace(semaphore) {
        old.drop_hold();
    }
    interrupts::unmask(number);
}

/// The device was served: the line is enabled again.
pub fn enable(number: usize) {
    if TABLE.get()[number].semaphore.is_some() {
        interrupts::unmask(number);
    }
}

/// The line's interrupt came.
pub fn came(number: usize) {
    match TABLE.get()[number].semaphore {
        Some(semaphore) => {
            if interrupts::is_level(number) {
                interrupts::mask(number);
            }
            semaphore.signal();
        }
        None => interrupts::mask(number),
    }
}
