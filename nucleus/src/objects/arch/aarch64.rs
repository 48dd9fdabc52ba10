//! Saved user registers, and the registers that pass words; see `abi::registers`.

use core::cell::Cell;
use core::mem::offset_of;

/// Saved user registers. `SavedFrame` says which of them are saved.
#[repr(C)]
#[allow(missing_docs)]
pub struct Registers {
    pub pc: Cell<u64>,
    pub sp: Cell<u64>,
    pub x: [Cell<u64>; 31],
    pub flags: Cell<u64>,
    /// TPIDR_EL0, which user code can write.
    pub pointer: Cell<u64>,
}

const CONTROL: usize = 3;
const STATUS: usize = 8;
/// Registers of words 0 to 4, and of the control word, which is word 5.
const WORDS: [usize; 6] = [0, 1, 2, 4, 5, CONTROL];
/// Register of the message area's address, at a thread's start.
const MESSAGE: usize = 6;

/// Offsets of the pairs of registers that a function preserves, in the order of `portalgen`.
pub const PRESERVED: [usize; 6] = {
    let x = offset_of!(Registers, x);
    [x + 8 * 19, x + 8 * 21, x + 8 * 23, x + 8 * 25, x + 8 * 27, x + 8 * 29]
};
/// Offset of the thread pointer.
pub const POINTER: usize = offset_of!(Registers, pointer);

impl Registers {
    /// Return address of the running function, unless it has called others since.
    pub fn link(&self) -> Option<u64> {
        Some(self.x[30].get())
    }
    /// Words 5 to 8.
    pub fn more_words(&self) -> [&Cell<u64>; 4] {
        [&self.x[21], &self.x[22], &self.x[23], &self.x[24]]
    }
    /// Sets the start address of a thread, its stack pointer, and the address of its message area.
    #[inline(always)]
    pub fn set_start(&self, pc: u64, sp: u64, message: u64) {
        self.pc.set(pc);
        self.sp.set(sp);
        self.x[MESSAGE].set(message);
    }
    /// Words 0 to 4.
    #[inline(always)]
    pub fn words(&self) -> [u64; 5] {
        [self.x[0].get(), self.x[1].get(), self.x[2].get(), self.x[4].get(), self.x[5].get()]
    }
    /// A word of a system call: 0 to 4, or 5 for the control word.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        self.x[WORDS[index]].get()
    }
    /// Sets words 0 to 4 and the control word.
    #[inline(always)]
    pub fn set_words(&self, words: [u64; 5], control: u64) {
        WORDS.iter().zip(words).for_each(|(place, word)| self.x[*place].set(word));
        self.x[CONTROL].set(control);
    }
    /// The control word.
    #[inline(always)]
    pub fn control(&self) -> u64 {
        self.x[CONTROL].get()
    }
    /// Sets the control word.
    #[inline(always)]
    pub fn set_control(&self, control: u64) {
        self.x[CONTROL].set(control);
    }
    /// The status of a system call.
    #[inline(always)]
    pub fn status(&self) -> u64 {
        self.x[STATUS].get()
    }
    /// Sets the status.
    #[inline(always)]
    pub fn set_status(&self, status: u64) {
        self.x[STATUS].set(status);
    }
    /// Sets the status and word 0.
    #[inline(always)]
    pub fn set_result(&self, status: u64, value: u64) {
        self.x[STATUS].set(status);
        self.x[0].set(value);
    }
}

/// V0 to V31, then FPSR and FPCR.
#[repr(C, align(64))]
pub struct FpuState {
    vectors: [u64; 64],
    status: u64,
    control: u64,
}

impl FpuState {
    /// Clears all registers: round to nearest, no exceptions trapped.
    pub fn reset(&mut self) {
        self.vectors.fill(0);
        self.status = 0;
        self.control = 0;
    }
}
