//! Slices of threads of one priority: the rest of a slice, and when a whole one begins.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::Error;
use runtime::Entry;
use runtime::op::{self, Schedule};
use runtime::thread::{self, Thread};

use crate::check::{Check, hold};

pub const CHECKS: &[Check] = &[
    ("a preempted thread has the rest of its slice", left),
    ("a preempted thread that then yields has a whole slice", yielded),
];

const MILLISECOND: u64 = 1_000_000;
/// A slice of the two, in milliseconds, and when the first is preempted.
const SLICE: u64 = 20;
const PREEMPTED: u64 = 14;
/// More than what is left, less than a slice; the machine's time may go on while this computer does something else.
const BETWEEN: u64 = 13 * MILLISECOND;
/// The priorities of the threads with slices, and of the one that preempts.
const LOW: u8 = 16;
const HIGH: u8 = 18;

/// 1 = the first was preempted, 2 = it yielded, and the second had its turn.
static STAGE: AtomicU64 = AtomicU64::new(0);
/// When the first goes on, and when the second has its turn next.
static START: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);

fn text(error: Error) -> &'static str {
    error.text()
}

/// All is tried on the first CPU.
fn stay(priority: u8, milliseconds: u64) {
    let _ = op::thread_schedule_on(Entry::OWN, Schedule { priority, slice: milliseconds as u32 * 1000 }, 1);
}

/// Spins until the stage comes.
fn wait_for(stage: u64) {
    while STAGE.load(Ordering::SeqCst) < stage {
        core::hint::spin_loop();
    }
}

fn first(yields: usize) {
    stay(LOW, SLICE);
    wait_for(1);
    if yields != 0 {
        op::yield_now();
    }
    START.store(op::clock(), Ordering::SeqCst);
    while END.load(Ordering::SeqCst) == 0 {
        core::hint::spin_loop();
    }
}

fn second(yields: usize) {
    stay(LOW, SLICE);
    wait_for(1);
    if yields != 0 {
        STAGE.store(2, Ordering::SeqCst);
        op::yield_now();
    }
    END.store(op::clock(), Ordering::SeqCst);
}

/// How long the first runs before the second has its turn.
fn time(yields: bool) -> Result<u64, &'static str> {
    for word in [&STAGE, &START, &END] {
        word.store(0, Ordering::SeqCst);
    }
    stay(HIGH, SLICE);
    let low = Schedule { priority: LOW, slice: SLICE as u32 * 1000 };
    let threads = [first, second].map(|work| Thread::start_with(work, yields.into(), low).map_err(text));
    thread::sleep(PREEMPTED * MILLISECOND).map_err(text)?;
    STAGE.store(1, Ordering::SeqCst);
    for thread in threads {
        thread?.join();
    }
    let _ = op::thread_schedule_on(Entry::OWN, Schedule { priority: LOW, slice: 10_000 }, u64::MAX);
    Ok(END.load(Ordering::SeqCst) - START.load(Ordering::SeqCst))
}

fn left() -> Result<(), &'static str> {
    hold(time(false)? < BETWEEN, "it has a whole one")
}

fn yielded() -> Result<(), &'static str> {
    hold(time(true)? > BETWEEN, "it has less")
}
