//! Saved user registers, and how words travel in them; see `abi::registers`.

/// Saved user registers. What of them counts says `activation::Frame`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Registers {
    pub pc: u64,
    pub sp: u64,
    pub rbx: u64,
    pub rbp: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub flags: u64,
}

impl Registers {
    /// Where and how a thread starts: its message area is told besides.
    #[inline(always)]
    pub fn set_start(&mut self, pc: u64, sp: u64, message: u64) {
        (self.pc, self.sp, self.rbx) = (pc, sp, message);
    }
    /// Words 0 to 4.
    #[inline(always)]
    pub fn words(&self) -> [u64; 5] {
        [self.rdi, self.rsi, self.rdx, self.r8, self.r9]
    }
    /// Word 0 to 4 of a system call; word 5 is the control word.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        [self.rdi, self.rsi, self.rdx, self.r8, self.r9, self.r10][index]
    }
    /// Words 0 to 4 and the control word.
    #[inline(always)]
    pub fn set_words(&mut self, words: [u64; 5], control: u64) {
        [self.rdi, self.rsi, self.rdx, self.r8, self.r9] = words;
        self.r10 = control;
    }
    /// The control word.
    #[inline(always)]
    pub fn control(&self) -> u64 {
        self.r10
    }
    /// Sets the control word.
    #[inline(always)]
    pub fn set_control(&mut self, control: u64) {
        self.r10 = control;
    }
    /// The status with which a system call comes back.
    #[inline(always)]
    pub fn status(&self) -> u64 {
        self.rax
    }
    /// Sets the status.
    #[inline(always)]
    pub fn set_status(&mut self, status: u64) {
        self.rax = status;
    }
    /// Sets the status and word 0.
    #[inline(always)]
    pub fn set_result(&mut self, status: u64, value: u64) {
        (self.rax, self.rdi) = (status, value);
    }
}
