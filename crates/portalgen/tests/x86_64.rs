//! Portals for x86-64: their listings, and what they do, run by an interpreter against what a crossing ought to do.
#![allow(missing_docs)]

mod branches;
mod checked;
mod common;
mod crossing;

use common::{CODE, CPU, End, Memory, Registers};
use iced_x86::{Code as Instruction, Decoder, DecoderOptions, Mnemonic, OpKind, Register as R};
use listing::{Isa, generate};
use portalgen::{Extent, Specification};

const WORDS: [R; 9] = [R::RDI, R::RSI, R::RDX, R::R8, R::R9, R::R12, R::R13, R::R14, R::R15];
const PRESERVED: [R; 6] = [R::RBX, R::RBP, R::R12, R::R13, R::R14, R::R15];

fn write(specification: &Specification) -> (Vec<u8>, Extent) {
    let code = generate(Isa::X86_64, specification);
    (code.bytes, code.extent)
}

/// A processor that knows the instructions of portals and no others.
#[derive(Clone)]
struct Processor {
    registers: [u64; 16],
    below_or_equal: (bool, bool),
    time: u64,
    root: u64,
    in_user: bool,
    decisions: crossing::Decisions,
}

impl Processor {
    fn get(&self, register: R) -> u64 {
        let value = self.registers[register.full_register().number()];
        match register.size() {
            8 => value,
            size => value & ((1 << (8 * size)) - 1),
        }
    }
    fn set(&mut self, register: R, value: u64) {
        let place = &mut self.registers[register.full_register().number()];
        *place = match register.size() {
            8 => value,
            4 => value as u32 as u64,
            1 => *place & !0xff | value & 0xff,
            size => panic!("a register of {size} bytes"),
        };
    }
    fn address(&self, instruction: &iced_x86::Instruction) -> u64 {
        let base = match instruction.memory_base() {
            R::None => 0,
            R::RIP => return instruction.ip_rel_memory_address(),
            base => self.get(base),
        };
        let index = if instruction.memory_index() == R::None { 0 } else { self.get(instruction.memory_index()) };
        let segment = if instruction.segment_prefix() == R::GS { CPU } else { 0 };
        base.wrapping_add(index).wrapping_add(instruction.memory_displacement64()).wrapping_add(segment)
    }
    fn operand(&mut self, instruction: &iced_x86::Instruction, number: u32, memory: &mut Memory) -> u64 {
        match instruction.op_kind(number) {
            OpKind::Register => self.get(instruction.op_register(number)),
            OpKind::Memory => memory.read(self.address(instruction), instruction.memory_size().size()),
            _ => instruction.immediate(number),
        }
    }
    fn store(&mut self, instruction: &iced_x86::Instruction, value: u64, memory: &mut Memory) {
        match instruction.op_kind(0) {
            OpKind::Register => self.set(instruction.op_register(0), value),
            OpKind::Memory => memory.write(self.address(instruction), instruction.memory_size().size(), value),
            kind => panic!("a result to {kind:?}"),
        }
    }
    /// Runs from the byte `at` on; gives how it ended, and how many instructions that took.
    fn run(&mut self, bytes: &[u8], at: usize, memory: &mut Memory) -> (End, usize) {
        let mut at = CODE + at as u64;
        let mut count = 0;
        loop {
            let Some(rest) = bytes.get((at - CODE) as usize..) else { panic!("out of the code at {at:#x}") };
            let instruction = Decoder::with_ip(64, rest, at, DecoderOptions::NONE).decode();
            count += 1;
            at = instruction.next_ip();
            let i = &instruction;
            match instruction.mnemonic() {
                Mnemonic::Mov if instruction.code() == Instruction::Mov_cr_r64 => {
                    assert_eq!(i.op_register(0), R::CR3);
                    self.root = self.get(i.op_register(1));
                }
                Mnemonic::Mov | Mnemonic::Movzx => {
                    let value = self.operand(i, 1, memory);
                    self.store(i, value, memory);
                }
                Mnemonic::Lea => {
                    let value = self.address(i);
                    self.store(i, value, memory);
                }
                Mnemonic::Xchg => {
                    let (one, other) = (i.op_register(0), i.op_register(1));
                    let values = (self.get(one), self.get(other));
                    self.set(one, values.1);
                    self.set(other, values.0);
                }
                Mnemonic::Or | Mnemonic::Xor | Mnemonic::Add | Mnemonic::And => {
                    let (one, other) = (self.operand(i, 0, memory), self.operand(i, 1, memory));
                    let value = match instruction.mnemonic() {
                        Mnemonic::Or => one | other,
                        Mnemonic::Xor => one ^ other,
                        Mnemonic::And => one & other,
                        _ => one.wrapping_add(other),
                    };
                    self.below_or_equal = (false, value == 0);
                    self.store(i, value, memory);
                }
                Mnemonic::Shr | Mnemonic::Shl => {
                    let (value, by) = (self.operand(i, 0, memory), self.operand(i, 1, memory));
                    let value = if instruction.mnemonic() == Mnemonic::Shr { value >> by } else { value << by };
                    self.store(i, value, memory);
                }
                Mnemonic::Bts => {
                    let (value, bit) = (self.operand(i, 0, memory), self.operand(i, 1, memory));
                    self.store(i, value | 1 << bit, memory);
                }
                Mnemonic::Inc => {
                    let value = self.operand(i, 0, memory).wrapping_add(1);
                    self.store(i, value, memory);
                }
                Mnemonic::Cmp => {
                    let (one, other) = (self.operand(i, 0, memory), self.operand(i, 1, memory));
                    self.below_or_equal = (one < other, one == other);
                }
                Mnemonic::Test => {
                    let value = self.operand(i, 0, memory) & self.operand(i, 1, memory);
                    self.below_or_equal = (false, value == 0);
                }
                Mnemonic::Jne | Mnemonic::Je | Mnemonic::Jae | Mnemonic::Ja | Mnemonic::Jmp => {
                    let (below, equal) = self.below_or_equal;
                    let jumps = match instruction.mnemonic() {
                        Mnemonic::Jne => !equal,
                        Mnemonic::Je => equal,
                        Mnemonic::Jae => !below,
                        Mnemonic::Ja => !below && !equal,
                        _ => true,
                    };
                    if instruction.mnemonic() != Mnemonic::Jmp {
                        self.decisions.insert((instruction.ip(), jumps));
                    }
                    let target = instruction.near_branch64();
                    match jumps {
                        true if (CODE..CODE + bytes.len() as u64).contains(&target) => at = target,
                        true => return (End::Jumped(target), count),
                        false => {}
                    }
                }
                Mnemonic::Movsq => {
                    assert!(instruction.has_rep_prefix());
                    count += self.get(R::RCX).saturating_sub(1) as usize;
                    while self.get(R::RCX) != 0 {
                        let value = memory.read(self.get(R::RSI), 8);
                        memory.write(self.get(R::RDI), 8, value);
                        self.set(R::RSI, self.get(R::RSI) + 8);
                        self.set(R::RDI, self.get(R::RDI) + 8);
                        self.set(R::RCX, self.get(R::RCX) - 1);
                    }
                }
                Mnemonic::Rdtsc => {
                    self.set(R::RAX, self.time & 0xffff_ffff);
                    self.set(R::RDX, self.time >> 32);
                }
                Mnemonic::Swapgs => self.in_user = true,
                Mnemonic::Sysret | Mnemonic::Sysretq => {
                    assert!(self.in_user, "without swapgs");
                    assert_eq!(self.get(R::R11), 0x202, "flags");
                    return (End::Left(self.user()), count);
                }
                other => panic!("portals have no {other:?}"),
            }
        }
    }
    fn user(&self) -> Registers {
        Registers {
            pc: self.get(R::RCX),
            sp: self.get(R::RSP),
            status: self.get(R::RAX),
            words: WORDS.map(|register| self.get(register)),
            preserved: PRESERVED.iter().map(|register| self.get(*register)).collect(),
            others: vec![self.get(R::R10)],
            pointer: 0,
        }
    }
}

