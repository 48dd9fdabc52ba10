//! Storms: as many of something at the same instant as there can be.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use runtime::abi::Error;
use runtime::abi::layout::{MAX_ACTIVATIONS, PROGRAM_START};
use runtime::entry::{Entry, Owned};
use runtime::op;
use runtime::thread::Thread;

use crate::Crime;
use crate::launch::Process;

/// All of them.
pub const ALL: &[Crime] = &[
    Crime::tried("deadline-storm", "hundreds of threads wait for the same instants", deadlines),
    Crime::tried("activation-storm", "more activations than a domain can have", activations),
    Crime::tried("thread-storm", "more threads than a program can have", threads),
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
    let parts: Vec<_> = (0..DOMAINS)
        .map(|_| Process::start_with("storm", &["--storm", &first], 1024, FRAMES))
        .collect::<Result<_, _>>()?;
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
    op::domain_new(Entry::ACCOUNT, 0, 0, "victim").map(Owned::new).map_err(|error| error.to_string())
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
        (MAX_ACTIVATIONS, Error::LimitReached) => Ok(format!("refused after {count}: {refused}")),
        _ => Err(format!("refused after {count}: {refused}")),
    }
}

/// In a domain of its own, with room for so many entries.
fn threads() -> Result<String, String> {
    match Process::start("storm", &["--threads"], 1024)?.wait()? {
        status if status == Error::LimitReached as u64 => Ok(format!("refused: {}", Error::LimitReached)),
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
            match op::domain_new(Entry::ACCOUNT, 0, 0, "victim") {
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
    // Whoever takes all of its numbers takes none of others'.
    let others = Process::start("another", &["--nothing"], 0).and_then(Process::wait);
    if threads.len() >= THREADS && others == Ok(0) { refused as u8 } else { u8::MAX }
}
