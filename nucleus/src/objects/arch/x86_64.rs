//! Saved user registers, and the registers that pass words; see `abi::registers`.

use core::cell::Cell;
use core::mem::offset_of;

/// Saved user registers. `SavedFrame` says which of them are saved.
#[repr(C)]
#[allow(missing_docs)]
pub struct Registers {
    pub pc: Cell<u64>,
    pub sp: Cell<u64>,
    pub rbx: Cell<u64>,
    pub rbp: Cell<u64>,
    pub r12: Cell<u64>,
    pub r13: Cell<u64>,
    pub r14: Cell<u64>,
    pub r15: Cell<u64>,
    pub rax: Cell<u64>,
    pub rcx: Cell<u64>,
    pub rdx: Cell<u64>,
    pub rsi: Cell<u64>,
    pub rdi: Cell<u64>,
    pub r8: Cell<u64>,
    pub r9: Cell<u64>,
    pub r10: Cell<u64>,
    pub r11: Cell<u64>,
    pub flags: Cell<u64>,
}

/// Offsets of the registers that a function preserves, in the order of `portalgen`.
pub const PRESERVED: [usize; 6] = [
    offset_of!(Registers, rbx),
    offset_of!(Registers, rbp),
    offset_of!(Registers, r12),
    offset_of!(Registers, r13),
    offset_of!(Registers, r14),
    offset_of!(Registers, r15),
];
/// Unused: the thread pointer is not a saved register here.
pub const POINTER: usize = 0;

impl Registers {
    /// Return address of the running function: None, as it is on the stack.
    pub fn link(&self) -> Option<u64> {
        None
    }
    /// Words 5 to 8.
    pub fn more_words(&self) -> [&Cell<u64>; 4] {
        [&self.r12, &self.r13, &self.r14, &self.r15]
    }
    /// Sets the start address of a thread, its stack pointer, and the address of its message area.
    #[inline(always)]
    pub fn set_start(&self, pc: u64, sp: u64, message: u64) {
        self.pc.set(pc);
        self.sp.set(sp);
        self.rbx.set(message);
    }
    /// Words 0 to 4.
    #[inline(always)]
    pub fn words(&self) -> [u64; 5] {
        [self.rdi.get(), self.rsi.get(), self.rdx.get(), self.r8.get(), self.r9.get()]
    }
    /// A word of a system call: 0 to 4, or 5 for the control word.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        [&self.rdi, &self.rsi, &self.rdx, &self.r8, &self.r9, &self.r10][index].get()
    }
    /// Sets words 0 to 4 and the control word.
    #[inline(always)]
    pub fn set_words(&self, words: [u64; 5], control: u64) {
        let [rdi, rsi, rdx, r8, r9] = words;
        self.rdi.set(rdi);
        self.rsi.set(rsi);
        self.rdx.set(rdx);
        self.r8.set(r8);
        self.r9.set(r9);
        self.r10.set(control);
    }
    /// The control word.
    #[inline(always)]
    pub fn control(&self) -> u64 {
        self.r10.get()
    }
    /// Sets the control word.
    #[inline(always)]
    pub fn set_control(&self, control: u64) {
        self.r10.set(control);
    }
    /// The status of a system call.
    #[inline(always)]
    pub fn status(&self) -> u64 {
        self.rax.get()
    }
    /// Sets the status.
    #[inline(always)]
    pub fn set_status(&self, status: u64) {
        self.rax.set(status);
    }
    /// Sets the status and word 0.
    #[inline(always)]
    pub fn set_result(&self, status: u64, value: u64) {
        self.rax.set(status);
        self.rdi.set(value);
    }
}

/// x87 and SSE registers, in the layout of FXSAVE.
#[repr(C, align(64))]
pub struct FpuState([u16; 256]);

/// Index of the x87 control word, and of MXCSR, in 16-bit words.
const CONTROL: usize = 0;
const MXCSR: usize = 12;

impl FpuState {
    /// The state after FNINIT: all registers clear, all exceptions masked.
    pub fn reset(&mut self) {
        self.0.fill(0);
        self.0[CONTROL] = 0x37f;
        self.0[MXCSR] = 0x1f80;
    }
}
