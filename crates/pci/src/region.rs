//! Memory behind base registers.

use crate::{BASES, Configuration, MEMORY, PORTS, register};

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Where processors have their interrupt controllers and timers: no device's registers are there, whatever its base
/// register says.
const CONTROLLERS: Region = Region { start: 0xfec0_0000, bytes: 0x40_0000 };

/// Registers of a function, in bytes. It has at least one byte and does not run over the end of the addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// Physical address.
    pub start: u64,
    /// A power of two.
    pub bytes: u64,
}

impl Region {
    /// One of this place and size, if registers can be there.
    pub fn new(start: u64, bytes: u64) -> Option<Self> {
        let fits =
            bytes.is_power_of_two() && start != 0 && start.is_multiple_of(bytes) && start.checked_add(bytes).is_some();
        let region = Self { start, bytes };
        (fits && !region.overlaps(CONTROLLERS)).then_some(region)
    }

    fn overlaps(self, other: Region) -> bool {
        self.start < other.start + other.bytes && other.start < self.start + self.bytes
    }

    /// The pages that it touches.
    fn pages(self) -> (u64, u64) {
        (self.start / PAGE, (self.start + (self.bytes - 1)) / PAGE)
    }

    /// Can its pages be given away, so that nothing of `others` is given with them? It must begin with a page.
    pub fn alone(self, others: impl IntoIterator<Item = Region>) -> bool {
        let (first, last) = self.pages();
        let meets = |other: Region| {
            let (other_first, other_last) = other.pages();
            first <= other_last && other_first <= last
        };
        self.start.is_multiple_of(PAGE) && !others.into_iter().any(meets)
    }
}

/// Reads each base register after all ones were written: its size and kind. Nothing answers meanwhile, and all
/// is as before then. A bridge's registers are not tried out: it passes on what others answer.
pub fn masks(function: &impl Configuration) -> [u32; BASES] {
    /// Class of bridges.
    const BRIDGE: u32 = 6;
    let ordinary = function.read(register::HEADER) >> 16 & 0x7f == 0 && function.read(register::CLASS) >> 24 != BRIDGE;
    if !ordinary {
        return [0; BASES];
    }
    let command = function.read(register::COMMAND) & 0xffff;
    function.write(register::COMMAND, command & !(PORTS | MEMORY));
    let masks = core::array::from_fn(|number| {
        let register = register::BASE + 4 * number as u8;
        let value = function.read(register);
        function.write(register, u32::MAX);
        let mask = function.read(register);
        function.write(register, value);
        mask
    });
    function.write(register::COMMAND, command);
    masks
}

/// The memory behind each base register, by what it holds and its mask. One of 64 bits takes two.
pub fn regions(bases: [u32; BASES], masks: [u32; BASES]) -> [Option<Region>; BASES] {
    /// Bit 0: ports instead of memory.
    const IS_PORTS: u32 = 1;
    const WIDTH: u32 = 0b110;
    const WIDTH_32: u32 = 0b000;
    const WIDTH_64: u32 = 0b100;
    let mut regions = [None; BASES];
    let mut number = 0;
    while number < BASES {
        let (low, mask) = (bases[number], masks[number]);
        let wide = low & IS_PORTS == 0 && low & WIDTH == WIDTH_64;
        let address = u64::from(low & !15);
        regions[number] = match (low & IS_PORTS, low & WIDTH) {
            (0, WIDTH_32) if mask & !15 != 0 => Region::new(address, u64::from((!(mask & !15)).wrapping_add(1))),
            (0, WIDTH_64) if number + 1 < BASES => {
                let high = |words: [u32; BASES]| u64::from(words[number + 1]) << 32;
                let mask = u64::from(mask & !15) | high(masks);
                if mask == 0 { None } else { Region::new(address | high(bases), (!mask).wrapping_add(1)) }
            }
            _ => None,
        };
        number += if wide { 2 } else { 1 };
    }
    regions
}
