//! Calls to servers, returns from them, and semaphores.

use core::arch::asm;

use abi::layout::{ENTRY_BYTES, RETURN};
use abi::{Control, Error, expect, op};

use crate::status::check;
use idl::{AllWords, Words};

/// Words 0 to 2 go there.
const SEMAPHORE: Control = Control::expecting(expect::words(0b00111));

/// Traverses the portal at `index` with five words and a control word, and gives what came back:
/// status, words, control word.
///
/// # Safety
/// `index` must not be a kernel operation that breaks what the compiler relies on; the message area
/// is read and written by the nucleus as `control` says.
#[inline(always)]
pub unsafe fn call(index: usize, words: Words, control: Control) -> (u64, Words, Control) {
    let status: u64;
    let [mut word0, mut word1, mut word2, mut word3, mut word4] = words;
    let mut control = control.0;
    // SAFETY: the caller vouches for the portal; the registers are those of `abi::registers`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") index * ENTRY_BYTES => status,
            inlateout("rdi") word0, inlateout("rsi") word1, inlateout("rdx") word2,
            inlateout("r8") word3, inlateout("r9") word4, inlateout("r10") control,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    (status, [word0, word1, word2, word3, word4], Control(control))
}

/// Traverses the portal at `index`, which passes words 1 to 3 and what else `expected` says, and gives what came back: status, word 0. A portal
/// that passes anything else refuses the call.
///
/// # Safety
/// As for [`call`].
#[inline(always)]
pub unsafe fn call_short(index: usize, [word1, word2, word3]: [u64; 3], expected: Control) -> (u64, u64) {
    let (status, word0);
    // SAFETY: as the caller says; the registers are those of `abi::registers`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") index * ENTRY_BYTES => status,
            inlateout("rsi") word1 => _, inlateout("rdx") word2 => _, inlateout("r8") word3 => _,
            lateout("rdi") word0, lateout("r9") _, inlateout("r10") expected.0 => _, lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    (status, word0)
}

/// Traverses the portal at `index` with all words and this control word, and gives what came back: status, words.
///
/// # Safety
/// As for [`call`].
#[inline(always)]
pub unsafe fn call_all_words(index: usize, mut words: AllWords, control: Control) -> (u64, AllWords) {
    let status: u64;
    let [word0, word1, word2, word3, word4, word5, word6, word7, word8] = &mut words;
    // SAFETY: as the caller says; the registers are those of `abi::registers`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") index * ENTRY_BYTES => status,
            inlateout("rdi") *word0, inlateout("rsi") *word1, inlateout("rdx") *word2,
            inlateout("r8") *word3, inlateout("r9") *word4,
            inlateout("r12") *word5, inlateout("r13") *word6, inlateout("r14") *word7, inlateout("r15") *word8,
            inlateout("r10") control.0 => _, lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    (status, words)
}

/// Returns to the caller of the running activation. Comes back only if the nucleus refuses to
/// return (no caller, or the delegated entry cannot be given): then with the reason.
///
/// # Safety
/// The activation's stack is used again by its next call: nothing on it may be referred to by others.
#[inline(always)]
pub unsafe fn leave(words: Words, control: Control) -> u64 {
    // SAFETY: as the caller says; a refused return leaves the stack alone.
    unsafe { call(RETURN, words, control).0 }
}

/// P or V on the semaphore at `index`: the first word says which, the others are P's deadline and who
/// holds what is waited for.
/// Safe: a semaphore touches no memory, and a portal that is mistaken for one passes these words or refuses. A kernel operation would be
/// another matter, so small indices are refused.
#[inline(always)]
pub fn semaphore(index: usize, what: u64, deadline: u64, holder: u64) -> Result<(), Error> {
    port(index, what, deadline, holder).map(drop)
}

/// RECEIVE or SEND on the port at `index`: the low byte of the first word says which.
/// Safe as [`semaphore`]: a port touches the message area alone, whose bytes the caller has put there or looks for.
#[inline(always)]
pub fn port(index: usize, what: u64, word1: u64, word2: u64) -> Result<u64, Error> {
    if index < abi::layout::PAGE_FAULT[0] {
        return Err(Error::WrongKind);
    }
    let (status, value): (u64, u64);
    // SAFETY: not a kernel operation; the registers are those of `abi::registers`. The memory clobber
    // (no `nomem`) keeps the message, or what a semaphore protects, on its side of it.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") index * ENTRY_BYTES => status,
            inlateout("rdi") what => value, inlateout("rsi") word1 => _, inlateout("rdx") word2 => _,
            lateout("r8") _, lateout("r9") _, inlateout("r10") SEMAPHORE.0 => _,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    check(status).map(|()| value)
}

/// V on a semaphore, then the end of the running thread, without touching the stack in between: the thread that
/// wakes may reuse it.
///
/// # Safety
/// Nothing on the stack may be needed any more.
pub unsafe fn thread_exit_after_v(semaphore: usize) -> ! {
    // SAFETY: as the caller says; EXIT does not come back.
    unsafe {
        asm!(
            "syscall",
            "mov eax, {exit}",
            "xor edi, edi",
            "syscall",
            "ud2",
            exit = const op::EXIT * ENTRY_BYTES,
            in("rax") semaphore * ENTRY_BYTES,
            in("rdi") op::V,
            in("rsi") 0,
            in("rdx") 0,
            in("r10") SEMAPHORE.0,
            options(noreturn, nostack)
        );
    }
}
