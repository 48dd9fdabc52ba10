//! The instructions of AArch64 that portals are made of (Arm Architecture Reference Manual for A-profile, C6).

use crate::code::Code;

/// The instructions of AArch64.
#[derive(Debug)]
pub struct AArch64;

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

/// `stp`, with bits that make another instruction of it.
const fn pair(bits: u32, first: X, second: X, base: X, by: i32) -> u32 {
    let by = (by / 8) as u32 & 0x7f;
    0xa900_0000 ^ bits | by << 15 | second.0 << 10 | base.0 << 5 | first.0
}

/// The instructions: functions that write them.
impl Code<'_, AArch64> {
    /// Appends an instruction.
    const fn word(&mut self, instruction: u32) {
        self.put(instruction as u64, 4);
    }
    /// A load or store behind a register; `size` is the logarithm of its bytes.
    const fn at(&mut self, opcode: u32, size: u32, register: X, base: X, by: i32) {
        self.word(opcode | size << 30 | (by as u32 >> size & 0xfff) << 10 | base.0 << 5 | register.0);
    }
    /// `ldr to, [base, #by]`.
    pub const fn load(&mut self, to: X, base: X, by: i32) {
        self.at(0x3940_0000, 3, to, base, by);
    }
    /// The same, of 32 bits.
    pub const fn load32(&mut self, to: X, base: X, by: i32) {
        self.at(0x3940_0000, 2, to, base, by);
    }
    /// `ldrb to, [base, #by]`.
    pub const fn load8(&mut self, to: X, base: X, by: i32) {
        self.at(0x3940_0000, 0, to, base, by);
    }
    /// `str from, [base, #by]`.
    pub const fn store(&mut self, from: X, base: X, by: i32) {
        self.at(0x3900_0000, 3, from, base, by);
    }
    /// `strb from, [base, #by]`.
    pub const fn store8(&mut self, from: X, base: X, by: i32) {
        self.at(0x3900_0000, 0, from, base, by);
    }
    /// `strh from, [base, #by]`.
    pub const fn store16(&mut self, from: X, base: X, by: i32) {
        self.at(0x3900_0000, 1, from, base, by);
    }
    /// `ldr to, [base, index]`.
    pub const fn load_sum(&mut self, to: X, base: X, index: X) {
        self.word(0xf860_6800 | index.0 << 16 | base.0 << 5 | to.0);
    }
    /// `str from, [base, index]`.
    pub const fn store_sum(&mut self, from: X, base: X, index: X) {
        self.word(0xf820_6800 | index.0 << 16 | base.0 << 5 | from.0);
    }
    /// `stp`, with bits that make another instruction of it.
    const fn pair(&mut self, bits: u32, first: X, second: X, base: X, by: i32) {
        self.word(pair(bits, first, second, base, by));
    }
    /// Two pairs from the same place.
    pub const fn load_pairs(&mut self, pairs: [[X; 2]; 2], base: X) {
        let [[first, second], [third, fourth]] = pairs;
        let pairs = [pair(LOADS, first, second, base, 0), pair(LOADS, third, fourth, base, 0)];
        self.put(pairs[0] as u64 | (pairs[1] as u64) << 32, 8);
    }
    /// Two words that stand one after the other from `by` on: `ldp`.
    pub const fn load_pair(&mut self, first: X, second: X, base: X, by: i32) {
        self.pair(LOADS, first, second, base, by);
    }
    /// `stp`.
    pub const fn store_pair(&mut self, first: X, second: X, base: X, by: i32) {
        self.pair(0, first, second, base, by);
    }
    /// `ldp first, second, [base], #16`.
    pub const fn take_pair(&mut self, first: X, second: X, base: X) {
        self.pair(LOADS ^ STEPS, first, second, base, 16);
    }
    /// `stp first, second, [base], #16`.
    pub const fn give_pair(&mut self, first: X, second: X, base: X) {
        self.pair(STEPS, first, second, base, 16);
    }
    /// `stlr register, [base]`: seen after all that was done before.
    pub const fn store_release(&mut self, from: X, base: X) {
        self.word(0xc89f_fc00 | base.0 << 5 | from.0);
    }
    /// The same, of 32 bits.
    pub const fn store_release32(&mut self, from: X, base: X) {
        self.word(0x889f_fc00 | base.0 << 5 | from.0);
    }
    /// `orr to, one, other`.
    pub const fn or(&mut self, to: X, one: X, other: X) {
        self.word(0xaa00_0000 | other.0 << 16 | one.0 << 5 | to.0);
    }
    /// `mov to, from`.
    pub const fn copy(&mut self, to: X, from: X) {
        self.or(to, ZERO, from);
    }
    /// `add to, one, other`.
    pub const fn add(&mut self, to: X, one: X, other: X) {
        self.word(0x8b00_0000 | other.0 << 16 | one.0 << 5 | to.0);
    }
    /// `add to, from, #value`, below 4,096.
    pub const fn add_value(&mut self, to: X, from: X, value: u32) {
        self.word(0x9100_0000 | value << 10 | from.0 << 5 | to.0);
    }
    /// `add to, from, #value, lsl #12` on the lower halves.
    pub const fn add_pages32(&mut self, to: X, from: X, value: u32) {
        self.word(0x1140_0000 | value << 10 | from.0 << 5 | to.0);
    }
    /// `subs to, from, #value`, below 4,096.
    pub const fn subtract(&mut self, to: X, from: X, value: u32) {
        self.word(0xf100_0000 | value << 10 | from.0 << 5 | to.0);
    }
    /// `cmp one, other`.
    pub const fn compare(&mut self, one: X, other: X) {
        self.word(0xeb00_001f | other.0 << 16 | one.0 << 5);
    }
    /// `cmp register, #value, lsl #12` on the lower half.
    pub const fn compare_pages32(&mut self, register: X, value: u32) {
        self.word(0x7140_001f | value << 10 | register.0 << 5);
    }
    /// `cmp register, #value, lsl #12`.
    pub const fn compare_pages(&mut self, register: X, value: u32) {
        self.word(0xf140_001f | value << 10 | register.0 << 5);
    }
    /// `cmn register, #(value + 1)`, which compares with `!value`.
    pub const fn compare_complement(&mut self, register: X, value: u32) {
        self.word(0xb100_001f | (value + 1) << 10 | register.0 << 5);
    }
    /// `mov register, #value`, of 16 bits.
    pub const fn set(&mut self, register: X, value: u32) {
        self.word(0x5280_0000 | value << 5 | register.0);
    }
    /// An operation with so many bits from one on, round the end of the word (`bits` of 1 to 63).
    const fn logical(&mut self, opcode: u32, to: X, from: X, first: u32, bits: u32) {
        let rotation = (64 - first) % 64;
        self.word(opcode | rotation << 16 | (bits - 1) << 10 | from.0 << 5 | to.0);
    }
    /// `and to, from, #bits`.
    pub const fn and_bits(&mut self, to: X, from: X, first: u32, bits: u32) {
        self.logical(0x9240_0000, to, from, first, bits);
    }
    /// `and to, from, #~bit`.
    pub const fn and_without(&mut self, to: X, from: X, bit: u32) {
        self.and_bits(to, from, bit + 1, 63);
    }
    /// `orr to, from, #bits`.
    pub const fn or_bits(&mut self, to: X, from: X, first: u32, bits: u32) {
        self.logical(0xb240_0000, to, from, first, bits);
    }
    /// `eor to, from, #bit`.
    pub const fn flip_bit(&mut self, to: X, from: X, bit: u32) {
        self.logical(0xd240_0000, to, from, bit, 1);
    }
    /// `tst register, #bits`.
    pub const fn test_bits(&mut self, register: X, first: u32, bits: u32) {
        self.logical(0xf240_0000, ZERO, register, first, bits);
    }
    /// `ubfx to, from, #first, #bits`.
    pub const fn take_bits(&mut self, to: X, from: X, first: u32, bits: u32) {
        self.word(0xd340_0000 | first << 16 | (first + bits - 1) << 10 | from.0 << 5 | to.0);
    }
    /// `orr to, one, other, lsl #by`.
    pub const fn or_shifted(&mut self, to: X, one: X, other: X, by: u32) {
        self.word(0xaa00_0000 | other.0 << 16 | by << 10 | one.0 << 5 | to.0);
    }
    /// `bic to, one, other`.
    pub const fn and_not(&mut self, to: X, one: X, other: X) {
        self.word(0x8a20_0000 | other.0 << 16 | one.0 << 5 | to.0);
    }
    /// `ldr to, [base, index, lsl #3]`.
    pub const fn load_word_of(&mut self, to: X, base: X, index: X) {
        self.word(0xf860_7800 | index.0 << 16 | base.0 << 5 | to.0);
    }
    /// `cmp register, #value`, below 4,096.
    pub const fn compare_value(&mut self, register: X, value: u32) {
        self.subtract(ZERO, register, value);
    }
    /// `dsb ishst`: table walks from here on see page-table writes before it.
    pub const fn table_barrier(&mut self) {
        self.word(0xd503_3a9f);
    }
    /// `tlbi vae1, page`, which has an ASID and an address / 4096: this processor drops the translation.
    pub const fn drop_page(&mut self, page: X) {
        self.word(0xd508_8720 | page.0);
    }
    /// `dsb nsh`: the dropped translations are gone.
    pub const fn dropped(&mut self) {
        self.word(0xd503_379f);
    }
    /// `lsr to, from, #bits`.
    pub const fn shift_right(&mut self, to: X, from: X, bits: u32) {
        self.word(0xd340_fc00 | bits << 16 | from.0 << 5 | to.0);
    }
    /// `mrs to, register`.
    pub const fn read(&mut self, to: X, register: System) {
        self.word(0xd530_0000 | register as u32 | to.0);
    }
    /// `msr register, from`.
    pub const fn write(&mut self, register: System, from: X) {
        self.word(0xd510_0000 | register as u32 | from.0);
    }
    /// `adr to, target`, within a megabyte.
    pub const fn address_of(&mut self, to: X, target: u64) {
        let distance = target.wrapping_sub(self.here()) as u32;
        self.word(0x1000_0000 | (distance & 3) << 29 | (distance >> 2 & 0x7_ffff) << 5 | to.0);
    }
    /// Jumps, within 128 megabytes.
    pub const fn jump(&mut self, target: u64) {
        let distance = target.wrapping_sub(self.here()) >> 2;
        self.word(0x1400_0000 | distance as u32 & 0x3ff_ffff);
    }
    /// Jumps, within a megabyte, if the condition holds.
    pub const fn jump_if(&mut self, condition: If, target: u64) {
        let distance = self.short(target);
        self.word(0x5400_0000 | distance | condition as u32);
    }
    /// Jumps, within 32 KiB, if this bit of the register is zero: `tbz`.
    pub const fn jump_if_clear(&mut self, register: X, bit: u32, target: u64) {
        self.on_bit(0x3600_0000, register, bit, target);
    }
    /// Jumps, within 32 KiB, unless this bit of the register is zero: `tbnz`.
    pub const fn jump_if_set(&mut self, register: X, bit: u32, target: u64) {
        self.on_bit(0x3700_0000, register, bit, target);
    }
    const fn on_bit(&mut self, opcode: u32, register: X, bit: u32, target: u64) {
        let distance = (target.wrapping_sub(self.here()) >> 2) as u32 & 0x3fff;
        self.word(opcode | (bit >> 5) << 31 | (bit & 31) << 19 | distance << 5 | register.0);
    }
    /// Jumps, within a megabyte, if the register is zero: `cbz`.
    pub const fn jump_if_zero(&mut self, register: X, target: u64) {
        let distance = self.short(target);
        self.word(0xb400_0000 | distance | register.0);
    }
    /// Jumps, within a megabyte, unless the register is zero: `cbnz`.
    pub const fn jump_unless_zero(&mut self, register: X, target: u64) {
        let distance = self.short(target);
        self.word(0xb500_0000 | distance | register.0);
    }
    /// Jumps over so many instructions if this bit, below 32, of the register is zero: `tbz`.
    pub const fn skip_if_clear(&mut self, register: X, bit: u32, instructions: u32) {
        self.word(0x3600_0000 | bit << 19 | (instructions + 1) << 5 | register.0);
    }
    /// To the user. Code after it is not executed ahead (Arm ARM D1.4.4).
    pub const fn leave(&mut self) {
        self.word(0xd69f_03e0);
        self.word(0xd503_379f);
        self.word(0xd503_3fdf);
    }
    const fn short(&self, target: u64) -> u32 {
        ((target.wrapping_sub(self.here()) >> 2) as u32 & 0x7_ffff) << 5
    }
}
