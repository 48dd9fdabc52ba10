//! Blocks: the orders for a child of [`crate::registers`], and its results.

/// Registers as a child writes them down, in the order of its ISA.
pub type State = [u64; 128];

/// Where a child sees its block.
pub const BLOCK: u64 = 0x5000_0000;
/// Where in a block, in bytes, each of some words holds its place among them: a child reads a distance there.
pub const NUMBERS: usize = 3584;
/// So many.
pub const NUMBERED: usize = 16;

/// Where in a block which state is, in bytes.
pub mod area {
    /// When the program began.
    pub const FIRST: usize = 0;
    /// The values for its registers.
    pub const GIVEN: usize = 1024;
    /// The values that it finds in the end.
    pub const SEEN: usize = 2048;
}

/// Where the words of a block begin, in bytes.
pub const WORDS: usize = 3072;

/// Words of a block.
pub mod word {
    /// 1: it has floating-point registers.
    pub const UNIT: usize = 0;
    /// The event to cause.
    pub const EVENT: usize = 1;
    /// Not 0: the waiting child goes on.
    pub const GO: usize = 2;
    /// 1: all registers are about to be filled.
    pub const BEGUN: usize = 3;
    /// 1: the values found are written down.
    pub const DONE: usize = 4;
}

/// The events between filling the registers and looking at them.
pub mod event {
    /// A system call.
    pub const ASK: u64 = 0;
    /// A page fault.
    pub const FAULT: u64 = 1;
    /// An instruction that there is not.
    pub const TRAP: u64 = 2;
    /// It waits, running, until the word `GO` is not 0.
    pub const SPIN: u64 = 3;
}
