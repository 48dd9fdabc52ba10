//! A page that a caller lends goes from its space while another CPU makes the call, serves it, or returns; or while a call stands still
//! there, and another thread of its domain looks through the window. When that is done, nobody reads the page any more.

use crate::machine::{Fault, Machine, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

const ELSEWHERE: u32 = 0;
const CALLER: u32 = 1;
const CALLEE: u32 = 2;
/// The values of an entry.
const NONE: u32 = 0;
const MAPPED: u32 = 1;
/// States of the caller's activation.
const TOP: u32 = 1;
const CALLING: u32 = 2;

struct World {
    machine: Arc<Machine>,
    /// The page in the caller's space.
    page: AtomicU32,
    /// The slot of the window, as CPU 1 sees it.
    slot: AtomicU32,
    state: AtomicU32,
    /// Taking the page back has returned.
    gone: AtomicBool,
    /// The thread with the window runs.
    runs: bool,
}

impl World {
    fn new(fault: Fault, runs: bool, domain: u32) -> Arc<Self> {
        let machine = Machine::new(fault);
        machine.cpus[1].domain.store(domain, Ordering::Relaxed);
        Arc::new(Self {
            machine,
            page: AtomicU32::new(MAPPED),
            slot: AtomicU32::new(if runs { NONE } else { MAPPED }),
            state: AtomicU32::new(if runs { TOP } else { CALLING }),
            gone: AtomicBool::new(false),
            runs,
        })
    }

    /// The call of CPU 1, on the fast path: no interrupt comes in between.
    fn call(&self) {
        let page = self.page.load(Ordering::Relaxed);
        self.slot.store(page, Ordering::Relaxed);
        if self.machine.fault == Fault::Swapped {
            self.machine.go(1, CALLEE);
            self.state.store(CALLING, Ordering::Release);
        } else {
            self.state.store(CALLING, Ordering::Release);
            self.machine.go(1, CALLEE);
        }
    }

    /// Its return.
    fn back(&self, translation: &mut Option<u32>) {
        self.slot.store(NONE, Ordering::Relaxed);
        self.state.store(TOP, Ordering::Release);
        self.machine.go(1, CALLER);
        *translation = None;
    }

    /// In user mode, on CPU 1: takes an interrupt that came, and reads through the window.
    fn look(&self, translation: &mut Option<u32>) {
        if self.machine.user(1).flush {
            *translation = None;
        }
        let gone = self.gone.load(Ordering::Relaxed);
        let seen = *translation.get_or_insert_with(|| self.slot.load(Ordering::Relaxed));
        assert!(!gone || seen == NONE, "a page that is gone");
    }

    /// CPU 0 takes the page back.
    fn take_back(&self) {
        self.machine.enter(0);
        self.page.store(NONE, Ordering::Relaxed);
        if self.machine.fault != Fault::StopsTooFew {
            self.machine.stop_in(0, 1, CALLER).for_each(drop);
        }
        if self.state.load(Ordering::Acquire) == CALLING {
            if self.runs {
                self.machine.stop(1);
            }
            if self.state.load(Ordering::Relaxed) == CALLING {
                self.slot.store(NONE, Ordering::Relaxed);
                self.invalidate();
            }
        }
        self.machine.leave();
        self.gone.store(true, Ordering::Relaxed);
    }

    /// Drops CPU 1's translation of the slot.
    fn invalidate(&self) {
        if self.machine.fault == Fault::LeftOut {
            // Asked where it is without a fence.
            if self.machine.cpus[1].domain.load(Ordering::Acquire) == CALLEE {
                self.machine.stop(1);
                self.machine.leave_to(1, |left| left.flush = true);
            }
            return;
        }
        for which in self.machine.stop_in(0, 1, CALLEE) {
            self.machine.leave_to(which, |left| left.flush = true);
        }
    }
}

/// CPU 1, which is in the caller or comes there, calls, looks twice, and returns.
fn calls(fault: Fault, from: u32) {
    let world = World::new(fault, true, from);
    let other = world.clone();
    let other = thread::spawn(move || {
        let mut translation = None;
        if from != CALLER {
            other.machine.go(1, CALLER);
        }
        other.call();
        other.look(&mut translation);
        other.look(&mut translation);
        other.back(&mut translation);
        other.machine.sleep(1);
    });
    world.take_back();
    other.join().unwrap();
}

/// The call stands still; another thread of its domain comes to CPU 1 and looks.
fn another_looks(fault: Fault) {
    let world = World::new(fault, false, ELSEWHERE);
    let other = world.clone();
    let other = thread::spawn(move || {
        let mut translation = None;
        other.machine.go(1, CALLEE);
        other.look(&mut translation);
        other.look(&mut translation);
        other.machine.sleep(1);
    });
    world.take_back();
    other.join().unwrap();
}

#[test]
fn against_who_calls() {
    explore(Some(3), || calls(Fault::None, CALLER));
}

#[test]
fn against_who_comes_and_calls() {
    explore(Some(3), || calls(Fault::None, ELSEWHERE));
}

#[test]
fn against_who_looks_beside() {
    explore(Some(3), || another_looks(Fault::None));
}

#[test]
#[should_panic(expected = "a page that is gone")]
fn stopping_too_few_cpus_shows_a_page_that_is_gone() {
    explore(Some(3), || calls(Fault::StopsTooFew, CALLER));
}

#[test]
#[should_panic(expected = "a page that is gone")]
fn no_fence_before_asking_who_is_there() {
    explore(Some(3), || calls(Fault::NoFence, ELSEWHERE));
}

#[test]
#[should_panic(expected = "a page that is gone")]
fn the_domain_is_written_before_the_state() {
    explore(Some(3), || calls(Fault::Swapped, CALLER));
}

#[test]
#[should_panic(expected = "a page that is gone")]
fn no_fence_before_asking_who_is_in_the_callee() {
    explore(None, || another_looks(Fault::LeftOut));
}
