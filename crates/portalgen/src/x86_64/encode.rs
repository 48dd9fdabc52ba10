//! The instructions of x86-64 that portals are made of (AMD64 Architecture Programmer's Manual, volume 3).

use crate::code::Code;
use Place::At;

/// The instructions of x86-64.
#[derive(Debug)]
pub struct X86_64;

/// A general register, by its number in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Register(pub u8);

impl Register {
    /// The bits that stand in the operands.
    const fn low(self) -> u8 {
        self.0 & 7
    }
    /// The one that stands before the opcode.
    const fn high(self) -> u8 {
        self.0 >> 3
    }
}

pub const RAX: Register = Register(0);
pub const RCX: Register = Register(1);
pub const RDX: Register = Register(2);
pub const RBX: Register = Register(3);
pub const RSP: Register = Register(4);
pub const RBP: Register = Register(5);
pub const RSI: Register = Register(6);
pub const RDI: Register = Register(7);
pub const R8: Register = Register(8);
pub const R9: Register = Register(9);
pub const R10: Register = Register(10);
pub const R11: Register = Register(11);
pub const R12: Register = Register(12);
pub const R13: Register = Register(13);
pub const R14: Register = Register(14);
pub const R15: Register = Register(15);

/// A place in memory.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Behind a register.
    At(Register, i32),
    /// Behind the sum of two registers; the second one is not rsp.
    Sum(Register, Register, i32),
    /// In the block of the CPU, behind `gs`.
    Cpu(i32),
}

/// Conditions of jumps.
#[derive(Clone, Copy, Debug)]
pub enum If {
    /// Unsigned.
    AboveOrEqual = 3,
    /// Zero.
    Equal = 4,
    /// Not zero.
    NotEqual = 5,
    /// Unsigned.
    Above = 7,
}

/// Operations of a register with a value.
#[derive(Clone, Copy, Debug)]
pub enum Arithmetic {
    /// Bits that are in one of both.
    Or = 1,
    /// Bits that are in both.
    And = 4,
    /// Bits that differ.
    Xor = 6,
    /// Compares.
    Compare = 7,
}

const WIDE: u8 = 8;

/// The first bytes of an instruction.
#[derive(Clone, Copy)]
struct Bytes {
    bits: u64,
    count: usize,
}

impl Bytes {
    const NONE: Self = Self { bits: 0, count: 0 };

    const fn then(self, byte: u8) -> Self {
        Self { bits: self.bits | (byte as u64) << (8 * self.count), count: self.count + 1 }
    }
    /// Appends the prefix for registers from r8 on or 64-bit operands, if any, and an opcode.
    const fn operation(self, rex: u8, opcode: u16) -> Self {
        let bytes = if rex == 0 { self } else { self.then(0x40 | rex) };
        let bytes = bytes.then(opcode as u8);
        if opcode >> 8 == 0 { bytes } else { bytes.then((opcode >> 8) as u8) }
    }
}

/// Bytes of the longest instruction that [`clear`] gives.
pub const LONGEST_CLEAR: usize = 3;

/// `xor register, register` on the lower halves, which clears all of it: its bytes, and how many.
pub const fn clear(register: Register) -> (u64, usize) {
    let low = register.low() as u64;
    match register.high() {
        0 => (0xc031 | (9 * low) << 8, 2),
        _ => (0xc0_3145 | (9 * low) << 16, 3),
    }
}

