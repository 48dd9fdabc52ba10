//! Registers of the device that the system description gives this component, on machines with a device tree: the page at
//! [`abi::layout::DEVICE`]. A component that was given none and touches them dies of a page fault.

use abi::PAGE_BYTES;
use abi::layout::DEVICE;

/// Where a register of 32 bits is.
fn place(offset: usize) -> *mut u32 {
    assert!(offset < PAGE_BYTES && offset.is_multiple_of(4), "no register of 32 bits");
    (DEVICE as usize + offset) as *mut u32
}

/// Reads the register at this offset (bytes, a multiple of four).
pub fn read(offset: usize) -> u32 {
    // SAFETY: a page on which nothing of the language lies: registers, or nothing.
    unsafe { place(offset).read_volatile() }
}

/// Writes the register at this offset (bytes, a multiple of four).
pub fn write(offset: usize, value: u32) {
    // SAFETY: a page on which nothing of the language lies: registers, or nothing. The device does nothing to memory.
    unsafe { place(offset).write_volatile(value) }
}
