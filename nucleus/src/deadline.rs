//! Threads whose wait has a deadline, in a binary heap (Williams, Algorithm 232): the earliest first.

use crate::pointer::{Link, Nucleus, Ref};
use crate::thread::Thread;
use abi::{MAX_THREADS, NEVER};

struct Heap {
    threads: [Link<Thread>; MAX_THREADS],
    count: usize,
}

static HEAP: Nucleus<Heap> = Nucleus::new(Heap { threads: [None; MAX_THREADS], count: 0 });

impl Heap {
    fn at(&self, place: usize) -> u64 {
        self.threads[place].map_or(NEVER, |thread| thread.deadline)
    }
    fn put(&mut self, place: usize, thread: Link<Thread>) {
        self.threads[place] = thread;
        if let Some(mut thread) = thread {
            thread.deadline_place = place as u16 + 1;
        }
    }
    fn swap(&mut self, a: usize, b: usize) {
        let (first, second) = (self.threads[a], self.threads[b]);
        self.put(a, second);
        self.put(b, first);
    }
    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.at(place) < self.at((place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }
    fn sink(&mut self, mut place: usize) {
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.count && self.at(child) < self.at(least) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }
}

/// Adds a thread by its `deadline`.
pub fn insert(thread: Ref<Thread>) {
    let heap = HEAP.get();
    let place = heap.count;
    heap.count += 1;
    heap.put(place, Some(thread));
    heap.rise(place);
    if place == 0 || heap.threads[0] == Some(thread) {
        crate::arch::timer::arm_no_later_than(thread.deadline);
    }
}

/// Takes a thread out if it is in.
pub fn remove(mut thread: Ref<Thread>) {
    if thread.deadline_place == 0 {
        return;
    }
    let heap = HEAP.get();
    let place = thread.deadline_place as usize - 1;
    thread.deadline_place = 0;
    heap.count -= 1;
    let last = heap.threads[heap.count].take();
    if place < heap.count {
        heap.put(place, last);
        heap.rise(place);
        heap.sink(place);
    }
}

/// The earliest deadline in ticks.
pub fn earliest() -> u64 {
    let heap = HEAP.get();
    if heap.count == 0 { NEVER } else { heap.at(0) }
}

/// Takes out the earliest if it is not later than `now`.
pub fn take_due(now: u64) -> Link<Thread> {
    let heap = HEAP.get();
    let first = heap.threads[0].filter(|thread| heap.count > 0 && thread.deadline <= now)?;
    remove(first);
    Some(first)
}
