//! Threads, locks, the heap, time.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use runtime::Entry;
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::sync::{Channel, Mutex, Once};
use runtime::thread::{self, Thread};

use crate::check::{Check, hold};
use crate::raw;

pub const CHECKS: &[Check] = &[
    ("heap grows, moves and is used again", heap),
    ("a thread runs and is joined", one_thread),
    ("threads that nobody joins are cleared away", detached),
    ("a contended mutex excludes", mutex),
    ("a thread that waits for a lock lends its priority", lending),
    ("a bounded channel delivers in order", channel),
    ("sleep takes its time", sleep),
    ("a wait can be cancelled", cancel),
    ("a value is made once", once),
    ("threads that come and go take nobody's place among those that are ready", numbers),
];

fn heap() -> Result<(), &'static str> {
    let mut map = BTreeMap::new();
    for number in 0..2_000u64 {
        map.insert(number, String::from("text"));
    }
    hold(map.values().all(|text| text == "text"), "a value changed")?;
    let mut growing = Vec::new();
    for number in 0..100_000u64 {
        growing.push(number);
    }
    hold(growing.iter().copied().eq(0..100_000), "a growing vector lost a value")?;
    let first = growing.as_ptr() as usize;
    drop((map, growing));
    let again: Vec<u64> = Vec::with_capacity(100_000);
    hold(again.as_ptr() as usize <= first + (1 << 20), "memory that was freed is not used again")
}

fn one_thread() -> Result<(), &'static str> {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    for round in 0..50 {
        let thread =
            Thread::start(|argument| SEEN.store(argument as u64 + op::thread_id() * 1_000, Ordering::SeqCst), round)
                .map_err(|error| error.text())?;
        thread.join();
        let seen = SEEN.load(Ordering::SeqCst);
        hold(seen % 1_000 == round as u64, "the argument did not arrive")?;
        hold(seen / 1_000 != op::thread_id(), "it ran on our own thread")?;
    }
    Ok(())
}

fn detached() -> Result<(), &'static str> {
    static RAN: AtomicU64 = AtomicU64::new(0);
    // More than there are activations, so they must be cleared away meanwhile.
    for _ in 0..200 {
        let thread = thread::spawn(|| {
            RAN.fetch_add(1, Ordering::Relaxed);
        });
        drop(thread.map_err(|error| error.text())?);
        thread::sleep(100_000).map_err(|error| error.text())?;
    }
    thread::sleep(5_000_000).map_err(|error| error.text())?;
    hold(RAN.load(Ordering::Relaxed) == 200, "not all of them ran")
}

fn mutex() -> Result<(), &'static str> {
    static COUNTER: Mutex<u64> = Mutex::new(0);
    let mut threads = Vec::new();
    for _ in 0..4 {
        threads.push(
            thread::spawn(|| {
                for round in 0..200 {
                    let mut counter = COUNTER.lock();
                    let before = *counter;
                    if round % 8 == 0 {
                        op::yield_now();
                    }
                    *counter = before + 1;
                }
            })
            .map_err(|error| error.text())?,
        );
    }
    threads.into_iter().for_each(Thread::join);
    hold(*COUNTER.lock() == 800, "two held it at once")
}

fn lending() -> Result<(), &'static str> {
    static LOCK: Mutex<()> = Mutex::new(());
    static STEP: AtomicU64 = AtomicU64::new(0);
    static GOT: AtomicU64 = AtomicU64::new(0);
    const MILLISECOND: u64 = 1_000_000;
    fn work(nanoseconds: u64) {
        let end = op::clock() + nanoseconds;
        while op::clock() < end {}
    }
    let start = |priority, function: fn(usize)| {
        Thread::start_with(function, 0, op::Schedule { priority, slice: 1_000 }).map_err(|error| error.text())
    };
    STEP.store(0, Ordering::SeqCst);
    // The lowest takes the lock and works for three milliseconds, the middle one would work for fifty.
    let low = start(4, |_| {
        let lock = LOCK.lock();
        STEP.store(1, Ordering::SeqCst);
        work(3 * MILLISECOND);
        drop(lock);
        work(MILLISECOND);
    })?;
    while STEP.load(Ordering::SeqCst) == 0 {
        thread::sleep(100_000).map_err(|error| error.text())?;
    }
    let started = op::clock();
    let middle = start(8, |_| work(50 * MILLISECOND))?;
    let high = start(12, |_| {
        drop(LOCK.lock());
        GOT.store(op::clock(), Ordering::SeqCst);
    })?;
    let _ = [low, middle, high].map(Thread::join);
    let waited = GOT.load(Ordering::SeqCst).saturating_sub(started);
    hold(waited < 20 * MILLISECOND, "the highest waited for the middle one")
}

