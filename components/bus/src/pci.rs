//! Configuration space of PCI through the ports 0xcf8 and 0xcfc (PCI Local Bus 3.0, 3.2.2.3.2), bus 0.

use alloc::string::String;
use alloc::vec::Vec;
use runtime::{Entry, op};

const ADDRESS: u64 = 0;
const DATA: u64 = 4;
const COMMAND: u8 = 0x04;
const BASE: u8 = 0x10;
const PIN: u8 = 0x3c;
/// Bits of the command register.
const MEMORY: u32 = 1 << 1;
const MASTER: u32 = 1 << 2;
/// First line of the I/O APIC for PCI's interrupts (ICH9, 5.9).
const FIRST_LINE: u64 = 16;

/// One function of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    device: u32,
    function: u32,
}

/// Every function there is on bus 0.
pub fn enumerate() -> Vec<Function> {
    let mut found = Vec::new();
    for device in 0..32 {
        let first = Function { device, function: 0 };
        if first.id() == u32::MAX {
            continue;
        }
        let functions = if first.read(0x0c) >> 23 & 1 != 0 { 8 } else { 1 };
        let all = (0..functions).map(|function| Function { device, function });
        found.extend(all.filter(|function| function.id() != u32::MAX));
    }
    found
}

impl Function {
    /// A word of its configuration.
    pub fn read(self, register: u8) -> u32 {
        self.select(register);
        op::port_read_long(Entry::IO_PORTS, DATA).unwrap_or(u32::MAX)
    }

    fn write(self, register: u8, value: u32) {
        self.select(register);
        // The ports are ours, or nothing was found.
        let _ = op::port_write_long(Entry::IO_PORTS, DATA, value);
    }

    fn select(self, register: u8) {
        let address = 1 << 31 | self.device << 11 | self.function << 8 | u32::from(register & 0xfc);
        let _ = op::port_write_long(Entry::IO_PORTS, ADDRESS, address);
    }

    /// `vendor | product << 16`.
    pub fn id(self) -> u32 {
        self.read(0)
    }

    /// For people.
    pub fn place(self) -> String {
        alloc::format!("00:{:02x}.{}", self.device, self.function)
    }

    /// It may answer at its registers and read and write memory.
    pub fn start(self) {
        self.write(COMMAND, self.read(COMMAND) & 0xffff | MEMORY | MASTER);
    }

    /// It neither reads nor writes memory from now on.
    pub fn stop(self) {
        self.write(COMMAND, self.read(COMMAND) & 0xffff & !MASTER);
    }

    /// It answers at its registers and does nothing to memory.
    pub fn answer(self) {
        self.write(COMMAND, self.read(COMMAND) & 0xffff & !MASTER | MEMORY);
    }

    /// What each base register reads after all ones: its size and kind.
    pub fn masks(self) -> [u32; 6] {
        let command = self.read(COMMAND) & 0xffff;
        self.write(COMMAND, command & !3);
        let masks = core::array::from_fn(|number| {
            let register = BASE + 4 * number as u8;
            let value = self.read(register);
            self.write(register, u32::MAX);
            let mask = self.read(register);
            self.write(register, value);
            mask
        });
        self.write(COMMAND, command);
        masks
    }

    /// Address and bytes of the memory behind a base register.
    pub fn memory(self, base: u64) -> Option<(u64, u64)> {
        let number = usize::try_from(base).ok().filter(|number| *number < 6)?;
        let register = BASE + 4 * number as u8;
        let (low, masks) = (self.read(register), self.masks());
        if low & 1 != 0 || masks[number] == 0 {
            return None;
        }
        let (mut address, mut mask) = (u64::from(low & !15), u64::from(masks[number] & !15) | !0 << 32);
        if low & 6 == 4 && number < 5 {
            address |= u64::from(self.read(register + 4)) << 32;
            mask = mask & 0xffff_ffff | u64::from(masks[number + 1]) << 32;
        }
        Some((address, (!mask).wrapping_add(1)))
    }

    /// Where a virtio device has its status register: number of the base register, and offset (virtio 1.2, 4.1.4).
    pub fn virtio_status(self) -> Option<(u64, u64)> {
        const VENDOR_SPECIFIC: u32 = 9;
        const COMMON: u32 = 1;
        const STATUS: u64 = 20;
        if self.id() & 0xffff != 0x1af4 {
            return None;
        }
        let mut at = self.read(0x34) as u8 & 0xfc;
        // There is no room for more capabilities than this.
        for _ in 0..48 {
            if at < 0x40 {
                return None;
            }
            let head = self.read(at);
            if head & 0xff == VENDOR_SPECIFIC && head >> 24 == COMMON {
                let base = u64::from(self.read(at + 4) & 0xff);
                return (base < 6).then(|| (base, u64::from(self.read(at + 8)) + STATUS));
            }
            at = (head >> 8) as u8 & 0xfc;
        }
        None
    }

    /// Its line of the I/O APIC: devices 0 to 24 share the lines 20 to 23 in turn (ICH9, as the emulator's q35).
    pub fn line(self) -> Option<u64> {
        let pin = u64::from(self.read(PIN) >> 8 & 0xff).checked_sub(1)?;
        (self.device < 25).then(|| FIRST_LINE + 4 + (u64::from(self.device) + pin) % 4)
    }
}
