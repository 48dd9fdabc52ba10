//! Crimes for which a domain dies.

use core::arch::asm;

use super::NON_CANONICAL;
use crate::crime::Crime;
use runtime::abi::info::status::EXCEPTION;

/// All of them, with what they are.
pub const DEATHS: &[Crime] = &[
    Crime::death("halt", "privileged instruction: hlt", halt),
    Crime::death("cli", "privileged instruction: cli", || {
        // SAFETY: none; that is what this program is for. The same holds for every block in this file.
        unsafe { asm!("cli") }
    }),
    Crime::death("cr3", "privileged instruction: write of the page-table root", || {
        // SAFETY: see the first.
        unsafe { asm!("mov cr3, {}", in(reg) 0u64) }
    }),
    Crime::death("wrmsr", "privileged instruction: write of a model-specific register", || {
        // SAFETY: see the first.
        unsafe { asm!("wrmsr", in("ecx") 0xc000_0082u32, in("eax") 0, in("edx") 0) }
    }),
    Crime::death("lgdt", "privileged instruction: load of a descriptor table", || {
        let table = [0u8; 10];
        // SAFETY: see the first.
        unsafe { asm!("lgdt [{}]", in(reg) table.as_ptr()) }
    }),
    Crime::death("swapgs", "privileged instruction: swapgs", || {
        // SAFETY: see the first.
        unsafe { asm!("swapgs") }
    }),
    Crime::death("port", "port input and output without the right", || {
        // SAFETY: see the first.
        unsafe { asm!("out dx, al", in("dx") 0x3f8u16, in("al") b'!') }
    }),
    Crime::death("interrupt", "software interrupt of a device's vector", || {
        // SAFETY: see the first.
        unsafe { asm!("int 0x40") }
    }),
    Crime::death("non-canonical-stack", "push with a non-canonical stack pointer", || {
        // SAFETY: see the first.
        unsafe { asm!("mov rsp, {}", "push rax", in(reg) NON_CANONICAL, options(noreturn)) }
    }),
    Crime::death("divide", "division by zero", || {
        // SAFETY: see the first.
        unsafe { asm!("xor ecx, ecx", "div ecx", inout("eax") 1 => _, inout("edx") 0 => _, out("ecx") _) }
    }),
    Crime::death("ud2", "undefined instruction", || {
        // SAFETY: see the first.
        unsafe { asm!("ud2") }
    }),
    Crime::death("breakpoint", "breakpoint", || {
        // SAFETY: see the first.
        unsafe { asm!("int3") }
    }),
    Crime::death("fpu", "floating-point instruction in a domain without floating point", || {
        // SAFETY: see the first.
        unsafe { asm!("movaps xmm0, xmm0") }
    }),
    Crime::death("local-selector", "a segment of the local descriptor table, which is none", || {
        // SAFETY: see the first.
        unsafe { asm!("mov fs, {:x}", in(reg) 0x0f) }
    }),
    Crime::death("local-selector-last", "the last segment of the local descriptor table", || {
        // SAFETY: see the first.
        unsafe { asm!("mov gs, {:x}", in(reg) 0xffff) }
    }),
    Crime::death("local-call", "far call through the local descriptor table", || {
        let place = [0u32, 0x0f];
        // SAFETY: see the first.
        unsafe { asm!("call fword ptr [{}]", in(reg) place.as_ptr()) }
    }),
    Crime::death("sysenter", "the system call of another mode, which is not set up", || {
        // SAFETY: see the first.
        unsafe { asm!("sysenter") }
    }),
    Crime::death("counters", "counters of events", || {
        // SAFETY: see the first.
        unsafe { asm!("rdpmc", in("ecx") 0, out("eax") _, out("edx") _) }
    }),
    Crime::death("base", "the base of GS", || {
        // SAFETY: see the first.
        unsafe { asm!("wrgsbase {}", in(reg) NON_CANONICAL - 1) }
    }),
    Crime::death("extended-state", "the register that says which state is saved", || {
        // SAFETY: see the first.
        unsafe { asm!("xgetbv", in("ecx") 0, out("eax") _, out("edx") _) }
    }),
    Crime::death("keys", "the register of protection keys", || {
        // SAFETY: see the first.
        unsafe { asm!(".byte 0x0f, 0x01, 0xee", in("ecx") 0, out("eax") _, out("edx") _) }
    }),
];

/// A page's content that returns at once when it is executed.
pub const BARE_RETURN: [u8; 4] = [0xc3; 4];

/// A privileged instruction.
pub fn halt() {
    // SAFETY: see the first.
    unsafe { asm!("hlt") }
}

/// What a domain dies with that runs [`halt`].
pub const HALT_STATUS: u64 = EXCEPTION + 13;

/// Calls what stands at an address.
pub fn jump(address: u64) {
    // SAFETY: see the first.
    unsafe { asm!("call {}", in(reg) address, clobber_abi("C")) };
}