/// The instructions: functions that write them.
impl Code<'_, X86_64> {
    /// Prefixes, opcode (its first byte is the lower one) and operands of an instruction on `place`; `rex` is [`WIDE`] for 64 bits.
    const fn on(&mut self, rex: u8, opcode: u16, field: u8, place: Place) {
        let (rex, displacement) = match place {
            Place::At(base, by) => (rex | base.high(), by),
            Place::Sum(base, index, by) => (rex | base.high() | index.high() << 1, by),
            Place::Cpu(by) => (rex, by),
        };
        let is_short = displacement == displacement as i8 as i32;
        let mode = (if is_short { 0x40 } else { 0x80 }) | (field & 7) << 3;
        let start = match place {
            Place::Cpu(_) => Bytes::NONE.then(0x65),
            _ => Bytes::NONE,
        };
        let head = start.operation(rex | field >> 3 << 2, opcode);
        let head = match place {
            Place::At(base, _) if base.low() != 4 => head.then(mode | base.low()),
            Place::At(base, _) => head.then(mode | 4).then(0x20 | base.low()),
            Place::Sum(base, index, _) => head.then(mode | 4).then(index.low() << 3 | base.low()),
            Place::Cpu(_) => head.then((field & 7) << 3 | 4).then(0x25),
        };
        self.put(head.bits, head.count);
        let is_short = is_short && !matches!(place, Place::Cpu(_));
        self.put(displacement as u32 as u64, if is_short { 1 } else { 4 });
    }
    /// Prefix, opcode and operands of an instruction on two registers.
    const fn between(&mut self, rex: u8, opcode: u16, field: Register, other: Register) {
        let bytes = Bytes::NONE.operation(rex | field.high() << 2 | other.high(), opcode);
        let bytes = bytes.then(0xc0 | field.low() << 3 | other.low());
        self.put(bytes.bits, bytes.count);
    }

    /// `mov to, [from]`.
    pub const fn load(&mut self, to: Register, from: Place) {
        self.on(WIDE, 0x8b, to.0, from);
    }
    /// The same with the lower half; the upper one becomes zero.
    pub const fn load32(&mut self, to: Register, from: Place) {
        self.on(0, 0x8b, to.0, from);
    }
    /// `movzx to, byte [from]`.
    pub const fn load8(&mut self, to: Register, from: Place) {
        self.on(0, 0xb60f, to.0, from);
    }
    /// `mov [to], from`.
    pub const fn store(&mut self, to: Place, from: Register) {
        self.on(WIDE, 0x89, from.0, to);
    }
    /// The same with the lower half.
    pub const fn store32(&mut self, to: Place, from: Register) {
        self.on(0, 0x89, from.0, to);
    }
    /// `mov byte [to], value`.
    pub const fn store8(&mut self, to: Place, value: u8) {
        self.on(0, 0xc6, 0, to);
        self.put(value as u64, 1);
    }
    /// `mov word [to], value`.
    pub const fn store16(&mut self, to: Place, value: u16) {
        self.put(0x66, 1);
        self.on(0, 0xc7, 0, to);
        self.put(value as u64, 2);
    }
    /// `mov qword [to], address`: without the four bytes of the address, which is in the uppermost or the lowest 2 GiB.
    pub const fn store_next(&mut self, to: Place) {
        self.on(WIDE, 0xc7, 0, to);
    }
    /// `or to, [from]`.
    pub const fn or(&mut self, to: Register, from: Place) {
        self.on(WIDE, 0x0b, to.0, from);
    }
    /// `or` of the lowest byte of rax, rcx, rdx, rbx or one from r8 on, and what is there.
    pub const fn or8(&mut self, to: Register, from: Place) {
        self.on(0, 0x0a, to.0, from);
    }
    /// `cmp one, [other]`.
    pub const fn compare(&mut self, one: Register, other: Place) {
        self.on(WIDE, 0x3b, one.0, other);
    }
    /// `cmp dword [place], value`.
    pub const fn compare32(&mut self, place: Place, value: u32) {
        self.on(0, 0x81, 7, place);
        self.put(value as u64, 4);
    }
    /// `inc qword [place]`.
    pub const fn increment(&mut self, place: Place) {
        self.on(WIDE, 0xff, 0, place);
    }
    /// `lea to, [from]`.
    pub const fn address(&mut self, to: Register, from: Place) {
        self.on(WIDE, 0x8d, to.0, from);
    }
    /// `lea register, [register + by]`: without the byte that follows, for a register that is no base alone.
    pub const fn address_behind_next(&mut self, register: Register) {
        self.address(register, At(register, 0));
        self.take_back(1);
    }
    /// `mov to, from`.
    pub const fn copy(&mut self, to: Register, from: Register) {
        self.between(WIDE, 0x89, from, to);
    }
    /// The same with the lower halves; the upper one becomes zero.
    pub const fn copy32(&mut self, to: Register, from: Register) {
        self.between(0, 0x89, from, to);
    }
    /// An operation with a value: see [`Arithmetic`]. `rex` is 0 for the lower half.
    const fn with_value(&mut self, rex: u8, operation: Arithmetic, register: Register, value: i32) {
        let is_short = value == value as i8 as i32;
        self.between(rex, if is_short { 0x83 } else { 0x81 }, Register(operation as u8), register);
        self.put(value as u32 as u64, if is_short { 1 } else { 4 });
    }
    /// `and`, `or` and the like with a value of which the sign is extended.
    pub const fn change(&mut self, operation: Arithmetic, register: Register, value: i32) {
        self.with_value(WIDE, operation, register, value);
    }
    /// The same with the lower half; the upper one becomes zero.
    pub const fn change32(&mut self, operation: Arithmetic, register: Register, value: i32) {
        self.with_value(0, operation, register, value);
    }
    /// `test register, value` with the lower half.
    pub const fn test_value32(&mut self, register: Register, value: u32) {
        self.between(0, 0xf7, Register(0), register);
        self.put(value as u64, 4);
    }
    /// `test one, other` with the lower halves.
    pub const fn test32(&mut self, one: Register, other: Register) {
        self.between(0, 0x85, other, one);
    }
    /// `and to, from`.
    pub const fn and_with(&mut self, to: Register, from: Register) {
        self.between(WIDE, 0x21, from, to);
    }
    /// `add to, [from]`.
    pub const fn add(&mut self, to: Register, from: Place) {
        self.on(WIDE, 0x03, to.0, from);
    }
    /// `bts register, bit`.
    pub const fn set_bit(&mut self, register: Register, bit: u8) {
        self.between(WIDE, 0xba0f, Register(5), register);
        self.put(bit as u64, 1);
    }
    /// `shr register, bits` with the lower half.
    pub const fn shift_right32(&mut self, register: Register, bits: u8) {
        self.between(0, 0xc1, Register(5), register);
        self.put(bits as u64, 1);
    }
    /// `mov qword [place], 0`.
    pub const fn store_zero(&mut self, place: Place) {
        self.on(WIDE, 0xc7, 0, place);
        self.put(0, 4);
    }
    /// `xchg one, other`.
    pub const fn exchange(&mut self, one: Register, other: Register) {
        self.between(WIDE, 0x87, one, other);
    }
    /// `xor register, register`.
    pub const fn clear(&mut self, register: Register) {
        let (instruction, count) = clear(register);
        self.put(instruction, count);
    }
    /// `test register, register`.
    pub const fn test(&mut self, register: Register) {
        self.between(WIDE, 0x85, register, register);
    }
    /// `mov register, value`, with the upper half zero.
    pub const fn set(&mut self, register: Register, value: u32) {
        if register.high() != 0 {
            self.put(0x41, 1);
        }
        self.put(0xb8 | register.low() as u64, 1);
        self.put(value as u64, 4);
    }
    /// `add register, value` on the lower half.
    pub const fn add32(&mut self, register: Register, value: u32) {
        self.between(0, 0x81, Register(0), register);
        self.put(value as u64, 4);
    }
    /// `cmp register, value`: without the four bytes of the value, of which the sign is extended.
    pub const fn compare_with_next(&mut self, register: Register) {
        self.between(WIDE, 0x81, Register(7), register);
    }
    /// `shr register, bits`.
    pub const fn shift_right(&mut self, register: Register, bits: u8) {
        self.between(WIDE, 0xc1, Register(5), register);
        self.put(bits as u64, 1);
    }
    /// `shl register, bits`.
    pub const fn shift_left(&mut self, register: Register, bits: u8) {
        self.between(WIDE, 0xc1, Register(4), register);
        self.put(bits as u64, 1);
    }
    /// `or to, from`.
    pub const fn or_with(&mut self, to: Register, from: Register) {
        self.between(WIDE, 0x09, from, to);
    }
    /// `mov cr3, root`.
    pub const fn load_root(&mut self, root: Register) {
        self.put(0xd8_220f | (root.0 as u64) << 16, 3);
    }
    /// `rep movsq`: rcx words from `rsi` to `rdi`.
    pub const fn copy_words(&mut self) {
        self.put(0xa5_48f3, 3);
    }
    /// `rdtsc`: into rdx (upper half) and rax.
    pub const fn read_time(&mut self) {
        self.put(0x310f, 2);
    }
    /// `int3`, up to a multiple of `line` bytes.
    pub fn align(&mut self, line: usize) {
        let count = self.length().next_multiple_of(line) - self.length();
        self.append(&[0xcc; 64][..count.min(64)]);
    }
    /// Jumps if the condition holds.
    pub const fn jump_if(&mut self, condition: If, target: u64) {
        self.put(0x800f | (condition as u64) << 8, 2);
        self.distance(target);
    }
    /// Jumps to where [`Self::skip_to_here`] says if the condition holds: at most 127 bytes.
    pub const fn skip_if(&mut self, condition: If) -> u64 {
        self.put(0x70 | condition as u64, 2);
        self.here()
    }
    /// That jump goes here.
    pub fn skip_to_here(&mut self, from: u64) {
        self.patch(from - 1, (self.here() - from) as u8);
    }
    /// Jumps to where [`Self::skip_far_to_here`] says if the condition holds.
    pub const fn skip_far_if(&mut self, condition: If) -> u64 {
        self.put(0x800f | (condition as u64) << 8, 2);
        self.put(0, 4);
        self.here()
    }
    /// That jump goes here.
    pub fn skip_far_to_here(&mut self, from: u64) {
        self.patch4(from - 4, (self.here() - from) as u32);
    }
    /// To the user: rcx says where, with the flags that every crossing leaves (interrupts on).
    pub const fn leave(&mut self) {
        self.set(R11, 0x202);
        self.put(0x070f_48f8_010f, 6);
    }
    /// From the end of the four bytes that it writes to the target, which is within 2 GiB.
    const fn distance(&mut self, target: u64) {
        let distance = target.wrapping_sub(self.here() + 4);
        self.put(distance, 4);
    }
}
