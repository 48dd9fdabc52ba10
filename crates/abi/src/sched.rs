//! The protocol between the nucleus and `sched`.
//!
//! The nucleus enters `sched` at its one entry with an [`Event`] in word 0 and a thread word in word
//! 1; `sched` always ends with [`crate::op::DISPATCH`]. What becomes runnable meanwhile stands
//! in a ring ([`Ring`]) in a page that both see.

/// Why `sched` is entered; word 1 (`thread`) is a thread word or 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Event {
    /// Nothing to say: read the ring and choose.
    Choose = 0,
    /// `thread` used up its slice: it goes to the end of its queue.
    SliceEnded = 1,
    /// `thread` yields: it goes to the end of its queue.
    Yielded = 2,
    /// Something that woke precedes `thread`, which was running: it goes to the head of its queue.
    Preempted = 3,
}

/// A thread as `sched` sees it: number, priority, slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadWord(pub u32);

impl ThreadWord {
    /// Packs a thread's number (below [`crate::MAX_THREADS`]) and its priority.
    pub const fn new(number: usize, priority: u8) -> Self {
        Self(number as u32 | (priority as u32) << 16)
    }
    /// The thread's number: the operand of `DISPATCH`.
    pub const fn number(self) -> usize {
        (self.0 & 0xffff) as usize
    }
    /// Its priority.
    pub const fn priority(self) -> u8 {
        (self.0 >> 16) as u8
    }
}

/// `DISPATCH` of this number lets the CPU sleep until an interrupt; thread 0 is never a thread.
pub const IDLE: usize = 0;

/// Slots of the ring: one for every thread, so that it cannot overflow.
pub const RING_SLOTS: usize = crate::MAX_THREADS;

/// The page shared by the nucleus (writes `written` and `slots`) and `sched` (writes `read`).
/// Both counters run freely; slot = counter modulo [`RING_SLOTS`].
#[repr(C)]
pub struct Ring {
    /// Entries the nucleus has written.
    pub written: u32,
    /// Fills a cache line.
    pub pad0: [u32; 15],
    /// Entries `sched` has read.
    pub read: u32,
    /// Fills a cache line.
    pub pad1: [u32; 15],
    /// Thread words.
    pub slots: [u32; RING_SLOTS],
}
