//! The machine's serial port, for the nucleus's last words (panics). `console` owns it otherwise.
//!
//! A PL011 (Arm PrimeCell UART, DDI 0183, chapter 3), found in the device tree. Until its registers are mapped, and if there
//! is none, the last words go to the emulator (semihosting), or are lost.

use crate::pointer::Boot;

const UARTDR: usize = 0;
const UARTFR: usize = 0x18;
/// In UARTFR, transmit FIFO full: no room.
const TXFF: u32 = 1 << 5;

/// Where its registers are mapped; 0 = nowhere.
static REGISTERS: Boot<usize> = Boot::new(0);

/// Uses the registers mapped at `address`.
pub(super) fn init(address: usize) {
    // SAFETY: called only while the machine boots, on the first CPU; no reference to the value is kept.
    unsafe { *REGISTERS.write() = address };
}

/// Writes bytes, polling.
pub fn write(bytes: &[u8]) {
    for byte in bytes {
        if *byte == b'\n' {
            send(b'\r');
        }
        send(*byte);
    }
}

fn send(byte: u8) {
    let registers = *REGISTERS.get();
    if registers == 0 {
        return super::memory::report_to_emulator(byte);
    }
    // SAFETY: the registers of the serial port; in a panic no other code runs any more.
    unsafe {
        let mut patience = 100_000;
        while ((registers + UARTFR) as *const u32).read_volatile() & TXFF != 0 && patience > 0 {
            patience -= 1;
        }
        ((registers + UARTDR) as *mut u32).write_volatile(byte as u32);
    }
}
