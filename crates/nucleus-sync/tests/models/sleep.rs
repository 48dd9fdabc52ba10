//! A CPU goes to sleep, or to something unimportant, while another has something for it: it comes to it.

use crate::atomic;
use crate::machine::{Fault, Machine, explore};
use crate::ring::Ring;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

/// The state of a CPU: its scheduler, nothing, or a thread of low priority.
const SCHEDULER: u32 = 0;
const NOTHING: u32 = 1;
const UNIMPORTANT: u32 = 2;

struct Scheduler {
    machine: Arc<Machine>,
    ring: (atomic::AtomicU32, atomic::AtomicU32, [atomic::AtomicU32; 2]),
    /// The thread that CPU 1 runs.
    runs: AtomicU32,
}

impl Scheduler {
    fn new(fault: Fault) -> Arc<Self> {
        let zero = || atomic::AtomicU32::new(0);
        Arc::new(Self {
            machine: Machine::new(fault),
            ring: (zero(), zero(), [zero(), zero()]),
            runs: AtomicU32::new(SCHEDULER),
        })
    }

    fn ring(&self) -> Ring<'_> {
        Ring { written: &self.ring.0, read: &self.ring.1, slots: &self.ring.2 }
    }

    /// Something became ready: it goes to the ring of CPU 1, which hears of it if it would not look there by itself.
    fn wake(&self, me: usize, word: u32) {
        self.machine.enter(me);
        self.ring().post(word, word - 1, |old| old == word);
        let runs = self.runs.load(Ordering::Relaxed);
        if runs != SCHEDULER && self.machine.fault != Fault::LeftOut {
            self.machine.send(1);
        }
        self.machine.leave();
    }

    /// DISPATCH on CPU 1: goes there, unless the ring has something. Comes back to the scheduler when an interrupt comes.
    fn dispatch(&self, to: u32) {
        let machine = &self.machine;
        let early = machine.fault == Fault::LooksTooEarly;
        let unread = early && self.ring().is_unread();
        machine.enter(1);
        if if early { unread } else { self.ring().is_unread() } {
            machine.leave();
            return;
        }
        if machine.fault != Fault::Swapped {
            self.runs.store(to, Ordering::Relaxed);
        }
        if to == NOTHING {
            machine.cpus[1].quiescent.begin();
        }
        machine.leave();
        if machine.fault == Fault::Swapped {
            self.runs.store(to, Ordering::Relaxed);
        }
        if to == NOTHING {
            machine.halt(1);
        } else {
            machine.wait_for_interrupt(1);
            machine.enter(1);
        }
        self.runs.store(SCHEDULER, Ordering::Relaxed);
        machine.leave();
    }
}

/// CPU 1 has nothing but what the others wake, one word each.
fn model(fault: Fault, to: u32, wakers: u32) {
    let scheduler = Scheduler::new(fault);
    let instance = scheduler.clone();
    let instance = thread::spawn(move || {
        let mut seen = 0;
        while seen < wakers {
            match instance.ring().take() {
                Some(_) => seen += 1,
                None => instance.dispatch(to),
            }
        }
        instance.machine.sleep(1);
    });
    let other = (wakers == 2).then(|| {
        let scheduler = scheduler.clone();
        thread::spawn(move || scheduler.wake(2, 2))
    });
    scheduler.wake(0, 1);
    if let Some(other) = other {
        other.join().unwrap();
    }
    scheduler.machine.end();
    instance.join().unwrap();
}

#[test]
fn is_woken() {
    explore(None, || model(Fault::None, NOTHING, 1));
}

#[test]
fn is_woken_by_two() {
    explore(Some(2), || model(Fault::None, NOTHING, 2));
}

#[test]
fn is_preempted() {
    explore(None, || model(Fault::None, UNIMPORTANT, 1));
}

#[test]
#[should_panic(expected = "nobody wakes it")]
fn the_ring_is_looked_at_before_the_lock() {
    explore(None, || model(Fault::LooksTooEarly, NOTHING, 1));
}

#[test]
#[should_panic(expected = "nobody wakes it")]
fn says_that_it_sleeps_after_the_lock() {
    explore(None, || model(Fault::Swapped, NOTHING, 1));
}

#[test]
#[should_panic(expected = "nobody wakes it")]
fn says_what_it_runs_after_the_lock() {
    explore(None, || model(Fault::Swapped, UNIMPORTANT, 1));
}

#[test]
#[should_panic(expected = "nobody wakes it")]
fn no_interrupt_is_sent() {
    explore(None, || model(Fault::LeftOut, NOTHING, 1));
}
