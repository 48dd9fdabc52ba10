//! Pools of free activations, one for each CPU, and a caller that waits for one: it is not forgotten, and no activation is
//! used twice.

use crate::machine::{Fault, Machine, Plain, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

const ELSEWHERE: u32 = 0;
const SERVER: u32 = 1;
/// The end of a list.
const NONE: u32 = 0;

struct Server {
    machine: Arc<Machine>,
    /// First of the free activations, by CPU; without the lock only that CPU changes it.
    pools: [AtomicU32; 2],
    /// Of activations 1 and 2: the next in the pool.
    next: [Plain<u32>; 3],
    /// Not 0: somebody waits, so that a return takes the slow path.
    waiters: AtomicU32,
    /// Which activation the waiting caller was given; under the lock.
    given: Plain<Option<u32>>,
}

impl Server {
    fn new(fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            machine: Machine::new(fault),
            pools: [AtomicU32::new(NONE), AtomicU32::new(NONE)],
            next: Default::default(),
            waiters: AtomicU32::new(0),
            given: Plain::default(),
        })
    }

    fn push(&self, cpu: usize, activation: u32) {
        let head = self.pools[cpu].load(Ordering::Relaxed);
        self.next[activation as usize].change(|next| *next = head);
        self.pools[cpu].store(activation, Ordering::Relaxed);
    }

    fn pop(&self, cpu: usize) -> u32 {
        let head = self.pools[cpu].load(Ordering::Relaxed);
        if head != NONE {
            self.pools[cpu].store(self.next[head as usize].read(|next| *next), Ordering::Relaxed);
        }
        head
    }

    /// Returns from the server on CPU 1, from this activation.
    fn give_back(&self, activation: u32) {
        if self.waiters.load(Ordering::Relaxed) == 0 {
            if self.machine.fault == Fault::Swapped {
                self.machine.go(1, ELSEWHERE);
                self.push(1, activation);
            } else {
                self.push(1, activation);
                self.machine.go(1, ELSEWHERE);
            }
            return;
        }
        self.machine.enter(1);
        if self.waiters.load(Ordering::Relaxed) != 0 {
            self.give(activation);
        } else {
            self.push(1, activation);
        }
        self.machine.go(1, ELSEWHERE);
        self.machine.leave();
    }

    /// With the lock: the caller that waits has one.
    fn give(&self, activation: u32) {
        let before = self.given.change(|given| given.replace(activation));
        assert_eq!(before, None);
        self.waiters.store(0, Ordering::Relaxed);
    }

    /// A call on CPU 0, whose own pool is empty: gets an activation, or waits for one.
    fn ask(&self) {
        let machine = &self.machine;
        machine.enter(0);
        self.waiters.store(1, Ordering::Relaxed);
        machine.stop_in(0, 1, SERVER).for_each(drop);
        // Others are elsewhere. The entries that they put in before they went there are seen: a pool that is not empty is worth
        // stopping its CPU for.
        if self.pools[1].load(Ordering::Relaxed) != NONE {
            if machine.fault != Fault::StopsTooFew {
                machine.stop(1);
            }
            let free = self.pop(1);
            if free != NONE {
                self.give(free);
            }
        }
        machine.leave();
    }

    /// All is quiescent: the caller has one.
    fn check(&self, activations: usize) {
        self.machine.enter(0);
        let given = self.given.read(|given| *given);
        assert!(given.is_some(), "the caller waits, and nobody will come");
        let mut free = Vec::new();
        while let head @ 1.. = self.pop(1) {
            free.push(head);
        }
        free.extend(given);
        free.sort_unstable();
        assert_eq!(free, (1..=activations as u32).collect::<Vec<_>>(), "an activation was lost or used twice");
    }
}

/// CPU 1 is in the server and returns.
fn returns(fault: Fault) {
    let server = Server::new(fault);
    server.machine.cpus[1].domain.store(SERVER, Ordering::Relaxed);
    let other = server.clone();
    let other = thread::spawn(move || {
        other.give_back(1);
        other.machine.user(1);
        other.machine.sleep(1);
    });
    server.ask();
    other.join().unwrap();
    server.check(1);
}

/// CPU 1 is in what the server called: it returns to the server, and from there.
fn returns_twice(fault: Fault) {
    let server = Server::new(fault);
    let other = server.clone();
    let other = thread::spawn(move || {
        other.machine.go(1, SERVER);
        other.machine.user(1);
        other.give_back(1);
        other.machine.user(1);
        other.machine.sleep(1);
    });
    server.ask();
    other.join().unwrap();
    server.check(1);
}

/// CPU 1 calls the server, with two activations in its pool, and returns.
fn calls(fault: Fault) {
    let server = Server::new(fault);
    server.push(1, 1);
    server.push(1, 2);
    let other = server.clone();
    let other = thread::spawn(move || {
        let activation = other.pop(1);
        if activation != NONE {
            other.machine.go(1, SERVER);
            other.machine.user(1);
            other.give_back(activation);
        }
        other.machine.user(1);
        other.machine.sleep(1);
    });
    server.ask();
    other.join().unwrap();
    server.check(2);
}

#[test]
fn against_who_returns() {
    explore(None, || returns(Fault::None));
}

#[test]
fn against_who_returns_twice() {
    explore(None, || returns_twice(Fault::None));
}

#[test]
fn against_who_calls() {
    explore(Some(4), || calls(Fault::None));
}

#[test]
#[should_panic(expected = "the caller waits, and nobody will come")]
fn no_fence_before_asking_who_is_there() {
    explore(None, || returns_twice(Fault::NoFence));
}

#[test]
#[should_panic(expected = "the caller waits, and nobody will come")]
fn the_root_before_the_domain() {
    explore(None, || returns_twice(Fault::RootFirst));
}

#[test]
#[should_panic(expected = "the caller waits, and nobody will come")]
fn nobody_is_stopped() {
    explore(None, || returns(Fault::StopsNone));
}

#[test]
#[should_panic(expected = "the caller waits, and nobody will come")]
fn elsewhere_before_it_is_in_the_pool() {
    explore(None, || returns(Fault::Swapped));
}

#[test]
#[should_panic(expected = "an activation was lost or used twice")]
fn taken_from_who_is_not_stopped() {
    explore(None, || calls(Fault::StopsTooFew));
}
