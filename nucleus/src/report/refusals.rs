//! With the feature `checked`: the errors with which kernel operations refuse their callers. Each pair of operation and error is written to
//! the emulator's debug console once. `./x test` compares them with the contract. Without the feature, this does nothing. Waits and calls
//! that others end, semaphores and ports are left out.

use crate::arch::memory;
use crate::pointer::{Held, Nucleus};
use abi::Error;
use abi::op::COUNT;
use core::cell::Cell;

/// For each operation a bit for each error.
static SEEN: Nucleus<[Cell<u128>; COUNT]> = Nucleus::new([const { Cell::new(0) }; COUNT]);

const _: () = assert!(Error::ALL.len() < u128::BITS as usize);

/// The operation of this number ends with this error. A number that is no operation is ignored.
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
