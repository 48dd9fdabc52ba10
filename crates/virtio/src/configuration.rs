//! The device's configuration space as the bus gave it: a copy that can be read, and whose base registers can
//! be measured, but through which nothing reaches the device.

use protocols::bus::CONFIGURATION_BYTES;
use virtio_drivers::transport::pci::bus::{ConfigurationAccess, DeviceFunction};

const WORDS: usize = 64;
const BASE: usize = 0x10 / 4;

/// See the module.
#[derive(Clone)]
pub struct Copy {
    words: [u32; WORDS],
    masks: [u32; 6],
    measured: [bool; 6],
}

impl Copy {
    /// From the bytes that the bus gives.
    pub fn new(bytes: &[u8; CONFIGURATION_BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self {
            words: core::array::from_fn(|number| word(4 * number)),
            masks: core::array::from_fn(|number| word(4 * (WORDS + number))),
            measured: [false; 6],
        }
    }

    /// Whether the list of capabilities ends (PCI Local Bus 3.0, 6.7): there is room for 48.
    pub fn capabilities_end(&self) -> bool {
        const FIRST: usize = 0x40 / 4;
        let next = |word: u32| usize::from(word as u8 / 4);
        let mut place = next(self.words[0x34 / 4]);
        for _ in FIRST..=WORDS {
            if place < FIRST {
                return true;
            }
            place = next(self.words[place] >> 8);
        }
        false
    }

    /// Addresses behind the base registers, 0 = none.
    pub fn addresses(&self) -> [u64; 6] {
        let mut addresses = [0; 6];
        let mut number = 0;
        while number < 6 {
            let low = self.words[BASE + number];
            let wide = low & 7 == 4 && number < 5;
            if low & 1 == 0 && self.masks[number] != 0 {
                let high = if wide { self.words[BASE + number + 1] } else { 0 };
                addresses[number] = u64::from(low & !15) | u64::from(high) << 32;
            }
            number += if wide { 2 } else { 1 };
        }
        addresses
    }
}

impl ConfigurationAccess for Copy {
    fn read_word(&self, _: DeviceFunction, register: u8) -> u32 {
        let number = usize::from(register / 4);
        match number.checked_sub(BASE).filter(|base| *base < 6) {
            Some(base) if self.measured[base] => self.masks[base],
            _ => self.words[number],
        }
    }

    fn write_word(&mut self, _: DeviceFunction, register: u8, data: u32) {
        if let Some(base) = usize::from(register / 4).checked_sub(BASE).filter(|base| *base < 6) {
            self.measured[base] = data == u32::MAX;
        }
    }

    unsafe fn unsafe_clone(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTION: DeviceFunction = DeviceFunction { bus: 0, device: 0, function: 0 };

    #[test]
    fn a_circle_of_capabilities_is_seen() {
        let list = |links: &[(u8, u8)]| {
            let mut bytes = [0; CONFIGURATION_BYTES];
            for (place, next) in links {
                bytes[usize::from(*place) + usize::from(*place != 0x34)] = *next;
            }
            Copy::new(&bytes).capabilities_end()
        };
        assert!(list(&[]) && list(&[(0x34, 0x40)]) && list(&[(0x34, 0x40), (0x40, 0xfc), (0xfc, 0x44)]));
        assert!(!list(&[(0x34, 0x40), (0x40, 0x40)]) && !list(&[(0x34, 0x80), (0x80, 0x44), (0x44, 0x80)]));
        let all: Vec<_> = [(0x34, 0x40)].into_iter().chain((16..63).map(|word| (4 * word, 4 * word + 4))).collect();
        assert!(list(&all), "as many as there is room for");
        assert!(!list(&[&all[..], &[(0xfc, 0x40)]].concat()));
    }

    /// A space whose base registers read `bases`, and `masks` after all ones.
    fn space(bases: [u32; 6], masks: [u32; 6]) -> Copy {
        let mut bytes = [0; CONFIGURATION_BYTES];
        for (number, (base, mask)) in bases.into_iter().zip(masks).enumerate() {
            bytes[0x10 + 4 * number..][..4].copy_from_slice(&base.to_le_bytes());
            bytes[256 + 4 * number..][..4].copy_from_slice(&mask.to_le_bytes());
        }
        Copy::new(&bytes)
    }

    #[test]
    fn addresses_of_both_widths() {
        let copy = space(
            [0xfebc_0000, 0xc001, 0x8000_000c, 0x7, 0, 0xfffc],
            [0xffff_f000, 0xffff_ffe1, 0xffff_c00c, u32::MAX, 0, 0],
        );
        // Ports are no memory, nor is a register that is not there; the upper half is none of its own.
        assert_eq!(copy.addresses(), [0xfebc_0000, 0, 0x7_8000_0000, 0, 0, 0]);
    }

    #[test]
    fn a_wide_register_without_an_upper_half_is_narrow() {
        assert_eq!(space([0, 0, 0, 0, 0, 0x8000_0004], [0, 0, 0, 0, 0, !0]).addresses()[5], 0x8000_0000);
    }

    #[test]
    fn measuring_changes_nothing() {
        let mut copy = space([0xfebc_0000, 0, 0, 0, 0, 0], [0xffff_f000, 0, 0, 0, 0, 0]);
        assert_eq!(copy.read_word(FUNCTION, 0x10), 0xfebc_0000);
        copy.write_word(FUNCTION, 0x10, u32::MAX);
        assert_eq!(copy.read_word(FUNCTION, 0x10), 0xffff_f000);
        copy.write_word(FUNCTION, 0x10, 0xfebc_0000);
        assert_eq!(copy.read_word(FUNCTION, 0x10), 0xfebc_0000);
        // The command register, which is the bus's.
        copy.write_word(FUNCTION, 0x04, 7);
        assert_eq!(copy.read_word(FUNCTION, 0x04), 0);
    }
}
