//! Negative tests that make a loop of the nucleus as long as it can be made: `tests/boot/longest.toml` looks how long that keeps
//! interrupts out.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use idl::{Reply, Request};
use runtime::abi::layout::FIRST_FREE;
use runtime::abi::{Control, Error, NEVER, op as abi_op, rights};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::server::{self, Serve};
use runtime::thread::{self, Thread};
use runtime::{Entry, message, table};

use crate::case::{Case, text};
use crate::child;
use crate::launch::Process;

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("index-sought", "a free index sought in a large table, which is full and cannot grow", table_full),
    Case::tried("domains-deep", "domains made by domains made by domains, removed with the first", domains_deep),
    Case::tried("pool-full", "a caller that lends its priority to as many activations as there can be", || {
        elsewhere("--pool-full")
    }),
    Case::tried("wait-many", "as many threads as there can be wait for what one of them holds", || {
        elsewhere("--wait-many")
    }),
    Case::tried("wait-gone", "as many threads as there can be wait for a semaphore that goes", || {
        elsewhere("--wait-gone")
    }),
    Case::tried("shape-made", "the code of a portal that was not there is made", || {
        server::shape("npciii>i").map(|_| "with others between its steps".into()).map_err(|error| error.to_string())
    }),
];

const MILLISECOND: u64 = 1_000_000;
const LOW: Schedule = Schedule { priority: 1, slice: 1_000 };

/// In a domain of its own.
fn elsewhere(what: &str) -> Result<String, String> {
    match Process::start("long", &[what])?.wait()? {
        0 => Ok("each has its turn".to_string()),
        status => Err(format!("ended with {status:#x}")),
    }
}

/// Is the process of a test that needs one.
pub fn part(what: &str) -> u8 {
    let outcome = match what {
        "--pool-full" => pool_full(),
        "--wait-gone" => wait_gone(),
        _ => wait_many(),
    };
    if let Err(cause) = &outcome {
        runtime::log!("{what}: {cause}");
    }
    u8::from(outcome.is_err())
}

/// More than 10,000 entries take.
const FRAMES_OF_TABLE: u64 = 200;

fn table_full() -> Result<String, String> {
    let account = Owned::new(op::account_new(Entry::ACCOUNT, FRAMES_OF_TABLE).map_err(text)?);
    let victim = Owned::new(op::domain_new(account.entry(), 0, "victim").map_err(text)?);
    let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    let copy = || op::entry_copy(Entry::OWN, semaphore.entry(), victim.entry(), Entry::OWN, rights::ALL);
    let mut filled = 0;
    let refused = loop {
        match copy() {
            Ok(_) => filled += 1,
            Err(error) => break error,
        }
    };
    // The only free index is found, wherever it is, and afterwards there is none again.
    for index in [FIRST_FREE, FIRST_FREE + filled / 2, FIRST_FREE + filled - 1] {
        op::entry_remove(victim.entry(), Entry(index)).map_err(text)?;
        let found = copy();
        if found != Ok(Entry(index)) || copy() != Err(refused) {
            return Err(format!("index {index} was free: {found:?}"));
        }
    }
    match refused {
        Error::OtherExhausted if filled > 10_000 => {
            Ok(format!("refused after {filled}: {refused}; each free index is found"))
        }
        _ => Err(format!("refused after {filled}: {refused}")),
    }
}

/// Where a domain has the one that it makes.
const INNER: usize = 120;

fn domains_deep() -> Result<String, String> {
    let never = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    let outermost = Owned::new(op::domain_new(Entry::ACCOUNT, 0, "victim").map_err(text)?);
    let mut entries: Vec<Owned> = Vec::new();
    let mut threads: Vec<Owned> = Vec::new();
    let refused = loop {
        let domain = entries.last().map_or(outermost.entry(), Owned::entry);
        child::equip(domain).map_err(text)?;
        let waits = op::entry_copy(Entry::OWN, never.entry(), domain, Entry::OWN, rights::ALL).map_err(text)?;
        threads.push(child::calls_in(domain, waits.0 as u64, [abi_op::P, NEVER, 0, 0, 0, 0]).map_err(text)?);
        thread::sleep(MILLISECOND).map_err(text)?;
        threads.push(child::calls_in(domain, abi_op::DOMAIN_NEW as u64, [0, 0, INNER as u64, 0, 0, 0]).map_err(text)?);
        thread::sleep(MILLISECOND).map_err(text)?;
        let place = Owned::new(table::allocate().map_err(text)?);
        match op::entry_copy(domain, Entry(INNER), Entry::OWN, place.entry(), rights::ALL) {
            Ok(_) => entries.push(place),
            Err(error) => break error,
        }
        if entries.len() > 32 {
            return Err("it never ends".to_string());
        }
    };
    let depth = entries.len() + 1;
    drop(outermost);
    // All of them are gone, and all of theirs.
    let gone = entries.iter().all(|entry| op::entry_info(entry.entry(), Entry(1)).is_err());
    match refused {
        Error::Empty if gone => Ok(format!("{depth} of them, and all go with the first")),
        _ => Err(format!("{depth} of them: {refused}; gone: {gone}")),
    }
}

