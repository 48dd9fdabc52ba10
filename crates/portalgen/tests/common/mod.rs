//! A nucleus for portals to run in: objects in memory that is checked at each access, and what a crossing ought to do to them.
#![allow(dead_code, reason = "each test uses a part")]

use portalgen::specification::REGISTER_WORDS;
use portalgen::{Letter, Specification, State};

pub use listing::nucleus::*;

/// Specifications whose listings are checked in.
pub const TABLE: [&[u8]; 12] = [
    b"npkox5>ox5",
    b"npciii>i",
    b"nmciii>i",
    b"npkx5b>x5b",
    b"nmkib>ib",
    b"npkiid>ig",
    b"npkx8i>x8",
    b"npkx8x6>x8x4",
    b"npct>t",
    b"npcwi>i",
    b"npkai>ia",
    b"npkox4w>ox5",
];

/// Objects.
pub const CPU: u64 = 0x10_0000;
pub const CALLER: u64 = 0x20_0000;
pub const CALLEE: u64 = 0x30_0000;
pub const THREAD: u64 = 0x40_0000;
pub const ENTRY: u64 = 0x50_0000;
pub const BELOW: u64 = 0x60_0000;
pub const ABOVE: u64 = 0x70_0000;
pub const NEXT: u64 = 0x78_0000;
pub const AREA_BELOW: u64 = 0x80_0000;
pub const AREA_ABOVE: u64 = 0x90_0000;
/// Bytes of each but areas.
const BYTES: u64 = 0x600;
/// Two words of zeros, above the kernel stack of AArch64.
pub const ZEROS: u64 = 0xa0_0000;
/// The offset, after a domain, of its records for each CPU.
pub const SHARE: u64 = 0x300;

/// Where the callee sees its window, and where the entry of that stands.
pub const SLOT: u64 = 0x7f00_0005_0000;
pub const PLACE: u64 = 5 * 128;
/// A table of pages, as its physical address and where it is seen.
pub const PAGES: u64 = 0xc0_0000;
pub const DIRECT: u64 = 0xffff_8000_0000_0000;
/// The entries that lead to tables of pages of the caller, and the entries of windows of the callee.
pub const LOW: u64 = 0xb0_0000;
pub const SLOTS: u64 = 0xd0_0000;

pub const OBJECTS: [(&str, u64, u64); 13] = [
    ("low table", LOW, 4096),
    ("pages", DIRECT | PAGES, 4096),
    ("slots", SLOTS, 4096),
    ("zeros", ZEROS, 16),
    ("cpu", CPU, BYTES),
    ("caller", CALLER, BYTES),
    ("callee", CALLEE, BYTES),
    ("thread", THREAD, BYTES),
    ("entry", ENTRY, BYTES),
    ("activation below", BELOW, BYTES),
    ("activation above", ABOVE, BYTES),
    ("area below", AREA_BELOW, 4096),
    ("area above", AREA_ABOVE, 4096),
];

/// Memory: addresses outside of objects cannot be reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    objects: Vec<Vec<u8>>,
    /// Accesses that should not have been.
    pub wrong: Vec<String>,
    /// Bytes of each area that may be touched.
    pub reach: u64,
}

