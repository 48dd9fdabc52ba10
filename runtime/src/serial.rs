//! The serial line of a component that has it to itself, in a system without `console`: tests. It sends byte by byte and
//! waits for the device each time. The device is a 16550 behind ports, or a PL011 with registers in memory
//! ([`crate::device`]), whichever the system description gave us.

use core::fmt;

use abi::Error;
use abi::rights::Kind;

use crate::entry::Entry;
use crate::{device, op};

/// 16550 (PC16550D, 8.0): transmitter holding; interrupt enable; interrupt identification; line status.
mod ports {
    pub const THR: u64 = 0;
    pub const IER: u64 = 1;
    pub const IIR: u64 = 2;
    pub const LSR: u64 = 5;
    pub const LSR_THRE: u8 = 0x20;
    pub const IER_ETBEI: u8 = 2;
}

/// PL011 (DDI 0183, 3.3): data; flags; interrupt mask.
mod registers {
    pub const UARTDR: usize = 0;
    pub const UARTFR: usize = 0x18;
    pub const UARTIMSC: usize = 0x38;
    pub const TXFF: u32 = 1 << 5;
    pub const TXIM: u32 = 1 << 5;
}

/// The serial line.
#[derive(Clone, Copy, Debug)]
pub struct Serial {
    has_ports: bool,
}

impl Serial {
    /// The line that we were given.
    pub fn new() -> Self {
        let kind = op::entry_info(Entry::OWN, Entry::IO_PORTS).map(|(kind, _)| kind);
        Self { has_ports: kind == Ok(Kind::IoPorts) }
    }

    /// Sends a byte when the device takes it.
    pub fn send(&mut self, byte: u8) -> Result<(), Error> {
        if self.has_ports {
            while op::io_read(Entry::IO_PORTS, ports::LSR)? & ports::LSR_THRE == 0 {}
            return op::io_write(Entry::IO_PORTS, ports::THR, byte);
        }
        while device::read(registers::UARTFR) & registers::TXFF != 0 {}
        device::write(registers::UARTDR, byte.into());
        Ok(())
    }

    /// From now on the device interrupts when it is ready to send; that it is, when bytes were sent before.
    pub fn interrupt_when_ready(&mut self) -> Result<(), Error> {
        if self.has_ports {
            return op::io_write(Entry::IO_PORTS, ports::IER, ports::IER_ETBEI);
        }
        device::write(registers::UARTIMSC, registers::TXIM);
        Ok(())
    }

    /// From now on the device does not interrupt.
    pub fn be_quiet(&mut self) -> Result<(), Error> {
        if self.has_ports {
            op::io_write(Entry::IO_PORTS, ports::IER, 0)?;
            return op::io_read(Entry::IO_PORTS, ports::IIR).map(drop);
        }
        device::write(registers::UARTIMSC, 0);
        Ok(())
    }

    /// Does the device ask until it is served? Then it interrupts the one that is bound to its line meanwhile, too; an edge comes once.
    pub fn asks_until_served(&self) -> bool {
        !self.has_ports
    }

    /// An interrupt was served, and another one may come: a line that is no edge gives none before. (A PL011's is none.)
    pub fn was_served(&mut self) -> Result<(), Error> {
        if self.asks_until_served() { op::interrupt_enable(Entry::INTERRUPT) } else { Ok(()) }
    }
}

impl Default for Serial {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().try_for_each(|byte| self.send(byte)).map_err(|_| fmt::Error)
    }
}
