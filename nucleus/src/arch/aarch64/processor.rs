//! The block of each CPU, and the registers that say how the processor behaves at EL1 and EL0.

use super::entry::vectors;
use crate::cpu::Cpu;
use crate::pointer::Ref;
use core::arch::asm;

/// SCTLR_EL1 without MMU and caches (Arm ARM D19.2.118): what reads as one in the first version of the architecture.
pub(super) const SCTLR_OFF: u64 = 1 << 29 | 1 << 28 | 1 << 23 | 1 << 22 | 1 << 20 | 1 << 11;
/// SCTLR_EL1 in use: MMU, caches, stack alignment checks; EL0 may wait for events and clear by DC ZVA, not wait for
/// interrupts, mask any, maintain caches, or read their type; no setting of flags of old instructions.
pub(super) const SCTLR: u64 = SCTLR_OFF | 1 << 18 | 1 << 14 | 1 << 12 | 1 << 8 | 1 << 7 | 1 << 4 | 1 << 3 | 1 << 2 | 1;
/// What is writable is never executed. Only with the final tables.
const SCTLR_WXN: u64 = 1 << 19;
/// PAN stays as it is when an exception is taken, instead of being set.
const SCTLR_SPAN: u64 = 1 << 23;
/// EL0 and EL1 do not trap when they use the floating-point unit.
pub(super) const CPACR_FPEN: u64 = 3 << 20;

/// Makes `cpu` the block of this CPU.
pub fn load_block(cpu: Ref<Cpu>) {
    // SAFETY: the block lives for ever.
    unsafe { asm!("msr tpidr_el1, {}", in(reg) cpu.address(), options(nostack, nomem)) }
}

/// Tells the CPU that this is a waiting loop.
#[inline(always)]
pub fn relax() {
    // SAFETY: a hint.
    unsafe { asm!("yield", options(nostack, nomem, preserves_flags)) }
}

/// The frame pointer: the next one stands where it points to, and the return address behind (AAPCS64 6.4.6).
#[inline(always)]
pub fn frame_pointer() -> usize {
    let frame;
    // SAFETY: only reads a register.
    unsafe { asm!("mov {}, x29", out(reg) frame, options(nostack, nomem)) }
    frame
}

/// The block of this CPU.
#[inline(always)]
pub fn block() -> Ref<Cpu> {
    let block: *mut Cpu;
    // SAFETY: the first thing that runs on a CPU loads its block, which never changes.
    unsafe {
        asm!("mrs {}, tpidr_el1", out(reg) block, options(pure, nomem, nostack, preserves_flags));
        Ref::new(block)
    }
}

/// Reads a system register.
macro_rules! read {
    ($name:literal) => {{
        let value: u64;
        // SAFETY: reading this register changes nothing.
        unsafe { core::arch::asm!(concat!("mrs {}, ", $name), out(reg) value, options(nostack, nomem)) }
        value
    }};
}
pub(super) use read;

/// Loads everything on the first CPU, with interrupts off.
pub fn init() {
    load();
}

/// Loads everything: vectors, protection, the counters that users may read.
pub(super) fn load() {
    let mut control = read!("sctlr_el1") | SCTLR_WXN;
    // ID_AA64MMFR1_EL1.PAN (FEAT_PAN): set now and at every exception.
    let protects = read!("id_aa64mmfr1_el1") >> 20 & 0xf != 0;
    // SAFETY: the vectors are complete. W^X holds in the final tables; the nucleus touches no user page.
    unsafe {
        asm!("msr vbar_el1, {}", in(reg) &raw const vectors, options(nostack));
        if protects {
            control &= !SCTLR_SPAN;
            asm!(".inst 0xd500419f", options(nostack)); // msr pan, #1
        }
        asm!("msr sctlr_el1, {}", "isb", in(reg) control, options(nostack));
        // No debugging of users by themselves; breakpoints and steps are off.
        asm!("msr mdscr_el1, xzr", "msr oslar_el1, xzr", options(nostack));
        // CNTKCTL_EL1: EL0 reads the virtual counter, nothing else of the timers.
        asm!("msr cntkctl_el1, {}", in(reg) 2u64, options(nostack));
    }
    init_counters();
}

/// PMCR_EL0: the counter of cycles has 64 bits and counts (LC, E; Arm ARM D13.5).
pub(super) const PMCR: u64 = 1 << 6 | 1;

/// Whether there is a unit with such a counter.
fn has_counter() -> bool {
    !matches!(read!("id_aa64dfr0_el1") >> 8 & 0xf, 0 | 15)
}

/// What the counter of cycles says; 0 without one.
#[inline(always)]
pub(super) fn cycles() -> u64 {
    if has_counter() { read!("pmccntr_el0") } else { 0 }
}

/// The counter of cycles counts always, for users, too (Arm ARM D13.5; PMUSERENR_EL0.CR: reading it only).
fn init_counters() {
    if !has_counter() {
        return;
    }
    // SAFETY: the unit is there; only the counter of cycles is used: at all levels; enabled; readable.
    unsafe {
        asm!("msr pmccfiltr_el0, xzr", "msr pmcntenset_el0, {counter}", "msr pmcr_el0, {control}",
            "msr pmuserenr_el0, {user}", "isb", counter = in(reg) 1u64 << 31, control = in(reg) PMCR,
            user = in(reg) 4u64, options(nostack));
    }
}

/// The counter of cycles goes on from here: about where that of the first CPU is.
pub(super) fn set_cycles(cycles: u64) {
    if has_counter() {
        // SAFETY: as above.
        unsafe { asm!("msr pmccntr_el0, {}", in(reg) cycles, options(nostack, nomem)) }
    }
}
