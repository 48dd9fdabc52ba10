//! Addresses of the nucleus, small instructions, the end.

use abi::boot::Region;

/// All RAM is mapped from here on (not executable; image text read-only).
pub const DIRECT: usize = 0xffff_8000_0000_0000;
/// The image is linked here.
pub const IMAGE: usize = 0xffff_ffff_8000_0000;
/// Bytes of the system call instruction.
pub const SYSTEM_CALL_BYTES: u64 = 4;
/// Bytes of RAM, from [`first_frame`] on, that the boot page tables reach.
pub const BOOT_MAPPED: usize = 1 << 30;
/// Ports of I/O space; 0 if there is none.
pub const PORTS: u64 = 0;

/// The lowest frame that may be RAM.
pub fn first_frame() -> usize {
    unimplemented!()
}

/// The device tree; no bytes if there is none.
pub fn device_tree() -> Region {
    unimplemented!()
}

/// Bytes of the image in physical memory, boot section included.
pub fn image() -> Region {
    unimplemented!()
}

/// Physical address of something in the image or the direct map.
pub fn physical(address: usize) -> usize {
    unimplemented!()
}

/// Whether a physical address is one of the interrupt controller, of timers beside it, or one where interrupts are written
/// to: the nucleus's alone.
pub fn is_of_interrupts(physical: u64) -> bool {
    unimplemented!()
}

/// Fills a page with zeros.
///
/// # Safety
/// The page is the caller's alone.
pub unsafe fn clear_page(address: usize) {
    unimplemented!()
}

/// Reads a byte from I/O space.
///
/// # Safety
/// The port is the caller's.
pub unsafe fn port_read(port: u16) -> u8 {
    unimplemented!()
}

/// Writes a byte to I/O space.
///
/// # Safety
/// The port is the caller's, and the device does nothing to memory that it should not.
pub unsafe fn port_write(port: u16, value: u8) {
    unimplemented!()
}

/// Reads four bytes from I/O space.
///
/// # Safety
/// The ports are the caller's.
pub unsafe fn port_read_long(port: u16) -> u32 {
    unimplemented!()
}

/// Writes four bytes to I/O space.
///
/// # Safety
/// As for [`port_write`].
pub unsafe fn port_write_long(port: u16, value: u32) {
    unimplemented!()
}

/// Writes bytes to the emulator's debug console, where that is connected.
pub fn debug_console(bytes: &[u8]) {
    unimplemented!()
}

/// Stops the machine; the emulator ends with status `2 * value + 1`.
pub fn stop_machine(value: u32) -> ! {
    unimplemented!()
}
