//! Starting the other CPUs, one after the other.

use crate::pointer::Held;
use abi::boot::{BootInfo, Region};

/// What the first CPU keeps from the boot loader's memory for the others; no bytes if that is nothing.
pub fn page() -> Region {
    unimplemented!()
}

/// Starts all CPUs that the firmware tells of; those that do not start are reported and left out.
pub fn start_others(_: Held, info: &BootInfo) -> Result<(), &'static str> {
    unimplemented!()
}
