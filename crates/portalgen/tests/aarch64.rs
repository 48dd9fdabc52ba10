//! Portals for AArch64: their listings, and what they do, run by an interpreter against what a crossing ought to do.
#![allow(missing_docs)]

mod branches;
mod checked;
mod common;
mod crossing;

use common::{CODE, CPU, End, Memory, OFFSETS, Registers, ZEROS};
use listing::{Isa, generate};
use portalgen::{Extent, Specification};

/// The root of the space that a return leaves.
const LOADED: u64 = 0x1234_0000_5678_9000;

const WORDS: [usize; 9] = [0, 1, 2, 4, 5, 21, 22, 23, 24];
const OTHERS: [usize; 13] = [3, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18];

fn write(specification: &Specification) -> (Vec<u8>, Extent) {
    let code = generate(Isa::AArch64, specification);
    (code.bytes, code.extent)
}

/// A processor that knows the instructions of portals and no others.
#[derive(Clone)]
struct Processor {
    x: [u64; 31],
    /// Below, equal: of the last comparison.
    flags: (bool, bool),
    root: u64,
    link: u64,
    stack: u64,
    pointer: u64,
    time: u64,
    /// The root that was loaded before.
    loaded: u64,
    /// The translation that was dropped, and how far that is.
    dropped: Option<u64>,
    dropping: u8,
    decisions: crossing::Decisions,
}

