//! The protocol between the nucleus and `sched`, of which each CPU has an instance of its own.
//!
//! The nucleus enters `sched` at its one entry with an [`Event`] in word 0 and a thread word in word
//! 1; `sched` always ends with [`crate::op::DISPATCH`]. Threads that become runnable meanwhile stand
//! in a ring ([`Ring`]) in a page that both see.

use core::sync::atomic::{AtomicU32, AtomicU64};

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

/// A thread as `sched` sees it: number, priority, whether it may run on this CPU only, and its share of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadWord(pub u32);

impl ThreadWord {
    /// Packs a thread's number (below [`crate::MAX_THREADS`]) and its priority.
    pub const fn new(number: usize, priority: u8) -> Self {
        Self(number as u32 | (priority as u32) << 16)
    }
    /// The same thread, which may run on its present CPU only.
    pub const fn pinned(self) -> Self {
        Self(self.0 | 1 << 24)
    }
    /// The same thread, which has this share of a CPU's time ahead of others, in percent.
    pub const fn with_share(self, percent: u8) -> Self {
        Self(self.0 & !(0x7f << 25) | (percent as u32) << 25)
    }
    /// The share of a CPU's time that it has ahead of others, in percent, together with all that have one; 0 = all.
    pub const fn share(self) -> u8 {
        (self.0 >> 25) as u8
    }
    /// Whether it may run on its present CPU only.
    pub const fn is_pinned(self) -> bool {
        self.0 >> 24 & 1 != 0
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

/// Words that a scheduler reads, since it was first refused because of unread ones, until that is refused no more.
pub const MOST_READ: u32 = 16;
/// First word of [`crate::op::DISPATCH`]: the thread runs here, now.
pub const RUN: u64 = 0;

/// First word of [`crate::op::DISPATCH`]: the thread, which is ready, is handed to the instance of that CPU,
/// which may be our own.
pub const fn hand_to(cpu: usize) -> u64 {
    1 + cpu as u64
}

/// Slots of the ring. The nucleus remembers the threads that find it full, and posts them when `sched` has read it.
pub const RING_SLOTS: usize = 512;

/// The page shared by the nucleus (writes `written` and `slots`) and `sched` (writes `read`).
/// Both counters run freely; slot = counter modulo [`RING_SLOTS`]. `sched` takes a slot by exchanging it with 0 and then
/// counts `read` up; the nucleus replaces the word of a thread that was not taken yet. A slot of 0 reports nothing.
#[repr(C)]
pub struct Ring {
    /// Entries the nucleus has written.
    pub written: u32,
    /// Ticks of the clock in 10 ms: see [`PERIOD`].
    pub ticks: u32,
    /// Fills a cache line.
    pub pad0: [u32; 14],
    /// Entries `sched` has read.
    pub read: u32,
    /// Fills a cache line.
    pub pad1: [u32; 15],
    /// Thread words.
    pub slots: [u32; RING_SLOTS],
}

/// Shares of time are of a period of 100 ms, which is so many times [`Ring::ticks`].
pub const PERIOD: u64 = 10;

/// The priority of a thread that used up its share of time, until the period ends: below that of programs.
pub const BEHIND: u8 = 15;

/// Bytes after a scheduler's entry where its seats are entered on a machine with several CPUs. Only there is the
/// [`LoadTable`] mapped; a scheduler entered at the entry itself is alone and must not touch it.
pub const SEVERAL_CPUS: u64 = 16;

/// Bytes of a scheduler's stack, which lies at the start of its writable memory: below is what it may not write.
pub const STACK_BYTES: u64 = 1024;

/// Bytes that a scheduler's writable memory has before its notes on threads, at most; [`NOTE_BYTES`] follow for each number.
/// Numbers that no thread can have need no memory.
pub const NOTES_AT: usize = 2048;

/// See [`NOTES_AT`].
pub const NOTE_BYTES: usize = 4;

/// Notes: as many as a thread word could name, so that none lies outside.
pub const NOTES: usize = 1 << 16;

/// An instance's notice about its CPU for the others, on the [`LoadTable`]. Only hints: the nucleus checks whatever is done
/// because of them. A *rank* is 1 + the place that a priority has in the order of choice; 0 = none.
#[repr(C, align(16))]
pub struct Notice {
    /// Threads in its queues.
    pub queued: AtomicU32,
    /// Rank of what it dispatched last; 0 = it rests, or nobody schedules there yet.
    pub rank: AtomicU32,
    /// The round of turns that it is in, at the rank of the first spare thread.
    pub round: AtomicU32,
    /// How often it began to rest.
    pub rests: AtomicU32,
    /// Words of queued threads that may be taken to another CPU, first the one that would be taken next; 0 = none.
    /// The taker of one writes 0.
    pub spares: [AtomicU32; SPARES],
}

/// Threads that an instance offers at a time.
pub const SPARES: usize = 8;

/// A thread that others may take, as the load table has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spare(pub u32);

impl Spare {
    /// A thread, its rank (below 256), and whether its next turn is one of the next round.
    pub const fn new(number: usize, rank: u32, is_later: bool) -> Self {
        Self(number as u32 | rank << 16 | (is_later as u32) << 24)
    }
    /// The thread's number.
    pub const fn number(self) -> usize {
        (self.0 & 0xffff) as usize
    }
    /// Its rank.
    pub const fn rank(self) -> u32 {
        self.0 >> 16 & 0xff
    }
    /// Rounds until its next turn, 0 or 1.
    pub const fn later(self) -> u32 {
        self.0 >> 24 & 1
    }
}

/// The page shared by all instances, at [`crate::layout::WINDOW`] of each; zeros at first, except `cpus`.
#[repr(C)]
pub struct LoadTable {
    /// A bit for each CPU that has an instance. Written by the component that seats them.
    pub cpus: AtomicU64,
    /// A bit for each CPU that has nothing to do.
    pub idle: AtomicU64,
    /// By place in the order of choice: the latest round of turns that any CPU began.
    pub rounds: [AtomicU32; crate::PRIORITIES],
    /// By CPU.
    pub notices: [Notice; crate::MAX_CPUS],
}

const _: () = assert!(size_of::<LoadTable>() <= crate::PAGE_BYTES && size_of::<Ring>() <= crate::PAGE_BYTES);
