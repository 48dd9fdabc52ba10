//! The 16550 UART at the ports that the system description gives us.
//!
//! Registers and bits: PC16550D data sheet, section 8. Each access is a kernel operation on our I/O-port
//! entry. The transmit FIFO is never reset: after a restart it may hold bytes that were acknowledged.

use abi::Error;
use runtime::entry::Entry;
use runtime::op;

/// Bytes that fit into an empty transmit FIFO.
pub const BURST: usize = 16;

/// Receive and transmit.
const DATA: u64 = 0;
/// Interrupt enable.
const INTERRUPTS: u64 = 1;
/// Interrupt identification (read), FIFO control (write).
const FIFO: u64 = 2;
const LINE_CONTROL: u64 = 3;
const MODEM_CONTROL: u64 = 4;
const LINE_STATUS: u64 = 5;

/// Interrupt when something was received.
const RECEIVED: u8 = 1;
/// Interrupt when the transmit FIFO is empty.
const EMPTY: u8 = 2;

/// The device.
pub struct Ns16550 {
    ports: Entry,
    enabled: u8,
}

impl Ns16550 {
    /// The device behind this entry.
    pub const fn new(ports: Entry) -> Self {
        Self { ports, enabled: 0 }
    }

    /// 115,200 bits per second, 8 data bits, no parity, 1 stop bit, FIFOs on, receive interrupt on.
    pub fn start(&mut self) -> Result<(), Error> {
        let writes: [(u64, u8); 8] = [
            (INTERRUPTS, 0),
            (LINE_CONTROL, 0x80),
            (DATA, 1),
            (INTERRUPTS, 0),
            (LINE_CONTROL, 3),
            // FIFOs on without clearing them, receive interrupt at one byte.
            (FIFO, 1),
            // Ready, request to send, and the output that lets interrupts through on a PC.
            (MODEM_CONTROL, 0xb),
            (INTERRUPTS, RECEIVED),
        ];
        for (register, value) in writes {
            op::io_write(self.ports, register, value)?;
        }
        self.enabled = RECEIVED;
        Ok(())
    }

    /// A received byte, if there is one.
    pub fn receive(&mut self) -> Option<u8> {
        let status = op::io_read(self.ports, LINE_STATUS).ok()?;
        if status & 1 == 0 { None } else { op::io_read(self.ports, DATA).ok() }
    }

    /// Is the transmit FIFO empty?
    pub fn can_send(&self) -> bool {
        op::io_read(self.ports, LINE_STATUS).is_ok_and(|status| status & 0x20 != 0)
    }

    /// Has everything left the machine?
    pub fn is_idle(&self) -> bool {
        op::io_read(self.ports, LINE_STATUS).is_ok_and(|status| status & 0x40 != 0)
    }

    /// Sends up to [`BURST`] bytes after [`Self::can_send`] said yes.
    pub fn send(&mut self, byte: u8) {
        let _ = op::io_write(self.ports, DATA, byte);
    }

    /// An interrupt when the transmit FIFO is empty: on or off.
    pub fn interrupt_when_empty(&mut self, on: bool) {
        let enabled = if on { RECEIVED | EMPTY } else { RECEIVED };
        if enabled != self.enabled {
            self.enabled = enabled;
            let _ = op::io_write(self.ports, INTERRUPTS, enabled);
        }
    }

    /// Acknowledges what the device says about why it interrupted.
    pub fn acknowledge(&self) {
        let _ = op::io_read(self.ports, FIFO);
    }
}
