//! A borrower hands its window on to a third domain on CPU 1, while CPU 0 unmaps the page, or while the lender or the borrower dies. When that
//! is done, nobody reads the page through either slot.
//!
//! In the nucleus: a window that is handed on is opened under the lock, from the page's entry in the lender's space (`lend::check`); its
//! return may take the fast path. Unmapping follows the chain upwards from the lender (`lend::take_back_above`). A death splits the chain,
//! which does the same from the callee of the split (`lend::cut`), and closes the window of the activation that is cut out (`cut_out` in
//! `control/chain.rs`). A page fault follows the chain downwards: below a split it shows scrap.

use crate::machine::{Fault, Machine, Plain, explore, relax};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

const ELSEWHERE: u32 = 0;
const LENDER: u32 = 1;
const BORROWER: u32 = 2;
const THIRD: u32 = 3;
/// Targets of an entry.
const NONE: u32 = 0;
const PAGE: u32 = 1;
const SCRAP: u32 = 2;

struct World {
    machine: Arc<Machine>,
    /// The page's entry in the lender's space.
    page: AtomicU32,
    /// The entries for the slots of the borrower and of the third domain, as CPU 1 sees them.
    slots: [AtomicU32; 2],
    /// Not 0: returns take the slow path.
    slow: AtomicU32,
    /// Domains of CPU 1's chain, whose activations above the lender have a record. Without the lock only CPU 1 changes it.
    chain: Plain<Vec<u32>>,
    /// Under the lock: the domain that is dead.
    dead: Plain<u32>,
    /// The page's frame was released, and others use it.
    is_reused: AtomicBool,
}

/// CPU 1's translation of the slot of the domain it is in, if it has one.
type Translation = Option<u32>;

/// The slot of the activation in a domain.
fn slot_of(domain: u32) -> Option<usize> {
    [BORROWER, THIRD].iter().position(|borrower| *borrower == domain)
}

impl World {
    fn domain(&self) -> u32 {
        self.machine.cpus[1].domain.load(Ordering::Relaxed)
    }

    /// The page, if the chain below leads to it.
    fn shown(&self) -> u32 {
        let leads_there = self.chain.read(|chain| chain[0] == LENDER) && self.dead.read(|dead| *dead != LENDER);
        if leads_there { self.page.load(Ordering::Relaxed) } else { NONE }
    }

    /// CPU 1 goes to another space.
    fn go(&self, domain: u32, translation: &mut Translation) {
        self.machine.go(1, domain);
        *translation = None;
    }

    /// A slow entry of CPU 1: it does what was left to it, and leaves a domain that is dead.
    fn enter(&self, translation: &mut Translation) {
        let left = self.machine.enter(1);
        if left.flush {
            *translation = None;
        }
        if left.needs_recheck && self.dead.read(|dead| *dead == self.domain()) {
            self.end_call(translation);
        }
    }

    /// In user mode on CPU 1: takes an interrupt that came.
    fn user(&self, translation: &mut Translation) {
        if self.machine.is_interrupted(1) {
            self.enter(translation);
            self.machine.leave();
        }
    }

    /// CPU 1 goes on in the domain below, and the window closes.
    fn end_call(&self, translation: &mut Translation) {
        if let Some(slot) = slot_of(self.domain()) {
            self.slots[slot].store(NONE, Ordering::Relaxed);
        }
        let below = self.chain.change(|chain| {
            chain.pop();
            chain.last().copied()
        });
        self.go(below.unwrap_or(ELSEWHERE), translation);
    }

    /// CPU 1 hands the borrower's window on.
    fn hand_on(&self, translation: &mut Translation) {
        self.user(translation);
        if self.domain() != BORROWER {
            return;
        }
        let early = (self.machine.fault == Fault::Swapped).then(|| self.page.load(Ordering::Relaxed));
        self.enter(translation);
        if self.domain() == BORROWER {
            self.slots[1].store(early.unwrap_or_else(|| self.shown()), Ordering::Relaxed);
            self.chain.change(|chain| chain.push(THIRD));
            self.go(THIRD, translation);
        }
        self.machine.leave();
    }

    /// CPU 1 reads through the window of the domain it is in.
    fn look(&self, translation: &mut Translation) {
        self.user(translation);
        let Some(slot) = slot_of(self.domain()) else { return };
        let is_reused = self.is_reused.load(Ordering::Relaxed);
        let seen = translation.unwrap_or_else(|| self.slots[slot].load(Ordering::Relaxed));
        assert!(!is_reused || seen != PAGE, "a page that others have is read");
        if seen == NONE {
            self.page_fault(slot, translation);
        } else {
            *translation = Some(seen);
        }
    }

    fn page_fault(&self, slot: usize, translation: &mut Translation) {
        self.enter(translation);
        if slot_of(self.domain()) == Some(slot) {
            let page = self.shown();
            self.slots[slot].store(if page == NONE { SCRAP } else { page }, Ordering::Relaxed);
        }
        self.machine.leave();
    }

    /// CPU 1 returns.
    fn back(&self, translation: &mut Translation) {
        self.user(translation);
        let from = self.domain();
        if slot_of(from).is_none() {
            return;
        }
        let is_slow = self.slow.load(Ordering::Relaxed) != 0;
        if is_slow {
            self.enter(translation);
        }
        if self.domain() == from {
            self.end_call(translation);
        }
        if is_slow {
            if self.dead.read(|dead| *dead == self.domain()) {
                self.end_call(translation);
            }
            self.machine.leave();
        }
    }

