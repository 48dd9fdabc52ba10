//! The instructions of x86-64 that portals are made of (AMD64 Architecture Programmer's Manual, volume 3).

use crate::code::Sink;

/// A general register, by its number in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Register(pub u8);

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

const WIDE: u8 = 8;

/// The instructions: functions that write them to a [`Sink`].
pub trait Instructions: Sink {
    /// Prefixes, opcode and operands of an instruction on `place`; `rex` is [`WIDE`] for 64 bits.
    fn on(&mut self, rex: u8, opcode: &[u8], field: u8, place: Place) {
        let high = |register: Register| register.0 >> 3;
        let low = |register: Register| register.0 & 7;
        let (rex, displacement) = match place {
            Place::At(base, by) => (rex | high(base), by),
            Place::Sum(base, index, by) => (rex | high(base) | high(index) << 1, by),
            Place::Cpu(by) => {
                self.put(&[0x65]);
                (rex, by)
            }
        };
        let rex = rex | field >> 3 << 2;
        if rex != 0 {
            self.put(&[0x40 | rex]);
        }
        self.put(opcode);
        let field = (field & 7) << 3;
        let short = i8::try_from(displacement).ok();
        let mode = match (place, short) {
            (Place::Cpu(_), _) => 0x00,
            (_, Some(_)) => 0x40,
            _ => 0x80,
        };
        match place {
            Place::At(base, _) if low(base) != 4 => self.put(&[mode | field | low(base)]),
            Place::At(base, _) => self.put(&[mode | field | 4, 0x20 | low(base)]),
            Place::Sum(base, index, _) => self.put(&[mode | field | 4, low(index) << 3 | low(base)]),
            Place::Cpu(_) => self.put(&[field | 4, 0x25]),
        }
        match short {
            Some(by) if mode == 0x40 => self.put(&by.to_le_bytes()),
            _ => self.put(&displacement.to_le_bytes()),
        }
    }
    /// Prefix, opcode and operands of an instruction on two registers.
    fn between(&mut self, rex: u8, opcode: &[u8], field: Register, other: Register) {
        let rex = rex | field.0 >> 3 << 2 | other.0 >> 3;
        if rex != 0 {
            self.put(&[0x40 | rex]);
        }
        self.put(opcode);
        self.put(&[0xc0 | (field.0 & 7) << 3 | other.0 & 7]);
    }

