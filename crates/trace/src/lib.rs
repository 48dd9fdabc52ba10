//! Records of what a nucleus built to trace does: how it writes them, and how the host reads them.
//!
//! A trace is a row of records of [`BYTES`] bytes, the first of which is [`Kind::Begin`]. All numbers are
//! little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0 | [`MARK`] |
//! | 1 | [`Kind`] |
//! | 2, 3 | number of a thread; 0 = none, or the scheduler's seat |
//! | 4 to 7 | number of a domain, unique since boot; 0 = none |
//! | 8 to 14 | time in ticks since reset, without those spent on writing records |
//! | 15 | number of the CPU on which it happened |
//! | 16 to 23 | first operand |
//! | 24 to 31 | second operand |
//!
//! Records of one CPU stand in the order of time; between those of different CPUs the order may be slightly off, where
//! two happened at about the same time. A reader that wants the order of time sorts, and leaves records of the same time as
//! they stand.
//!
//! The meaning of the operands stands at each [`Kind`]. A reader takes nothing for granted: a trace may end
//! early or be no trace.
#![no_std]
#![forbid(unsafe_code)]

mod read;

pub use read::{Damage, Mistake, Records};

/// Bytes of a record.
pub const BYTES: usize = 32;
/// First byte of each record.
pub const MARK: u8 = 0xca;
/// Version of all of this; first operand of [`Kind::Begin`].
pub const VERSION: u64 = 3;
/// Times are below this.
pub const MAX_TIME: u64 = 1 << 56;

macro_rules! kinds {
    ($($(#[$attribute:meta])* $name:ident = $number:literal,)*) => {
        /// The kind of event.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$attribute])* $name = $number,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            /// The kind with this number.
            pub fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// The nucleus begins. First operand: [`VERSION`].
    Begin = 1,
    /// A domain was made. Operands: its name, 16 bytes padded with zeros.
    Domain = 2,
    /// A domain died. First operand: its status.
    DomainDied = 3,
    /// A thread was made, at home in the domain.
    Thread = 4,
    /// A thread is gone; its number may come again.
    ThreadGone = 5,
    /// The thread calls. Operands: the callee's domain, plus the low half of the badge times 2^32; address of the
    /// service times 2^16, plus bits 0 to 15 of word 0, where interfaces have the number of the method.
    Call = 6,
    /// As [`Kind::Call`], by the nucleus on behalf of a thread that faulted: word 0 is an address or a vector.
    Upcall = 7,
    /// A call was refused. Operands: the callee's domain, the error.
    Refused = 8,
    /// The thread goes back. First operand: the caller's domain.
    Return = 9,
    /// The upper part of a chain was cut off, or all of it; the thread stands in the domain now. First operand:
    /// activations that are left.
    Cut = 10,
    /// The thread has one more activation below those that it has, in this domain: it takes over a chain that was
    /// cut off, top first. First operand: 1 for the top.
    Adopt = 11,
    /// The thread goes on, in this domain.
    Run = 12,
    /// The thread stops, in this domain. First operand: 0 = it waits or has ended, otherwise the event that
    /// `sched` is entered with this event (`abi::sched::Event`).
    Stop = 13,
    /// The scheduler of this CPU, in this domain, is entered. First operand: the event.
    Schedule = 14,
    /// Nothing can run on this CPU.
    Idle = 15,
    /// The thread, which is in this domain, can run. First operand: the thread that made it so; 0 = an interrupt or
    /// the scheduler.
    Wake = 16,
    /// A page fault. Operands: the address, the processor's code.
    PageFault = 17,
    /// Another exception. Operands: the vector, the processor's code.
    Exception = 18,
    /// An interrupt while this thread ran in this domain; 0 = while nothing ran. First operand: the vector.
    Interrupt = 19,
    /// A line for the kernel log begins. Operands: its first 16 bytes.
    Log = 20,
    /// It goes on.
    LogMore = 21,
    /// The machine stops. First operand: its status.
    End = 22,
    /// The call that comes next on this CPU, of this thread, shows a window. First operand: its word (`abi::window`).
    Window = 23,
}

/// See the crate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// The kind of event.
    pub kind: Kind,
    /// On which CPU; below `abi::MAX_CPUS`.
    pub cpu: u8,
    /// To which thread.
    pub thread: u16,
    /// Where.
    pub domain: u32,
    /// When, in ticks; below [`MAX_TIME`].
    pub time: u64,
    /// Further operands.
    pub operands: [u64; 2],
}

impl Record {
    /// The bytes of this record.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0] = MARK;
        bytes[1] = self.kind as u8;
        bytes[2..4].copy_from_slice(&self.thread.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.domain.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.time.to_le_bytes());
        bytes[15] = self.cpu;
        bytes[16..24].copy_from_slice(&self.operands[0].to_le_bytes());
        bytes[24..].copy_from_slice(&self.operands[1].to_le_bytes());
        bytes
    }

    /// The operands as bytes: a name, or a part of a line.
    pub fn text(&self) -> [u8; 16] {
        let mut text = [0; 16];
        text[..8].copy_from_slice(&self.operands[0].to_le_bytes());
        text[8..].copy_from_slice(&self.operands[1].to_le_bytes());
        text
    }
}

/// Up to 16 bytes of text as operands; the rest is left out.
pub fn text(bytes: &[u8]) -> [u64; 2] {
    let word = |from: usize| {
        let bytes = bytes.iter().skip(from).take(8).enumerate();
        bytes.fold(0, |word, (place, byte)| word | u64::from(*byte) << (8 * place))
    };
    [word(0), word(8)]
}
