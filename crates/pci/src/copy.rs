//! A picture of a function's configuration space.

use crate::region::{self, Region};
use crate::{BASES, Configuration, HAS_CAPABILITIES, WORDS, register};

/// Where a virtio device has its status register.
#[derive(Clone, core::marker::Copy, PartialEq, Eq, Debug)]
pub struct VirtioStatus {
    /// Number of the base register.
    pub base: usize,
    /// Bytes from there on.
    pub offset: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Copy {
    words: [u32; WORDS],
    masks: [u32; BASES],
    regions: [Option<Region>; BASES],
}

impl Copy {
    /// Takes it.
    pub fn take(function: &impl Configuration) -> Self {
        let masks = region::masks(function);
        Self::new(core::array::from_fn(|word| function.read(4 * word as u8)), masks)
    }

    /// One with these words, and what the base registers read after all ones.
    pub fn new(words: [u32; WORDS], masks: [u32; BASES]) -> Self {
        let first = usize::from(register::BASE / 4);
        let bases = core::array::from_fn(|number| words[first + number]);
        Self { words, masks, regions: region::regions(bases, masks) }
    }

    /// A word.
    pub fn word(&self, register: u8) -> u32 {
        self.words[usize::from(register / 4)]
    }

    /// All words, and after them the masks.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        self.words.iter().chain(&self.masks).copied()
    }

    /// Vendor, and product above it.
    pub fn id(&self) -> u32 {
        self.word(register::ID)
    }

    /// The interrupt pin, from 1; 0 = none.
    pub fn pin(&self) -> u32 {
        self.word(register::PIN) >> 8 & 0xff
    }

    /// The memory behind a base register.
    pub fn region(&self, base: u64) -> Option<Region> {
        self.regions.get(usize::try_from(base).ok()?).copied()?
    }

    /// All memory.
    pub fn regions(&self) -> impl Iterator<Item = Region> {
        self.regions.iter().flatten().copied()
    }

    /// The status register of a virtio device: writing 0 resets it (virtio 1.2, 4.1.4 and 4.1.4.3). It lies within
    /// the memory behind its base register.
    pub fn virtio_status(&self) -> Option<VirtioStatus> {
        const VENDOR: u32 = 0x1af4;
        /// A capability of the vendor's own, and which of virtio's it is.
        const OF_VENDOR: u32 = 9;
        const COMMON: u32 = 1;
        /// Bytes of virtio's capabilities, and of what the common one leads to.
        const CAPABILITY_BYTES: u32 = 16;
        const STATUS: u64 = 20;
        if self.id() & 0xffff != VENDOR {
            return None;
        }
        let head = self.capabilities().find(|(_, head)| {
            head & 0xff == OF_VENDOR && head >> 24 == COMMON && head >> 16 & 0xff >= CAPABILITY_BYTES
        });
        let (place, _) = head?;
        let base = self.word(place.checked_add(4)?) & 0xff;
        let offset = u64::from(self.word(place.checked_add(8)?)) + STATUS;
        let region = self.region(base.into())?;
        (offset < region.bytes).then_some(VirtioStatus { base: base as usize, offset })
    }

    /// The capabilities: place and first word of each. The list ends, whatever stands there: there is no room for
    /// more than these.
    pub fn capabilities(&self) -> impl Iterator<Item = (u8, u32)> {
        /// Behind the header.
        const FIRST: u8 = 0x40;
        const MOST: usize = (256 - FIRST as usize) / 4;
        let there = self.word(register::COMMAND) & HAS_CAPABILITIES != 0;
        let mut next = if there { self.word(register::CAPABILITIES) as u8 & 0xfc } else { 0 };
        core::iter::from_fn(move || {
            let place = next;
            if place < FIRST {
                return None;
            }
            let head = self.word(place);
            next = (head >> 8) as u8 & 0xfc;
            Some((place, head))
        })
        .take(MOST)
    }
}
