//! Random system calls that need devices, the machine and all memory; see the program `fuzzer` for
//! all others.
//!
//! Runs in the place of a shell, in a system of its own, with `special = "trial"`. It prints what was answered how
//! often, what is missing of what should have come, and whether a frame was lost; then it stops the machine.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

#[allow(unsafe_code)]
mod calls;

use abi::rights::Kind;
use abi::{Error, NEVER, info, op as abi_op};
use alloc::format;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use fuzzer::histogram::{Excuses, Histogram};
use runtime::Entry;
use runtime::op::{self, Schedule};
use runtime::serial::Serial;
use runtime::thread::Thread;

use calls::Caller;

runtime::entry!(main);

/// Where the random numbers begin, and how many calls are made.
const SEED: u64 = 1;
const CALLS: u64 = 120_000;
/// How often each error has to come.
const DEMAND: u64 = 1_000;

/// Runs after which the number of free frames must be stable.
const ROUNDS: usize = 10;

/// Operations of which a tenth has to succeed.
const TRIED: [usize; 6] =
    [abi_op::DRAW, abi_op::INTERRUPT_BIND, abi_op::IO, abi_op::INFO, abi_op::MACHINE, abi_op::DISPATCH];
/// The operations that cannot succeed where there are no ports.
const WITHOUT_PORTS: &[(usize, &str)] = &[(abi_op::IO, "this machine has no ports")];
/// Errors that nobody else can get.
const SPECIAL: [Error; 3] = [Error::Again, Error::NotRunnable, Error::Taken];

/// Does this machine have I/O ports? If so, our line to the world is behind some.
fn has_ports() -> bool {
    op::entry_info(Entry::OWN, Entry::IO_PORTS).is_ok_and(|(kind, _)| kind == Kind::IoPorts)
}

fn free_frames() -> u64 {
    op::record::<info::Frames>(Entry::SPECIAL, 0).map_or(0, |(frames, _)| frames.free)
}

/// The semaphore that some threads wait on again and again, so that the scheduler has something to do.
static BELL: AtomicUsize = AtomicUsize::new(0);
static OVER: AtomicBool = AtomicBool::new(false);
/// Where no two free frames adjoin, a domain was refused.
static WANTS_BLOCKS: AtomicBool = AtomicBool::new(false);
/// Calls through portals of drawn shapes that came back in the first run.
static ANSWERED: AtomicU64 = AtomicU64::new(0);
/// Calls between two rings of the bell.
const RINGS: u64 = 16;

fn bell() -> Entry {
    Entry(BELL.load(Ordering::Relaxed))
}

fn listen(_: usize) {
    while !OVER.load(Ordering::Relaxed) {
        let _ = op::p(bell(), NEVER);
    }
}

fn main() -> u8 {
    let rung = op::semaphore_new(Entry::OWN, 0).map(|bell| BELL.store(bell.0, Ordering::Relaxed));
    let schedule = Schedule { priority: 16, slice: 1_000 };
    let listeners = [(); 3].map(|()| Thread::start_with(listen, 0, schedule).and_then(|thread| rung.map(|()| thread)));
    let counts = run(SEED, CALLS);
    let answered = ANSWERED.load(Ordering::Relaxed);
    let stable = until_stable();
    OVER.store(true, Ordering::Relaxed);
    for _ in &listeners {
        let _ = op::v(bell());
    }
    listeners.into_iter().flatten().for_each(Thread::join);

    let excuses = Excuses { rows: if has_ports() { &[] } else { WITHOUT_PORTS }, errors: &[], rare: &[] };
    let tried = TRIED.iter().filter(|row| !excuses.rows.iter().any(|(other, _)| other == *row));
    let mut missing: Vec<_> = tried.filter_map(|row| counts.fails_too_often(*row)).collect();
    missing.extend(SPECIAL.iter().filter_map(|error| counts.comes_too_rarely(*error, DEMAND)));
    missing.extend(counts.not_in_the_contract());
    if WANTS_BLOCKS.load(Ordering::Relaxed) {
        missing.push("a domain where no two free frames adjoin".into());
    }
    if answered < DEMAND {
        missing.push(format!("of the calls through drawn shapes {answered} came back"));
    }
    let mut serial = Serial::new();
    for line in counts.show(&excuses) {
        let _ = writeln!(serial, "{line}");
    }
    let _ = writeln!(serial, "\n{} calls, seed {SEED}", counts.calls());
    let _ = writeln!(serial, "{answered} calls through drawn shapes came back");
    for what in &missing {
        let _ = writeln!(serial, "missing: {what}");
    }
    let _ = match stable {
        Ok(free) => writeln!(serial, "no frame was lost: {free} are free after each run"),
        Err(free) => writeln!(serial, "lost: after one run after the other there are {free:?} free frames"),
    };
    let _ = op::machine_stop(Entry::SPECIAL, u64::from(!missing.is_empty() || stable.is_err()));
    runtime::server::park()
}

/// Repeats runs until the number of free frames stays the same: pages of small objects that are not quite empty keep a few at
/// first. A leak never ends.
fn until_stable() -> Result<u64, [u64; ROUNDS]> {
    let mut free = [0; ROUNDS];
    for round in 0..ROUNDS {
        let _ = run(SEED + 1 + round as u64, CALLS / 4);
        free[round] = free_frames();
        if let Some([first, second, third]) = free[..=round].last_chunk()
            && (first, second) == (second, third)
        {
            return Ok(*third);
        }
    }
    Err(free)
}

/// Makes so many calls, and the scheduler's dispatches meanwhile.
fn run(seed: u64, calls: u64) -> Histogram {
    let dispatches = || {
        let reported = op::record::<info::Counters>(Entry::SPECIAL, 0);
        reported.map_or([0; 3], |(reported, _)| [reported.dispatches, reported.again, reported.not_runnable])
    };
    let before = dispatches();
    let mut caller = Caller::new(seed);
    for call in 0..calls {
        caller.step(call);
        if call % RINGS == 0 {
            // A thread that it wakes is queued, and runs when we let it.
            let _ = op::v(bell());
            op::yield_now();
        }
    }
    if !caller.cut_memory_to_pieces() {
        WANTS_BLOCKS.store(true, Ordering::Relaxed);
    }
    ANSWERED.fetch_add(caller.answered, Ordering::Relaxed);
    let mut counts = caller.end(bell());
    let after = dispatches();
    let [dispatches, again, not_runnable] = [0, 1, 2].map(|which| after[which] - before[which]);
    counts.add(abi_op::DISPATCH, 0, dispatches);
    counts.add(abi_op::DISPATCH, Error::Again as u64, again);
    counts.add(abi_op::DISPATCH, Error::NotRunnable as u64, not_runnable);
    counts
}
