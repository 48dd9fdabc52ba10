//! Negative tests for which a domain dies. The Arm ARM says with each instruction or register what it does at
//! EL0: it is undefined, or trapped by a bit that the nucleus has not set.

use core::arch::asm;

use super::NON_CANONICAL;
use crate::case::Case;
use runtime::abi::PAGE_BYTES;
use runtime::abi::info::status::EXCEPTION;
use runtime::abi::layout::{MESSAGE_START, PROGRAM_START};

/// A test that is one instruction, or some that need nothing from outside. The last one traps, and those before it touch
/// registers alone.
macro_rules! instruction {
    ($name:literal, $what:literal, $($code:literal),+) => {
        Case::death($name, $what, || {
            // SAFETY: the last instruction traps, and the nucleus ends this domain: nothing of it runs on.
            unsafe { asm!($($code),+, out("x0") _, out("x1") _) }
        })
    };
}

/// All of them, with what they are.
pub const DEATHS: &[Case] = &[
    Case::death("wait", "privileged instruction: wait for an interrupt", halt),
    instruction!("mask", "privileged instruction: interrupts off", "msr daifset, #2"),
    instruction!("root", "privileged instruction: write of the page-table root", "msr ttbr0_el1, xzr"),
    instruction!("vectors", "privileged instruction: write of the vectors' address", "msr vbar_el1, xzr"),
    instruction!("control", "privileged instruction: write of the system control register", "msr sctlr_el1, xzr"),
    instruction!("block", "privileged instruction: write of the nucleus's thread pointer", "msr tpidr_el1, xzr"),
    instruction!("protection", "privileged instruction: protection from user memory off", ".inst 0xd500409f"),
    instruction!("leave", "privileged instruction: return from an exception", "eret"),
    instruction!("invalidate", "privileged instruction: translations invalidated", "tlbi vmalle1"),
    instruction!(
        "translate",
        "privileged instruction: an address translated as EL1 would",
        "mov x0, sp",
        "at s1e1r, x0"
    ),
    instruction!("unmask", "privileged instruction: another stack selected", "msr spsel, #1"),
    instruction!("identity", "privileged register: the processor's identity", "mrs x0, midr_el1"),
    instruction!("fault-address", "privileged register: where the last fault was", "mrs x0, far_el1"),
    instruction!("upper-root", "privileged register: the root of the nucleus's tables", "mrs x0, ttbr1_el1"),
    instruction!("claim", "privileged register: an interrupt taken from the controller", "mrs x0, S3_0_C12_C12_0"),
    instruction!("key", "privileged register: a key of pointer authentication", "msr S3_0_C2_C1_0, x0"),
    instruction!("cache-drop", "a cache line dropped: writes of others", "mov x0, sp", "dc ivac, x0"),
    instruction!("cache-code-all", "all caches of instructions invalidated", "ic iallu"),
    instruction!("cache-set", "privileged instruction: a cache invalidated by set and way", "dc isw, xzr"),
    instruction!("cache-line", "a cache line cleaned without the right", "adr x0, .", "dc civac, x0"),
    instruction!("cache-code", "an instruction cache line invalidated without the right", "adr x0, .", "ic ivau, x0"),
    instruction!("cache-type", "the type of the caches read without the right", "mrs x0, ctr_el0"),
    instruction!("counters", "control of the performance counters without the right", "msr pmcr_el0, xzr"),
    instruction!("counters-on", "a performance counter switched on without the right", "msr pmcntenset_el0, xzr"),
    instruction!("counters-select", "a performance counter selected without the right", "msr pmselr_el0, xzr"),
    instruction!("counters-event", "a performance counter of events read without the right", "mrs x0, pmevcntr0_el0"),
    instruction!("counters-open", "performance counters opened to users by a user", "msr pmuserenr_el0, xzr"),
    instruction!("timer-value", "a timer set without the right", "msr cntv_cval_el0, xzr"),
    instruction!("timer-physical", "use of the physical timer without the right", "msr cntp_ctl_el0, xzr"),
    instruction!("timer", "use of a timer without the right", "msr cntv_ctl_el0, xzr"),
    instruction!("physical-counter", "read of the physical counter without the right", "mrs x0, cntpct_el0"),
    instruction!("hypervisor", "a call to a hypervisor", "mov x0, #0x84000000", "hvc #0"),
    instruction!(
        "monitor",
        "a call to the firmware: the machine off",
        "mov x0, #0x84000000",
        "add x0, x0, #8",
        "smc #0"
    ),
    instruction!(
        "semihosting",
        "a halting debug instruction: the emulator asked to end",
        "mov x0, #0x18",
        "mov x1, xzr",
        "hlt #0xf000"
    ),
    instruction!("debug-state", "debug instruction: debug state of EL1", "dcps1"),
    instruction!("debug-control", "debug instruction: stepping switched on", "msr mdscr_el1, xzr"),
    instruction!("debug-point", "debug instruction: a hardware breakpoint", "msr dbgbcr0_el1, xzr"),
    instruction!("debug-watch", "debug instruction: a hardware watchpoint", "msr dbgwcr0_el1, xzr"),
    instruction!("debug-lock", "debug instruction: the debugger let in", "msr oslar_el1, xzr"),
    instruction!("debug-channel", "debug instruction: a word for the debugger", "msr S2_3_C0_C5_0, xzr"),
    instruction!("debug-up", "debug instruction: debug state of EL2", "dcps2"),
    Case::death("zero-kernel", "a cache line cleared in the nucleus", || zero(super::KERNEL + 0x10_0000)),
    Case::death("zero-code", "a cache line cleared in our own code", || zero(PROGRAM_START)),
    Case::death("zero-unmapped", "a cache line cleared where nothing is mapped", || zero(0x4000_0000)),
    Case::death("edge", "a word that is not aligned and ends where nothing is mapped", || {
        // The first activation has this area, and there is no second.
        // SAFETY: reads only; the second half of the word is not mapped, so the nucleus ends this domain.
        unsafe { asm!("ldr {}, [{}]", out(reg) _, in(reg) MESSAGE_START + PAGE_BYTES as u64 - 4) }
    }),
    Case::death("non-canonical-stack", "push with a non-canonical stack pointer", || {
        // SAFETY: no stack can be there: the store faults, and the nucleus ends this domain. Nothing of it runs on.
        unsafe { asm!("mov sp, {}", "str x0, [sp, #-16]!", in(reg) NON_CANONICAL + 0x1000, options(noreturn)) }
    }),
    instruction!("misaligned-exclusive", "an exclusive access that is not aligned", "sub x0, sp, #23", "ldxr x0, [x0]"),
    instruction!("misaligned-acquire", "an ordered access that is not aligned", "sub x0, sp, #23", "ldar x0, [x0]"),
    instruction!("misaligned-jump", "jump to an address that is not aligned", "adr x0, .", "add x0, x0, #2", "br x0"),
    instruction!("undefined", "undefined instruction", "udf #0"),
    instruction!("breakpoint", "breakpoint", "brk #1"),
    instruction!(
        "fpu",
        "floating-point instruction in a domain without floating point",
        ".inst 0x9e6703e0" // As a number, as those that follow: assemblers know them for some processors only.
    ),
    instruction!("sve", "instruction of the scalable vector extension", ".inst 0x2518e3e0"),
    instruction!("sme", "instruction of the scalable matrix extension", ".inst 0xd503477f"),
];

