//! Addresses of the nucleus, single instructions, calls of firmware and emulator, stopping the machine.

use super::firmware::{self, Conduit};
use abi::boot::Region;
use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

/// All RAM is mapped from here on (not executable; image text read-only), and registers that the nucleus uses.
pub const DIRECT: usize = 0xffff_8000_0000_0000;
/// The image is linked here; it is loaded anywhere in RAM.
pub const IMAGE: usize = 0xffff_ffff_8000_0000;
/// Bytes of the system call instruction.
pub const SYSTEM_CALL_BYTES: u64 = 4;
/// Bytes of RAM, from [`first_frame`] on, that the boot page tables reach.
pub const BOOT_MAPPED: usize = 1 << 30;
/// Ports of I/O space: there is none.
pub const PORTS: u64 = 0;

unsafe extern "C" {
    static boot_base: usize;
    static image_start: u8;
    static image_end: u8;
}

/// Where the image was loaded.
pub(super) fn base() -> usize {
    // SAFETY: written once, by the first instructions.
    unsafe { boot_base }
}

/// The lowest frame that may be RAM.
#[inline(always)]
pub fn first_frame() -> usize {
    firmware::get().first_frame
}

/// The device tree.
pub fn device_tree() -> Region {
    firmware::get().fdt
}

/// Bytes of the image in physical memory, boot section included.
pub fn image() -> Region {
    let (start, end) = (&raw const image_start as usize, &raw const image_end as usize);
    Region { start: physical(start) as u64, bytes: (end - start) as u64 }
}

/// Physical address of something in the image or the direct map.
pub fn physical(address: usize) -> usize {
    if address >= IMAGE { address - IMAGE + base() } else { address - DIRECT }
}

/// Whether a physical address belongs to the interrupt controller, which only the nucleus may use.
pub fn is_of_interrupts(physical: u64) -> bool {
    let firmware = firmware::get();
    firmware.controller.iter().chain(&firmware.others).any(|range| (range.start..range.end()).contains(&physical))
}

/// Fills a page with zeros.
///
/// # Safety
/// Only the caller uses the page.
#[inline(always)]
pub unsafe fn clear_page(address: usize) {
    // SAFETY: by contract. `init` of the layer's `processor` refuses processors whose DC ZVA clears other than 64 bytes.
    unsafe {
        asm!(
            "2:", "dc zva, {at}", "add {at}, {at}, #64", "dc zva, {at}", "add {at}, {at}, #64",
            "dc zva, {at}", "add {at}, {at}, #64", "dc zva, {at}", "add {at}, {at}, #64",
            "cmp {at}, {end}", "b.lo 2b",
            at = inout(reg) address => _, end = in(reg) address + 4096, options(nostack)
        )
    }
}

/// Reads a byte from I/O space, of which there is none.
///
/// # Safety
/// None is needed: no entry for ports can be made.
pub unsafe fn port_read(_: u16) -> u8 {
    0
}

/// Writes a byte to I/O space, of which there is none.
///
/// # Safety
/// As for [`port_read`].
pub unsafe fn port_write(_: u16, _: u8) {}

/// Reads four bytes from I/O space, of which there is none.
///
/// # Safety
/// As for [`port_read`].
pub unsafe fn port_read_long(_: u16) -> u32 {
    0
}

/// Writes four bytes to I/O space, of which there is none.
///
/// # Safety
/// As for [`port_read`].
pub unsafe fn port_write_long(_: u16, _: u32) {}

/// Writes bytes to the emulator's debug console, where that is connected (Semihosting for AArch32 and AArch64,
/// SYS_WRITEC, 0x03).
pub fn debug_console(bytes: &[u8]) {
    if firmware::get().semihosting {
        for byte in bytes {
            // SAFETY: the command line says that an emulator takes the call, which changes only x0.
            unsafe { asm!("hlt #0xf000", inout("x0") 3u64 => _, in("x1") byte, options(nostack, readonly)) }
        }
    }
}

/// "ADP_Stopped_ApplicationExit", with a status (Semihosting for AArch32 and AArch64, SYS_EXIT, 0x18).
const APPLICATION_EXIT: u64 = 0x2_0026;
/// PSCI SYSTEM_OFF (DEN 0022, 5.10).
const SYSTEM_OFF: u64 = 0x8400_0008;

/// Writes a character (SYS_WRITEC, 0x03).
const WRITE: u64 = 3;
/// Ends the emulator (SYS_EXIT, 0x18).
const EXIT: u64 = 0x18;

/// Set during a call of the emulator.
static ASKS: AtomicBool = AtomicBool::new(false);

/// Calls the emulator, if semihosting is assumed. Without an emulator the instruction is undefined: the panic about its trap
/// calls again, and that call does nothing.
fn emulator(what: u64, argument: u64) {
    if ASKS.swap(true, Ordering::Relaxed) {
        // The first call trapped, so no further one is made.
        return;
    }
    if firmware::get().semihosting {
        // SAFETY: the emulator reads the argument, may end the machine, and changes only x0; without one the instruction
        // traps.
        unsafe { asm!("hlt #0xf000", inout("x0") what => _, in("x1") argument, options(nostack)) }
    }
    ASKS.store(false, Ordering::Relaxed);
}

/// Writes a byte of the last words, if no serial port is known.
pub(super) fn report_to_emulator(byte: u8) {
    emulator(WRITE, &raw const byte as u64);
}

/// Stops the machine. An emulator for which the command line announces semihosting ends with status `2 * value + 1`.
pub fn stop_machine(value: u32) -> ! {
    // The same status as by the exit device of x86-64: no other end of the emulator has it.
    let block = [APPLICATION_EXIT, 2 * value as u64 + 1];
    emulator(EXIT, &raw const block as u64);
    psci(SYSTEM_OFF, [0; 3]);
    loop {
        // SAFETY: nothing is left to do.
        unsafe { asm!("msr daifset, #0xf", "wfi", options(nomem, nostack)) }
    }
}

/// Calls the firmware (SMC Calling Convention, DEN 0028, 2.6); None without firmware.
pub(super) fn psci(function: u64, arguments: [u64; 3]) -> Option<u64> {
    let [first, second, third] = arguments;
    let mut result = function;
    // SAFETY: the caller vouches for the function; the firmware changes no other registers.
    unsafe {
        match firmware::get().psci? {
            Conduit::Hypervisor => asm!("hvc #0", inout("x0") result, inout("x1") first => _, inout("x2") second => _,
                inout("x3") third => _, clobber_abi("C"), options(nostack)),
            Conduit::Monitor => asm!("smc #0", inout("x0") result, inout("x1") first => _, inout("x2") second => _,
                inout("x3") third => _, clobber_abi("C"), options(nostack)),
        }
    }
    Some(result)
}
