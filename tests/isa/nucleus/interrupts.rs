//! The interrupt controller, and interrupts between CPUs.

use crate::objects::Interrupt;

/// Interrupt lines of devices.
pub const LINES: usize = 1;

/// The machine's number for this CPU.
pub fn identity() -> u32 {
    unimplemented!()
}

/// Interrupts the CPU that the machine calls so.
pub fn send(identity: u32) {
    unimplemented!()
}

/// Masks all lines, and enables interrupts of this CPU, the first.
pub fn init() {
    unimplemented!()
}

/// Enables interrupts of this CPU.
pub fn init_local() {
    unimplemented!()
}

/// The line gives no interrupts. How it is triggered stays: the controller keeps what a level-triggered line
/// asks for only as long as it is known as one.
pub fn mask(line: usize) {
    unimplemented!()
}

/// The line gives interrupts to the CPU that the machine calls `to`, or to the first CPU if the controller does not know it.
pub fn unmask(line: usize, to: u32, first: u32) {
    unimplemented!()
}

/// Whether the line must be masked until its device was served.
pub fn is_level(line: usize) -> bool {
    unimplemented!()
}

/// Takes the interrupt that waits, or the one with this vector.
pub fn claim(vector: u64) -> u32 {
    unimplemented!()
}

/// The meaning of an interrupt that was claimed.
pub fn meaning(claimed: u32) -> Interrupt {
    unimplemented!()
}

/// The interrupt was taken; the value that [`claim`] gave.
pub fn complete(claimed: u32) {
    unimplemented!()
}
