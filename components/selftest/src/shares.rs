//! Shares of time: a thread with one is bounded by it, unless somebody without one waits for it.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{Error, NEVER, info};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::thread::{self, Thread};
use runtime::{Entry, message};

use crate::check::{Check, hold};

pub const CHECKS: &[Check] =
    &[("a share of time bounds its thread, unless somebody waits for a lock that it holds", shares)];

const MILLISECOND: u64 = 1_000_000;
/// The share, in percent, and what is too much of the time of a CPU: by the end of a slice, and by what begins before we look.
const SHARE: u64 = 20;
const TOO_MUCH: u64 = 30;
/// The least percentage of a thread that is bounded no more.
const UNBOUNDED: u64 = 90;
/// How long we look, three periods, and how long somebody waits.
const LOOK: u64 = 300 * MILLISECOND;
const WAIT: u64 = 400 * MILLISECOND;
/// The priorities of the thread without a share, the one with a share, and the observer, in rising order.
const LOW: u8 = 16;
const MIDDLE: u8 = 17;
const HIGH: u8 = 18;

/// The end of all, and the thread with a share and its activation, from 1.
static STOP: AtomicU64 = AtomicU64::new(0);
static THREAD: AtomicU64 = AtomicU64::new(0);
static HOLDER: AtomicU64 = AtomicU64::new(0);
/// Semaphores: begins the wait; is never raised.
static BEGIN: AtomicU64 = AtomicU64::new(0);
static NEVER_RAISED: AtomicU64 = AtomicU64::new(0);

fn text(error: Error) -> &'static str {
    error.text()
}

/// All is tried on the first CPU.
fn stay(priority: u8) {
    let _ = op::thread_schedule_on(Entry::OWN, Schedule { priority, slice: 1_000 }, 1);
}

fn spin() {
    while STOP.load(Ordering::SeqCst) == 0 {
        core::hint::black_box(());
    }
}

fn start(priority: u8, function: fn(usize)) -> Result<Thread, &'static str> {
    Thread::start_with(function, 0, Schedule { priority, slice: 1_000 }).map_err(text)
}

/// The percentage of the CPU's time that the thread with the share has.
fn percent() -> Result<u64, &'static str> {
    let used = || {
        let position = THREAD.load(Ordering::SeqCst) - 1;
        op::record::<info::Thread>(Entry::SPECIAL, position).map(|(thread, _)| thread.used).map_err(text)
    };
    let before = used()?;
    thread::sleep(LOOK).map_err(text)?;
    Ok((used()? - before) * 100 / LOOK)
}

fn shares() -> Result<(), &'static str> {
    hold(op::domain_set_share(Entry::DOMAIN, 101) == Err(Error::BadArgument), "more than all")?;
    let [begin, never] = [
        Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?),
        Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?),
    ];
    BEGIN.store(begin.entry().0 as u64, Ordering::SeqCst);
    NEVER_RAISED.store(never.entry().0 as u64, Ordering::SeqCst);
    stay(HIGH);
    let works = start(LOW, |_| {
        stay(LOW);
        spin();
    })?;
    let waits = start(HIGH, |_| {
        stay(MIDDLE);
        let [begin, never] = [&BEGIN, &NEVER_RAISED].map(|place| Entry(place.load(Ordering::SeqCst) as usize));
        let _ = op::p(begin, NEVER);
        let _ = op::p_lending(never, op::clock() + WAIT, HOLDER.load(Ordering::SeqCst) as u32);
    })?;
    thread::sleep(MILLISECOND).map_err(text)?;
    op::domain_set_share(Entry::DOMAIN, SHARE).map_err(text)?;
    let has_share = start(MIDDLE, |_| {
        stay(MIDDLE);
        HOLDER.store(message::activation() as u64 + 1, Ordering::SeqCst);
        THREAD.store(op::thread_id(), Ordering::SeqCst);
        spin();
    })?;
    thread::sleep(MILLISECOND).map_err(text)?;
    let bounded = percent();
    op::v(begin.entry()).map_err(text)?;
    let lifted = percent();
    thread::sleep(WAIT - LOOK).map_err(text)?;
    let again = percent();
    STOP.store(1, Ordering::SeqCst);
    [works, waits, has_share].into_iter().for_each(Thread::join);
    op::domain_set_share(Entry::DOMAIN, 0).map_err(text)?;
    let _ = op::thread_schedule_on(Entry::OWN, Schedule { priority: LOW, slice: 10_000 }, u64::MAX);
    hold(bounded? <= TOO_MUCH, "it has more than its share")?;
    hold(lifted? >= UNBOUNDED, "a waiter for it waits for its share, too")?;
    hold(again? <= TOO_MUCH, "it keeps what was lent to it")
}
