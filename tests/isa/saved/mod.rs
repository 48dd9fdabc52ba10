//! Saved user registers, and how words travel in them; see `abi::registers`.

use core::cell::Cell;

/// Saved user registers. `SavedFrame` says which of them are saved.
#[repr(C)]
pub struct Registers {
    pub pc: Cell<u64>,
    pub sp: Cell<u64>,
    pub words: [Cell<u64>; 6],
    pub status: Cell<u64>,
    pub flags: Cell<u64>,
}

/// Where those are that a function preserves, in the order of `portalgen`.
pub const PRESERVED: [usize; 6] = [0; 6];
/// Where the thread pointer is.
pub const POINTER: usize = 0;

impl Registers {
    /// Where and how a thread starts: its message area is passed besides.
    pub fn set_start(&self, pc: u64, sp: u64, message: u64) {
        unimplemented!()
    }
    /// The register with the address to which the running function returns, where there is one.
    pub fn link(&self) -> Option<u64> {
        unimplemented!()
    }
    /// Words 5 to 8.
    pub fn more_words(&self) -> [&Cell<u64>; 4] {
        unimplemented!()
    }
    /// Words 0 to 4.
    pub fn words(&self) -> [u64; 5] {
        unimplemented!()
    }
    /// Word 0 to 4 of a system call; word 5 is the control word.
    pub fn word(&self, index: usize) -> u64 {
        unimplemented!()
    }
    /// Words 0 to 4 and the control word.
    pub fn set_words(&self, words: [u64; 5], control: u64) {
        unimplemented!()
    }
    /// The control word.
    pub fn control(&self) -> u64 {
        unimplemented!()
    }
    /// Sets the control word.
    pub fn set_control(&self, control: u64) {
        unimplemented!()
    }
    /// The status with which a system call comes back.
    pub fn status(&self) -> u64 {
        unimplemented!()
    }
    /// Sets the status.
    pub fn set_status(&self, status: u64) {
        unimplemented!()
    }
    /// Sets the status and word 0.
    pub fn set_result(&self, status: u64, value: u64) {
        unimplemented!()
    }
}

/// Floating-point registers.
pub struct FpuState([u64; 64]);

impl FpuState {
    /// All registers clear, nothing is trapped, rounding to nearest.
    pub fn reset(&mut self) {
        unimplemented!()
    }
}