impl Memory {
    pub fn new() -> Self {
        let objects = OBJECTS.iter().map(|(_, _, bytes)| vec![0; *bytes as usize]).collect();
        Self { objects, wrong: Vec::new(), reach: 4096 }
    }
    fn find(&mut self, address: u64, bytes: u64, how: &str) -> Option<(usize, usize)> {
        assert!(self.wrong.len() < 100, "many wrong accesses: {:?}", self.wrong.first());
        let found = OBJECTS.iter().position(|(_, start, all)| (*start..=start + all - bytes).contains(&address));
        let Some(object) = found else {
            self.wrong.push(format!("{how} at {address:#x}"));
            return None;
        };
        let (name, start, _) = OBJECTS[object];
        if name.starts_with("area") && address + bytes > start + self.reach {
            self.wrong.push(format!("{how} of {name}, byte {}", address - start));
        }
        if matches!(name, "entry" | "zeros" | "low table" | "pages") && how == "write" {
            self.wrong.push(format!("write of {name}"));
        }
        Some((object, (address - start) as usize))
    }
    pub fn read(&mut self, address: u64, bytes: usize) -> u64 {
        let Some((object, at)) = self.find(address, bytes as u64, "read") else { return 0 };
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(&self.objects[object][at..at + bytes]);
        u64::from_le_bytes(value)
    }
    pub fn write(&mut self, address: u64, bytes: usize, value: u64) {
        let Some((object, at)) = self.find(address, bytes as u64, "write") else { return };
        self.objects[object][at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
    /// A field.
    pub fn get(&mut self, object: u64, field: i32) -> u64 {
        self.read(object + field as u64, 8)
    }
    pub fn set(&mut self, object: u64, field: i32, value: u64) {
        let how = (self.wrong.len(), self.reach);
        self.reach = 4096;
        if let Some((object, at)) = self.find(object + field as u64, 8, "set") {
            self.objects[object][at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        self.wrong.truncate(how.0);
        self.reach = how.1;
    }
    /// Objects that differ, with the first byte that does.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let pairs = self.objects.iter().zip(&other.objects).zip(OBJECTS);
        pairs
            .filter_map(|((one, other), (name, ..))| {
                let at = one.iter().zip(other).position(|(one, other)| one != other)?;
                let at8 = at / 8 * 8;
                let word = |bytes: &[u8]| u64::from_le_bytes(bytes[at8..at8 + 8].try_into().expect("eight bytes"));
                let field = name_of(at8 as i64).unwrap_or_default();
                Some(format!("{name}, byte {at:#x} ({field}): {:#x}, not {:#x}", word(one), word(other)))
            })
            .collect()
    }
}

/// A user's registers, under the same names for all ISAs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registers {
    pub pc: u64,
    pub sp: u64,
    /// Status, badge.
    pub status: u64,
    pub words: [u64; REGISTER_WORDS],
    /// The registers that a function preserves, in the order of the ISA.
    pub preserved: Vec<u64>,
    /// All other general registers, the control word included.
    pub others: Vec<u64>,
    pub pointer: u64,
}

/// How code ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// In user mode.
    Left(Registers),
    /// In the nucleus.
    Jumped(u64),
}

/// Numbers to draw from.
pub struct Random(pub u64);

impl Random {
    pub fn any(&mut self) -> u64 {
        // A permutation of 64-bit numbers (splitmix64).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, end: u64) -> u64 {
        self.any() % end
    }
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// Prepares the state before a crossing, so that it can be made unless something is drawn that prevents it.
pub fn prepare(random: &mut Random) -> Memory {
    let mut memory = Memory::new();
    for (name, start, bytes) in OBJECTS {
        if !matches!(name, "entry" | "zeros" | "low table" | "pages" | "slots") {
            (0..bytes as i32 / 8).for_each(|word| memory.set(start, word * 8, random.any()));
        }
    }
    let o = &OFFSETS;
    let (one, other) = (random.below(4) + 1, random.below(4) + 1);
    let fields = [
        (CPU, o.cpu_domain, CALLER),
        (CPU, o.cpu_thread, THREAD),
        (CPU, o.cpu_activation, BELOW),
        (CPU, o.cpu_per_cpu_at, SHARE),
        (CPU, o.cpu_direct, DIRECT),
        (CALLER, o.domain_low, LOW),
        (CALLEE, SHARE as i32 + o.per_cpu_windows, SLOTS),
        (ABOVE, o.activation_slot, SLOT),
        (ABOVE, o.activation_place, PLACE),
        (CALLER, o.domain_as_caller, one),
        (CALLEE, o.domain_as_callee, other << 32),
        (CALLER, o.domain_slow, 0),
        (CALLEE, o.domain_slow, 0),
        (CALLEE, SHARE as i32 + o.per_cpu_pool, ABOVE),
        (ENTRY, o.entry_object, CALLEE),
        (ENTRY, o.entry_versions, one | other << 32),
        (ENTRY, o.entry_word0, random.any() >> 20),
        (ENTRY, o.entry_word1, random.any()),
        (BELOW, o.activation_frame, 1 << 8 | random.below(31) << 16),
        (BELOW, o.activation_area, AREA_BELOW),
        (BELOW, o.activation_domain, CALLER),
        (ABOVE, o.activation_area, AREA_ABOVE),
        (ABOVE, o.activation_domain, CALLEE),
        (ABOVE, o.activation_next, if random.once_in(2) { NEXT } else { 0 }),
        (ABOVE, o.activation_frame, 0),
        (CALLER, SHARE as i32 + o.per_cpu_pool, random.any()),
    ];
    for (object, field, value) in fields {
        memory.set(object, field, value);
    }
    memory
}

/// The obstacles to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    None,
    /// Another caller, or another callee, than the entry's verdict is about; or one of them is special.
    Flow,
    NoActivation,
    Deep,
    /// Too many bytes.
    Long,
    /// An entry goes along.
    Entry,
    /// The caller expects something else.
    Unexpected,
    /// A window that takes the slow path, if it can be opened at all.
    Window,
    /// A return: something became special, or somebody waits.
    Special,
}

/// The specification of a random portal: as text.
pub fn any_specification(random: &mut Random) -> String {
    let letters = |random: &mut Random, all: &[&str]| -> String {
        (0..random.below(6)).map(|_| all[random.below(all.len() as u64) as usize]).collect()
    };
    loop {
        let state = if random.once_in(3) { "nm" } else { "np" };
        let call = letters(random, &["i", "c", "k", "t", "b", "d", "g", "x1", "x2", "x3", "x5", "x8", "i", "w", "a"]);
        let result = letters(random, &["i", "t", "b", "d", "g", "x1", "x4", "x8", "i", "a"]);
        // Few letters go with a control word, which stands on both sides.
        let control = if random.once_in(2) { "o" } else { "" };
        let text = format!("{state}{control}{call}>{control}{result}");
        if Specification::parse(text.as_bytes()).is_ok() {
            return text;
        }
    }
}

/// The control word of the caller of such a portal; none: what it says. The complement of: a bit for each of the words 0 to 4
/// that it gives; 32, there are more than five words; 64, words or bytes of the message area; 128, entries; 256, a window; 512, torn pages.
pub fn expecting(specification: &Specification) -> Option<u64> {
    let both = || [specification.call, specification.result].into_iter();
    let has = |what: &dyn Fn(Letter) -> bool| both().any(|letters| letters.iter().any(|(_, letter)| what(letter)));
    let words = both().map(|letters| letters.iter().map(|(_, letter)| letter.words()).sum::<usize>()).max();
    let given = specification.call.iter().filter(|(_, letter)| !matches!(letter, Letter::Constant | Letter::Time));
    let given = given.flat_map(|(first, letter)| first..first + letter.words()).filter(|word| *word < 5);
    let bits = given.map(|word| 1 << word).sum::<u64>()
        + 32 * u64::from(words > Some(5))
        + 64 * u64::from(words > Some(9) || has(&|letter| letter == Letter::Bytes))
        + 128 * u64::from(has(&|letter| matches!(letter, Letter::Delegated | Letter::Minted)))
        + 512 * u64::from(has(&|letter| letter == Letter::Torn))
        + 256 * u64::from(has(&|letter| letter == Letter::Window));
    (!has(&|letter| letter == Letter::Control)).then_some(u64::MAX - bits)
}

/// Words of the other side, from those of this one.
pub fn passed(
    letters: &portalgen::Letters,
    words: [u64; REGISTER_WORDS],
    constant: u64,
    time: u64,
) -> [u64; REGISTER_WORDS] {
    let mut arrive = [0; REGISTER_WORDS];
    for (first, letter) in letters.iter() {
        for word in (first..first + letter.words()).filter(|word| *word < REGISTER_WORDS) {
            arrive[word] = match letter {
                Letter::Constant => constant,
                Letter::Time => time,
                Letter::Minted if word > first => 0,
                _ => words[word],
            };
        }
    }
    arrive
}

/// Copies what goes along in message areas.
pub fn pass_area(memory: &mut Memory, letters: &portalgen::Letters, bytes: u64, from: u64, to: u64) {
    for word in 0..letters.in_area() as i32 + bytes.div_ceil(8) as i32 {
        let value = memory.get(from, word * 8);
        memory.set(to, word * 8, value);
    }
}

/// Whether preserved registers are kept and cleared.
pub fn keeps(specification: &Specification) -> bool {
    specification.state == State::Preserved
}