    /// `mov to, [from]`.
    fn load(&mut self, to: Register, from: Place) {
        self.on(WIDE, &[0x8b], to.0, from);
    }
    /// The same with the lower half; the upper one becomes zero.
    fn load32(&mut self, to: Register, from: Place) {
        self.on(0, &[0x8b], to.0, from);
    }
    /// `movzx to, byte [from]`.
    fn load8(&mut self, to: Register, from: Place) {
        self.on(0, &[0x0f, 0xb6], to.0, from);
    }
    /// `mov [to], from`.
    fn store(&mut self, to: Place, from: Register) {
        self.on(WIDE, &[0x89], from.0, to);
    }
    /// The same with the lower half.
    fn store32(&mut self, to: Place, from: Register) {
        self.on(0, &[0x89], from.0, to);
    }
    /// `mov byte [to], value`.
    fn store8(&mut self, to: Place, value: u8) {
        self.on(0, &[0xc6], 0, to);
        self.put(&[value]);
    }
    /// `mov word [to], value`.
    fn store16(&mut self, to: Place, value: u16) {
        self.put(&[0x66]);
        self.on(0, &[0xc7], 0, to);
        self.put(&value.to_le_bytes());
    }
    /// `mov qword [to], address`: one in the uppermost or the lowest 2 GiB.
    fn store_address(&mut self, to: Place, address: u64) {
        self.on(WIDE, &[0xc7], 0, to);
        self.put(&(address as u32).to_le_bytes());
    }
    /// `or to, [from]`.
    fn or(&mut self, to: Register, from: Place) {
        self.on(WIDE, &[0x0b], to.0, from);
    }
    /// `or` of the lowest byte of rax, rcx, rdx, rbx or one from r8 on, and what is there.
    fn or8(&mut self, to: Register, from: Place) {
        self.on(0, &[0x0a], to.0, from);
    }
    /// `cmp one, [other]`.
    fn compare(&mut self, one: Register, other: Place) {
        self.on(WIDE, &[0x3b], one.0, other);
    }
    /// `cmp dword [place], value`.
    fn compare32(&mut self, place: Place, value: u32) {
        self.on(0, &[0x81], 7, place);
        self.put(&value.to_le_bytes());
    }
    /// `inc qword [place]`.
    fn increment(&mut self, place: Place) {
        self.on(WIDE, &[0xff], 0, place);
    }
    /// `lea to, [from]`.
    fn address(&mut self, to: Register, from: Place) {
        self.on(WIDE, &[0x8d], to.0, from);
    }
    /// `mov to, from`.
    fn copy(&mut self, to: Register, from: Register) {
        self.between(WIDE, &[0x89], from, to);
    }
    /// `xchg one, other`.
    fn exchange(&mut self, one: Register, other: Register) {
        self.between(WIDE, &[0x87], one, other);
    }
    /// `xor register, register`.
    fn clear(&mut self, register: Register) {
        self.between(0, &[0x31], register, register);
    }
    /// `test register, register`.
    fn test(&mut self, register: Register) {
        self.between(WIDE, &[0x85], register, register);
    }
    /// `mov register, value`, with the upper half zero.
    fn set(&mut self, register: Register, value: u32) {
        if register.0 > 7 {
            self.put(&[0x41]);
        }
        self.put(&[0xb8 | register.0 & 7]);
        self.put(&value.to_le_bytes());
    }
    /// `add register, value` on the lower half.
    fn add32(&mut self, register: Register, value: u32) {
        self.between(0, &[0x81], Register(0), register);
        self.put(&value.to_le_bytes());
    }
    /// `cmp register, value`, of which the sign is extended.
    fn compare_with(&mut self, register: Register, value: i32) {
        self.between(WIDE, &[0x81], Register(7), register);
        self.put(&value.to_le_bytes());
    }
    /// `shr register, bits`.
    fn shift_right(&mut self, register: Register, bits: u8) {
        self.between(WIDE, &[0xc1], Register(5), register);
        self.put(&[bits]);
    }
    /// `shl register, bits`.
    fn shift_left(&mut self, register: Register, bits: u8) {
        self.between(WIDE, &[0xc1], Register(4), register);
        self.put(&[bits]);
    }
    /// `or to, from`.
    fn or_with(&mut self, to: Register, from: Register) {
        self.between(WIDE, &[0x09], from, to);
    }
    /// `mov cr3, root`.
    fn load_root(&mut self, root: Register) {
        self.put(&[0x0f, 0x22, 0xd8 | root.0]);
    }
    /// `rep movsq`: rcx words from [rsi] to [rdi].
    fn copy_words(&mut self) {
        self.put(&[0xf3, 0x48, 0xa5]);
    }
    /// `rdtsc`: into rdx (upper half) and rax.
    fn read_time(&mut self) {
        self.put(&[0x0f, 0x31]);
    }
    /// Jumps if the condition holds.
    fn jump_if(&mut self, condition: If, target: u64) {
        self.put(&[0x0f, 0x80 | condition as u8]);
        self.distance(target);
    }
    /// Jumps to where [`Self::skip_to_here`] says if the condition holds: at most 127 bytes.
    fn skip_if(&mut self, condition: If) -> u64 {
        self.put(&[0x70 | condition as u8, 0]);
        self.here()
    }
    /// That jump goes here.
    fn skip_to_here(&mut self, from: u64) {
        self.patch(from - 1, (self.here() - from) as u8);
    }
    /// To the user: rcx says where, with the flags that every crossing leaves (interrupts on).
    fn leave(&mut self) {
        self.set(R11, 0x202);
        self.put(&[0x0f, 0x01, 0xf8, 0x48, 0x0f, 0x07]);
    }
    /// From the end of the four bytes that it writes to the target, which is within 2 GiB.
    fn distance(&mut self, target: u64) {
        let distance = target.wrapping_sub(self.here() + 4) as i32;
        self.put(&distance.to_le_bytes());
    }
}

impl<T: Sink> Instructions for T {}