static PORTAL: AtomicUsize = AtomicUsize::new(0);
static NEVER_RAISED: AtomicUsize = AtomicUsize::new(0);
static SERVING: AtomicU64 = AtomicU64::new(0);
/// Message area of the thread that is waited for, from 1.
static HOLDER: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);

/// Waits for what another thread has.
struct Waits;

impl Serve for Waits {
    fn serve(_: &mut Request<'_>) -> Reply {
        SERVING.fetch_add(1, Ordering::SeqCst);
        wait(0);
        Reply::word(0)
    }
}

fn wait(_: usize) {
    let holder = HOLDER.load(Ordering::SeqCst) as u32;
    let _ = op::p_lending(Entry(NEVER_RAISED.load(Ordering::SeqCst)), NEVER, holder);
}

fn hold(_: usize) {
    HOLDER.store(message::activation() as u64 + 1, Ordering::SeqCst);
    while DONE.load(Ordering::SeqCst) == 0 {
        let _ = thread::sleep(MILLISECOND);
    }
}

/// Has a thread hold something while `work` goes on.
fn with_holder(work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let never = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    NEVER_RAISED.store(never.entry().0, Ordering::SeqCst);
    HOLDER.store(0, Ordering::SeqCst);
    DONE.store(0, Ordering::SeqCst);
    // The oldest activations are looked at last.
    let holder = Thread::start_with(hold, 0, LOW).map_err(text)?;
    while HOLDER.load(Ordering::SeqCst) == 0 {
        thread::sleep(MILLISECOND).map_err(text)?;
    }
    let outcome = work();
    DONE.store(1, Ordering::SeqCst);
    holder.join();
    outcome
}

/// Callers, and activations for them: together as many as a domain can have.
const CALLERS: usize = 50;

fn pool_full() -> Result<(), String> {
    with_holder(|| {
        server::activations(CALLERS).map_err(text)?;
        let service = Owned::new(server::service_with::<Waits>(abi_op::SERVICE_DEADLINE).map_err(text)?);
        let place = Owned::new(table::allocate().map_err(text)?);
        op::portal_new(Entry::OWN, service.entry(), 0, place.entry(), 0).map_err(text)?;
        PORTAL.store(place.entry().0, Ordering::SeqCst);
        SERVING.store(0, Ordering::SeqCst);
        let call = |_| {
            let _ = message::call(Entry(PORTAL.load(Ordering::SeqCst)), [0; 5], Control(0));
        };
        let threads: Result<Vec<_>, _> = (0..CALLERS).map(|_| Thread::start_with(call, 0, LOW)).collect();
        let threads = threads.map_err(text)?;
        while SERVING.load(Ordering::SeqCst) < CALLERS as u64 {
            thread::sleep(MILLISECOND).map_err(text)?;
        }
        let words = [0, 0, 0, 0, op::clock() + 5 * MILLISECOND];
        let ended = message::call(place.entry(), words, Control(Control::DEADLINE)).map(drop);
        release(CALLERS)?;
        threads.into_iter().for_each(Thread::join);
        match ended {
            Err(Error::Timeout) => Ok(()),
            other => Err(format!("the call ends: {other:?}")),
        }
    })
}

fn release(waiters: usize) -> Result<(), String> {
    (0..waiters).try_for_each(|_| op::v(Entry(NEVER_RAISED.load(Ordering::SeqCst)))).map_err(text)
}

/// As many threads as there can be do this.
fn crowd(work: fn(usize)) -> Result<Vec<Thread>, String> {
    let mut threads = Vec::new();
    let refused = loop {
        match Thread::start_with(work, 0, LOW) {
            Ok(thread) => threads.push(thread),
            Err(error) => break error,
        }
    };
    thread::sleep(10 * MILLISECOND).map_err(text)?;
    if threads.len() < CALLERS { Err(format!("{} threads only: {refused}", threads.len())) } else { Ok(threads) }
}

/// Each learns that it is gone.
fn wait_gone() -> Result<(), String> {
    let goes = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    NEVER_RAISED.store(goes.entry().0, Ordering::SeqCst);
    let threads = crowd(|_| {
        let outcome = op::p(Entry(NEVER_RAISED.load(Ordering::SeqCst)), NEVER);
        DONE.fetch_add(u64::from(outcome == Err(Error::Removed)), Ordering::SeqCst);
    })?;
    let count = threads.len() as u64;
    drop(goes);
    threads.into_iter().for_each(Thread::join);
    match DONE.load(Ordering::SeqCst) {
        reported if reported == count => Ok(()),
        reported => Err(format!("{reported} of {count} threads were notified")),
    }
}

fn wait_many() -> Result<(), String> {
    with_holder(|| {
        let threads = crowd(wait)?;
        let count = threads.len();
        release(count)?;
        threads.into_iter().for_each(Thread::join);
        Ok(())
    })
}

/// Spins for a while in as many threads as a program may have.
pub fn spin() -> u8 {
    let spin = |_| {
        let end = op::clock() + 300 * MILLISECOND;
        while op::clock() < end {}
    };
    let mut threads = Vec::new();
    while let Ok(thread) = Thread::start_with(spin, 0, LOW) {
        threads.push(thread);
    }
    threads.into_iter().for_each(Thread::join);
    0
}
