//! One queue per priority, linked through arrays; a bit says which are not empty.

use abi::sched::ThreadWord;
use abi::{MAX_THREADS, PRIORITIES};

/// All queues. Thread 0 is none: links of 0 end a queue.
pub struct Queues {
    filled: u64,
    head: [u16; PRIORITIES],
    tail: [u16; PRIORITIES],
    next: [u16; MAX_THREADS],
    /// Level of a queued thread plus one; 0 = not queued.
    level: [u8; MAX_THREADS],
}

/// The queue of a priority: the highest is taken first.
#[inline(always)]
pub const fn level_of(priority: u8) -> usize {
    let level = priority as usize % PRIORITIES;
    if cfg!(feature = "reversed") { PRIORITIES - 1 - level } else { level }
}

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
        let level = level_of(word.priority());
        self.next[number] = 0;
        if self.filled >> level & 1 == 0 {
            self.filled |= 1 << level;
            self.head[level] = number as u16;
        } else {
            self.next[self.tail[level] as usize % MAX_THREADS] = number as u16;
        }
        self.tail[level] = number as u16;
        self.level[number] = level as u8 + 1;
    }

    /// Takes a queued thread out if its priority is another one now.
    #[cold]
    fn leaves(&mut self, number: usize, word: ThreadWord) -> bool {
        self.level(number) != Some(level_of(word.priority())) && self.remove(number)
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
    pub fn level(&self, number: usize) -> Option<usize> {
        (self.level[number % MAX_THREADS] as usize).checked_sub(1)
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
        self.prepend_at(number, level_of(word.priority()));
    }

    fn prepend_at(&mut self, number: usize, level: usize) {
        if self.filled >> level & 1 == 0 {
            self.filled |= 1 << level;
            self.next[number] = 0;
            self.tail[level] = number as u16;
        } else {
            self.next[number] = self.head[level];
        }
        self.head[level] = number as u16;
        self.level[number] = level as u8 + 1;
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
        self.level[number] = 0;
        // The level stays in `next`, so that the thread can be put back.
        self.next[number] = level as u16;
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
        self.next[number] = level as u16;
        Some(number)
    }

    /// As appending and taking, if that gives the same thread.
    #[inline(always)]
    pub fn pass(&mut self, word: ThreadWord) -> Option<usize> {
        let (number, level) = (word.number() % MAX_THREADS, level_of(word.priority()));
        if number == 0 || self.level[number] != 0 || self.filled >> level != 0 {
            return None;
        }
        self.next[number] = level as u16;
        Some(number)
    }

    /// Puts back what [`Self::take`] gave last.
    pub fn put_back(&mut self, number: usize) {
        let number = number % MAX_THREADS;
        let level = self.next[number] as usize % PRIORITIES;
        self.prepend_at(number, level);
    }
}
