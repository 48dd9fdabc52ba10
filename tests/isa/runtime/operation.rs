//! Kernel operations: a status, and one value in word 0.
//!
//! One function per number of operands, so that a stub is the moves of its operands, the index and the system call. All of them
//! are unsafe to call: an operation can change the address space under our feet.

use abi::Error;

/// A kernel operation without operands that cannot fail and touches no memory: thread number, clock.
///
/// # Safety
/// `INDEX` must be such an operation.
pub unsafe fn question<const INDEX: usize>() -> u64 {
    unimplemented!()
}

/// A kernel operation with 0 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
pub unsafe fn operation0<const INDEX: usize>() -> Result<u64, Error> {
    unimplemented!()
}

/// A kernel operation with 1 operand.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
pub unsafe fn operation1<const INDEX: usize>(word0: u64) -> Result<u64, Error> {
    unimplemented!()
}

/// A kernel operation with 2 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
pub unsafe fn operation2<const INDEX: usize>(word0: u64, word1: u64) -> Result<u64, Error> {
    unimplemented!()
}

/// A kernel operation with 3 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
pub unsafe fn operation3<const INDEX: usize>(word0: u64, word1: u64, word2: u64) -> Result<u64, Error> {
    unimplemented!()
}

/// A kernel operation with 4 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
pub unsafe fn operation4<const INDEX: usize>(word0: u64, word1: u64, word2: u64, word3: u64) -> Result<u64, Error> {
    unimplemented!()
}

/// A kernel operation with 5 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
pub unsafe fn operation5<const INDEX: usize>(
    word0: u64,
    word1: u64,
    word2: u64,
    word3: u64,
    word4: u64,
) -> Result<u64, Error> {
    unimplemented!()
}

/// A kernel operation with 6 operands.
///
/// # Safety
/// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or
/// lets run is the caller's to answer for.
pub unsafe fn operation6<const INDEX: usize>(
    word0: u64,
    word1: u64,
    word2: u64,
    word3: u64,
    word4: u64,
    word5: u64,
) -> Result<u64, Error> {
    unimplemented!()
}
