//! The local APIC and the I/O APIC (Intel SDM volume 3, chapter 11; 82093AA). The 8259s are masked.

use super::memory::{IO_APIC, LOCAL_APIC, port_write};

/// Vector of interrupt line 0.
pub const FIRST_LINE: usize = 32;
/// Interrupt lines of the I/O APIC.
pub const LINES: usize = 24;
/// Vector of the timer.
pub const TIMER: usize = 0xe0;
/// Vector of interrupts that are none.
pub const SPURIOUS: usize = 0xff;

fn local(register: usize) -> *mut u32 {
    (LOCAL_APIC + register) as *mut u32
}

fn write(register: usize, value: u32) {
    // SAFETY: a register of the local APIC, mapped uncached.
    unsafe { local(register).write_volatile(value) }
}

fn io_write(register: u32, value: u32) {
    // SAFETY: the I/O APIC's select and window registers, mapped uncached.
    unsafe {
        (IO_APIC as *mut u32).write_volatile(register);
        ((IO_APIC + 0x10) as *mut u32).write_volatile(value);
    }
}

/// Masks everything and enables the local APIC.
pub fn init() {
    // SAFETY: masks the 8259s; nothing else uses them.
    unsafe {
        port_write(0x21, 0xff);
        port_write(0xa1, 0xff);
    }
    write(0xf0, 0x100 | SPURIOUS as u32);
    write(0x80, 0);
    write(0x3e0, 0b1011);
    write(0x320, TIMER as u32);
    for line in 0..LINES {
        mask(line);
    }
}

/// The line gives no interrupts. How it is triggered stays: the controller keeps what a level-triggered line
/// asks for only as long as it is known as one.
pub fn mask(line: usize) {
    io_write(0x10 + 2 * line as u32, 1 << 16 | trigger(line) | (FIRST_LINE + line) as u32);
}

fn trigger(line: usize) -> u32 {
    if is_level(line) { 1 << 15 | 1 << 13 } else { 0 }
}

/// The line gives interrupts: edge-triggered for the ISA lines, level-triggered and active low for PCI's.
pub fn unmask(line: usize) {
    io_write(0x11 + 2 * line as u32, 0);
    io_write(0x10 + 2 * line as u32, trigger(line) | (FIRST_LINE + line) as u32);
}

/// Whether the line must be masked until its device was served.
pub fn is_level(line: usize) -> bool {
    line >= 16
}

/// The interrupt was taken.
pub fn acknowledge() {
    write(0xb0, 0);
}

/// Starts the one-shot timer with this many counts; 0 stops it.
pub fn start_timer(counts: u32) {
    write(0x380, counts);
}

/// Counts left.
pub fn timer_left() -> u32 {
    // SAFETY: the current-count register of the local APIC.
    unsafe { local(0x390).read_volatile() }
}
