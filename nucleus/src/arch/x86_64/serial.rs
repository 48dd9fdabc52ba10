//! The first serial port, for the nucleus's last words (panics). `console` owns it otherwise.

use super::memory::{port_read, port_write};

/// Registers of a 16550 (PC16550D, 8.0): transmitter holding, line status.
const THR: u16 = 0x3f8;
const LSR: u16 = THR + 5;
/// In LSR: the transmitter accepts a byte.
const THRE: u8 = 0x20;

/// Writes bytes, polling.
pub fn write(bytes: &[u8]) {
    for byte in bytes {
        // SAFETY: the ports of the serial port; in a panic no other code runs any more.
        unsafe {
            let mut patience = 100_000;
            while port_read(LSR) & THRE == 0 && patience > 0 {
                patience -= 1;
            }
            if *byte == b'\n' {
                port_write(THR, b'\r');
            }
            port_write(THR, *byte);
        }
    }
}
