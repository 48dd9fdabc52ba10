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
const fn level_of(priority: u8) -> usize {
    let level = priority as usize % PRIORITIES;
    if cfg!(feature = "reversed") { PRIORITIES - 1 - level } else { level }
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
        let level = self.level[number] as usize - 1;
        if level == level_of(word.priority()) {
            return false;
        }
        let (mut previous, mut at) = (0, self.head[level] as usize);
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

    /// Puts a thread at the head of its queue.
    pub fn prepend(&mut self, word: ThreadWord) {
        let number = word.number() % MAX_THREADS;
        if number == 0 || self.level[number] != 0 {
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

    /// Puts back what [`Self::take`] gave last.
    pub fn put_back(&mut self, number: usize) {
        let number = number % MAX_THREADS;
        let level = self.next[number] as usize % PRIORITIES;
        self.prepend_at(number, level);
    }
}