impl Processor {
    fn get(&self, register: u32) -> u64 {
        self.x.get(register as usize).copied().unwrap_or(0)
    }
    fn base(&self, register: u32) -> u64 {
        self.x.get(register as usize).copied().unwrap_or(ZEROS)
    }
    fn set(&mut self, register: u32, value: u64) {
        if let Some(place) = self.x.get_mut(register as usize) {
            *place = value;
        }
    }
    fn subtract(&mut self, one: u64, other: u64) -> u64 {
        self.flags = (one < other, one == other);
        one.wrapping_sub(other)
    }
    /// Where a conditional branch goes on.
    fn decide(&mut self, at: u64, jumps: bool, target: u64) -> u64 {
        self.decisions.insert((at, jumps));
        if jumps { target } else { at + 4 }
    }
    fn run(&mut self, bytes: &[u8], at: usize, memory: &mut Memory) -> (End, usize) {
        let (mut at, mut count) = (CODE + at as u64, 0);
        loop {
            let place = (at - CODE) as usize;
            let word = bytes.get(place..place + 4).unwrap_or_else(|| panic!("out of the code at {at:#x}"));
            let word = u32::from_le_bytes(word.try_into().expect("four bytes"));
            count += 1;
            let signed = |value: u32, bits: u32| ((value << (32 - bits)) as i32 >> (32 - bits)) as i64 as u64;
            let (d, n, t2, m) = (word & 31, word >> 5 & 31, word >> 10 & 31, word >> 16 & 31);
            let imm12 = (word >> 10 & 0xfff) as u64;
            let mut next = at + 4;
            let short = || at.wrapping_add(signed(word >> 5 & 0x7_ffff, 19) << 2);
            match word {
                _ if word & 0x3fc0_0000 == 0x3940_0000 => {
                    let size = 1 << (word >> 30);
                    let value = memory.read(self.base(n) + imm12 * size, size as usize);
                    self.set(d, value);
                }
                _ if word & 0x3fc0_0000 == 0x3900_0000 => {
                    let size = 1 << (word >> 30);
                    memory.write(self.base(n) + imm12 * size, size as usize, self.get(d));
                }
                _ if word & 0xffe0_fc00 == 0xf860_6800 => {
                    let value = memory.read(self.base(n).wrapping_add(self.get(m)), 8);
                    self.set(d, value);
                }
                _ if word & 0xffe0_fc00 == 0xf820_6800 => {
                    memory.write(self.base(n).wrapping_add(self.get(m)), 8, self.get(d))
                }
                _ if matches!(word >> 22, 0b10_1010_0010..=0b10_1010_0101) => {
                    let (loads, after) = (word >> 22 & 1 == 1, word >> 23 & 3 == 1);
                    let by = signed(word >> 15 & 0x7f, 7).wrapping_mul(8);
                    let base = self.base(n);
                    let address = if after { base } else { base.wrapping_add(by) };
                    if loads {
                        let values = [memory.read(address, 8), memory.read(address + 8, 8)];
                        self.set(d, values[0]);
                        self.set(t2, values[1]);
                    } else {
                        memory.write(address, 8, self.get(d));
                        memory.write(address + 8, 8, self.get(t2));
                    }
                    if after {
                        self.set(n, base.wrapping_add(by));
                    }
                }
                _ if word & 0xffff_fc00 == 0xc89f_fc00 => memory.write(self.base(n), 8, self.get(d)),
                _ if word & 0xffff_fc00 == 0x889f_fc00 => memory.write(self.base(n), 4, self.get(d)),
                _ if word & 0xffe0_fc00 == 0xf860_7800 => {
                    let value = memory.read(self.base(n).wrapping_add(self.get(m) << 3), 8);
                    self.set(d, value);
                }
                _ if word & 0x9fc0_0000 == 0x9240_0000 => {
                    let (rotation, ones) = (word >> 16 & 63, (word >> 10 & 63) + 1);
                    let mask = (u64::MAX >> (64 - ones)).rotate_right(rotation);
                    let from = self.get(n);
                    let value = match word >> 29 & 3 {
                        0 | 3 => from & mask,
                        1 => from | mask,
                        _ => from ^ mask,
                    };
                    if word >> 29 & 3 == 3 {
                        assert_eq!(d, 31);
                        self.flags = (false, value == 0);
                    }
                    self.set(d, value);
                }
                _ if word & 0xffe0_0000 == 0xaa00_0000 => self.set(d, self.get(n) | self.get(m) << (word >> 10 & 63)),
                _ if word & 0xffe0_fc00 == 0x8a20_0000 => self.set(d, self.get(n) & !self.get(m)),
                _ if word & 0xffe0_fc00 == 0x8b00_0000 => self.set(d, self.get(n).wrapping_add(self.get(m))),
                _ if word & 0xffc0_0000 == 0x9100_0000 => self.set(d, self.base(n).wrapping_add(imm12)),
                _ if word & 0xffc0_0000 == 0x1140_0000 => {
                    self.set(d, (self.get(n) as u32).wrapping_add((imm12 as u32) << 12).into())
                }
                _ if word & 0xffc0_0000 == 0xf100_0000 => {
                    let value = self.subtract(self.get(n), imm12);
                    self.set(d, value);
                }
                _ if word & 0xffe0_fc1f == 0xeb00_001f => drop(self.subtract(self.get(n), self.get(m))),
                // Whether the sum is zero: no portal looks at more of it.
                _ if word & 0xffc0_001f == 0xb100_001f => self.flags = (false, self.get(n).wrapping_add(imm12) == 0),
                _ if word & 0xffc0_001f == 0xf140_001f => drop(self.subtract(self.get(n), imm12 << 12)),
                _ if word & 0xffc0_001f == 0x7140_001f => drop(self.subtract(self.get(n) as u32 as u64, imm12 << 12)),
                _ if word & 0xffe0_0000 == 0x5280_0000 => self.set(d, (word >> 5 & 0xffff).into()),
                _ if word & 0xffc0_0000 == 0xd340_0000 => {
                    let (first, last) = (word >> 16 & 63, word >> 10 & 63);
                    assert!(first <= last);
                    self.set(d, self.get(n) << (63 - last) >> (63 - last + first));
                }
                _ if word & 0xfff0_0000 == 0xd530_0000 => {
                    let value = match word >> 5 & 0x7fff {
                        0x4201 => self.link,
                        0x4208 => self.stack,
                        0x5e82 => self.pointer,
                        0x5f02 => self.time,
                        0x4100 => self.loaded,
                        other => panic!("no system register {other:#x}"),
                    };
                    self.set(d, value);
                }
                _ if word & 0xfff0_0000 == 0xd510_0000 => {
                    let value = self.get(d);
                    match word >> 5 & 0x7fff {
                        0x4100 => self.root = value,
                        0x4200 => assert_eq!(value, 0, "flags"),
                        0x4201 => self.link = value,
                        0x4208 => self.stack = value,
                        0x5e82 => self.pointer = value,
                        other => panic!("no system register {other:#x}"),
                    }
                }
                _ if word & 0x9f00_0000 == 0x1000_0000 => {
                    let distance = signed((word >> 5 & 0x7_ffff) << 2 | word >> 29 & 3, 21);
                    self.set(d, at.wrapping_add(distance));
                }
                _ if word & 0xfc00_0000 == 0x1400_0000 => next = at.wrapping_add(signed(word & 0x3ff_ffff, 26) << 2),
                _ if word & 0xff00_0010 == 0x5400_0000 => {
                    let (below, equal) = self.flags;
                    let jumps = match word & 15 {
                        1 => !equal,
                        2 => !below,
                        3 => below,
                        8 => !below && !equal,
                        other => panic!("no condition {other}"),
                    };
                    next = self.decide(at, jumps, short());
                }
                _ if word & 0xff00_0000 == 0xb400_0000 => next = self.decide(at, self.get(d) == 0, short()),
                _ if word & 0xff00_0000 == 0xb500_0000 => next = self.decide(at, self.get(d) != 0, short()),
                _ if word & 0x7e00_0000 == 0x3600_0000 => {
                    let bit = word >> 19 & 31 | word >> 31 << 5;
                    let jumps = self.get(d) >> bit & 1 == (word >> 24 & 1).into();
                    next = self.decide(at, jumps, at.wrapping_add(signed(word >> 5 & 0x3fff, 14) << 2));
                }
                // `dsb ishst`, `tlbi vae1`, `dsb nsh`: in this order.
                0xd503_3a9f => self.dropping = 1,
                _ if word & 0xffff_ffe0 == 0xd508_8720 => {
                    assert_eq!(self.dropping, 1, "a walk may find what was there");
                    self.dropped = Some(self.get(d));
                    self.dropping = 2;
                }
                0xd503_379f if self.dropping == 2 => self.dropping = 0,
                0xd69f_03e0 => return (End::Left(self.user()), count),
                _ => panic!("portals have no {word:#010x}"),
            }
            if !(CODE..CODE + bytes.len() as u64).contains(&next) {
                return (End::Jumped(next), count);
            }
            at = next;
        }
    }
    fn user(&self) -> Registers {
        Registers {
            pc: self.link,
            sp: self.stack,
            status: self.x[8],
            words: WORDS.map(|register| self.x[register]),
            preserved: self.x[19..].to_vec(),
            others: OTHERS.map(|register| self.x[register]).to_vec(),
            pointer: self.pointer,
        }
    }
}