impl crossing::Isa for Processor {
    const PRESERVED: usize = 6;
    const SPOILS: bool = true;
    const LOOPS: bool = false;
    const OTHERS: usize = 1;
    const CONTROL: usize = 0;
    const AREA: (Option<usize>, Option<usize>) = (Some(0), None);
    const WORDS_IN_PRESERVED: [Option<usize>; 9] = [None, None, None, None, None, Some(2), Some(3), Some(4), Some(5)];

    fn write(specification: &Specification) -> (Vec<u8>, Extent) {
        write(specification)
    }
    fn start(user: &Registers, entry_or_activation: u64, is_call: bool, time: u64) -> Self {
        let decisions = crossing::Decisions::new();
        let mut it =
            Self { registers: [0; 16], below_or_equal: (false, false), time, root: 0, in_user: false, decisions };
        for (register, value) in PRESERVED.iter().zip(&user.preserved) {
            it.set(*register, *value);
        }
        for (register, value) in WORDS.iter().zip(user.words) {
            it.set(*register, value);
        }
        it.set(R::RCX, user.pc);
        it.set(R::RSP, user.sp);
        it.set(R::R10, user.others[0]);
        it.set(if is_call { R::RAX } else { R::R11 }, entry_or_activation);
        it
    }
    fn run(&mut self, bytes: &[u8], at: usize, memory: &mut Memory) -> (End, usize) {
        Processor::run(self, bytes, at, memory)
    }
    fn user(&self) -> Registers {
        Processor::user(self)
    }
    fn decisions(&self) -> &crossing::Decisions {
        &self.decisions
    }
    fn root(&self) -> u64 {
        self.root
    }
    fn page(frame: u64, kind: crossing::Page) -> u64 {
        use crossing::Page;
        const LENT: u64 = 1 << 9;
        let page = frame << 12 | 5 | 1 << 63 | LENT;
        match kind {
            Page::Writable => page | 2,
            Page::ReadOnly => page & !(1 << 63),
            Page::Registers => page & !LENT | 2 | 0x18,
            Page::NotLent => page & !LENT | 2,
            Page::None => 0,
        }
    }
    fn window_page(page: u64, writes: bool) -> u64 {
        page & if writes { u64::MAX } else { !2 } | 1 << 63
    }
    /// Loading a root drops all translations.
    fn dropped(&self) -> Option<u64> {
        None
    }
    fn must_drop(_: u64) -> Option<u64> {
        None
    }
    fn saved_preserved(memory: &mut Memory, activation: u64) -> Vec<u64> {
        common::OFFSETS.activation_preserved.iter().map(|field| memory.get(activation, *field)).collect()
    }
    fn save_preserved(memory: &mut Memory, activation: u64, registers: &[u64]) {
        for (field, value) in common::OFFSETS.activation_preserved.iter().zip(registers) {
            memory.set(activation, *field, *value);
        }
    }
}

#[test]
fn listings() {
    checked::compare(Isa::X86_64, "x86_64");
}

#[test]
fn the_label_check_is_short() {
    checked::the_label_check_is_short(Isa::X86_64);
}

#[test]
fn each_branch_depends_on_a_crossing() {
    branches::have_reasons(Isa::X86_64);
}

#[test]
fn the_portal_of_the_book() {
    checked::in_the_book("x86_64");
}

#[test]
fn words_travel_in_the_registers_of_the_abi() {
    use abi::registers::{X86_64_MORE_WORDS, X86_64_WORDS};
    let names = WORDS.map(|register| format!("{register:?}").to_lowercase());
    assert_eq!(names.to_vec(), [X86_64_WORDS.as_slice(), &X86_64_MORE_WORDS].concat());
}

#[test]
fn calls_do_what_they_ought_to() {
    crossing::calls::<Processor>();
}

#[test]
fn returns_do_what_they_ought_to() {
    crossing::returns::<Processor>();
}

#[test]
fn no_specification_decides_a_branch() {
    crossing::decided_by_crossings::<Processor>(Isa::X86_64);
}

#[test]
fn instructions_are_those_of_the_listing() {
    crossing::counted::<Processor>("x86_64");
}
