//! States that must not hurt the nucleus.

use core::arch::asm;

use crate::case::Case;
use runtime::abi::{Error, layout, op};
use runtime::op as operation;

/// All of them, with what they are.
pub const HARMLESS: &[Case] = &[
    Case::harmless("trap-flag", "single-step flag set across a system call", || with_flag(1 << 8)),
    Case::harmless("direction-flag", "direction flag set across a system call", || with_flag(1 << 10)),
    Case::harmless("alignment-flag", "alignment-check flag set across a system call", || with_flag(1 << 18)),
    Case::harmless("nested-flag", "nested-task flag set across a system call", || with_flag(1 << 14)),
    Case::harmless("alignment", "a word that is not aligned, with the alignment-check flag", unaligned),
    Case::harmless("auxiliary", "the system's value beside the time-stamp counter: none", || {
        let auxiliary: u32;
        // SAFETY: only reads.
        unsafe { asm!("rdtscp", out("ecx") auxiliary, out("eax") _, out("edx") _) }
        nothing(auxiliary.into())
    }),
    Case::harmless("local-rights", "asking for a segment of the local descriptor table, which is none", || {
        let found: u32;
        // SAFETY: only asks.
        unsafe { asm!("lar {:e}, {:e}", inout(reg) 0 => found, in(reg) 0x0f) }
        nothing(found.into())
    }),
];

/// The status of a system call whose index register is no multiple of an entry.
pub fn odd_index() -> u64 {
    let status: u64;
    // SAFETY: the nucleus refuses what is no index.
    unsafe {
        asm!(
            "syscall",
            inout("rax") op::CLOCK * layout::ENTRY_BYTES + 1 => status,
            out("rcx") _, out("r11") _, out("rdi") _, out("rsi") _, out("rdx") _,
            out("r8") _, out("r9") _, inout("r10") 0u64 => _,
        );
    }
    status
}

fn nothing(found: u64) -> Result<(), Error> {
    if found == 0 { Ok(()) } else { Err(Error::BadArgument) }
}

fn unaligned() -> Result<(), Error> {
    let words = [0u64; 2];
    let found: u64;
    // SAFETY: within the words; the flag is cleared again.
    unsafe {
        asm!("pushfq", "or qword ptr [rsp], {flag}", "popfq", "mov {found}, [{words} + 1]", "pushfq",
            "and qword ptr [rsp], {clear}", "popfq", words = in(reg) words.as_ptr(), found = out(reg) found,
            flag = const 1 << 18, clear = const !(1i32 << 18))
    }
    nothing(found)
}

/// A system call with a flag set: the clock must still go forward, and the flag must not hurt.
fn with_flag(flag: u64) -> Result<(), Error> {
    let before = operation::clock();
    let after: u64;
    // SAFETY: the clock operation touches no memory; the flags are cleared again.
    unsafe {
        asm!(
            "pushfq", "or [rsp], {flag}", "popfq",
            "syscall",
            "pushfq", "and qword ptr [rsp], {clear}", "popfq", "cld",
            flag = in(reg) flag,
            clear = const !(1i32 << 10 | 1 << 14 | 1 << 18),
            inout("rax") op::CLOCK * layout::ENTRY_BYTES => _,
            out("rdi") after,
            out("rcx") _, out("r11") _, out("rsi") _, out("rdx") _, out("r8") _, out("r9") _, out("r10") _,
        );
    }
    if after >= before { Ok(()) } else { Err(Error::BadArgument) }
}
