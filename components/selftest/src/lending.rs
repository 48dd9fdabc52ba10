//! Priorities lent to calls: as long as they are served, and only then. Without floating point, so that returns
//! could take the fast path.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::info::{self, Record};
use abi::layout::MAX_ACTIVATIONS;
use abi::{Control, Error, NEVER as NEVER_ENDS};
use idl::{Reply, Request};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::server::{self, Serve};
use runtime::thread::{self, Thread};
use runtime::{Entry, message, table};

use crate::check::{Check, hold};

pub const CHECKS: &[Check] = &[
    ("a priority lent to a call goes when the call ends", taken_back),
    ("a call that has ended is lent nothing", ended),
    ("a call through a portal with a ceiling has that priority, and only the call", ceiling),
    ("a call that ends gives way to those that its priority kept from running", gives_way),
    ("a caller that waits for an activation lends to those that have one, and to what they wait for", pool),
    ("an orphan that has what is waited for has its turn at once", orphan),
];

const MILLISECOND: u64 = 1_000_000;
const LOW: u8 = 4;
const HIGH: u8 = 12;

/// The activation in the service, from 1.
static SERVES: AtomicU64 = AtomicU64::new(0);
/// The portal to the service.
static PORTAL: AtomicU64 = AtomicU64::new(0);
/// Nobody does V on it.
static NEVER: AtomicU64 = AtomicU64::new(0);
/// Thread number and, when it came back, priority of the caller.
static CALLER: AtomicU64 = AtomicU64::new(0);
static AFTERWARDS: AtomicU64 = AtomicU64::new(0);

/// Stays in a call for some milliseconds.
struct Linger;

impl Serve for Linger {
    fn serve(_: &mut Request<'_>) -> Reply {
        SERVES.store(message::activation() as u64 + 1, Ordering::SeqCst);
        let _ = thread::sleep(8 * MILLISECOND);
        Reply::word(0)
    }
}

fn text(error: Error) -> &'static str {
    error.text()
}

fn entry(place: &AtomicU64) -> Entry {
    Entry(place.load(Ordering::SeqCst) as usize)
}

/// The priority with which a thread runs, whatever was lent to it included.
fn priority(thread: u64) -> u64 {
    let mut record = [0; size_of::<info::Thread>()];
    let reported = crate::services::proc().inspect(info::THREAD, thread - 1, &mut record);
    reported.ok().and(info::Thread::read(&record)).map_or(u64::MAX, |thread| thread.priority)
}

fn call(_: usize) {
    CALLER.store(op::thread_id(), Ordering::SeqCst);
    let _ = message::call(entry(&PORTAL), [0; 5], Control(0));
    AFTERWARDS.store(priority(op::thread_id()), Ordering::SeqCst);
}

/// Makes what the checks need, and keeps it while `work` goes on.
fn with_service(work: fn() -> Result<(), &'static str>) -> Result<(), &'static str> {
    server::activations(1).map_err(text)?;
    with_portal::<Linger>(0, work)
}

/// As [`with_service`], without a new activation.
fn with_portal<S: Serve>(ceiling: u64, work: fn() -> Result<(), &'static str>) -> Result<(), &'static str> {
    let service = Owned::new(server::service::<S>().map_err(text)?);
    let portal = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), ceiling).map_err(text)?;
    let never = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    PORTAL.store(portal.entry().0 as u64, Ordering::SeqCst);
    NEVER.store(never.entry().0 as u64, Ordering::SeqCst);
    SERVES.store(0, Ordering::SeqCst);
    work()
}

fn start(priority: u8, function: fn(usize)) -> Result<Thread, &'static str> {
    Thread::start_with(function, 0, Schedule { priority, slice: 1_000 }).map_err(text)
}

fn taken_back() -> Result<(), &'static str> {
    with_service(|| {
        let caller = start(LOW, call)?;
        while SERVES.load(Ordering::SeqCst) == 0 {
            thread::sleep(MILLISECOND / 10).map_err(text)?;
        }
        let lender = start(HIGH, |_| {
            let holder = SERVES.load(Ordering::SeqCst) as u32;
            let _ = op::p_lending(entry(&NEVER), op::clock() + 30 * MILLISECOND, holder);
        })?;
        thread::sleep(MILLISECOND).map_err(text)?;
        let lent = priority(CALLER.load(Ordering::SeqCst));
        caller.join();
        let afterwards = AFTERWARDS.load(Ordering::SeqCst);
        lender.join();
        hold(lent == HIGH.into(), "nothing was lent")?;
        hold(afterwards == LOW.into(), "the caller kept it")
    })
}

fn ended() -> Result<(), &'static str> {
    with_service(|| {
        start(LOW, call)?.join();
        // The thread is gone; the activation that served it is in the pool, whichever it is.
        for holder in 1..=MAX_ACTIVATIONS as u32 {
            let waited = op::p_lending(entry(&NEVER), op::clock() + MILLISECOND / 50, holder);
            hold(waited == Err(Error::Timeout), "the wait did not end at its deadline")?;
        }
        Ok(())
    })
}

