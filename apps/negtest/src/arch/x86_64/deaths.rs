//! Negative tests for which a domain dies.

use core::arch::asm;

use super::NON_CANONICAL;
use crate::case::Case;
use runtime::abi::info::status::EXCEPTION;

/// A test that is one instruction, or some; the rest after its two texts is for `asm!`. The last instruction traps, and those
/// before it touch registers alone.
macro_rules! instruction {
    ($name:literal, $what:literal, $($code:tt)+) => {
        Case::death($name, $what, || {
            // SAFETY: the last instruction traps, and the nucleus ends this domain: nothing of it runs on.
            unsafe { asm!($($code)+) }
        })
    };
}

/// All of them, with what they are.
pub const DEATHS: &[Case] = &[
    Case::death("halt", "privileged instruction: hlt", halt),
    instruction!("cli", "privileged instruction: cli", "cli"),
    instruction!("cr3", "privileged instruction: write of the page-table root", "mov cr3, {}", in(reg) 0u64),
    instruction!(
        "wrmsr",
        "privileged instruction: write of a model-specific register",
        "wrmsr", in("ecx") 0xc000_0082u32, in("eax") 0, in("edx") 0
    ),
    Case::death("lgdt", "privileged instruction: load of a descriptor table", || {
        let table = [0u8; 10];
        // SAFETY: users may not do this: it traps, and the nucleus ends this domain. The table outlives it.
        unsafe { asm!("lgdt [{}]", in(reg) table.as_ptr()) }
    }),
    instruction!("swapgs", "privileged instruction: swapgs", "swapgs"),
    instruction!("port", "port input and output without the right", "out dx, al", in("dx") 0x3f8u16, in("al") b'!'),
    instruction!("interrupt", "software interrupt of a device's vector", "int 0x40"),
    instruction!(
        "non-canonical-stack",
        "push with a non-canonical stack pointer",
        "mov rsp, {}", "push rax", in(reg) NON_CANONICAL, options(noreturn)
    ),
    instruction!(
        "divide",
        "division by zero",
        "xor ecx, ecx", "div ecx", inout("eax") 1 => _, inout("edx") 0 => _, out("ecx") _
    ),
    instruction!("ud2", "undefined instruction", "ud2"),
    instruction!("breakpoint", "breakpoint", "int3"),
    instruction!("fpu", "floating-point instruction in a domain without floating point", "movaps xmm0, xmm0"),
    instruction!(
        "local-selector",
        "a segment of the local descriptor table, which is none",
        "mov fs, {:x}", in(reg) 0x0f
    ),
    instruction!(
        "local-selector-last",
        "the last segment of the local descriptor table",
        "mov gs, {:x}", in(reg) 0xffff
    ),
    Case::death("local-call", "far call through the local descriptor table", || {
        let place = [0u32, 0x0f];
        // SAFETY: there is no such table: the call traps, and the nucleus ends this domain. The place outlives it.
        unsafe { asm!("call fword ptr [{}]", in(reg) place.as_ptr()) }
    }),
    instruction!("sysenter", "the system call of another mode, which is not set up", "sysenter"),
    instruction!("counters", "counters of events", "rdpmc", in("ecx") 0, out("eax") _, out("edx") _),
    instruction!("base", "the base of GS", "wrgsbase {}", in(reg) NON_CANONICAL - 1),
    instruction!(
        "extended-state",
        "the register that says which state is saved",
        "xgetbv", in("ecx") 0, out("eax") _, out("edx") _
    ),
    instruction!(
        "keys",
        "the register of protection keys",
        ".byte 0x0f, 0x01, 0xee", in("ecx") 0, out("eax") _, out("edx") _
    ),
];

/// A page's content that returns at once when it is executed.
pub const BARE_RETURN: [u8; 4] = [0xc3; 4];

/// A privileged instruction.
pub fn halt() {
    // SAFETY: it traps, and the nucleus ends this domain; if it did not, it would only wait.
    unsafe { asm!("hlt") }
}

/// The status of a domain that dies of [`halt`].
pub const HALT_STATUS: u64 = EXCEPTION + 13;

/// Calls what stands at an address.
pub fn jump(address: u64) {
    // SAFETY: nothing may be executed there, so the nucleus ends this domain. Where a test puts code itself, that only
    // returns (`BARE_RETURN`).
    unsafe { asm!("call {}", in(reg) address, clobber_abi("C")) };
}
