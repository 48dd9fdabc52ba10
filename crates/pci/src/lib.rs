//! Configuration space of PCI functions (PCI Local Bus 3.0, chapter 6): its content, checked.
//!
//! The values there come from devices and from firmware, so none of it is trusted before it was checked:
//! sizes are powers of two, addresses are multiples of them and do not run over the end, lists end. The code that reaches the
//! space implements [`Configuration`]; a [`struct@Copy`] is a picture of it that does not change.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod copy;
pub mod place;
pub mod region;
#[cfg(test)]
mod tests;

pub use copy::{Copy, VirtioStatus};
pub use region::Region;

/// Words of a function's configuration space that are used.
pub const WORDS: usize = 64;
/// Base registers of a device.
pub const BASES: usize = 6;

/// Registers; each is a word of four bytes.
pub mod register {
    /// Vendor, and product above it.
    pub const ID: u8 = 0x00;
    /// Command, and status above it.
    pub const COMMAND: u8 = 0x04;
    /// Revision, and class above it.
    pub const CLASS: u8 = 0x08;
    /// Kind of header in bits 16 to 22; several functions in bit 23.
    pub const HEADER: u8 = 0x0c;
    /// The first base register.
    pub const BASE: u8 = 0x10;
    /// Place of the first capability.
    pub const CAPABILITIES: u8 = 0x34;
    /// Interrupt pin in bits 8 to 15.
    pub const PIN: u8 = 0x3c;
}

/// Command: answers at its ports.
pub const PORTS: u32 = 1 << 0;
/// Command: answers at its registers.
pub const MEMORY: u32 = 1 << 1;
/// Command: reads and writes memory by itself.
pub const MASTER: u32 = 1 << 2;
/// Command: raises no interrupt line.
pub const NO_INTERRUPT: u32 = 1 << 10;
/// Status, above the command: there is a list of capabilities.
pub const HAS_CAPABILITIES: u32 = 1 << 20;

/// The configuration space of one function.
pub trait Configuration {
    /// A word; all ones if there is no such function.
    fn read(&self, register: u8) -> u32;
    /// Writes a word.
    fn write(&self, register: u8, value: u32);
}

/// The activities that a function may have.
#[derive(Clone, core::marker::Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// Nothing: it does not answer, does nothing to memory and raises no interrupt.
    Off,
    /// It answers at its registers.
    Answers,
    /// It also reads and writes memory, and raises interrupts.
    Works,
}

impl Activity {
    /// The command register for it, from what it was.
    pub const fn command(self, before: u32) -> u32 {
        // Status bits are cleared by writing ones: none are written.
        let other = before & 0xffff & !(PORTS | MEMORY | MASTER | NO_INTERRUPT);
        match self {
            Self::Off => other | NO_INTERRUPT,
            Self::Answers => other | MEMORY | NO_INTERRUPT,
            Self::Works => other | MEMORY | MASTER,
        }
    }

    /// Lets a function do this and no more.
    pub fn set(self, function: &impl Configuration) {
        function.write(register::COMMAND, self.command(function.read(register::COMMAND)));
    }
}

/// Line of the I/O APIC of a device on the first bus, whose pin (from 1) is wired so (ICH9 data sheet, 10.1.42, as
/// the emulator's q35 has it): devices 0 to 24 share the lines 20 to 23 in turn. `None` = nobody knows, or it has none.
pub fn line(device: u32, pin: u32) -> Option<u64> {
    const FIRST: u64 = 20;
    (device < 25 && (1..=4).contains(&pin)).then(|| FIRST + u64::from(device + pin - 1) % 4)
}
