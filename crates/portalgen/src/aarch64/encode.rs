//! The instructions of AArch64 that portals are made of (Arm Architecture Reference Manual for A-profile, C6).

use crate::code::Sink;

/// A general register; 31 is zero, or the stack pointer where an address begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct X(pub u32);

/// Zero, in operands.
pub const ZERO: X = X(31);
/// The stack pointer, in addresses.
pub const SP: X = X(31);

/// Conditions of jumps.
#[derive(Clone, Copy, Debug)]
pub enum If {
    /// Not equal.
    NotEqual = 1,
    /// Unsigned: above or equal.
    AboveOrEqual = 2,
    /// Unsigned: below.
    Below = 3,
    /// Unsigned: above.
    Above = 8,
}

/// Registers of the processor, as `mrs` and `msr` name them.
#[derive(Clone, Copy, Debug)]
pub enum System {
    /// Page tables of the lower half.
    Root = 0x82000,
    /// Flags that `eret` loads.
    Flags = 0x84000,
    /// Where `eret` goes.
    Link = 0x84020,
    /// The user's stack pointer.
    Stack = 0x84100,
    /// The user's thread pointer.
    Pointer = 0xbd040,
    /// The virtual count: the time stamp.
    Count = 0xbe040,
}

/// Of an instruction on a pair: it loads.
const LOADS: u32 = 1 << 22;
/// Of an instruction on a pair: the address is that of the register, which goes on behind the pair.
const STEPS: u32 = 0xa900_0000 ^ 0xa880_0000;

