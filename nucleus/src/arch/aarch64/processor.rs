//! The block of each CPU, and the registers that say how the processor behaves at EL1 and EL0.

use crate::objects::Cpu;
use crate::pointer::{Held, Ref};
use abi::registers::AARCH64_RANDOM;
use core::arch::asm;

unsafe extern "C" {
    static vectors: [u8; 2048];
}

/// SCTLR_EL1 without MMU and caches (Arm ARM D19.2.118): the bits that are RES1 in the first version of the architecture.
pub(super) const SCTLR_OFF: u64 = 1 << 29 | 1 << 28 | 1 << 23 | 1 << 22 | 1 << 20 | 1 << 11;
/// SCTLR_EL1 in use: MMU, caches, stack alignment checks. EL0 may execute WFE and DC ZVA. It may not execute WFI, mask
/// interrupts, maintain caches, or read CTR_EL0. SETEND and IT of AArch32 are off.
pub(super) const SCTLR: u64 = SCTLR_OFF | 1 << 18 | 1 << 14 | 1 << 12 | 1 << 8 | 1 << 7 | 1 << 4 | 1 << 3 | 1 << 2 | 1;
/// Writable memory is never executed. Set only with the final tables.
const SCTLR_WXN: u64 = 1 << 19;
/// PAN stays as it is when an exception is taken, instead of being set.
const SCTLR_SPAN: u64 = 1 << 23;
/// EL0 has no access to implementation-defined registers and instructions (FEAT_TIDCP1).
const SCTLR_TIDCP: u64 = 1 << 63;
/// MDSCR_EL1: EL0 has no access to the debug communications channel (TDCC); breakpoints, watchpoints and steps are off.
const MDSCR_TDCC: u64 = 1 << 12;
/// EL0 and EL1 do not trap when they use the floating-point unit.
pub(super) const CPACR_FPEN: u64 = 3 << 20;

/// Makes `cpu` the block of this CPU.
pub fn load_block(cpu: Ref<Cpu>) {
    // SAFETY: the block is never freed.
    unsafe { asm!("msr tpidr_el1, {}", in(reg) cpu.address(), options(nostack, nomem)) }
}

/// A hint to the CPU: this is a spin loop.
#[inline(always)]
pub fn relax() {
    // SAFETY: a hint.
    unsafe { asm!("yield", options(nostack, nomem, preserves_flags)) }
}

/// The frame pointer. It points to the caller's frame pointer, which the return address follows (AAPCS64 6.4.6).
#[inline(always)]
pub fn frame_pointer() -> usize {
    let frame;
    // SAFETY: only reads a register.
    unsafe { asm!("mov {}, x29", out(reg) frame, options(nostack, nomem)) }
    frame
}

/// The block of this CPU.
#[inline(always)]
pub fn block(_: Held) -> Ref<Cpu> {
    let block: *mut Cpu;
    // SAFETY: a CPU loads its block before it runs anything else, and never another one.
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

/// The tables of one CPU: it has only registers.
pub struct Tables;

impl Tables {
    /// The empty tables.
    pub const fn new() -> Self {
        Self
    }
}

/// Loads everything on the first CPU, with interrupts off.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn init(held: Held) {
    load(block(held), &mut Tables);
}

/// Loads everything on the CPU with this block: vectors, protection, the counters that users may read. Writes each register
/// in full: no value of the firmware or a loader stays.
pub fn load(_: Ref<Cpu>, _: &mut Tables) {
    if cfg!(feature = "checked") {
        poison();
    }
    let mut control = SCTLR | SCTLR_WXN;
    // ID_AA64MMFR1_EL1.PAN (FEAT_PAN): set now and at every exception.
    let protects = read!("id_aa64mmfr1_el1") >> 20 & 0xf != 0;
    // ID_AA64MMFR1_EL1.TIDCP1.
    if read!("id_aa64mmfr1_el1") >> 52 & 0xf != 0 {
        control |= SCTLR_TIDCP;
    }
    // SAFETY: the vectors are complete. W^X holds in the final tables, and the nucleus accesses no user page.
    unsafe {
        asm!("msr vbar_el1, {}", in(reg) &raw const vectors, options(nostack));
        if protects {
            control &= !SCTLR_SPAN;
            asm!(".inst 0xd500419f", options(nostack)); // msr pan, #1
        }
        asm!("msr sctlr_el1, {}", "isb", in(reg) control, options(nostack));
        // Users get no debug facilities.
        asm!("msr mdscr_el1, {}", "msr oslar_el1, xzr", in(reg) MDSCR_TDCC, options(nostack));
        // Users can read these features, and cannot write the register.
        asm!("msr tpidrro_el0, {}", "msr contextidr_el1, xzr", in(reg) features(), options(nostack));
        // CNTKCTL_EL1: EL0 reads the virtual counter, nothing else of the timers.
        asm!("msr cntkctl_el1, {}", in(reg) 2u64, options(nostack));
    }
    init_counters();
    init_keys();
}

