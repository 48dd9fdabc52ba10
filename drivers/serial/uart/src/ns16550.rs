//! The 16550 UART at the ports that the system description gives us.
//!
//! Registers and bits: PC16550D data sheet, section 8. Each access is a kernel operation on our I/O-port
//! entry. The transmit FIFO is never reset: after a restart it may hold bytes that were acknowledged.

use abi::Error;
use runtime::entry::Entry;
use runtime::op;

/// Bytes that fit into an empty transmit FIFO.
pub const BURST: usize = 16;

/// Receiver buffer (read), transmitter holding (write), and with DLAB set the divisor's low byte.
const RBR: u64 = 0;
const THR: u64 = 0;
const DLL: u64 = 0;
/// Interrupt enable; with DLAB set the divisor's high byte.
const IER: u64 = 1;
const DLM: u64 = 1;
/// Interrupt identification (read), FIFO control (write).
const IIR: u64 = 2;
const FCR: u64 = 2;
/// Line control, modem control, line status.
const LCR: u64 = 3;
const MCR: u64 = 4;
const LSR: u64 = 5;

/// Interrupt when something was received.
const ERBFI: u8 = 1;
/// Interrupt when the transmit FIFO is empty.
const ETBEI: u8 = 2;

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
            (IER, 0),
            (LCR, 0x80),
            (DLL, 1),
            (DLM, 0),
            (LCR, 3),
            // FIFOs on without clearing them, receive interrupt at one byte.
            (FCR, 1),
            // Ready, request to send, and the output that lets interrupts through on a PC.
            (MCR, 0xb),
            (IER, ERBFI),
        ];
        for (register, value) in writes {
            op::io_write(self.ports, register, value)?;
        }
        self.enabled = ERBFI;
        Ok(())
    }

    /// A received byte, if there is one.
    pub fn receive(&mut self) -> Option<u8> {
        let status = op::io_read(self.ports, LSR).ok()?;
        if status & 1 == 0 { None } else { op::io_read(self.ports, RBR).ok() }
    }

    /// Is the transmit FIFO empty?
    pub fn can_send(&self) -> bool {
        op::io_read(self.ports, LSR).is_ok_and(|status| status & 0x20 != 0)
    }

    /// Has everything left the machine?
    pub fn is_idle(&self) -> bool {
        op::io_read(self.ports, LSR).is_ok_and(|status| status & 0x40 != 0)
    }

    /// Sends up to [`BURST`] bytes after [`Self::can_send`] said yes.
    pub fn send(&mut self, byte: u8) {
        let _ = op::io_write(self.ports, THR, byte);
    }

    /// An interrupt when the transmit FIFO is empty: on or off.
    pub fn interrupt_when_empty(&mut self, on: bool) {
        let enabled = if on { ERBFI | ETBEI } else { ERBFI };
        if enabled != self.enabled {
            self.enabled = enabled;
            let _ = op::io_write(self.ports, IER, enabled);
        }
    }

    /// Acknowledges what the device says about why it interrupted.
    pub fn acknowledge(&self) {
        let _ = op::io_read(self.ports, IIR);
    }
}
