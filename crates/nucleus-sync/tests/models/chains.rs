//! A thread makes calls on the fast path while another CPU, with the lock, walks along its chain without stopping it: to lend a
//! priority, or to say what runs. It meets no thread that is gone.

use crate::machine::{Fault, Machine, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

/// States of an activation.
const FREE: u32 = 0;
const TOP: u32 = 1;
/// Threads: one that is gone, whose call the activation served last, and one that runs.
const GONE: u32 = 1;
const RUNS: u32 = 2;

struct Activation {
    machine: Arc<Machine>,
    state: AtomicU32,
    thread: AtomicU32,
}

impl Activation {
    /// A call by CPU 1: the thread is written before the state that makes it count.
    fn call(&self) {
        if self.machine.fault == Fault::Swapped {
            self.state.store(TOP, Ordering::Release);
            self.thread.store(RUNS, Ordering::Relaxed);
        } else {
            self.thread.store(RUNS, Ordering::Relaxed);
            self.state.store(TOP, Ordering::Release);
        }
    }

    /// With the lock: whose activation this is. The state is read before the thread.
    fn thread(&self) -> Option<u32> {
        if self.machine.fault == Fault::LeftOut {
            let thread = self.thread.load(Ordering::Acquire);
            return (self.state.load(Ordering::Acquire) != FREE).then_some(thread);
        }
        (self.state.load(Ordering::Acquire) != FREE).then(|| self.thread.load(Ordering::Relaxed))
    }
}

fn model(fault: Fault) {
    let machine = Machine::new(fault);
    let activation = Arc::new(Activation { machine, state: AtomicU32::new(FREE), thread: AtomicU32::new(GONE) });
    let other = activation.clone();
    let other = thread::spawn(move || {
        other.call();
        other.machine.user(1);
        // And returns.
        other.state.store(FREE, Ordering::Release);
        other.call();
        other.machine.sleep(1);
    });
    activation.machine.enter(0);
    assert_ne!(activation.thread(), Some(GONE), "a thread that is gone");
    activation.machine.leave();
    other.join().unwrap();
}

#[test]
fn walked_along_while_it_moves() {
    explore(None, || model(Fault::None));
}

#[test]
#[should_panic(expected = "a thread that is gone")]
fn the_state_is_written_before_the_thread() {
    explore(None, || model(Fault::Swapped));
}

#[test]
#[should_panic(expected = "a thread that is gone")]
fn the_thread_is_read_before_the_state() {
    explore(None, || model(Fault::LeftOut));
}
