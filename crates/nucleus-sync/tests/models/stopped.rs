//! Stopping a CPU: it stays where it is, and does the work that was left for it before it continues.

use crate::machine::{Fault, Machine, Plain, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

/// A CPU changes its own state without the lock, takes interrupts between, and once goes into the nucleus by itself; two
/// others stop it, change the same state, and leave it something to do.
fn model(fault: Fault, holders: usize) {
    let machine = Machine::new(fault);
    // State that only CPU 2 touches, or a CPU that stopped it; and whether it must recheck before it continues.
    let state = Arc::new((Plain::new(0), AtomicBool::new(false)));
    let hold = |me: usize| {
        let (machine, state) = (machine.clone(), state.clone());
        move || {
            machine.enter(me);
            machine.stop(2);
            state.0.change(|value| *value += 1);
            machine.leave_to(2, |left| left.needs_recheck = true);
            state.1.store(true, Ordering::Relaxed);
            machine.leave();
            machine.sleep(me);
        }
    };
    let held = {
        let (machine, state) = (machine.clone(), state.clone());
        move || {
            let user = || {
                // A fast path: interrupts are off.
                state.0.change(|value| *value += 1);
                let left = machine.user(2);
                // The flag is set before the lock is given back.
                if left.needs_recheck {
                    state.1.store(false, Ordering::Relaxed);
                }
                assert!(!state.1.load(Ordering::Relaxed), "it goes on without having looked");
            };
            user();
            let left = machine.enter(2);
            if left.needs_recheck {
                state.1.store(false, Ordering::Relaxed);
            }
            machine.leave();
            user();
            machine.sleep(2);
        }
    };
    let held = thread::spawn(held);
    let other = (holders == 2).then(|| thread::spawn(hold(1)));
    hold(0)();
    held.join().unwrap();
    if let Some(other) = other {
        other.join().unwrap();
    }
    assert_eq!(state.0.read(|value| *value), holders + 2);
}

pub fn by_one() {
    explore(Some(4), || model(Fault::None, 1));
}

#[test]
fn stays_where_it_is() {
    by_one();
}

#[test]
fn stays_where_it_is_for_two() {
    explore(Some(2), || model(Fault::None, 2));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_cpu_that_does_not_wait_is_a_data_race() {
    explore(None, || model(Fault::DoesNotWait, 1));
}

#[test]
#[should_panic(expected = "two CPUs wait for each other")]
fn loud_before_it_has_the_lock() {
    explore(Some(3), || model(Fault::RunsTooEarly, 1));
}

#[test]
#[should_panic(expected = "something was left to a CPU that did not wait")]
fn quiescent_before_it_announced_itself() {
    explore(Some(3), || model(Fault::QuiescentTooEarly, 1));
}

#[test]
#[should_panic(expected = "it goes on without having looked")]
fn looks_before_it_has_the_lock() {
    explore(Some(3), || model(Fault::LooksTooEarly, 1));
}

#[test]
#[should_panic(expected = "it goes on without having looked")]
fn forgets_what_was_left() {
    explore(Some(3), || model(Fault::Forgets, 1));
}
