//! Storms: as many of something at the same instant as there can be.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use runtime::abi::Error;
use runtime::abi::info;
use runtime::abi::layout::{MAX_ACTIVATIONS, PROGRAM_START};
use runtime::abi::op::SEMAPHORE_NEW;
use runtime::entry::{Entry, Owned};
use runtime::thread::Thread;
use runtime::{arch, op, table};
use tool::inspect::PROC;

use crate::case::Case;
use crate::launch::Process;

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("deadline-storm", "hundreds of threads wait for the same instants", deadlines),
    Case::tried("activation-storm", "more activations than a domain can have", activations),
    Case::tried("thread-storm", "more threads than a program can have", threads),
    Case::tried(
        "semaphore-storm",
        "waits at a semaphore while others remove it, and put another one in its place",
        semaphores,
    ),
    Case::tried("walk-storm", "four at once ask for the oldest of many domains", walks),
];

const MILLISECOND: u64 = 1_000_000;
/// Domains, and threads in each.
const DOMAINS: usize = 4;
const THREADS: usize = 70;
/// Frames of each.
const FRAMES: u64 = 768;
const DEADLINES: u64 = 5;
const BETWEEN: u64 = 20 * MILLISECOND;
const LOW: op::Schedule = op::Schedule { priority: 0, slice: 1_000 };

/// Statuses of a part of the storm.
const TOO_LATE: u8 = 3;
const WRONG: u8 = 4;

static FIRST: AtomicU64 = AtomicU64::new(0);
static RIGHT: AtomicU64 = AtomicU64::new(0);

/// Is a part of the storm: `first` is its first instant.
pub fn part(first: &str) -> u8 {
    let Ok(first) = first.parse() else { return tool::USAGE };
    FIRST.store(first, Ordering::SeqCst);
    let threads: Result<Vec<_>, _> = (0..THREADS).map(|_| Thread::start(wait, 0)).collect();
    let too_late = op::clock() >= first;
    match threads {
        Ok(threads) => threads.into_iter().for_each(Thread::join),
        Err(error) => {
            runtime::log!("{error}");
            return WRONG;
        }
    }
    match RIGHT.load(Ordering::SeqCst) {
        _ if too_late => TOO_LATE,
        right if right == THREADS as u64 * DEADLINES => 0,
        right => {
            runtime::log!("{right} of {} waits were right", THREADS as u64 * DEADLINES);
            WRONG
        }
    }
}

