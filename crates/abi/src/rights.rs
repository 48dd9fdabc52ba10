//! Kinds of entries and their rights.
//!
//! Rights are a byte. Copying reduces them, nothing adds to them.

/// The kind of an entry of a portal table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Nothing.
    Empty = 0,
    /// Something stood here and was revoked.
    Revoked = 1,
    /// A kernel operation (short-circuit portal).
    Operation = 2,
    /// A call to another domain's service.
    Call = 3,
    /// An entry point of a domain, from which call entries are made.
    Service = 4,
    /// A domain.
    Domain = 5,
    /// A thread: a scheduling context and its chain.
    Thread = 6,
    /// An account of frames.
    Account = 7,
    /// A counting semaphore.
    Semaphore = 8,
    /// An interrupt line.
    Interrupt = 9,
    /// A range of I/O ports (x86 only).
    IoPorts = 10,
    /// All free memory: the right to draw frames.
    Memory = 11,
    /// The machine: shutdown and inspection.
    Machine = 12,
    /// Reserved: no entry has this kind.
    Scheduler = 13,
    /// A shape of portals: code for what a specification says.
    Shape = 14,
    /// A label, for those operations that take one. It is its domain's alone.
    Label = 15,
    /// A queue of messages with labels.
    Port = 16,
}

impl Kind {
    /// The kind with this number.
    pub const fn from_number(number: u8) -> Option<Kind> {
        use Kind::*;
        const ALL: [Kind; 17] = [
            Empty, Revoked, Operation, Call, Service, Domain, Thread, Account, Semaphore, Interrupt, IoPorts, Memory,
            Machine, Scheduler, Shape, Label, Port,
        ];
        if (number as usize) < ALL.len() { Some(ALL[number as usize]) } else { None }
    }
}

/// The entry may be copied and delegated.
pub const COPY: u8 = 1 << 0;
/// The object may be inspected, as far as its kind allows.
pub const READ: u8 = 1 << 1;
/// Domain: map memory, put entries. Account: draw, fill a child. Semaphore: V. Port: send. Label: change it. Machine: stop it, make device
/// entries. Interrupt, I/O ports: use.
pub const WRITE: u8 = 1 << 2;
/// Semaphore: P. Port: receive. Service: make call entries. Domain: copy entries out. Memory: draw. Machine: make shapes. Shape: make services.
pub const USE: u8 = 1 << 3;
/// Domain, thread: kill, destroy, change.
pub const CONTROL: u8 = 1 << 4;
/// All rights.
pub const ALL: u8 = 0x1f;

/// Rights of a mapping: readable (always implied).
pub const MAP_READ: u64 = 1;
/// Rights of a mapping: writable. A page is never writable and executable.
pub const MAP_WRITE: u64 = 2;
/// Rights of a mapping: executable.
pub const MAP_EXECUTE: u64 = 4;
/// The source loses the page: the mapping moves instead of being derived.
pub const MAP_GRANT: u64 = 8;
/// For `unmap`: our own mapping goes as well as what was derived from it.
pub const UNMAP_SELF: u64 = 16;
