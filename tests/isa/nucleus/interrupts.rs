//! The interrupt controller, and interrupts between CPUs.

use crate::pointer::Held;
/// Interrupt lines of devices.
pub const LINES: usize = 1;

/// What the machine calls this CPU.
pub fn identity() -> u32 {
    unimplemented!()
}

/// Interrupts the CPU that the machine calls so.
pub fn send(identity: u32) {
    unimplemented!()
}

/// Masks all lines, and enables interrupts of this CPU, the first.
pub fn init(_: Held) {
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

/// The line gives interrupts to this CPU.
pub fn unmask(_: Held, line: usize) {
    unimplemented!()
}

/// Whether the line must be masked until its device was served.
pub fn is_level(line: usize) -> bool {
    unimplemented!()
}
