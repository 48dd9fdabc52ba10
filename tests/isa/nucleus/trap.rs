//! The meaning of a trap.

use crate::objects::Trap;

/// The meaning of a trap from user mode.
pub fn of_user(vector: u64, code: u64) -> Trap {
    unimplemented!()
}

/// Whether it is an interrupt that the nucleus lets in.
pub fn is_interrupt(vector: u64) -> bool {
    unimplemented!()
}

/// Where the last page fault was.
pub fn fault_address() -> u64 {
    unimplemented!()
}
