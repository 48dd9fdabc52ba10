//! One queue per priority, linked through notes on threads; a bit says which are not empty.

use crate::level::level_of;
use crate::shares::Shares;
use abi::PRIORITIES;
use abi::sched::{NOTES, ThreadWord};

/// All queues. Thread 0 is none: links of 0 end a queue.
///
/// The notes come last. Those of numbers that no thread has had are not touched, and need not be mapped.
#[repr(C)]
pub struct Queues {
    filled: u64,
    head: [u16; PRIORITIES],
    tail: [u16; PRIORITIES],
    /// The time used by threads with a share of time.
    shares: Shares,
    /// How often refusals were forgotten, modulo 127. Zero at first, as all is: then none of it stands in the executable.
    refusals: u8,
    /// By number of a thread.
    notes: [Note; NOTES],
}

/// The notes about a thread.
#[derive(Clone, Copy)]
#[repr(C)]
struct Note {
    /// The one after it in its queue; 0 = none.
    next: u16,
    /// Level of a queued thread plus one, and [`SHARE`] if it has a share of time; 0 = not queued.
    level: u8,
    /// Bit 0: it may not leave. Above: 1 + how often refusals had been forgotten when it was refused; 0 = it was not.
    stays: u8,
}

const _: () = assert!(size_of::<Note>() == abi::sched::NOTE_BYTES);

/// A queued thread has a share of time: its level is the one noted until that is used up.
const SHARE: u8 = 0x80;

impl Default for Queues {
    fn default() -> Self {
        Self::new()
    }
}

impl Queues {
    /// Bytes before the notes.
    pub const NOTES_AT: usize = core::mem::offset_of!(Self, notes);

    /// Nothing is queued.
    pub const fn new() -> Self {
        Self {
            filled: 0,
            head: [0; PRIORITIES],
            tail: [0; PRIORITIES],
            shares: Shares::new(),
            refusals: 0,
            notes: [Note { next: 0, level: 0, stays: 0 }; NOTES],
        }
    }

    /// Puts a thread at the end of its queue, or, if it is in one, into that of the priority that it has now.
    pub fn append(&mut self, word: ThreadWord) {
        let number = word.number() % NOTES;
        if self.notes[number].level == 0 || self.leaves(number, word) {
            self.append_new(word);
        }
    }

    /// Puts a thread that is in no queue at the end of its queue.
    #[inline(always)]
    pub fn append_new(&mut self, word: ThreadWord) {
        let number = word.number() % NOTES;
        if number == 0 {
            return;
        }
        let mark = self.mark(word);
        self.append_marked(number, mark);
    }

    #[inline(always)]
    fn append_marked(&mut self, number: usize, mark: u8) {
        let level = self.place(mark);
        self.notes[number].next = 0;
        if self.filled >> level & 1 == 0 {
            self.filled |= 1 << level;
            self.head[level] = number as u16;
        } else {
            self.notes[self.tail[level] as usize].next = number as u16;
        }
        self.tail[level] = number as u16;
        self.notes[number].level = mark;
    }

    /// The note for a thread when it is queued.
    #[inline(always)]
    fn mark(&mut self, word: ThreadWord) -> u8 {
        let mark = level_of(word.priority()) as u8 + 1;
        if word.share() == 0 {
            return mark;
        }
        self.shares.percent = word.share();
        mark | SHARE
    }

    /// The level of a thread of which this is noted.
    #[inline(always)]
    fn marked(&self, mark: u8) -> usize {
        let level = usize::from(mark & !SHARE).wrapping_sub(1) % PRIORITIES;
        if mark & SHARE != 0 { self.shares.level(level) } else { level }
    }

    /// The level at which to queue it.
    #[inline(always)]
    fn place(&mut self, mark: u8) -> usize {
        let level = self.marked(mark);
        if mark & SHARE != 0 {
            self.shares.watched |= 1 << level;
        }
        level
    }

