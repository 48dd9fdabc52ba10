//! The local APIC and the I/O APIC (Intel SDM volume 3, chapter 11; 82093AA). The 8259s are masked.

use super::memory::{IO_APIC, LOCAL_APIC, port_write, read_msr, write_msr};
use crate::objects::Interrupt;
use crate::pointer::Boot;
use core::arch::asm;

/// Vector of interrupt line 0.
const FIRST_LINE: usize = 32;
/// Interrupt lines of the I/O APIC.
pub const LINES: usize = 24;
/// Vector of the timer.
const TIMER: usize = 0xe0;
/// Vector of interrupts from other CPUs.
const OTHER_CPU: usize = 0xe1;
/// Vector of spurious interrupts.
const SPURIOUS: usize = 0xff;

// The local APIC (volume 3, table 11-1).
const APIC_ID: usize = 0x20;
const TPR: usize = 0x80;
const EOI: usize = 0xb0;
const SVR: usize = 0xf0;
const ICR_LOW: usize = 0x300;
const ICR_HIGH: usize = 0x310;
const LVT_TIMER: usize = 0x320;
const TIMER_INITIAL_COUNT: usize = 0x380;
const TIMER_CURRENT_COUNT: usize = 0x390;
const TIMER_DIVIDE: usize = 0x3e0;
/// Delivery status: the interrupt is still on its way.
const ICR_SEND_PENDING: u32 = 1 << 12;
const ICR_ASSERT: u32 = 1 << 14;
const ICR_INIT: u32 = 5 << 8;
const ICR_STARTUP: u32 = 6 << 8;

// The I/O APIC (82093AA, 3.1, 3.2): select and window, and the first redirection entry.
const IOREGSEL: usize = 0;
const IOWIN: usize = 0x10;
const IOREDTBL: u32 = 0x10;

const IA32_APIC_BASE: u32 = 0x1b;
/// In IA32_APIC_BASE: x2APIC mode, in which the registers are MSRs from [`MSR_X2APIC`] on (volume 3, 11.12).
const APIC_BASE_EXTD: u64 = 1 << 10;
const MSR_X2APIC: u32 = 0x800;

/// The local APICs are in x2APIC mode.
static EXTENDED: Boot<bool> = Boot::new(false);

fn local(register: usize) -> *mut u32 {
    (LOCAL_APIC + register) as *mut u32
}

fn write(register: usize, value: u32) {
    // SAFETY: a register of the local APIC, mapped uncached.
    unsafe {
        if *EXTENDED.get() {
            write_msr(MSR_X2APIC + register as u32 / 16, value as u64);
        } else {
            local(register).write_volatile(value);
        }
    }
}

fn read(register: usize) -> u32 {
    // SAFETY: a register of the local APIC, mapped uncached; reading changes nothing.
    unsafe {
        if *EXTENDED.get() {
            read_msr(MSR_X2APIC + register as u32 / 16) as u32
        } else {
            local(register).read_volatile()
        }
    }
}

/// The APIC ID of this CPU.
pub fn identity() -> u32 {
    let word = read(APIC_ID);
    if *EXTENDED.get() { word } else { word >> 24 }
}

fn command(identity: u32, low: u32) {
    // SAFETY: the command resets or starts a CPU, or sends an interrupt for which there is a handler.
    unsafe {
        if *EXTENDED.get() {
            // The CPU that takes the interrupt sees all earlier writes (volume 3, 11.12.3).
            asm!("mfence", "lfence", options(nostack));
            return write_msr(MSR_X2APIC + ICR_LOW as u32 / 16, (identity as u64) << 32 | low as u64);
        }
    }
    while read(ICR_LOW) & ICR_SEND_PENDING != 0 {}
    write(ICR_HIGH, identity << 24);
    write(ICR_LOW, low);
}

/// Interrupts the CPU with this APIC ID.
pub fn send(identity: u32) {
    command(identity, ICR_ASSERT | OTHER_CPU as u32);
}

/// Resets a CPU, which then waits for [`send_start`].
pub(super) fn send_init(identity: u32) {
    command(identity, ICR_ASSERT | ICR_INIT);
}

/// Starts a CPU at a page of the first MiB.
pub(super) fn send_start(identity: u32, page: u32) {
    command(identity, ICR_ASSERT | ICR_STARTUP | page);
}

fn io_write(register: u32, value: u32) {
    // SAFETY: the I/O APIC's select and window registers, mapped uncached.
    unsafe {
        ((IO_APIC + IOREGSEL) as *mut u32).write_volatile(register);
        ((IO_APIC + IOWIN) as *mut u32).write_volatile(value);
    }
}

/// Masks all lines and enables the local APIC.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn init() {
    // SAFETY: masks the 8259s; nothing else uses them.
    unsafe {
        port_write(0x21, 0xff);
        port_write(0xa1, 0xff);
    }
    let extended = core::arch::x86_64::__cpuid(1).ecx >> 21 & 1 != 0;
    // SAFETY: the first CPU runs alone.
    unsafe { *EXTENDED.write() = extended };
    init_local();
    for line in 0..LINES {
        mask(line);
    }
}

/// Enables the local APIC of this CPU.
pub fn init_local() {
    if *EXTENDED.get() {
        // SAFETY: CPUID says that the CPU has this mode.
        unsafe { write_msr(IA32_APIC_BASE, read_msr(IA32_APIC_BASE) | APIC_BASE_EXTD) };
    }
    write(SVR, 0x100 | SPURIOUS as u32);
    write(TPR, 0);
    write(TIMER_DIVIDE, 0b1011);
    write(LVT_TIMER, TIMER as u32);
}

/// Masks the line. Keeps its trigger mode: the controller remembers the request of a level-triggered line only in that mode.
pub fn mask(line: usize) {
    io_write(IOREDTBL + 2 * line as u32, 1 << 16 | trigger(line) | (FIRST_LINE + line) as u32);
}

fn trigger(line: usize) -> u32 {
    if is_level(line) { 1 << 15 | 1 << 13 } else { 0 }
}

/// Unmasks the line and routes it to the CPU with APIC ID `to`, or to the first CPU if the controller cannot name that one.
/// ISA lines are edge-triggered, PCI lines level-triggered and active low.
pub fn unmask(line: usize, to: u32, first: u32) {
    // The I/O APIC has eight bits for an APIC ID.
    let identity = u8::try_from(to).unwrap_or(first as u8);
    io_write(IOREDTBL + 2 * line as u32 + 1, (identity as u32) << 24);
    io_write(IOREDTBL + 2 * line as u32, trigger(line) | (FIRST_LINE + line) as u32);
}

/// Whether the line must be masked until its device was served.
pub fn is_level(line: usize) -> bool {
    line >= 16
}

/// Takes the interrupt with this vector; gives its number.
pub fn claim(vector: u64) -> u32 {
    vector as u32
}

/// The meaning of a claimed interrupt.
pub fn meaning(claimed: u32) -> Interrupt {
    match claimed as usize {
        TIMER => Interrupt::Timer,
        OTHER_CPU => Interrupt::OtherCpu,
        SPURIOUS => Interrupt::Nothing,
        vector => Interrupt::Line(vector.wrapping_sub(FIRST_LINE)),
    }
}

/// Ends a claimed interrupt.
pub fn complete(_: u32) {
    write(EOI, 0);
}

/// Starts the one-shot timer with this many counts; 0 stops it.
pub(super) fn start_timer(counts: u32) {
    write(TIMER_INITIAL_COUNT, counts);
}

/// Counts left.
pub(super) fn timer_left() -> u32 {
    read(TIMER_CURRENT_COUNT)
}
