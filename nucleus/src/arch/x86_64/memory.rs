//! Addresses of the nucleus, model-specific registers, single instructions.

use abi::boot::Region;
use core::arch::asm;

/// All RAM is mapped from here on (not executable; image text read-only).
pub const DIRECT: usize = 0xffff_8000_0000_0000;
/// The image is linked here plus its physical address.
pub const IMAGE: usize = 0xffff_ffff_8000_0000;
/// Registers of the local and the I/O interrupt controller: the last pages that the image's own table reaches.
pub(super) const LOCAL_APIC: usize = 0xffff_ffff_803f_e000;
/// See [`LOCAL_APIC`].
pub(super) const IO_APIC: usize = 0xffff_ffff_803f_f000;
/// Bytes of the system call instruction.
pub const SYSTEM_CALL_BYTES: u64 = 2;

/// Bytes of RAM, from [`first_frame`] on, that the boot page tables reach.
pub const BOOT_MAPPED: usize = 1 << 30;
/// Ports of I/O space.
pub const PORTS: u64 = 0x1_0000;

/// The lowest frame that may be RAM.
#[inline(always)]
pub const fn first_frame() -> usize {
    0
}

/// The device tree: there is none.
#[inline(always)]
pub const fn device_tree() -> Region {
    Region { start: 0, bytes: 0 }
}

unsafe extern "C" {
    static image_end: u8;
}

/// Bytes of the image in physical memory, boot section included.
pub fn image() -> Region {
    const START: u64 = 0x20_0000;
    Region { start: START, bytes: physical(&raw const image_end as usize) as u64 - START }
}

/// Physical address of something in the image or the direct map.
pub fn physical(address: usize) -> usize {
    if address >= IMAGE { address - IMAGE } else { address - DIRECT }
}

/// Whether a physical address belongs to the interrupt controllers, the timers beside them, or the range to which devices
/// write message-signalled interrupts (Intel SDM volume 3, 11.4.1 and 11.11; 82093AA, 3.0). Only the nucleus may use these.
pub fn is_of_interrupts(physical: u64) -> bool {
    (0xfec0_0000..0xfef0_0000).contains(&physical)
}

/// Fills a page with zeros.
///
/// # Safety
/// Only the caller uses the page.
#[inline(always)]
pub unsafe fn clear_page(address: usize) {
    // SAFETY: by contract; the direction flag is clear in the nucleus.
    unsafe {
        asm!("rep stosq", inout("rdi") address => _, inout("rcx") 512 => _, in("rax") 0, options(nostack, preserves_flags))
    }
}

pub(super) const MSR_FS_BASE: u32 = 0xc000_0100;

/// Writes a model-specific register.
///
/// # Safety
/// As the register demands (Intel SDM volume 4).
pub(super) unsafe fn write_msr(register: u32, value: u64) {
    // SAFETY: by contract.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack))
    }
}

/// Reads a model-specific register.
///
/// # Safety
/// The register exists.
pub(super) unsafe fn read_msr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: by contract.
    unsafe { asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nostack, nomem)) }
    low as u64 | (high as u64) << 32
}

/// Loads the user's thread pointer, which was checked.
pub(super) fn load_thread_pointer(pointer: u64) {
    // SAFETY: a canonical user address.
    unsafe { write_msr(MSR_FS_BASE, pointer) }
}

/// Reads a byte from I/O space.
///
/// # Safety
/// The port is the caller's.
pub unsafe fn port_read(port: u16) -> u8 {
    let value;
    // SAFETY: by contract.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack, nomem)) }
    value
}

/// Writes a byte to I/O space.
///
/// # Safety
/// The port is the caller's, and the device does nothing to memory that it should not.
pub unsafe fn port_write(port: u16, value: u8) {
    // SAFETY: by contract.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, nomem)) }
}

/// Reads four bytes from I/O space.
///
/// # Safety
/// The ports are the caller's.
pub unsafe fn port_read_long(port: u16) -> u32 {
    let value;
    // SAFETY: by contract.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nostack, nomem)) }
    value
}

/// Writes four bytes to I/O space.
///
/// # Safety
/// As for [`port_write`].
pub unsafe fn port_write_long(port: u16, value: u32) {
    // SAFETY: by contract.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, nomem)) }
}

/// Writes bytes to the emulator's debug console, where that is connected.
pub fn debug_console(bytes: &[u8]) {
    // SAFETY: the port of the emulator's debug console; other machines have nothing there. The direction flag is clear in
    // the nucleus.
    unsafe {
        asm!("rep outsb", in("dx") 0xe9u16, inout("rsi") bytes.as_ptr() => _, inout("rcx") bytes.len() => _,
            options(nostack, readonly, preserves_flags))
    }
}

/// Stops the machine; in the emulator with status `2 * value + 1`.
pub fn stop_machine(value: u32) -> ! {
    // SAFETY: the port of the emulator's exit device; other machines have nothing there.
    unsafe { asm!("out dx, eax", in("dx") 0xf4u16, in("eax") value, options(nostack, nomem)) }
    loop {
        // SAFETY: nothing is left to do.
        unsafe { asm!("cli", "hlt", options(nostack, nomem)) }
    }
}
