//! The ring: nothing is lost, doubled or overwritten, whenever the reader comes, also when it is full.

use crate::atomic::{AtomicU32, Ordering};
use crate::machine::{Fault, explore};
use crate::ring::Ring;
use loom::sync::Arc;
use loom::thread;

/// The page that both sides see, with two slots; and by thread what the writer did before it wrote the word.
#[derive(Clone)]
struct Page(Arc<(AtomicU32, AtomicU32, [AtomicU32; 2], [AtomicU32; 4])>);

impl Page {
    fn new() -> Self {
        let zero = || AtomicU32::new(0);
        Self(Arc::new((zero(), zero(), [zero(), zero()], [zero(), zero(), zero(), zero()])))
    }
    fn ring(&self) -> Ring<'_> {
        Ring { written: &self.0.0, read: &self.0.1, slots: &self.0.2 }
    }
    /// As [`Ring::take`], or with a fault.
    fn take(&self, fault: Fault) -> Option<u32> {
        if fault != Fault::Swapped {
            let word = self.ring().take()?;
            let done = self.0.3[word as usize / 10].load(Ordering::Relaxed);
            assert!(done >= word, "writes before {word} are not seen, only {done}");
            return Some(word);
        }
        let (written, read, slots, _) = &*self.0;
        let at = read.load(Ordering::Relaxed);
        if written.load(Ordering::Acquire) == at {
            return None;
        }
        // Not in one step.
        let slot = &slots[at as usize % 2];
        let word = slot.load(Ordering::Relaxed);
        slot.store(0, Ordering::Release);
        read.store(at.wrapping_add(1), Ordering::Release);
        Some(word)
    }
    /// As [`Ring::post`], or with a fault.
    fn post(&self, fault: Fault, word: u32, posted: u32) -> Option<u32> {
        let same = |old: u32| old / 10 == word / 10;
        let (written, _, slots, done) = &*self.0;
        done[word as usize / 10].store(word, Ordering::Relaxed);
        match fault {
            // Counts before it writes.
            Fault::LeftOut => {
                let at = written.load(Ordering::Relaxed);
                written.store(at.wrapping_add(1), Ordering::Release);
                slots[at as usize % 2].store(word, Ordering::Release);
                Some(at)
            }
            // Does not ask whether the slot is free.
            Fault::Overwritten => {
                let at = written.load(Ordering::Relaxed);
                slots[at as usize % 2].store(word, Ordering::Relaxed);
                written.store(at.wrapping_add(1), Ordering::Release);
                Some(at)
            }
            // Replaces without asking whether it is still there.
            Fault::NoFence => {
                let slot = &slots[posted as usize % 2];
                if same(slot.load(Ordering::Relaxed)) {
                    slot.store(word, Ordering::Release);
                    return Some(posted);
                }
                self.ring().post(word, posted, same)
            }
            _ => self.ring().post(word, posted, same),
        }
    }
}

/// Threads 1 to 3 become ready; `words` are thread * 10 + how often. The reader comes at any time, so many times. A thread that finds
/// the ring full is posted later, as the nucleus does.
fn model(fault: Fault, words: &'static [u32], takes: usize, start: u32) {
    let page = Page::new();
    for counter in [&page.0.0, &page.0.1] {
        counter.store(start, Ordering::Relaxed);
    }
    let reader = page.clone();
    let reader = thread::spawn(move || (0..takes).filter_map(|_| reader.take(fault)).collect::<Vec<_>>());
    let mut posted = [start; 4];
    let mut late = [0; 4];
    for word in words {
        let thread = *word as usize / 10;
        match page.post(fault, *word, posted[thread]) {
            Some(at) => posted[thread] = at,
            None => late[thread] = *word,
        }
    }
    let mut seen = reader.join().unwrap();
    loop {
        while let Some(word) = page.take(Fault::None) {
            seen.push(word);
        }
        let Some(word) = late.iter_mut().find(|word| **word != 0) else { break };
        let word = core::mem::take(word);
        assert!(page.post(Fault::None, word, posted[word as usize / 10]).is_some(), "all was read, and it is full");
    }
    assert!(!page.ring().is_unread());
    for thread in 1..4 {
        let of = |words: &[u32]| words.iter().copied().filter(|word| *word / 10 == thread).collect::<Vec<_>>();
        let (sent, came) = (of(words), of(&seen));
        assert_eq!(sent.last(), came.last(), "the last word about a thread is lost: {words:?} sent, {seen:?} came");
        assert!(came.is_sorted_by(|a, b| a < b), "out of order or doubled: {words:?} sent, {seen:?} came");
    }
    assert!(!seen.contains(&0), "an empty slot was read: {seen:?}");
}

pub fn replaced() {
    explore(None, || model(Fault::None, &[11, 21, 12], 2, 0));
}

#[test]
fn replaced_against_taken() {
    replaced();
}

#[test]
fn three_threads_in_two_slots() {
    explore(Some(3), || model(Fault::None, &[11, 21, 31], 2, 0));
}

#[test]
#[should_panic(expected = "is lost")]
fn a_full_ring_is_overwritten() {
    explore(None, || model(Fault::Overwritten, &[11, 21, 31], 1, 0));
}

pub fn a_slot_for_each() {
    explore(Some(2), || model(Fault::None, &[11, 21, 12, 22], 2, 0));
}

#[test]
fn a_slot_for_each_is_enough() {
    explore(Some(3), || model(Fault::None, &[11, 21, 12, 22, 13], 3, 0));
}

#[test]
fn counters_run_over() {
    explore(Some(4), || model(Fault::None, &[11, 21, 12, 22], 3, u32::MAX));
}

#[test]
#[should_panic(expected = "is lost")]
fn taken_in_two_steps() {
    explore(None, || model(Fault::Swapped, &[11, 12], 1, 0));
}

#[test]
#[should_panic(expected = "is lost")]
fn counted_before_it_is_there() {
    explore(None, || model(Fault::LeftOut, &[11, 21], 2, 0));
}

#[test]
#[should_panic(expected = "is lost")]
fn replaced_without_asking() {
    explore(None, || model(Fault::NoFence, &[11, 12], 1, 0));
}