/// In a checked build: gives registers that users can notice values that firmware could leave there. SCTLR_EL1: EL0 may
/// execute WFI, mask interrupts, maintain caches, and read CTR_EL0. CNTKCTL_EL1 and PMUSERENR_EL0: it may use all timers and
/// counters, and the counters count.
fn poison() {
    let control = SCTLR | 1 << 26 | 1 << 16 | 1 << 15 | 1 << 9;
    // SAFETY: nothing depends on these registers until `load` writes them again; counters are written only if they exist.
    unsafe {
        asm!("msr sctlr_el1, {control}", "msr mdscr_el1, {debug}", "msr tpidrro_el0, {all}", "msr cntkctl_el1, {timers}",
            "isb", control = in(reg) control, debug = in(reg) 1u64 << 15, all = in(reg) !AARCH64_RANDOM,
            timers = in(reg) 0x303u64, options(nostack));
        if has_counter() {
            asm!("msr pmuserenr_el0, {0}", "msr pmcntenset_el0, {0}", in(reg) 0x8000_000fu64, options(nostack));
        }
    }
}

/// Panics unless the protection of the nucleus from user memory is on, as it must be after every entry from user mode.
pub(super) fn audit() {
    let protects = read!("id_aa64mmfr1_el1") >> 20 & 0xf != 0;
    // PSTATE.PAN, by number.
    assert!(!protects || read!("S3_0_C4_C2_3") >> 22 & 1 != 0, "the nucleus could reach memory of users");
    assert!(read!("sctlr_el1") & SCTLR_WXN != 0, "writable memory could be executed");
}

/// The features of this processor that users can read (`abi::registers`): ID_AA64ISAR0_EL1.RNDR.
fn features() -> u64 {
    if read!("id_aa64isar0_el1") >> 60 != 0 { AARCH64_RANDOM } else { 0 }
}

/// Clears the keys of pointer authentication, so that users learn no earlier values. Only PACGA uses a key: SCTLR_EL1
/// disables the other instructions, which then do nothing. The keys are the same for all, and no secret; see
/// docs/decisions/011-pointers-and-tags.md. Also closes the activity monitors to users (AMUSERENR_EL0, by number).
fn init_keys() {
    // ID_AA64ISAR1_EL1: APA, API, GPA, GPI; ID_AA64ISAR2_EL1 (by number): GPA3, APA3.
    const ISAR1_APA_API_GPA_GPI: u64 = 0xff << 4 | 0xff << 24;
    const ISAR2_GPA3_APA3: u64 = 0xff << 8;
    if read!("id_aa64isar1_el1") & ISAR1_APA_API_GPA_GPI != 0 || read!("S3_0_C0_C6_2") & ISAR2_GPA3_APA3 != 0 {
        // SAFETY: the processor has these keys, and the nucleus uses none: APIA, APIB, APDA, APDB, APGA, two words each.
        unsafe {
            asm!(
                "msr S3_0_C2_C1_0, xzr",
                "msr S3_0_C2_C1_1, xzr",
                "msr S3_0_C2_C1_2, xzr",
                "msr S3_0_C2_C1_3, xzr",
                "msr S3_0_C2_C2_0, xzr",
                "msr S3_0_C2_C2_1, xzr",
                "msr S3_0_C2_C2_2, xzr",
                "msr S3_0_C2_C2_3, xzr",
                "msr S3_0_C2_C3_0, xzr",
                "msr S3_0_C2_C3_1, xzr",
                options(nostack)
            );
        }
    }
    // ID_AA64PFR0_EL1.AMU.
    if read!("id_aa64pfr0_el1") >> 44 & 0xf != 0 {
        // SAFETY: the register exists, and only restricts users.
        unsafe { asm!("msr S3_3_C13_C2_3, xzr", options(nostack)) }
    }
}

/// PMCR_EL0: the cycle counter has 64 bits and counts (LC, E; Arm ARM D13.5).
pub(super) const PMCR: u64 = 1 << 6 | 1;

/// Whether the processor has performance counters, among them that of cycles.
fn has_counter() -> bool {
    !matches!(read!("id_aa64dfr0_el1") >> 8 & 0xf, 0 | 15)
}

/// The cycle counter; 0 without one.
#[inline(always)]
pub(super) fn cycles() -> u64 {
    if has_counter() { read!("pmccntr_el0") } else { 0 }
}

/// Has the cycle counter count at all levels, and users read it, but no other counter (Arm ARM D13.5; PMUSERENR_EL0.CR).
fn init_counters() {
    if !has_counter() {
        return;
    }
    // SAFETY: the counters exist, and nothing uses another one than that of cycles.
    unsafe {
        asm!("msr pmccfiltr_el0, xzr", "msr pmcntenclr_el0, {all}", "msr pmintenclr_el1, {all}",
            "msr pmcntenset_el0, {counter}", "msr pmcr_el0, {control}", "msr pmuserenr_el0, {user}", "isb",
            all = in(reg) u64::from(u32::MAX), counter = in(reg) 1u64 << 31, control = in(reg) PMCR, user = in(reg) 4u64,
            options(nostack));
    }
}

/// Sets the cycle counter, to about the value on the first CPU.
pub(super) fn set_cycles(cycles: u64) {
    if has_counter() {
        // SAFETY: the counter exists, and nothing else changes.
        unsafe { asm!("msr pmccntr_el0, {}", in(reg) cycles, options(nostack, nomem)) }
    }
}
