//! The PL011 UART (Arm PrimeCell UART, DDI 0183, chapter 3) whose registers the system description gives us. The transmit
//! FIFO is never reset: after a restart it may hold bytes that were acknowledged. How fast it is was set by the firmware.

use runtime::device::{read, write};

/// Bytes that fit into the transmit FIFO when it says that it takes some: it has at least 16, and is at most an eighth full.
pub const BURST: usize = 14;

/// Receive and transmit.
const UARTDR: usize = 0;
const UARTFR: usize = 0x18;
const UARTLCR_H: usize = 0x2c;
const UARTCR: usize = 0x30;
/// At which levels of the FIFOs there are interrupts.
const UARTIFLS: usize = 0x34;
/// Interrupt mask: those that are let through.
const UARTIMSC: usize = 0x38;
/// Raw interrupt status: unmasked.
const UARTRIS: usize = 0x3c;
const UARTICR: usize = 0x44;

// Bits of UARTFR: busy, receive FIFO empty, transmit FIFO empty.
const BUSY: u32 = 1 << 3;
const RXFE: u32 = 1 << 4;
const TXFE: u32 = 1 << 7;
/// 8 data bits, no parity, 1 stop bit, FIFOs on.
const EIGHT_BITS: u32 = 3 << 5 | 1 << 4;
/// The device, both directions.
const ON: u32 = 1 | 1 << 8 | 1 << 9;
// Interrupts: receive, transmit, receive timeout (less than the level, a while ago).
const RX: u32 = 1 << 4;
const TX: u32 = 1 << 5;
const RT: u32 = 1 << 6;
const ALL: u32 = 0x7ff;

/// The device.
pub struct Pl011 {
    enabled: u32,
}

impl Pl011 {
    /// The device whose registers we were given.
    pub const fn new() -> Self {
        Self { enabled: 0 }
    }

    /// FIFOs on, receive interrupt on.
    pub fn start(&mut self) {
        write(UARTIMSC, 0);
        write(UARTLCR_H, EIGHT_BITS);
        write(UARTIFLS, 0);
        write(UARTCR, ON);
        write(UARTICR, ALL & !TX);
        self.enabled = RX | RT;
        write(UARTIMSC, self.enabled);
    }

    /// A received byte, if there is one.
    pub fn receive(&mut self) -> Option<u8> {
        if read(UARTFR) & RXFE != 0 { None } else { Some(read(UARTDR) as u8) }
    }

    /// Is the transmit FIFO at most an eighth full?
    pub fn can_send(&self) -> bool {
        read(UARTFR) & TXFE != 0 || read(UARTRIS) & TX != 0
    }

    /// Has everything left the machine?
    pub fn is_idle(&self) -> bool {
        read(UARTFR) & BUSY == 0
    }

    /// Sends up to [`BURST`] bytes after [`Self::can_send`] said yes.
    pub fn send(&mut self, byte: u8) {
        write(UARTDR, byte.into());
    }

    /// An interrupt when the transmit FIFO takes more: on or off.
    pub fn interrupt_when_empty(&mut self, on: bool) {
        let enabled = RX | RT | if on { TX } else { 0 };
        if enabled != self.enabled {
            self.enabled = enabled;
            write(UARTIMSC, enabled);
        }
    }

    /// Acknowledges what the device says about why it interrupted; what it sent is masked instead.
    pub fn acknowledge(&self) {
        write(UARTICR, ALL & !TX);
    }
}
