//! Which errors occurred: with the feature `checked`, the nucleus records each error that a kernel operation returned. The first time a pair
//! of operation and error occurs, it is written to the emulator's debug console. `./x test` compares the pairs of all runs with the errors
//! that [`abi::op`] declares. Not recorded: semaphores, ports, and waits and calls that another thread ended.

use crate::arch::memory;
use crate::pointer::{Held, Nucleus};
use abi::Error;
use abi::op::COUNT;
use core::cell::Cell;

/// One bit for each error, per operation.
static SEEN: Nucleus<[Cell<u128>; COUNT]> = Nucleus::new([const { Cell::new(0) }; COUNT]);

const _: () = assert!(Error::ALL.len() < u128::BITS as usize);

/// Records that the operation returned this error. Ignores a number that is no operation.
#[inline(always)]
pub fn note(held: Held, operation: usize, error: Error) {
    if !cfg!(feature = "checked") {
        return;
    }
    let Some(seen) = SEEN.get(held).get(operation) else { return };
    let before = seen.get();
    seen.set(before | 1 << error as u32);
    if seen.get() != before {
        memory::debug_console(&[operation as u8, error as u8]);
    }
}
