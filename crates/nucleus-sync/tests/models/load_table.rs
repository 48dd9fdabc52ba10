//! The messages between schedulers: one has a thread to spare, another begins to rest. It does not rest beside it.
//!
//! Each says what it has before it looks at the other; both with sequentially consistent accesses, for which fences
//! stand here.

use crate::machine::{Fault, Plain, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use loom::thread;

#[derive(Default)]
struct LoadTable {
    /// CPU 1 rests: a claim on it, for the CPU that clears it.
    rests: AtomicBool,
    /// CPU 0's spare thread; 0 = none.
    spare: AtomicU32,
    /// Where the thread went, twice perhaps; changed under the nucleus lock, which is not of interest here.
    handed: [Plain<u32>; 2],
}

fn model(fault: Fault) {
    let load_table = Arc::new(LoadTable::default());
    let report = move || {
        if fault != Fault::NoFence {
            fence(Ordering::SeqCst);
        }
    };
    let other = load_table.clone();
    let other = thread::spawn(move || {
        let looks_first = fault == Fault::Swapped && other.spare.load(Ordering::Relaxed) != 0;
        other.rests.store(true, Ordering::Relaxed);
        report();
        let sees = if fault == Fault::Swapped { looks_first } else { other.spare.load(Ordering::Relaxed) != 0 };
        if sees && other.spare.swap(0, Ordering::Relaxed) != 0 {
            other.handed[0].change(|times| *times += 1);
        }
    });
    load_table.spare.store(7, Ordering::Relaxed);
    report();
    if load_table.rests.load(Ordering::Relaxed)
        && load_table.rests.swap(false, Ordering::Relaxed)
        && load_table.spare.swap(0, Ordering::Relaxed) != 0
    {
        load_table.handed[1].change(|times| *times += 1);
    }
    other.join().unwrap();
    let times: u32 = load_table.handed.iter().map(|times| times.read(|times| *times)).sum();
    assert_eq!(times, 1, "one rests beside a thread that is spare, or a thread went twice");
}

#[test]
fn nobody_rests_beside_a_spare_thread() {
    explore(None, || model(Fault::None));
}

#[test]
#[should_panic(expected = "one rests beside a thread that is spare")]
fn no_fence_between_publishing_and_looking() {
    explore(None, || model(Fault::NoFence));
}

#[test]
#[should_panic(expected = "one rests beside a thread that is spare")]
fn looks_before_it_publishes() {
    explore(None, || model(Fault::Swapped));
}