impl crossing::Isa for Processor {
    const PRESERVED: usize = 12;
    const SPOILS: bool = false;
    const LOOPS: bool = true;
    const OTHERS: usize = OTHERS.len();
    const CONTROL: usize = 0;
    const AREA: (Option<usize>, Option<usize>) = (None, Some(1));
    const WORDS_IN_PRESERVED: [Option<usize>; 9] = [None, None, None, None, None, Some(2), Some(3), Some(4), Some(5)];

    fn write(specification: &Specification) -> (Vec<u8>, Extent) {
        write(specification)
    }
    fn start(user: &Registers, entry_or_activation: u64, is_call: bool, time: u64) -> Self {
        let (link, stack, pointer) = (user.pc, user.sp, user.pointer);
        let (loaded, dropped, dropping) = (LOADED, None, 0);
        let (x, flags, root, decisions) = ([0; 31], (false, false), 0, crossing::Decisions::new());
        let mut it = Self { x, flags, root, link, stack, pointer, time, loaded, dropped, dropping, decisions };
        it.x[19..].copy_from_slice(&user.preserved);
        for (register, value) in OTHERS.iter().zip(&user.others) {
            it.x[*register] = *value;
        }
        for (register, value) in WORDS.iter().zip(user.words) {
            it.x[*register] = value;
        }
        it.x[8] = user.status;
        it.x[16] = CPU;
        it.x[if is_call { 8 } else { 15 }] = entry_or_activation;
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
        const LENT: u64 = 1 << 55;
        let page = frame << 12 | 0x743 | 1 << 11 | 1 << 53 | 1 << 54 | LENT;
        match kind {
            Page::Writable => page,
            Page::ReadOnly => page | 1 << 7 & !(1 << 54),
            Page::Registers => page & !LENT | 1 << 2,
            Page::NotLent => page & !LENT,
            Page::None => 0,
        }
    }
    fn window_page(page: u64, writes: bool) -> u64 {
        page | if writes { 0 } else { 1 << 7 } | 1 << 54
    }
    fn dropped(&self) -> Option<u64> {
        assert_ne!(self.dropping, 2, "nobody waits until it is dropped");
        self.dropped
    }
    fn must_drop(slot: u64) -> Option<u64> {
        Some(LOADED >> 48 << 48 | slot >> 12)
    }
    fn saved_preserved(memory: &mut Memory, activation: u64) -> Vec<u64> {
        OFFSETS
            .activation_preserved
            .iter()
            .flat_map(|field| [memory.get(activation, *field), memory.get(activation, field + 8)])
            .collect()
    }
    fn save_preserved(memory: &mut Memory, activation: u64, registers: &[u64]) {
        for (field, pair) in OFFSETS.activation_preserved.iter().zip(registers.chunks(2)) {
            memory.set(activation, *field, pair[0]);
            memory.set(activation, field + 8, pair[1]);
        }
    }
}

#[test]
fn listings() {
    checked::compare(Isa::AArch64, "aarch64");
}

#[test]
fn the_label_check_is_short() {
    checked::the_label_check_is_short(Isa::AArch64);
}

#[test]
fn each_branch_depends_on_a_crossing() {
    branches::have_reasons(Isa::AArch64);
}

#[test]
fn the_portal_of_the_book() {
    checked::in_the_book("aarch64");
}

#[test]
fn words_travel_in_the_registers_of_the_abi() {
    use abi::registers::{AARCH64_MORE_WORDS, AARCH64_WORDS};
    let names = WORDS.map(|register| format!("x{register}"));
    assert_eq!(names.to_vec(), [AARCH64_WORDS.as_slice(), &AARCH64_MORE_WORDS].concat());
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
    crossing::decided_by_crossings::<Processor>(Isa::AArch64);
}

#[test]
fn instructions_are_those_of_the_listing() {
    crossing::counted::<Processor>("aarch64");
}
