//! Do threads of one priority get equal time, on however many CPUs? `burden N` starts N threads that never wait; `share`,
//! of higher priority, looks at what all of them used in a while, and prints the difference between the most and the
//! least over the mean.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use abi::Error;
use abi::info;
use core::hint::black_box;
use runtime::op::{self, Schedule};
use runtime::thread::{Thread, sleep};
use runtime::{Entry, program};

/// Priority of the burden: nobody else has it.
const PRIORITY: u64 = 8;
/// Microseconds of a slice.
const SLICE: u32 = 100;
/// Threads of all burdens together.
const THREADS: usize = 200;
/// Nanoseconds until they are all there, until they are shared out, and that are looked at.
const PATIENCE: u64 = 5_000_000_000;
const BEFORE: u64 = 100_000_000;
const WHILE: u64 = 1_000_000_000;

/// Starts so many threads that never wait, and waits.
pub fn burden(count: usize) -> Result<(), Error> {
    let schedule = Schedule { priority: program::schedule().priority, slice: SLICE };
    for _ in 0..count {
        Thread::start_with(
            |_| loop {
                // An instruction that pauses would make the emulator slow.
                black_box(());
            },
            0,
            schedule,
        )?;
    }
    sleep(abi::NEVER)
}

/// Nanoseconds used by each thread of the burden, by its number.
fn used() -> Result<BTreeMap<u64, u64>, Error> {
    let mut all = BTreeMap::new();
    for thread in op::records::<info::Thread>(Entry::SPECIAL) {
        let thread = thread?;
        if thread.priority == PRIORITY {
            all.insert(thread.number, thread.used);
        }
    }
    Ok(all)
}

/// Threads handed over from CPU to CPU so far, and CPUs.
fn handed() -> Result<(u64, u64), Error> {
    let (mut handed, mut cpus) = (0, 0);
    for cpu in op::records::<info::Cpu>(Entry::SPECIAL) {
        (handed, cpus) = (handed + cpu?.received, cpus + 1);
    }
    Ok((handed, cpus))
}

/// The line to print.
pub fn line() -> Result<String, Error> {
    let deadline = op::clock() + PATIENCE;
    // The first threads of the burdens wait; they have the same priority.
    let busy = |used: &BTreeMap<u64, u64>| used.values().filter(|used| **used > u64::from(SLICE) * 1000 / 2).count();
    while busy(&used()?) < THREADS && op::clock() < deadline {
        sleep(BEFORE / 10)?;
    }
    sleep(BEFORE)?;
    let (before, (handed_before, cpus)) = (used()?, handed()?);
    sleep(WHILE)?;
    let (after, (handed_after, _)) = (used()?, handed()?);
    let shares = after.iter().map(|(number, used)| used - before.get(number).copied().unwrap_or(0));
    // Those that wait used nothing.
    let shares = shares.filter(|share| *share != 0);
    let (mut count, mut sum, mut least, mut most) = (0, 0, u64::MAX, 0);
    for share in shares {
        (count, sum, least, most) = (count + 1, sum + share, share.min(least), share.max(most));
    }
    let spread = (most.saturating_sub(least) * 1000 * count).checked_div(sum).unwrap_or(u64::MAX);
    let moved = handed_after - handed_before;
    let tenths = |value: u64| format!("{}.{}", value / 10, value % 10);
    Ok(format!(
        "share: {count} threads on {cpus} CPUs, of which they had {}: spread {} %, {moved} moved\n",
        tenths(sum * 10 / WHILE),
        tenths(spread)
    ))
}