fn until(done: impl Fn() -> bool, what: &'static str) -> Result<(), &'static str> {
    let deadline = op::clock() + 2_000 * MILLISECOND;
    while !done() {
        // Between the two an emulator may run other CPUs for longer than that.
        if op::clock() > deadline {
            return hold(done(), what);
        }
        thread::sleep(MILLISECOND / 10).map_err(text)?;
    }
    Ok(())
}

fn ceiling() -> Result<(), &'static str> {
    with_portal::<Linger>(HIGH.into(), || {
        let caller = start(LOW, call)?;
        until(|| SERVES.load(Ordering::SeqCst) != 0, "nobody is called")?;
        let raised = priority(CALLER.load(Ordering::SeqCst));
        caller.join();
        hold(raised == HIGH.into(), "the call is not raised")?;
        hold(AFTERWARDS.load(Ordering::SeqCst) == LOW.into(), "the caller kept it")
    })?;
    // The next call in the same activation has no ceiling; its priority is recomputed when a lender has gone.
    with_portal::<Linger>(0, || {
        let caller = start(LOW, call)?;
        until(|| SERVES.load(Ordering::SeqCst) != 0, "nobody is called again")?;
        let lender = start(MIDDLE, |_| {
            let holder = SERVES.load(Ordering::SeqCst) as u32;
            let _ = op::p_lending(entry(&NEVER), op::clock() + MILLISECOND, holder);
        })?;
        lender.join();
        let kept = priority(CALLER.load(Ordering::SeqCst));
        caller.join();
        hold(kept == LOW.into(), "the activation kept it")
    })
}

/// When the call of [`spins_afterwards`] had ended, and when a thread that it kept from running ran.
static ENDED: AtomicU64 = AtomicU64::new(0);
static RAN: AtomicU64 = AtomicU64::new(0);
/// The caller spins so long at most: less than its slice, and more than the other thread needs.
const LONG: u64 = 8 * MILLISECOND;

/// Spins for some milliseconds.
struct Spins;

impl Serve for Spins {
    fn serve(_: &mut Request<'_>) -> Reply {
        SERVES.store(message::activation() as u64 + 1, Ordering::SeqCst);
        let end = op::clock() + MILLISECOND;
        while op::clock() < end {}
        Reply::word(0)
    }
}

fn spins_afterwards(_: usize) {
    let _ = message::call(entry(&PORTAL), [0; 5], Control(0));
    let end = op::clock() + LONG;
    ENDED.store(end - LONG, Ordering::SeqCst);
    while RAN.load(Ordering::SeqCst) == 0 && op::clock() < end {}
}

/// A thread on the first CPU.
fn on_first(priority: u8, slice: u32, function: fn(usize)) -> Result<Thread, &'static str> {
    let thread = start(1, function)?;
    op::thread_schedule_on(thread.entry(), Schedule { priority, slice }, 1).map_err(text)?;
    Ok(thread)
}

fn gives_way() -> Result<(), &'static str> {
    with_portal::<Spins>(HIGH.into(), || {
        RAN.store(0, Ordering::SeqCst);
        let caller = on_first(LOW, 10_000, spins_afterwards)?;
        until(|| SERVES.load(Ordering::SeqCst) != 0, "nobody is called")?;
        // Ready while the call goes on, which precedes it.
        let kept = on_first(MIDDLE, 1_000, |_| RAN.store(op::clock(), Ordering::SeqCst))?;
        kept.join();
        caller.join();
        let (ended, ran) = (ENDED.load(Ordering::SeqCst), RAN.load(Ordering::SeqCst));
        hold(ran < ended + LONG / 2, "the caller went on first")
    })
}

/// The thread that spins; it holds what the call of [`Waits`] waits for.
static SPINS: AtomicU64 = AtomicU64::new(0);
static SPINNER: AtomicU64 = AtomicU64::new(0);

/// Waits for what another activation holds.
struct Waits;

impl Serve for Waits {
    fn serve(_: &mut Request<'_>) -> Reply {
        SERVES.store(message::activation() as u64 + 1, Ordering::SeqCst);
        let holder = SPINNER.load(Ordering::SeqCst) as u32;
        let _ = op::p_lending(entry(&NEVER), op::clock() + 200 * MILLISECOND, holder);
        Reply::word(0)
    }
}

fn spin(_: usize) {
    SPINNER.store(message::activation() as u64 + 1, Ordering::SeqCst);
    let end = op::clock() + 100 * MILLISECOND;
    SPINS.store(op::thread_id(), Ordering::SeqCst);
    while op::clock() < end {}
}

