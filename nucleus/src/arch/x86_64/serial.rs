//! The first serial port, for the nucleus's last words (panics). `console` owns it otherwise.

use super::memory::{port_read, port_write};

const PORT: u16 = 0x3f8;

/// Writes bytes, polling.
pub fn write(bytes: &[u8]) {
    for byte in bytes {
        // SAFETY: the ports of the serial line; in a panic nobody else runs any more.
        unsafe {
            let mut patience = 100_000;
            while port_read(PORT + 5) & 0x20 == 0 && patience > 0 {
                patience -= 1;
            }
            if *byte == b'\n' {
                port_write(PORT, b'\r');
            }
            port_write(PORT, *byte);
        }
    }
}