/// The instructions: functions that write them to a [`Sink`].
pub trait Instructions: Sink {
    /// Appends an instruction.
    fn word(&mut self, instruction: u32) {
        self.put(&instruction.to_le_bytes());
    }
    /// A load or store behind a register; `size` is the logarithm of its bytes.
    fn at(&mut self, opcode: u32, size: u32, register: X, base: X, by: i32) {
        self.word(opcode | size << 30 | (by as u32 >> size & 0xfff) << 10 | base.0 << 5 | register.0);
    }
    /// `ldr to, [base, #by]`.
    fn load(&mut self, to: X, base: X, by: i32) {
        self.at(0x3940_0000, 3, to, base, by);
    }
    /// The same, of 32 bits.
    fn load32(&mut self, to: X, base: X, by: i32) {
        self.at(0x3940_0000, 2, to, base, by);
    }
    /// `ldrb to, [base, #by]`.
    fn load8(&mut self, to: X, base: X, by: i32) {
        self.at(0x3940_0000, 0, to, base, by);
    }
    /// `str from, [base, #by]`.
    fn store(&mut self, from: X, base: X, by: i32) {
        self.at(0x3900_0000, 3, from, base, by);
    }
    /// `strb from, [base, #by]`.
    fn store8(&mut self, from: X, base: X, by: i32) {
        self.at(0x3900_0000, 0, from, base, by);
    }
    /// `strh from, [base, #by]`.
    fn store16(&mut self, from: X, base: X, by: i32) {
        self.at(0x3900_0000, 1, from, base, by);
    }
    /// `ldr to, [base, index]`.
    fn load_sum(&mut self, to: X, base: X, index: X) {
        self.word(0xf860_6800 | index.0 << 16 | base.0 << 5 | to.0);
    }
    /// `str from, [base, index]`.
    fn store_sum(&mut self, from: X, base: X, index: X) {
        self.word(0xf820_6800 | index.0 << 16 | base.0 << 5 | from.0);
    }
    /// `stp`, with bits that make another instruction of it.
    fn pair(&mut self, bits: u32, first: X, second: X, base: X, by: i32) {
        let by = (by / 8) as u32 & 0x7f;
        self.word(0xa900_0000 ^ bits | by << 15 | second.0 << 10 | base.0 << 5 | first.0);
    }
    /// Two words that stand one behind the other from `by` on: `ldp`.
    fn load_pair(&mut self, first: X, second: X, base: X, by: i32) {
        self.pair(LOADS, first, second, base, by);
    }
    /// `stp`.
    fn store_pair(&mut self, first: X, second: X, base: X, by: i32) {
        self.pair(0, first, second, base, by);
    }
    /// `ldp first, second, [base], #16`.
    fn take_pair(&mut self, first: X, second: X, base: X) {
        self.pair(LOADS ^ STEPS, first, second, base, 16);
    }
    /// `stp first, second, [base], #16`.
    fn give_pair(&mut self, first: X, second: X, base: X) {
        self.pair(STEPS, first, second, base, 16);
    }
    /// `stlr register, [base]`: seen after all that was done before.
    fn store_release(&mut self, from: X, base: X) {
        self.word(0xc89f_fc00 | base.0 << 5 | from.0);
    }
    /// The same, of 32 bits.
    fn store_release32(&mut self, from: X, base: X) {
        self.word(0x889f_fc00 | base.0 << 5 | from.0);
    }
    /// `orr to, one, other`.
    fn or(&mut self, to: X, one: X, other: X) {
        self.word(0xaa00_0000 | other.0 << 16 | one.0 << 5 | to.0);
    }
    /// `mov to, from`.
    fn copy(&mut self, to: X, from: X) {
        self.or(to, ZERO, from);
    }
    /// `add to, one, other`.
    fn add(&mut self, to: X, one: X, other: X) {
        self.word(0x8b00_0000 | other.0 << 16 | one.0 << 5 | to.0);
    }
    /// `add to, from, #value`, below 4,096.
    fn add_value(&mut self, to: X, from: X, value: u32) {
        self.word(0x9100_0000 | value << 10 | from.0 << 5 | to.0);
    }
    /// `add to, from, #value, lsl #12` on the lower halves.
    fn add_pages32(&mut self, to: X, from: X, value: u32) {
        self.word(0x1140_0000 | value << 10 | from.0 << 5 | to.0);
    }
    /// `subs to, from, #value`, below 4,096.
    fn subtract(&mut self, to: X, from: X, value: u32) {
        self.word(0xf100_0000 | value << 10 | from.0 << 5 | to.0);
    }
    /// `cmp one, other`.
    fn compare(&mut self, one: X, other: X) {
        self.word(0xeb00_001f | other.0 << 16 | one.0 << 5);
    }
    /// `cmp register, #value, lsl #12` on the lower half.
    fn compare_pages32(&mut self, register: X, value: u32) {
        self.word(0x7140_001f | value << 10 | register.0 << 5);
    }
    /// `cmp register, #value, lsl #12`.
    fn compare_pages(&mut self, register: X, value: u32) {
        self.word(0xf140_001f | value << 10 | register.0 << 5);
    }
    /// `mov register, #value`, of 16 bits.
    fn set(&mut self, register: X, value: u32) {
        self.word(0x5280_0000 | value << 5 | register.0);
    }
    /// `lsr to, from, #bits`.
    fn shift_right(&mut self, to: X, from: X, bits: u32) {
        self.word(0xd340_fc00 | bits << 16 | from.0 << 5 | to.0);
    }
    /// `mrs to, register`.
    fn read(&mut self, to: X, register: System) {
        self.word(0xd530_0000 | register as u32 | to.0);
    }
    /// `msr register, from`.
    fn write(&mut self, register: System, from: X) {
        self.word(0xd510_0000 | register as u32 | from.0);
    }
    /// `adr to, target`, within a megabyte.
    fn address_of(&mut self, to: X, target: u64) {
        let distance = target.wrapping_sub(self.here()) as u32;
        self.word(0x1000_0000 | (distance & 3) << 29 | (distance >> 2 & 0x7_ffff) << 5 | to.0);
    }
    /// Jumps, within 128 megabytes.
    fn jump(&mut self, target: u64) {
        let distance = target.wrapping_sub(self.here()) >> 2;
        self.word(0x1400_0000 | distance as u32 & 0x3ff_ffff);
    }
    /// Jumps, within a megabyte, if the condition holds.
    fn jump_if(&mut self, condition: If, target: u64) {
        let distance = self.short(target);
        self.word(0x5400_0000 | distance | condition as u32);
    }
    /// Jumps, within a megabyte, if the register is zero: `cbz`.
    fn jump_if_zero(&mut self, register: X, target: u64) {
        let distance = self.short(target);
        self.word(0xb400_0000 | distance | register.0);
    }
    /// Jumps, within a megabyte, unless the register is zero: `cbnz`.
    fn jump_unless_zero(&mut self, register: X, target: u64) {
        let distance = self.short(target);
        self.word(0xb500_0000 | distance | register.0);
    }
    /// Jumps over so many instructions if this bit, below 32, of the register is zero: `tbz`.
    fn skip_if_clear(&mut self, register: X, bit: u32, instructions: u32) {
        self.word(0x3600_0000 | bit << 19 | (instructions + 1) << 5 | register.0);
    }
    /// To the user. What stands behind is not executed ahead (Arm ARM D1.4.4).
    fn leave(&mut self) {
        [0xd69f_03e0, 0xd503_379f, 0xd503_3fdf].into_iter().for_each(|instruction| self.word(instruction));
    }
    fn short(&self, target: u64) -> u32 {
        ((target.wrapping_sub(self.here()) >> 2) as u32 & 0x7_ffff) << 5
    }
}

impl<T: Sink> Instructions for T {}
