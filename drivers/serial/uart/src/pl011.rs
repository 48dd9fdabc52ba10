//! The PL011 UART (Arm PrimeCell UART, DDI 0183, chapter 3) whose registers the system description gives us. The transmit
//! FIFO is never reset: after a restart it may hold bytes that were acknowledged. How fast it is was set by the firmware.

use runtime::device::{read, write};

/// Bytes that fit into the transmit FIFO when it says that it takes some: it has at least 16, and is at most an eighth full.
pub const BURST: usize = 14;

/// Receive and transmit.
const DATA: usize = 0;
const FLAGS: usize = 0x18;
const LINE_CONTROL: usize = 0x2c;
const CONTROL: usize = 0x30;
/// At which levels of the FIFOs there are interrupts.
const LEVELS: usize = 0x34;
const INTERRUPTS: usize = 0x38;
/// Why there would be interrupts.
const RAW: usize = 0x3c;
const CLEAR: usize = 0x44;

const BUSY: u32 = 1 << 3;
const NOTHING_RECEIVED: u32 = 1 << 4;
const NOTHING_TO_SEND: u32 = 1 << 7;
/// 8 data bits, no parity, 1 stop bit, FIFOs on.
const EIGHT_BITS: u32 = 3 << 5 | 1 << 4;
/// The device, both directions.
const ON: u32 = 1 | 1 << 8 | 1 << 9;
const RECEIVED: u32 = 1 << 4;
const SENT: u32 = 1 << 5;
/// Received, less than the level, a while ago.
const RECEIVED_LATELY: u32 = 1 << 6;
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
        write(INTERRUPTS, 0);
        write(LINE_CONTROL, EIGHT_BITS);
        write(LEVELS, 0);
        write(CONTROL, ON);
        write(CLEAR, ALL & !SENT);
        self.enabled = RECEIVED | RECEIVED_LATELY;
        write(INTERRUPTS, self.enabled);
    }

    /// A received byte, if there is one.
    pub fn receive(&mut self) -> Option<u8> {
        if read(FLAGS) & NOTHING_RECEIVED != 0 { None } else { Some(read(DATA) as u8) }
    }

    /// Is the transmit FIFO at most an eighth full?
    pub fn can_send(&self) -> bool {
        read(FLAGS) & NOTHING_TO_SEND != 0 || read(RAW) & SENT != 0
    }

    /// Has everything left the machine?
    pub fn is_idle(&self) -> bool {
        read(FLAGS) & BUSY == 0
    }

    /// Sends up to [`BURST`] bytes after [`Self::can_send`] said yes.
    pub fn send(&mut self, byte: u8) {
        write(DATA, byte.into());
    }

    /// An interrupt when the transmit FIFO takes more: on or off.
    pub fn interrupt_when_empty(&mut self, on: bool) {
        let enabled = RECEIVED | RECEIVED_LATELY | if on { SENT } else { 0 };
        if enabled != self.enabled {
            self.enabled = enabled;
            write(INTERRUPTS, enabled);
        }
    }

    /// Acknowledges what the device says about why it interrupted; what it sent is masked instead.
    pub fn acknowledge(&self) {
        write(CLEAR, ALL & !SENT);
    }
}
