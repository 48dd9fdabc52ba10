//! One queue per priority, linked through arrays; a bit says which are not empty.

use crate::level::level_of;
use crate::shares::Shares;
use abi::sched::ThreadWord;
use abi::{MAX_THREADS, PRIORITIES};

/// All queues. Thread 0 is none: links of 0 end a queue.
pub struct Queues {
    filled: u64,
    head: [u16; PRIORITIES],
    tail: [u16; PRIORITIES],
    next: [u16; MAX_THREADS],
    /// Level of a queued thread plus one, and [`SHARE`] if it has a share of time; 0 = not queued.
    level: [u8; MAX_THREADS],
    /// What threads with a share of time use.
    shares: Shares,
}

/// A queued thread has a share of time: its level is the one noted until that is used up.
const SHARE: u8 = 0x80;

impl Default for Queues {
    fn default() -> Self {
        Self::new()
    }
}

impl Queues {
    /// Nothing is queued.
    pub const fn new() -> Self {
        Self {
            filled: 0,
            head: [0; PRIORITIES],
            tail: [0; PRIORITIES],
            next: [0; MAX_THREADS],
            level: [0; MAX_THREADS],
            shares: Shares::new(),
        }
    }

    /// Puts a thread at the end of its queue, or, if it is in one, into that of the priority that it has now.
    pub fn append(&mut self, word: ThreadWord) {
        let number = word.number() % MAX_THREADS;
        if self.level[number] == 0 || self.leaves(number, word) {
            self.append_new(word);
        }
    }

    /// Puts a thread that is in no queue at the end of its queue.
    #[inline(always)]
    pub fn append_new(&mut self, word: ThreadWord) {
        let number = word.number() % MAX_THREADS;
        if number == 0 {
            return;
        }
        let mark = self.mark(word);
        self.append_marked(number, mark);
    }

    #[inline(always)]
    fn append_marked(&mut self, number: usize, mark: u8) {
        let level = self.place(mark);
        self.next[number] = 0;
        if self.filled >> level & 1 == 0 {
            self.filled |= 1 << level;
            self.head[level] = number as u16;
        } else {
            self.next[self.tail[level] as usize % MAX_THREADS] = number as u16;
        }
        self.tail[level] = number as u16;
        self.level[number] = mark;
    }

    /// What is noted of a thread when it is queued.
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
        self.level[number] != self.mark(word) && self.remove(number)
    }

    /// Whether a thread with a share of time is queued or runs: then [`Self::look`] is to come before [`Self::take`], and neither
    /// [`Self::rotate`] nor [`Self::pass`] will do.
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.shares.watched != 0
    }

    /// What had a share ran until `now`, in ticks, of which `period` are a period. True if threads with a share were queued elsewhere,
    /// because it is used up, or a new period began.
    pub fn look(&mut self, now: u64, period: u64) -> bool {
        let turns = self.shares.look(self.filled, now, period);
        if turns {
            for number in 1..MAX_THREADS {
                let mark = self.level[number];
                // From where it was to where it belongs now; for those that come after it the change is still to be made.
                if mark & SHARE != 0 && self.remove(number) {
                    self.shares.over ^= true;
                    self.append_marked(number, mark);
                    self.shares.over ^= true;
                }
            }
            self.shares.over ^= true;
        }
        turns
    }

    /// Takes a thread out of its queue. False if it is in none.
    pub fn remove(&mut self, number: usize) -> bool {
        let number = number % MAX_THREADS;
        let Some(level) = self.level(number) else { return false };
        let (mut previous, mut at) = (0, self.head[level] as usize % MAX_THREADS);
        while at != number && at != 0 {
            (previous, at) = (at, self.next[at] as usize % MAX_THREADS);
        }
        match previous {
            0 => self.head[level] = self.next[number],
            _ => self.next[previous] = self.next[number],
        }
        if self.tail[level] as usize == number {
            self.tail[level] = previous as u16;
        }
        if self.head[level] == 0 {
            self.filled &= !(1 << level);
        }
        self.level[number] = 0;
        true
    }

    /// The level at which a thread is queued, if it is.
    #[inline(always)]
    pub fn level(&self, number: usize) -> Option<usize> {
        let mark = self.level[number % MAX_THREADS];
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
            let mut at = self.head[level] as usize % MAX_THREADS;
            while at != 0 {
                if looked == limit || !look(at, level) {
                    return;
                }
                (looked, at) = (looked + 1, self.next[at] as usize % MAX_THREADS);
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
        let number = word.number() % MAX_THREADS;
        if number == 0 || self.level[number] != 0 && !self.leaves(number, word) {
            return;
        }
        let mark = self.mark(word);
        self.prepend_at(number, mark);
    }

    fn prepend_at(&mut self, number: usize, mark: u8) {
        let level = self.place(mark);
        if self.filled >> level & 1 == 0 {
            self.filled |= 1 << level;
            self.next[number] = 0;
            self.tail[level] = number as u16;
        } else {
            self.next[number] = self.head[level];
        }
        self.head[level] = number as u16;
        self.level[number] = mark;
    }

    /// Takes the first thread of the highest queue; 0 if there is none.
    #[inline(always)]
    pub fn take(&mut self) -> usize {
        if self.filled == 0 {
            return 0;
        }
        let level = 63 - self.filled.leading_zeros() as usize;
        let number = self.head[level] as usize % MAX_THREADS;
        self.head[level] = self.next[number];
        if self.head[level] == 0 {
            self.filled &= !(1 << level);
        }
        // That stays in `next`, so that the thread can be put back.
        let mark = core::mem::take(&mut self.level[number]);
        self.next[number] = mark.into();
        if mark & SHARE != 0 {
            self.shares.run();
        }
        number
    }

    /// As appending and taking, if the thread is in no queue and what is taken has its priority and is not itself. It may be in
    /// one: see [`Self::prepend`]. `word` is that of a thread.
    #[inline(always)]
    pub fn rotate(&mut self, word: ThreadWord) -> Option<usize> {
        let (last, level) = (word.number() % MAX_THREADS, level_of(word.priority()));
        // Its level is not empty, and the highest that is not.
        if self.level[last] != 0 || self.filled >> level != 1 {
            return None;
        }
        let number = self.head[level] as usize % MAX_THREADS;
        self.next[last] = 0;
        self.next[self.tail[level] as usize % MAX_THREADS] = last as u16;
        self.tail[level] = last as u16;
        self.level[last] = level as u8 + 1;
        self.head[level] = self.next[number];
        self.level[number] = 0;
        self.next[number] = level as u16 + 1;
        Some(number)
    }

    /// As appending and taking, if that gives the same thread.
    #[inline(always)]
    pub fn pass(&mut self, word: ThreadWord) -> Option<usize> {
        let (number, level) = (word.number() % MAX_THREADS, level_of(word.priority()));
        if number == 0 || word.share() != 0 || self.level[number] != 0 || self.filled >> level != 0 {
            return None;
        }
        self.next[number] = level as u16 + 1;
        Some(number)
    }

    /// Puts back what [`Self::take`] gave last.
    pub fn put_back(&mut self, number: usize) {
        let number = number % MAX_THREADS;
        let mark = self.next[number] as u8;
        self.prepend_at(number, mark);
    }
}
