//! Kernel operations: status in `rax`, one value in word 0.
//!
//! One function per number of operands, so that a stub is the moves of its operands, the index and
//! `syscall`. All of them are unsafe to call: an operation can change the address space under our feet.

use core::arch::asm;

use abi::Error;
use abi::layout::ENTRY_BYTES;

use crate::status::check;

/// A kernel operation without operands that cannot fail and touches no memory: thread number, clock.
///
/// # Safety
/// `INDEX` must be such an operation.
#[inline(always)]
pub unsafe fn question<const INDEX: usize>() -> u64 {
    let value;
    // SAFETY: the caller vouches for the operation; the registers are those of `abi::registers`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") INDEX * ENTRY_BYTES => _,
            lateout("rdi") value,
            lateout("rsi") _, lateout("rdx") _, lateout("r8") _, lateout("r9") _, lateout("r10") _,
            lateout("rcx") _, lateout("r11") _,
            options(nomem, nostack)
        );
    }
    value
}

/// A kernel operation with 0 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
#[inline(always)]
pub unsafe fn operation0<const INDEX: usize>() -> Result<u64, Error> {
    let (status, value);
    // SAFETY: the caller vouches for the operation; the registers are those of `abi::registers`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") INDEX * ENTRY_BYTES => status,
            lateout("rdi") value,
            lateout("rsi") _,
            lateout("rdx") _,
            lateout("r8") _,
            lateout("r9") _,
            lateout("r10") _,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    check(status).map(|()| value)
}

/// A kernel operation with 1 operand.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
#[inline(always)]
pub unsafe fn operation1<const INDEX: usize>(word0: u64) -> Result<u64, Error> {
    let (status, value);
    // SAFETY: the caller vouches for the operation; the registers are those of `abi::registers`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") INDEX * ENTRY_BYTES => status,
            inlateout("rdi") word0 => value,
            lateout("rsi") _,
            lateout("rdx") _,
            lateout("r8") _,
            lateout("r9") _,
            lateout("r10") _,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    check(status).map(|()| value)
}

/// A kernel operation with 2 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
#[inline(always)]
pub unsafe fn operation2<const INDEX: usize>(word0: u64, word1: u64) -> Result<u64, Error> {
    let (status, value);
    // SAFETY: the caller vouches for the operation; the registers are those of `abi::registers`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") INDEX * ENTRY_BYTES => status,
            inlateout("rdi") word0 => value,
            inlateout("rsi") word1 => _,
            lateout("rdx") _,
            lateout("r8") _,
            lateout("r9") _,
            lateout("r10") _,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    check(status).map(|()| value)
}

/// A kernel operation with 3 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
#[inline(always)]
pub unsafe fn operation3<const INDEX: usize>(word0: u64, word1: u64, word2: u64) -> Result<u64, Error> {
    let (status, value);
    // SAFETY: the caller vouches for the operation; the registers are those of `abi::registers`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") INDEX * ENTRY_BYTES => status,
            inlateout("rdi") word0 => value,
            inlateout("rsi") word1 => _,
            inlateout("rdx") word2 => _,
            lateout("r8") _,
            lateout("r9") _,
            lateout("r10") _,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    check(status).map(|()| value)
}

/// A kernel operation with 4 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
#[inline(always)]
pub unsafe fn operation4<const INDEX: usize>(word0: u64, word1: u64, word2: u64, word3: u64) -> Result<u64, Error> {
    let (status, value);
    // SAFETY: the caller vouches for the operation; the registers are those of `abi::registers`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") INDEX * ENTRY_BYTES => status,
            inlateout("rdi") word0 => value,
            inlateout("rsi") word1 => _,
            inlateout("rdx") word2 => _,
            inlateout("r8") word3 => _,
            lateout("r9") _,
            lateout("r10") _,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    check(status).map(|()| value)
}

/// A kernel operation with 5 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
#[inline(always)]
pub unsafe fn operation5<const INDEX: usize>(
    word0: u64,
    word1: u64,
    word2: u64,
    word3: u64,
    word4: u64,
) -> Result<u64, Error> {
    let (status, value);
    // SAFETY: the caller vouches for the operation; the registers are those of `abi::registers`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") INDEX * ENTRY_BYTES => status,
            inlateout("rdi") word0 => value,
            inlateout("rsi") word1 => _,
            inlateout("rdx") word2 => _,
            inlateout("r8") word3 => _,
            inlateout("r9") word4 => _,
            lateout("r10") _,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    check(status).map(|()| value)
}

/// A kernel operation with 6 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
#[inline(always)]
pub unsafe fn operation6<const INDEX: usize>(
    word0: u64,
    word1: u64,
    word2: u64,
    word3: u64,
    word4: u64,
    word5: u64,
) -> Result<u64, Error> {
    let (status, value);
    // SAFETY: the caller vouches for the operation; the registers are those of `abi::registers`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") INDEX * ENTRY_BYTES => status,
            inlateout("rdi") word0 => value,
            inlateout("rsi") word1 => _,
            inlateout("rdx") word2 => _,
            inlateout("r8") word3 => _,
            inlateout("r9") word4 => _,
            inlateout("r10") word5 => _,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    check(status).map(|()| value)
}