fn pool() -> Result<(), &'static str> {
    with_portal::<Waits>(0, || {
        SPINS.store(0, Ordering::SeqCst);
        let spinner = start(1, spin)?;
        until(|| SPINS.load(Ordering::SeqCst) != 0, "nobody spins")?;
        // All activations are in calls that wait for what the spinner has.
        let busy = || message::call(entry(&PORTAL), [0; 5], Control(Control::NO_WAIT)) == Err(Error::Busy);
        let mut callers = Vec::new();
        while callers.len() < MAX_ACTIVATIONS {
            callers.push(start(LOW, call)?);
            SERVES.store(0, Ordering::SeqCst);
            let is_full = || priority(SPINS.load(Ordering::SeqCst)) != 1 && SERVES.load(Ordering::SeqCst) == 0;
            thread::sleep(MILLISECOND).map_err(text)?;
            if is_full() {
                break;
            }
        }
        let lent_by_callers = priority(SPINS.load(Ordering::SeqCst));
        let caller = start(HIGH, |_| {
            let _ = message::call(entry(&PORTAL), [0; 5], Control(0));
        })?;
        thread::sleep(2 * MILLISECOND).map_err(text)?;
        let (lent, was_busy) = (priority(SPINS.load(Ordering::SeqCst)), busy());
        spinner.join();
        callers.into_iter().for_each(Thread::join);
        caller.join();
        hold(was_busy, "an activation was free")?;
        hold(lent_by_callers == LOW.into(), "the calls lend nothing")?;
        hold(lent == HIGH.into(), "the caller that waits lends nothing")
    })
}

/// Orphans: the rounds of each, and the activation that each is in, from 1.
const ORPHANS: usize = 3;
static TURNS: [AtomicU64; ORPHANS] = [const { AtomicU64::new(0) }; ORPHANS];
static ORPHAN: [AtomicU64; ORPHANS] = [const { AtomicU64::new(0) }; ORPHANS];
static STOP: AtomicU64 = AtomicU64::new(0);
/// Above the orphans and below the waiter for one of them.
const MIDDLE: u8 = 8;

/// Counts, and waits for nothing.
struct Counts;

impl Serve for Counts {
    fn serve(request: &mut Request<'_>) -> Reply {
        let number = request.words[1] as usize % ORPHANS;
        ORPHAN[number].store(message::activation() as u64 + 1, Ordering::SeqCst);
        while STOP.load(Ordering::SeqCst) == 0 {
            TURNS[number].fetch_add(1, Ordering::SeqCst);
        }
        ORPHAN[number].store(0, Ordering::SeqCst);
        Reply::word(0)
    }
}

/// Keeps a CPU from everybody below.
fn keep_busy(cpu: usize) {
    // A machine with fewer CPUs keeps it where it is.
    let _ = op::thread_schedule_on(Entry::OWN, Schedule { priority: MIDDLE, slice: 1_000 }, 1 << cpu);
    while STOP.load(Ordering::SeqCst) == 0 {}
}

fn orphan() -> Result<(), &'static str> {
    server::activations(2).map_err(text)?;
    with_portal::<Counts>(0, || {
        STOP.store(0, Ordering::SeqCst);
        for (number, orphan) in ORPHAN.iter().enumerate() {
            let caller = Thread::start_with(
                |number| {
                    let _ = message::call(entry(&PORTAL), [0, number as u64, 0, 0, 0], Control(0));
                },
                number,
                Schedule { priority: LOW, slice: 1_000 },
            )
            .map_err(text)?;
            until(|| orphan.load(Ordering::SeqCst) != 0, "nobody is called")?;
            op::thread_cancel(caller.entry()).map_err(text)?;
            caller.join();
        }
        let busy = [0, 1].map(|cpu| Thread::start_with(keep_busy, cpu, Schedule { priority: MIDDLE, slice: 1_000 }));
        // The last first: whichever has its turn now, one of them is neither that nor the next.
        let outcome = (0..ORPHANS).rev().try_for_each(waited_for);
        STOP.store(1, Ordering::SeqCst);
        busy.into_iter().flatten().for_each(Thread::join);
        until(|| ORPHAN.iter().all(|orphan| orphan.load(Ordering::SeqCst) == 0), "an orphan does not end")?;
        outcome
    })
}

/// An orphan goes on, past those that keep the CPUs busy and past other orphans, when somebody waits for it.
fn waited_for(number: usize) -> Result<(), &'static str> {
    let lender = Thread::start_with(
        |number| {
            let holder = ORPHAN[number].load(Ordering::SeqCst) as u32;
            let _ = op::p_lending(entry(&NEVER), NEVER_ENDS, holder);
        },
        number,
        Schedule { priority: HIGH, slice: 1_000 },
    )
    .map_err(text)?;
    let before = TURNS[number].load(Ordering::SeqCst);
    let outcome = until(|| TURNS[number].load(Ordering::SeqCst) > before + 100, "the orphan has no turn");
    op::v(entry(&NEVER)).map_err(text)?;
    lender.join();
    outcome
}