    /// Takes a queued thread out if it belongs elsewhere now.
    #[cold]
    fn leaves(&mut self, number: usize, word: ThreadWord) -> bool {
        self.notes[number].level != self.mark(word) && self.remove(number)
    }

    /// Whether a thread with a share of time is queued or runs: then [`Self::look`] is to come before [`Self::take`], and neither
    /// [`Self::rotate`] nor [`Self::pass`] will do.
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.shares.watched != 0
    }

    /// A thread with a share ran until `now`, in ticks, of which `period` are a period. True if threads with a share were queued elsewhere,
    /// because it is used up, or a new period began.
    pub fn look(&mut self, now: u64, period: u64) -> bool {
        let turns = self.shares.look(self.filled, now, period);
        if turns {
            let mut at = self.take_shares();
            self.shares.over ^= true;
            while at != 0 {
                let Note { next, level, .. } = self.notes[at];
                self.append_marked(at, level);
                at = next as usize;
            }
        }
        turns
    }

    /// Takes all threads with a share of time out of their queues; gives the first, which the others follow.
    #[cold]
    fn take_shares(&mut self) -> usize {
        let (mut first, mut last) = (0, 0);
        let mut filled = self.filled;
        while filled != 0 {
            let level = 63 - filled.leading_zeros() as usize;
            filled &= !(1 << level);
            let (mut previous, mut at) = (0, self.head[level] as usize);
            while at != 0 {
                let next = self.notes[at].next;
                if self.notes[at].level & SHARE == 0 {
                    previous = at;
                } else {
                    match previous {
                        0 => self.head[level] = next,
                        _ => self.notes[previous].next = next,
                    }
                    self.notes[at].next = 0;
                    match last {
                        0 => first = at,
                        _ => self.notes[last].next = at as u16,
                    }
                    last = at;
                }
                at = next as usize;
            }
            self.tail[level] = previous as u16;
            if previous == 0 {
                self.filled &= !(1 << level);
            }
        }
        first
    }

    /// Notes whether a thread may not leave for another CPU. Nobody has refused it since.
    #[inline(always)]
    pub fn note(&mut self, number: usize, is_pinned: bool) {
        self.notes[number % NOTES].stays = is_pinned.into();
    }

    /// Notes that others refused the thread, or took it.
    pub fn refuse(&mut self, number: usize) {
        let stays = &mut self.notes[number % NOTES].stays;
        *stays = *stays & 1 | (self.refusals + 1) << 1;
    }

    /// Refusals so far count no more. After 127 times those of the first time do again, until the next: they are advice.
    pub fn forget_refusals(&mut self) {
        self.refusals = (self.refusals + 1) % 127;
    }

    /// Whether a thread may leave, as far as is known.
    #[inline(always)]
    pub fn may_leave(&self, number: usize) -> bool {
        let stays = self.notes[number % NOTES].stays;
        stays & 1 == 0 && stays >> 1 != self.refusals + 1
    }

    /// Takes a thread out of its queue. False if it is in none.
    pub fn remove(&mut self, number: usize) -> bool {
        let number = number % NOTES;
        let Some(level) = self.level(number) else { return false };
        let (mut previous, mut at) = (0, self.head[level] as usize);
        while at != number && at != 0 {
            (previous, at) = (at, self.notes[at].next as usize);
        }
        match previous {
            0 => self.head[level] = self.notes[number].next,
            _ => self.notes[previous].next = self.notes[number].next,
        }
        if self.tail[level] as usize == number {
            self.tail[level] = previous as u16;
        }
        if self.head[level] == 0 {
            self.filled &= !(1 << level);
        }
        self.notes[number].level = 0;
        true
    }

    /// The level at which a thread is queued, if it is.
    #[inline(always)]
    pub fn level(&self, number: usize) -> Option<usize> {
        let mark = self.notes[number % NOTES].level;
        if mark & SHARE != 0 { Some(self.marked(mark)) } else { usize::from(mark).checked_sub(1) }
    }

    /// The highest level with a queued thread: that of the one to be taken next.
    pub fn top(&self) -> Option<usize> {
        63usize.checked_sub(self.filled.leading_zeros() as usize)
    }

    /// Shows threads, with their levels, in the order of taking, until `look` says false; at most `limit` of them.
    pub fn visit(&self, limit: usize, mut look: impl FnMut(usize, usize) -> bool) {
        let (mut filled, mut looked) = (self.filled, 0);
        while filled != 0 {
            let level = 63 - filled.leading_zeros() as usize;
            let mut at = self.head[level] as usize;
            while at != 0 {
                if looked == limit || !look(at, level) {
                    return;
                }
                (looked, at) = (looked + 1, self.notes[at].next as usize);
            }
            filled &= !(1 << level);
        }
    }

    /// The first thread in the order of taking that is `wanted`, and its level; looks at `limit` of them.
    pub fn find(&self, limit: usize, wanted: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
        let mut found = None;
        self.visit(limit, |number, level| {
            found = wanted(number).then_some((number, level));
            found.is_none()
        });
        found
    }

    /// Puts a thread at the head of its queue, unless it is in it. It is in that of another priority if it ended or had
    /// nothing to do when its turn should have come, and runs now though it was never taken: an orphan's thread.
    pub fn prepend(&mut self, word: ThreadWord) {
        let number = word.number() % NOTES;
        if number == 0 || self.notes[number].level != 0 && !self.leaves(number, word) {
            return;
        }
        let mark = self.mark(word);
        self.prepend_at(number, mark);
    }

    fn prepend_at(&mut self, number: usize, mark: u8) {
        let level = self.place(mark);
        if self.filled >> level & 1 == 0 {
            self.filled |= 1 << level;
            self.notes[number].next = 0;
            self.tail[level] = number as u16;
        } else {
            self.notes[number].next = self.head[level];
        }
        self.head[level] = number as u16;
        self.notes[number].level = mark;
    }

    /// Takes the first thread of the highest queue; 0 if there is none.
    #[inline(always)]
    pub fn take(&mut self) -> usize {
        if self.filled == 0 {
            return 0;
        }
        let level = 63 - self.filled.leading_zeros() as usize;
        let number = self.head[level] as usize;
        self.head[level] = self.notes[number].next;
        if self.head[level] == 0 {
            self.filled &= !(1 << level);
        }
        // That stays in `next`, so that the thread can be put back.
        let mark = core::mem::take(&mut self.notes[number].level);
        self.notes[number].next = mark.into();
        if mark & SHARE != 0 {
            self.shares.run();
        }
        number
    }

    /// As appending and taking, if the thread is in no queue and what is taken has its priority and is not itself. It may be in
    /// one: see [`Self::prepend`]. `word` is that of a thread.
    #[inline(always)]
    pub fn rotate(&mut self, word: ThreadWord) -> Option<usize> {
        let (last, level) = (word.number() % NOTES, level_of(word.priority()));
        // Its level is not empty, and the highest that is not.
        if self.notes[last].level != 0 || self.filled >> level != 1 {
            return None;
        }
        let number = self.head[level] as usize;
        self.notes[last].next = 0;
        self.notes[self.tail[level] as usize].next = last as u16;
        self.tail[level] = last as u16;
        self.notes[last].level = level as u8 + 1;
        self.head[level] = self.notes[number].next;
        self.notes[number].level = 0;
        self.notes[number].next = level as u16 + 1;
        Some(number)
    }

    /// As appending and taking, if that gives the same thread.
    #[inline(always)]
    pub fn pass(&mut self, word: ThreadWord) -> Option<usize> {
        let (number, level) = (word.number() % NOTES, level_of(word.priority()));
        if number == 0 || word.share() != 0 || self.notes[number].level != 0 || self.filled >> level != 0 {
            return None;
        }
        self.notes[number].next = level as u16 + 1;
        Some(number)
    }

    /// Puts back what [`Self::take`] gave last.
    pub fn put_back(&mut self, number: usize) {
        let number = number % NOTES;
        let mark = self.notes[number].next as u8;
        self.prepend_at(number, mark);
    }
}
