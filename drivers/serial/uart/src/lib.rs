//! The serial line: the device that the system description gives us, whichever it is.
#![no_std]
#![forbid(unsafe_code)]

mod ns16550;
mod pl011;

use abi::Error;
use abi::rights::Kind;
use ns16550::Ns16550;
use pl011::Pl011;
use runtime::entry::Entry;
use runtime::op;

/// The device.
pub enum Uart {
    /// Behind ports.
    Ns16550(Ns16550),
    /// With registers in memory.
    Pl011(Pl011),
}

impl Uart {
    /// Until [`Self::start`] finds out.
    #[allow(clippy::new_without_default, reason = "a static has it")]
    pub const fn new() -> Self {
        Self::Ns16550(Ns16550::new(Entry::IO_PORTS))
    }

    /// Bytes that can be sent after [`Self::can_send`] said yes.
    pub fn burst(&self) -> usize {
        match self {
            Self::Ns16550(_) => ns16550::BURST,
            Self::Pl011(_) => pl011::BURST,
        }
    }

    /// Starts what we were given: ports, or registers.
    pub fn start(&mut self) -> Result<(), Error> {
        if op::entry_info(Entry::OWN, Entry::IO_PORTS).is_ok_and(|(kind, _)| kind == Kind::IoPorts) {
            let mut uart = Ns16550::new(Entry::IO_PORTS);
            uart.start()?;
            *self = Self::Ns16550(uart);
        } else {
            let mut uart = Pl011::new();
            uart.start();
            *self = Self::Pl011(uart);
        }
        Ok(())
    }

    /// A received byte, if there is one.
    pub fn receive(&mut self) -> Option<u8> {
        match self {
            Self::Ns16550(uart) => uart.receive(),
            Self::Pl011(uart) => uart.receive(),
        }
    }

    /// Does the device take bytes?
    pub fn can_send(&self) -> bool {
        match self {
            Self::Ns16550(uart) => uart.can_send(),
            Self::Pl011(uart) => uart.can_send(),
        }
    }

    /// Has everything left the machine?
    pub fn is_idle(&self) -> bool {
        match self {
            Self::Ns16550(uart) => uart.is_idle(),
            Self::Pl011(uart) => uart.is_idle(),
        }
    }

    /// Sends up to [`Self::burst`] bytes after [`Self::can_send`] said yes.
    pub fn send(&mut self, byte: u8) {
        match self {
            Self::Ns16550(uart) => uart.send(byte),
            Self::Pl011(uart) => uart.send(byte),
        }
    }

    /// An interrupt when the device takes bytes: on or off.
    pub fn interrupt_when_empty(&mut self, on: bool) {
        match self {
            Self::Ns16550(uart) => uart.interrupt_when_empty(on),
            Self::Pl011(uart) => uart.interrupt_when_empty(on),
        }
    }

    /// Acknowledges what the device says about why it interrupted.
    pub fn acknowledge(&self) {
        match self {
            Self::Ns16550(uart) => uart.acknowledge(),
            Self::Pl011(uart) => uart.acknowledge(),
        }
    }
}
