//! The contract between the nucleus and components.
//!
//! Portal indices, register bindings, error codes, message layouts and object rights stand here and
//! nowhere else. Nothing in this crate does anything: it is numbers with names, shared by the
//! nucleus, the runtime and the host tools. `golden/operations.txt` is a text of the operations, so that a
//! change of their contract shows in review.
//!
//! # The one system call
//!
//! A domain traverses the portal at an index of its portal table; the kind of entry that stands
//! there decides what happens ([`op`] for kernel operations, a call entry for a server, a semaphore
//! for P and V). Words travel in registers (the binding per ISA is in [`registers`]), bytes in the
//! activation's message area.
#![no_std]
#![forbid(unsafe_code)]

pub mod boot;
pub mod error;
pub mod flows;
pub mod info;
pub mod layout;
pub mod op;
mod operations;
pub mod registers;
pub mod rights;
pub mod sched;

pub use error::Error;

/// Words of a message that travel in registers, each way.
pub const MESSAGE_WORDS: usize = 5;
/// Words that travel in registers at most: see [`registers`].
pub const REGISTER_WORDS: usize = 9;
/// Bytes of an activation's message area.
pub const MESSAGE_BYTES: usize = 4096;
/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Activations a chain may link; one more is [`Error::TooDeep`].
pub const MAX_DEPTH: usize = 32;
/// Entries or mappings of a chain in which each is a copy of the one before, the original included; one more is
/// [`Error::TooDerived`].
pub const MAX_DERIVATION: usize = 1024;
/// Levels of domains made by domains; one more is [`Error::TooNested`].
pub const MAX_NESTING: usize = 16;
/// Shapes of portals that there can be, the one with a control word included.
pub const MAX_SHAPES: usize = 24;
/// The most labels that portals to a domain have.
pub const MAX_PORTAL_LABELS: usize = 31;
/// The most ports whose messages are taken at one.
pub const MAX_MEMBERS: usize = 64;
/// The highest badge of a port.
pub const MAX_BADGE: u64 = (1 << 48) - 1;
/// Levels of accounts of accounts; one more is [`Error::AccountsTooNested`].
pub const MAX_ACCOUNT_DEPTH: usize = 8;
/// Order of the largest flexpage: the whole address space.
pub const MAX_ORDER: u64 = 35;
/// Tokens that a semaphore can begin with.
pub const MAX_COUNT: u64 = (1 << 62) - 1;
/// Bytes of a line of the kernel log.
pub const MAX_LOG_BYTES: usize = 256;
/// CPUs that the nucleus can use; their numbers are below this.
pub const MAX_CPUS: usize = 64;
/// Threads of all CPUs together; their numbers are below this.
pub const MAX_THREADS: usize = 8192;
/// Threads for which [`op::MACHINE_THREADS`] makes room: so many more than before. The nucleus begins with that many.
pub const THREADS_OF_A_PAGE: usize = 512;
/// Priorities are 0 (lowest) to this minus one.
pub const PRIORITIES: usize = 64;
/// The highest priority.
pub const MAX_PRIORITY: usize = PRIORITIES - 1;
/// Microseconds of the longest slice that a thread can have.
pub const MAX_SLICE_MICROSECONDS: u64 = 1_000_000;
/// A deadline that never comes.
pub const NEVER: u64 = u64::MAX;

/// Pages that are torn away in a call, or a return, at most: the word of the letter `a` is the address of the page, and their number. Of more
/// the nucleus would keep interrupts out for too long.
pub const MAX_TORN: usize = 1;

/// The bit of [`Control::WINDOW`].
pub const WINDOW_BIT: u32 = 13;

/// Levels of handles in labels, as operations take and return them.
pub mod level {
    /// In a send label: owns the handle.
    pub const STAR: u64 = 0;
    /// The level 0.
    pub const ZERO: u64 = 1;
    /// The level 1, which send labels have by default.
    pub const ONE: u64 = 2;
    /// The level 2, which receive labels have by default.
    pub const TWO: u64 = 3;
    /// The level 3.
    pub const THREE: u64 = 4;
}