    /// CPU 1 has nothing to run: it leaves the space, and sleeps.
    fn sleep(&self, translation: &mut Translation) {
        self.enter(translation);
        self.go(ELSEWHERE, translation);
        self.machine.cpus[1].quiescent.begin();
        self.machine.leave();
    }

    /// With the lock: a slot shows nothing.
    fn clear(&self, slot: usize) {
        self.slots[slot].store(NONE, Ordering::Relaxed);
        for which in self.machine.stop_in(0, 1, [BORROWER, THIRD][slot]) {
            self.machine.leave_to(which, |left| left.flush = true);
        }
    }

    /// CPU 0, in another thread of the lender, unmaps the page.
    fn unmap(&self) {
        self.machine.enter(0);
        self.page.store(NONE, Ordering::Relaxed);
        self.machine.stop(1);
        let chain = self.chain.read(Vec::clone);
        if chain.first() == Some(&LENDER) {
            let follow = if self.machine.fault == Fault::LeftOut { 1 } else { usize::MAX };
            chain.iter().filter_map(|domain| slot_of(*domain)).take(follow).for_each(|slot| self.clear(slot));
        }
        self.is_reused.store(true, Ordering::Relaxed);
        self.machine.leave();
    }

    /// CPU 0 kills a domain, and cuts it out of the chain.
    fn die(&self, domain: u32) {
        let machine = &self.machine;
        machine.enter(0);
        self.slow.store(1, Ordering::Relaxed);
        machine.stop(1);
        self.dead.change(|dead| *dead = domain);
        if self.domain() == domain {
            machine.leave_to(1, |left| left.needs_recheck = true);
        }
        machine.leave();
        let mut relax = relax();
        machine.enter(0);
        while machine.cpus[1].domain.load(Ordering::Acquire) == domain {
            machine.send(1);
            machine.leave();
            relax();
            machine.enter(0);
        }
        machine.stop(1);
        if let Some(at) = self.chain.read(|chain| chain.iter().position(|each| *each == domain)) {
            // The part below is another chain then.
            let above = self.chain.change(|chain| {
                chain.drain(..=at);
                chain.clone()
            });
            // The split leaves the windows that were handed on.
            let first = if machine.fault == Fault::LeftOut { THIRD } else { u32::MAX };
            above
                .iter()
                .filter(|each| **each < first)
                .filter_map(|each| slot_of(*each))
                .for_each(|slot| self.clear(slot));
            slot_of(domain).into_iter().for_each(|slot| self.clear(slot));
        }
        if domain == LENDER {
            self.is_reused.store(true, Ordering::Relaxed);
        }
        machine.leave();
    }

    fn lender_dies(&self) {
        self.die(LENDER);
    }

    fn borrower_dies(&self) {
        self.die(BORROWER);
    }
}

/// CPU 1, which serves the lender in the borrower, hands the window on, while CPU 0 does these steps.
fn model(fault: Fault, steps: &[fn(&World)]) {
    let world = Arc::new(World {
        machine: Machine::new(fault),
        page: AtomicU32::new(PAGE),
        slots: [AtomicU32::new(PAGE), AtomicU32::new(NONE)],
        slow: AtomicU32::new(0),
        chain: Plain::new(vec![LENDER, BORROWER]),
        dead: Plain::new(ELSEWHERE),
        is_reused: AtomicBool::new(false),
    });
    world.machine.cpus[1].domain.store(BORROWER, Ordering::Relaxed);
    let other = world.clone();
    let other = thread::spawn(move || {
        let mut translation = None;
        other.hand_on(&mut translation);
        other.look(&mut translation);
        other.look(&mut translation);
        other.back(&mut translation);
        other.look(&mut translation);
        other.back(&mut translation);
        other.sleep(&mut translation);
    });
    steps.iter().for_each(|step| step(&world));
    other.join().unwrap();
}

const UNMAP: &[fn(&World)] = &[World::unmap];
const LENDER_DIES: &[fn(&World)] = &[World::lender_dies];
const BORROWER_DIES: &[fn(&World)] = &[World::borrower_dies, World::unmap];

#[test]
fn against_unmapping() {
    explore(Some(3), || model(Fault::None, UNMAP));
}

#[test]
fn against_death_of_the_lender() {
    explore(Some(3), || model(Fault::None, LENDER_DIES));
}

#[test]
fn against_death_of_the_borrower() {
    explore(Some(3), || model(Fault::None, BORROWER_DIES));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn unmapping_does_not_follow_the_window() {
    explore(Some(3), || model(Fault::LeftOut, UNMAP));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_death_of_the_lender_does_not_follow_the_window() {
    explore(Some(3), || model(Fault::LeftOut, LENDER_DIES));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_death_of_the_borrower_leaves_the_window_above() {
    explore(Some(3), || model(Fault::LeftOut, BORROWER_DIES));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn checked_before_the_lock() {
    explore(Some(3), || model(Fault::Swapped, UNMAP));
}

#[test]
#[should_panic(expected = "a page that others have is read")]
fn the_third_keeps_the_translation() {
    explore(Some(3), || model(Fault::Forgets, UNMAP));
}