fn channel() -> Result<(), &'static str> {
    static CHANNEL: Channel<u64, 4> = Channel::new();
    let sender = thread::spawn(|| (0..500).for_each(|number| CHANNEL.send(number))).map_err(|error| error.text())?;
    let in_order = (0..500).all(|number| CHANNEL.receive() == number);
    sender.join();
    hold(in_order, "values out of order")?;
    let start = op::clock();
    hold(CHANNEL.receive_until(start + 3_000_000).is_none(), "a value from nowhere")?;
    hold(op::clock() >= start + 3_000_000, "the wait ended too early")
}

fn sleep() -> Result<(), &'static str> {
    let start = op::clock();
    thread::sleep(10_000_000).map_err(|error| error.text())?;
    let slept = op::clock() - start;
    hold(slept >= 10_000_000, "too short")?;
    hold(slept < 1_000_000_000, "much too long")
}

fn cancel() -> Result<(), &'static str> {
    static RESULT: AtomicU64 = AtomicU64::new(0);
    let sleeper = Thread::start(
        |_| {
            let result = thread::sleep(60_000_000_000);
            RESULT.store(result.map_or_else(|error| error as u64, |()| 0), Ordering::SeqCst);
        },
        0,
    )
    .map_err(|error| error.text())?;
    thread::sleep(2_000_000).map_err(|error| error.text())?;
    op::thread_cancel(sleeper.entry()).map_err(|error| error.text())?;
    sleeper.join();
    hold(RESULT.load(Ordering::SeqCst) == abi::Error::Cancelled as u64, "it did not see the cancellation")
}

fn once() -> Result<(), &'static str> {
    static ONCE: Once<u64> = Once::new();
    let first = *ONCE.get_or_make(op::clock);
    thread::spawn(move || {
        ONCE.get_or_make(|| 0);
    })
    .map_err(|error| error.text())?
    .join();
    hold(*ONCE.get_or_make(|| 1) == first, "it was made twice")?;
    hold(op::entry_info(Entry::OWN, Entry(1_000_000)).is_err(), "an index beyond the table is something")
}

/// As long as nobody yields, the scheduler does not learn which threads became ready. Meanwhile more threads than its ring
/// has slots come and go, with the same two numbers.
fn numbers() -> Result<(), &'static str> {
    static RAN: AtomicU64 = AtomicU64::new(0);
    const CPU: u64 = 1;
    let long = Schedule { priority: 16, slice: 1_000_000 };
    let before = op::thread_schedule_on(Entry::OWN, long, CPU).map_err(|error| error.text())?;
    op::yield_now();
    let below = Schedule { priority: 9, slice: 0 };
    let counts = |_| {
        RAN.fetch_add(1, Ordering::SeqCst);
    };
    let waits = Thread::start_with(counts, 0, below).map_err(|error| error.text())?;
    for _ in 0..runtime::abi::sched::RING_SLOTS + 8 {
        let start = || raw::start_nowhere(Entry::OWN, below).map(Owned::new).map_err(|error| error.text());
        let _both = [start()?, start()?];
    }
    thread::sleep(50_000_000).map_err(|error| error.text())?;
    op::thread_schedule_on(Entry::OWN, before, u64::MAX).map_err(|error| error.text())?;
    hold(RAN.load(Ordering::SeqCst) == 1, "a thread that was ready never ran")?;
    waits.join();
    Ok(())
}