/// Windows: whole pages of the caller that the callee sees while it serves the call.
///
/// A window is a word: the address of its first page, with [`WRITABLE`](window::WRITABLE) if the callee may write, and the number of pages. The callee gets
/// the same word with the address where it sees them: at [`layout::WINDOWS`], in the slot of its activation.
pub mod window {
    /// Pages of a window at most.
    pub const MAX_PAGES: usize = 16;
    /// The bits with the number of pages.
    pub const PAGES: u64 = 0x1f;
    /// The callee may write.
    pub const WRITABLE: u64 = 1 << WRITABLE_BIT;
    /// The bit of [`WRITABLE`].
    pub const WRITABLE_BIT: u32 = 5;
    /// The bits that are no address.
    pub const FLAGS: u64 = PAGES | WRITABLE;
    /// Activations of a domain that takes windows at most: each has a slot for one.
    pub const SLOTS: usize = 32;
    /// How often a window may be handed on; more is [`Error::TooOften`](crate::Error::TooOften).
    pub const MAX_HANDED_ON: usize = 3;
    /// Bytes of a slot.
    pub const SLOT_BYTES: usize = MAX_PAGES * crate::PAGE_BYTES;
}

/// The control word of a message: how many bytes of the message area go along, which entry is
/// delegated, and how to call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Control(pub u64);

impl Control {
    /// Call only if an activation of the callee is free: else [`Error::Busy`].
    pub const NO_WAIT: u64 = 1 << 48;
    /// The delegated entry is a service of ours: the receiver gets a call entry to it, whose badge is
    /// word 4.
    pub const MINT: u64 = 1 << 49;
    /// Word 4 is an absolute deadline in nanoseconds: at that time the call ends with
    /// [`Error::Timeout`], and what was called goes on as an orphan. The service must allow it, else
    /// [`Error::NoDeadline`]; not together with [`Self::MINT`].
    pub const DEADLINE: u64 = 1 << 50;
    /// Word 4 is a [`window`]. Not together with [`Self::MINT`] and [`Self::DEADLINE`].
    pub const WINDOW: u64 = 1 << WINDOW_BIT;
    /// Bits that mean something; the others must be zero.
    pub const VALID: u64 =
        0x1fff | Self::WINDOW | 0x3_ffff << 16 | 0xff << 40 | Self::NO_WAIT | Self::MINT | Self::DEADLINE;

    /// `bytes` of the message area (at most [`MESSAGE_BYTES`]) go along.
    pub const fn bytes(bytes: usize) -> Self {
        Self(bytes as u64)
    }
    /// Adds the delegation of the entry at `index` of our table with `rights` (see [`rights`]).
    pub const fn delegate(self, index: usize, rights: u8) -> Self {
        Self(self.0 | (index as u64) << 16 | (rights as u64) << 40)
    }
    /// Adds one of the flags above.
    pub const fn with(self, flag: u64) -> Self {
        Self(self.0 | flag)
    }
    /// Bytes of the message area that came or go along.
    pub const fn length(self) -> usize {
        (self.0 & 0x1fff) as usize
    }
    /// The delegated entry: on the way in, the receiver's index (0 = none).
    pub const fn delegated(self) -> usize {
        (self.0 >> 16 & 0x3_ffff) as usize
    }
    /// The rights of the delegated entry.
    pub const fn delegated_rights(self) -> u8 {
        (self.0 >> 40 & 0xff) as u8
    }
    /// For a portal without a control word, of which the caller expects this, see [`expect`].
    pub const fn expecting(what: u64) -> Self {
        Self(!what)
    }
}

/// The expectations of the caller of a portal without a control word. A server chooses the portals to it: they must not take words,
/// registers, memory or entries of callers that do not know of that, nor forget a deadline. So a caller says in the control word what it
/// expects ([`Control::expecting`]), and a portal that passes more or less refuses the call: [`Error::BadControl`]. A portal with a control
/// word refuses it, too.
pub mod expect {
    /// These of the words 0 to 4 go there: a bit for each.
    pub const fn words(mask: u64) -> u64 {
        mask & ALL_FIVE
    }
    /// Words 0 to 4.
    pub const ALL_FIVE: u64 = 0x1f;
    /// Words 5 to 8 go there, or come back.
    pub const MORE_WORDS: u64 = 1 << 5;
    /// Words or bytes of the message area do.
    pub const AREA: u64 = 1 << 6;
    /// An entry does.
    pub const ENTRIES: u64 = 1 << 7;
    /// A window goes there.
    pub const WINDOW: u64 = 1 << 8;
    /// Pages are torn away, there or back.
    pub const PAGES: u64 = 1 << 9;
}
