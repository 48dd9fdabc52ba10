//! Pages shown to children that play the programs of `arch::programs`.
//!
//! The orders for a program, and its results, stand in a *block*: words of the second page, in the order of [`word`].

/// Where a child sees the first page that is shown to it; the second one follows.
pub const PLACE: u64 = 0x5000_0000;

/// The answer of a child's services.
pub const ANSWER: u64 = 77;

/// The value that a child's services write to a window.
pub const THEIRS: u64 = 3;

/// The value that `mark` writes.
pub const MARK: u32 = 0x3a4c;

/// Words of a block.
pub mod word {
    /// How often the program came round.
    pub const COUNT: usize = 0;
    /// The error found: 1 and the number of a register, or one of [`super::NOT_CLEAR`] and [`super::ROUNDING`].
    pub const WRONG: usize = 1;
    /// The registers are to be this number and those after it.
    pub const SEED: usize = 2;
    /// Not 0: the program ends, or returns to its caller.
    pub const STOP: usize = 3;
    /// The system call: its index times 64, words 0 and 1, control.
    pub const CALL: usize = 4;
    pub const FIRST: usize = 5;
    pub const SECOND: usize = 6;
    pub const CONTROL: usize = 7;
    /// Its last status.
    pub const STATUS: usize = 8;
    /// 1: it has ended, or is about to.
    pub const ENDED: usize = 9;
    /// Word 4 of the system call.
    pub const LAST: usize = 10;
}

/// Registers were not clear at the start.
pub const NOT_CLEAR: u64 = 100;
/// The register that says how to round was not as at a start, or did not stay as it was set.
pub const ROUNDING: u64 = 200;
