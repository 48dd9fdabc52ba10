//! AArch64: what only this processor has, and what has to be said in its instructions.

use core::arch::{asm, naked_asm};

use runtime::abi::info::status;
use runtime::abi::layout::ENTRY_BYTES;
use runtime::abi::rights::MAP_READ;
use runtime::abi::{Error, NEVER, PAGE_BYTES, op};

use crate::Crime;
use crate::deaths::read as look;

/// An instruction that returns.
pub const RETURN: u32 = 0xd65f_03c0;
/// An address that no translation can have.
const NON_CANONICAL: u64 = 0x0001_0000_0000_0000;
/// With what a domain dies that runs [`halt`]: ESR_EL1.EC of a trapped WFI.
pub const HALTED: u64 = status::EXCEPTION + 1;

macro_rules! instructions {
    ($($name:literal $what:literal $text:literal)*) => {
        /// Crimes for which a domain dies.
        pub const DEATHS: &[Crime] = &[
            $(Crime::death($name, $what, || {
                // SAFETY: none; that is what this program is for. The same holds for every block in this file.
                unsafe { asm!($text, out("x9") _, options(nostack)) }
            }),)*
            Crime::death("halt", "waiting for an interrupt", halt),
            Crime::death("non-canonical", "read of an address beyond all translations", || look(NON_CANONICAL)),
            Crime::death("non-canonical-jump", "jump to an address beyond all translations", || jump(NON_CANONICAL)),
            Crime::death("odd-jump", "jump to an address that is none of an instruction", || jump(0x10_0002)),
            Crime::death("non-canonical-stack", "push with a stack pointer beyond all translations", || {
                // SAFETY: see the first.
                unsafe { asm!("mov sp, {}", "str x0, [sp, #-16]!", in(reg) NON_CANONICAL, options(noreturn)) }
            }),
            Crime::death("odd-stack", "push with a stack pointer that is not aligned", || {
                // SAFETY: see the first.
                unsafe { asm!("sub sp, sp, #8", "str x0, [sp, #-16]!", options(noreturn)) }
            }),
        ];
    };
}

instructions! {
    "mask" "privileged instruction: interrupts off" "msr daifset, #2"
    "ttbr0" "privileged instruction: write of the page-table root" "msr ttbr0_el1, x9"
    "vbar" "privileged instruction: write of the vectors' address" "msr vbar_el1, x9"
    "sctlr" "privileged instruction: read of what controls the processor" "mrs x9, sctlr_el1"
    "tlbi" "privileged instruction: drop of translations" "tlbi vmalle1"
    "eret" "privileged instruction: return from an exception" "eret"
    "hvc" "call of a hypervisor" "hvc #0"
    "smc" "call of the firmware" "smc #0"
    "cache" "maintenance of caches" "ic iallu"
    "counters" "write to the counters of events" "msr pmcr_el0, x9"
    "timer" "write to a timer" "msr cntv_ctl_el0, x9"
    "undefined" "undefined instruction" "udf #0"
    "breakpoint" "breakpoint" "brk #1"
    "fpu" "floating-point instruction in a domain without floating point" ".inst 0x4f000400"
    "sve" "vector-length-independent instruction" ".inst 0x04e0e3e0"
}

/// What hurts nobody.
pub const HARMLESS: &[Crime] = &[
    Crime::harmless("odd-index", "index register that is no multiple of an entry", odd_index),
    Crime::harmless("flags", "all flags set across a system call", with_flags),
];

/// Waits for an interrupt.
pub fn halt() {
    // SAFETY: see the first.
    unsafe { asm!("wfi") }
}

/// Calls what is at an address.
pub fn jump(address: u64) {
    // SAFETY: see the first.
    unsafe { asm!("blr {}", in(reg) address, clobber_abi("C")) };
}

fn odd_index() -> Result<(), Error> {
    let status: u64;
    // SAFETY: the nucleus refuses what is no index.
    unsafe {
        asm!(
            "svc #0",
            inout("x8") op::CLOCK * ENTRY_BYTES + 1 => status, in("x3") 0u64, clobber_abi("C"),
        );
    }
    Error::from_status(status)
}

