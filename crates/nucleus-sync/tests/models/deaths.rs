//! A domain dies while another CPU calls it on the fast path: no chain is found half linked, and nobody is in it afterwards.

use crate::machine::{Fault, Machine, Plain, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

const CALLER: u32 = 1;
const SERVER: u32 = 2;

struct Call {
    machine: Arc<Machine>,
    /// Not 0: calls to the server take the slow path.
    slow: AtomicU32,
    /// Domains of CPU 1's chain, and the server's activation; without the lock only CPU 1 changes them.
    chain: Plain<Vec<u32>>,
    /// Under the lock.
    dead: Plain<bool>,
    /// The death has returned.
    gone: AtomicBool,
}

impl Call {
    /// In user mode on CPU 1: where it runs.
    fn user(&self) {
        self.machine.user(1);
        let gone = self.gone.load(Ordering::Relaxed);
        let inside = self.chain.read(|chain| chain.last() == Some(&SERVER));
        assert!(!(gone && inside), "it runs in a domain that is dead");
    }

    /// A call by CPU 1.
    fn call(&self) {
        if self.slow.load(Ordering::Relaxed) == 0 {
            self.chain.change(|chain| chain.push(SERVER));
            self.machine.go(1, SERVER);
            return;
        }
        self.machine.enter(1);
        if !self.dead.read(|dead| *dead) {
            self.chain.change(|chain| chain.push(SERVER));
            self.machine.go(1, SERVER);
        }
        self.machine.leave();
    }

    /// The domain dies, by CPU 0.
    fn die(&self) {
        let machine = &self.machine;
        machine.enter(0);
        if machine.fault != Fault::LeftOut {
            self.slow.store(1, Ordering::Relaxed);
        }
        if machine.fault == Fault::StopsTooFew {
            machine.stop_in(0, 1, SERVER).for_each(drop);
        } else {
            machine.stop(1);
        }
        self.dead.change(|dead| *dead = true);
        self.chain.change(|chain| chain.retain(|domain| *domain != SERVER));
        machine.cpus[1].domain.store(CALLER, Ordering::Relaxed);
        machine.leave();
        self.gone.store(true, Ordering::Relaxed);
    }
}

fn model(fault: Fault) {
    let call = Arc::new(Call {
        machine: Machine::new(fault),
        slow: AtomicU32::new(0),
        chain: Plain::new(vec![CALLER]),
        dead: Plain::new(false),
        gone: AtomicBool::new(false),
    });
    call.machine.cpus[1].domain.store(CALLER, Ordering::Relaxed);
    let other = call.clone();
    let other = thread::spawn(move || {
        other.user();
        other.call();
        other.user();
        if other.chain.read(Vec::len) == 1 {
            other.call();
            other.user();
        }
        other.machine.sleep(1);
    });
    call.die();
    other.join().unwrap();
    assert_eq!(call.chain.read(Vec::clone), [CALLER], "it runs in a domain that is dead");
}

#[test]
fn against_who_calls() {
    explore(None, || model(Fault::None));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn an_interrupt_is_not_enough() {
    explore(None, || model(Fault::DoesNotWait));
}

/// A CPU that has read that the fast path is open, and has not begun it yet, is not yet noted in any domain.
#[test]
#[should_panic(expected = "Causality violation")]
fn only_who_is_there_is_stopped() {
    explore(None, || model(Fault::StopsTooFew));
}

#[test]
#[should_panic(expected = "it runs in a domain that is dead")]
fn the_way_stays_short() {
    explore(None, || model(Fault::LeftOut));
}