/// Clears a line of the cache, which is a write.
fn zero(address: u64) {
    // SAFETY: every address that a test gives is one that we may not write: the nucleus ends this domain.
    unsafe { asm!("dc zva, {}", in(reg) address) };
}

/// A page's content that returns at once when it is executed.
pub const BARE_RETURN: [u8; 4] = 0xd65f_03c0u32.to_le_bytes();

/// A privileged instruction.
pub fn halt() {
    // SAFETY: it traps, and the nucleus ends this domain; if it did not, it would only wait.
    unsafe { asm!("wfi") }
}

/// The status of a domain that dies of [`halt`]: class 1 of ESR_EL1 (Arm ARM D19.2.37), WFI is trapped.
pub const HALT_STATUS: u64 = EXCEPTION + 1;
/// The status of a domain that runs an instruction unknown to the processor: class 0.
pub(super) const UNDEFINED_STATUS: u64 = EXCEPTION;
/// The status of a domain that uses vectors while they are switched off: class 0x19.
pub(super) const WIDE_STATUS: u64 = EXCEPTION + 0x19;

/// Calls what stands at an address.
pub fn jump(address: u64) {
    // SAFETY: nothing may be executed there, so the nucleus ends this domain. Where a test puts code itself, that only
    // returns (`BARE_RETURN`).
    unsafe { asm!("blr {}", in(reg) address, clobber_abi("C")) };
}
