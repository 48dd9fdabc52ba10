//! The lock: one at a time, in the order of the tickets, and nobody is forgotten.

use crate::lock::Lock;
use crate::machine::{Plain, explore, relax, wait_for};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

fn acquire(lock: &Lock) {
    if !lock.announce() {
        lock.wait(relax());
    }
}

/// Each of so many CPUs takes the lock so many times and counts, without any other care.
fn counts(cpus: usize, times: usize) {
    let shared = Arc::new((Lock::new(), Plain::new(0)));
    let work = move |(lock, count): &(Lock, Plain<usize>)| {
        for _ in 0..times {
            acquire(lock);
            count.change(|count| *count += 1);
            lock.release();
        }
    };
    let others: Vec<_> = (1..cpus)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || work(&shared))
        })
        .collect();
    work(&shared);
    others.into_iter().for_each(|other| other.join().unwrap());
    acquire(&shared.0);
    assert_eq!(shared.1.read(|count| *count), cpus * times);
    assert!(!shared.0.is_wanted());
}

pub fn two_cpus_twice() {
    explore(None, || counts(2, 2));
}

#[test]
fn one_at_a_time() {
    two_cpus_twice();
}

#[test]
fn one_of_three_at_a_time() {
    explore(Some(4), || counts(3, 1));
}

#[test]
fn one_of_three_at_a_time_and_again() {
    explore(Some(3), || counts(3, 2));
}

/// A CPU that waits with its ticket gets the lock before one that announces itself later.
#[test]
fn waiters_are_served_in_order_of_arrival() {
    explore(Some(2), || {
        let shared = Arc::new((Lock::new(), Plain::new(Vec::new()), AtomicBool::new(false)));
        acquire(&shared.0);
        let first = shared.clone();
        let first = thread::spawn(move || {
            let (lock, order, waits) = &*first;
            assert!(!lock.announce());
            let mut relax = relax();
            lock.wait(|| {
                waits.store(true, Ordering::Relaxed);
                relax();
            });
            order.change(|order| order.push(1));
            lock.release();
        });
        let second = shared.clone();
        let second = thread::spawn(move || {
            let (lock, order, waits) = &*second;
            wait_for(waits);
            acquire(lock);
            order.change(|order| order.push(2));
            lock.release();
        });
        let (lock, order, waits) = &*shared;
        wait_for(waits);
        lock.release();
        // Comes when it comes: ahead of the first it cannot be.
        acquire(lock);
        order.change(|order| order.push(0));
        lock.release();
        first.join().unwrap();
        second.join().unwrap();
        let order = order.read(Vec::clone);
        assert_eq!((order.len(), order[0]), (3, 1), "in the order of their tickets, not {order:?}");
    });
}
