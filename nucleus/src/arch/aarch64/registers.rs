//! Saved user registers, and how words travel in them; see `abi::registers`.

/// Saved user registers. What of them counts says `activation::Frame`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Registers {
    pub pc: u64,
    pub sp: u64,
    pub x: [u64; 31],
    pub flags: u64,
    /// TPIDR_EL0, which users write as they like.
    pub pointer: u64,
}

const CONTROL: usize = 3;
const STATUS: usize = 8;
/// Of words 0 to 4, and of the control word, which is word 5.
const WORDS: [usize; 6] = [0, 1, 2, 4, 5, CONTROL];
/// At a thread's start: its message area.
const MESSAGE: usize = 6;

impl Registers {
    /// Where and how a thread starts: its message area is told besides.
    #[inline(always)]
    pub fn set_start(&mut self, pc: u64, sp: u64, message: u64) {
        (self.pc, self.sp, self.x[MESSAGE]) = (pc, sp, message);
    }
    /// Words 0 to 4.
    #[inline(always)]
    pub fn words(&self) -> [u64; 5] {
        [self.x[0], self.x[1], self.x[2], self.x[4], self.x[5]]
    }
    /// Word 0 to 4 of a system call; word 5 is the control word.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        self.x[WORDS[index]]
    }
    /// Words 0 to 4 and the control word.
    #[inline(always)]
    pub fn set_words(&mut self, words: [u64; 5], control: u64) {
        [self.x[0], self.x[1], self.x[2], self.x[4], self.x[5]] = words;
        self.x[CONTROL] = control;
    }
    /// The control word.
    #[inline(always)]
    pub fn control(&self) -> u64 {
        self.x[CONTROL]
    }
    /// Sets the control word.
    #[inline(always)]
    pub fn set_control(&mut self, control: u64) {
        self.x[CONTROL] = control;
    }
    /// The status with which a system call comes back.
    #[inline(always)]
    pub fn status(&self) -> u64 {
        self.x[STATUS]
    }
    /// Sets the status.
    #[inline(always)]
    pub fn set_status(&mut self, status: u64) {
        self.x[STATUS] = status;
    }
    /// Sets the status and word 0.
    #[inline(always)]
    pub fn set_result(&mut self, status: u64, value: u64) {
        (self.x[STATUS], self.x[0]) = (status, value);
    }
}