/// A system call with all flags set: the clock must still go forward.
fn with_flags() -> Result<(), Error> {
    let before = runtime::op::clock();
    let after: u64;
    // SAFETY: the clock operation touches no memory.
    unsafe {
        asm!(
            "msr nzcv, {flags}",
            "svc #0",
            flags = in(reg) 0xf000_0000u64, in("x8") op::CLOCK * ENTRY_BYTES, in("x3") 0u64,
            lateout("x0") after, clobber_abi("C"),
        );
    }
    if after >= before { Ok(()) } else { Err(Error::BadArgument) }
}

/// Word 0: address of system call register and words 0 to 5. Ends with the status.
///
/// # Safety
/// Only for the first thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn one_call() -> ! {
    naked_asm!(
        "mov x19, x0",
        "ldr x8, [x19]",
        "ldp x0, x1, [x19, #8]",
        "ldr x2, [x19, #24]",
        "ldp x4, x5, [x19, #32]",
        "ldr x3, [x19, #48]",
        "svc #0",
        "mov x0, x8",
        "mov x8, {exit}",
        "svc #0",
        "udf #0",
        exit = const op::EXIT * ENTRY_BYTES,
    )
}

/// Word 0: address of the address to read. Ends with what is there.
///
/// # Safety
/// Only for the first thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn read() -> ! {
    naked_asm!(
        "ldr x0, [x0]",
        "ldr x0, [x0]",
        "mov x8, {exit}",
        "svc #0",
        "udf #0",
        exit = const op::EXIT * ENTRY_BYTES,
    )
}

/// A pager that needs one: it reads at the address that its badge is.
///
/// # Safety
/// Only as a service of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn read_again() -> ! {
    naked_asm!("ldr x0, [x8]", "udf #0")
}

/// See `Child::plays`.
///
/// # Safety
/// Only for the first thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn ping_pong() -> ! {
    naked_asm!(
        "mov x19, x0",
        "ldp x20, x21, [x19, #24]",
        "2:",
        "ldr x8, [x19]",
        "mov x0, {p}",
        "mov x1, {never}",
        "mov x2, xzr",
        "mov x3, xzr",
        "svc #0",
        "cbnz x8, 3f",
        "ldr x0, [x19, #16]",
        "mov x1, x20",
        "mov x2, x21",
        "mov x4, xzr",
        "mov x5, {read}",
        "mov x3, xzr",
        "mov x8, {map}",
        "svc #0",
        "cbnz x8, 3f",
        "add x20, x20, {step}",
        "add x21, x21, {step}",
        "ldr x8, [x19, #8]",
        "mov x0, {v}",
        "mov x1, xzr",
        "mov x2, xzr",
        "mov x3, xzr",
        "svc #0",
        "cbz x8, 2b",
        "3:",
        "mov x0, x8",
        "mov x8, {exit}",
        "svc #0",
        "udf #0",
        p = const op::P,
        v = const op::V,
        never = const NEVER as i64,
        read = const MAP_READ,
        map = const op::MAP * ENTRY_BYTES,
        exit = const op::EXIT * ENTRY_BYTES,
        step = const 2 * PAGE_BYTES,
    )
}

/// A thread that waits for [`crate::bounds::START`] and removes the entry that its argument is.
///
/// # Safety
/// Only for a thread that a child starts.
#[unsafe(naked)]
pub unsafe extern "C" fn remove_ourselves() -> ! {
    naked_asm!(
        "mov x19, x0",
        "adrp x20, {start}",
        "add x20, x20, :lo12:{start}",
        "2:",
        "mov x8, {yields}",
        "mov x3, xzr",
        "svc #0",
        "ldr x9, [x20]",
        "cmp x9, #1",
        "b.ne 2b",
        "mov x9, #2",
        "str x9, [x20]",
        "mov x8, {remove}",
        "mov x0, xzr",
        "mov x1, x19",
        "mov x3, xzr",
        "svc #0",
        "mov x9, #3",
        "str x9, [x20]",
        "3:",
        "mov x8, {yields}",
        "mov x3, xzr",
        "svc #0",
        "b 3b",
        yields = const op::YIELD * ENTRY_BYTES,
        remove = const op::ENTRY_REMOVE * ENTRY_BYTES,
        start = sym crate::bounds::START,
    )
}