fn wait(_: usize) {
    let Ok(semaphore) = op::semaphore_new(Entry::OWN, 0).map(Owned::new) else { return };
    for number in 0..DEADLINES {
        let instant = FIRST.load(Ordering::SeqCst) + number * BETWEEN;
        let ended = op::p(semaphore.entry(), instant);
        if ended == Err(Error::Timeout) && (instant..instant + BETWEEN).contains(&op::clock()) {
            RIGHT.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn deadlines() -> Result<String, String> {
    let first = (op::clock() + 150 * MILLISECOND).to_string();
    let parts: Vec<_> =
        (0..DOMAINS).map(|_| Process::start_with("storm", &["--storm", &first], FRAMES)).collect::<Result<_, _>>()?;
    for part in parts {
        match part.wait()? {
            0 => {}
            3 => return Err("the threads were not there in time".to_string()),
            status => return Err(format!("a domain ended with {status:#x}")),
        }
    }
    Ok(format!("{} threads, {DEADLINES} instants: nobody woke early, or late", DOMAINS * THREADS))
}

fn victim() -> Result<Owned, String> {
    op::domain_new(Entry::ACCOUNT, 0, "victim").map(Owned::new).map_err(|error| error.to_string())
}

fn activations() -> Result<String, String> {
    let victim = victim()?;
    let mut count = 0;
    let refused = loop {
        // SAFETY: another domain's.
        match unsafe { op::activation_new(victim.entry(), 0, Entry::OWN) } {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    match (count, refused) {
        (MAX_ACTIVATIONS, Error::TooManyActivations) => Ok(format!("refused after {count}: {refused}")),
        _ => Err(format!("refused after {count}: {refused}")),
    }
}

/// In a domain of its own, with room for so many entries.
fn threads() -> Result<String, String> {
    match Process::start("storm", &["--threads"])?.wait()? {
        status if status == Error::AccountThreads as u64 => Ok(format!("refused: {}", Error::AccountThreads)),
        status => Err(format!("ended with {status:#x}")),
    }
}

/// Starts threads until that is refused; gives the error, or 255 if that came too early.
pub fn fill() -> u8 {
    let mut victims: Vec<Owned> = Vec::new();
    let mut threads: Vec<Owned> = Vec::new();
    let refused = loop {
        if threads.len().is_multiple_of(THREADS) {
            // A domain has a thread of its own, for orphans.
            match op::domain_new(Entry::ACCOUNT, 0, "victim") {
                Ok(victim) => victims.push(Owned::new(victim)),
                Err(error) => break error,
            }
        }
        let Some(victim) = victims.last() else { return WRONG };
        // SAFETY: another domain. Nothing there runs before we wait: its priority is the lowest.
        match unsafe { op::thread_new(victim.entry(), PROGRAM_START, 0, 0, LOW) } {
            Ok(thread) => threads.push(Owned::new(thread)),
            Err(error) => break error,
        }
    };
    // A program that takes all of its numbers takes none of others'.
    let others = Process::start("another", &["--nothing"]).and_then(Process::wait);
    if threads.len() >= THREADS && others == Ok(0) { refused as u8 } else { u8::MAX }
}

/// Semaphores that come and go.
const REPLACED: usize = 20_000;
/// Where they stand, and the accounts that pay for them in turn.
static PLACE: AtomicUsize = AtomicUsize::new(0);
static PAYERS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// Those that came.
static MADE: AtomicUsize = AtomicUsize::new(0);
static ENDS: AtomicBool = AtomicBool::new(false);

/// Threads that do without end what takes the nucleus's lock, each on a CPU of its own if there are so many. So all wait for it, in
/// this order: the first removes the semaphore, the next puts another one there, and the last waits at what it found.
fn semaphores() -> Result<String, String> {
    let say = |error: Error| error.to_string();
    let accounts = [op::account_new(Entry::OWN, 8), op::account_new(Entry::OWN, 8)];
    let mut kept = Vec::new();
    for (account, payer) in accounts.into_iter().zip(&PAYERS) {
        let account = Owned::new(account.map_err(say)?);
        payer.store(account.entry().0, Ordering::Relaxed);
        // The page of objects stays when the others go.
        kept.push((Owned::new(op::semaphore_new(account.entry(), 0).map_err(say)?), account));
    }
    let place = Owned::new(table::allocate().map_err(say)?);
    PLACE.store(place.entry().0, Ordering::Relaxed);
    let roles: [fn(usize); 4] = [look, remove, replace, wait_there];
    let mut threads = Vec::new();
    for (cpu, role) in roles.into_iter().enumerate() {
        let thread = Thread::start(role, 0).map_err(say)?;
        // Without that CPU it runs anywhere.
        let _ = op::thread_schedule_on(thread.entry(), LOW, 1 << cpu);
        threads.push(thread);
    }
    let end = op::clock() + 5_000 * MILLISECOND;
    while MADE.load(Ordering::Relaxed) < REPLACED && op::clock() < end {
        runtime::thread::sleep(MILLISECOND).map_err(say)?;
    }
    ENDS.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(Thread::join);
    match MADE.load(Ordering::Relaxed) {
        0 => Err("none came".to_string()),
        _ => Ok("they came and went, and nobody waits at what is gone".to_string()),
    }
}

fn until_the_end(mut work: impl FnMut(Entry)) {
    while !ENDS.load(Ordering::Relaxed) {
        work(Entry(PLACE.load(Ordering::Relaxed)));
    }
}

fn look(_: usize) {
    until_the_end(|place| {
        let _ = op::entry_info(Entry::OWN, place);
    });
}

fn remove(_: usize) {
    until_the_end(|place| {
        let _ = op::entry_remove(Entry::OWN, place);
    });
}

fn replace(_: usize) {
    until_the_end(|place| {
        let made = MADE.load(Ordering::Relaxed);
        let payer = PAYERS[made % PAYERS.len()].load(Ordering::Relaxed);
        // SAFETY: changes nothing in this domain but an entry.
        let outcome = unsafe { arch::operation3::<SEMAPHORE_NEW>(payer as u64, 0, place.0 as u64) };
        MADE.store(made + usize::from(outcome.is_ok()), Ordering::Relaxed);
    });
}

fn wait_there(_: usize) {
    until_the_end(|place| {
        let _ = op::p(place, op::clock() + MILLISECOND);
    });
}

/// Domains that are passed, more than one step passes; and for how long.
const PASSED: usize = 60;
const WALK: u64 = 300 * MILLISECOND;

static WALKED: AtomicUsize = AtomicUsize::new(0);

/// All together get as far as one alone, or nearly: none makes the others begin again.
fn walks() -> Result<String, String> {
    let say = |error: Error| error.to_string();
    let mut victims = Vec::new();
    for _ in 0..PASSED {
        victims.push(Owned::new(op::domain_new(Entry::ACCOUNT, 0, "passed").map_err(say)?));
    }
    let alone = walked(1)?;
    let together = walked(4)?;
    if together < alone / 2 {
        Err(format!("{together} walks together, {alone} alone"))
    } else {
        Ok("all get on".to_string())
    }
}

/// How often so many get to the end.
fn walked(threads: usize) -> Result<usize, String> {
    WALKED.store(0, Ordering::Relaxed);
    let start = |_| Thread::start(walk, 0).map_err(|error| error.to_string());
    let threads = (0..threads).map(start).collect::<Result<Vec<_>, _>>()?;
    threads.into_iter().for_each(Thread::join);
    Ok(WALKED.load(Ordering::Relaxed))
}

fn walk(_: usize) {
    /// The second domain that there ever was.
    const OLDEST: u64 = 3;
    let end = op::clock() + WALK;
    let mut into = [0; 256];
    while op::clock() < end {
        let found = PROC.inspect(info::DOMAIN, OLDEST, &mut into);
        WALKED.fetch_add(usize::from(found.is_ok()), Ordering::Relaxed);
    }
}
