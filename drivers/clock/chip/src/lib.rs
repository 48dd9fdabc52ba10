//! The clock chip that the system description gives us, whichever it is.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cmos;
mod pl031;

use abi::rights::Kind;
use alloc::string::String;
use runtime::{Entry, op};

fn has_ports() -> bool {
    op::entry_info(Entry::OWN, Entry::IO_PORTS).is_ok_and(|(kind, _)| kind == Kind::IoPorts)
}

/// The time since 1970 in nanoseconds, whole seconds, and the time since boot at which the chip said so.
pub fn now() -> Result<(u64, u64), String> {
    if has_ports() { cmos::now() } else { Ok(pl031::now()) }
}

/// As [`now`], at the moment at which the next second begins.
pub fn next_second() -> Result<(u64, u64), String> {
    if has_ports() { cmos::next_second() } else { pl031::next_second() }
}
