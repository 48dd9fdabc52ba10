//! How much faster several CPUs are than one: by the clock, so it says something only where CPUs run at the same time
//! (not while instructions are counted), and about the computer on which the emulator runs as much as about Cairn.

use alloc::string::{String, ToString};
use core::hint::black_box;

use runtime::entry::{Entry, Owned};
use runtime::op;
use tool::{inspect, println};

use crate::parallel;
use crate::peer;
use crate::together::{Meeting, Work, together};

/// Rounds of each CPU: some tenths of a second.
const COMPUTED: u64 = 50_000_000;
const CALLS: u64 = 100_000;
const OBJECTS: u64 = 20_000;
const OBJECTS_MADE: &str = "objects made and removed, under the nucleus lock";
/// Of so many tries the best counts.
const TRIES: usize = 3;

/// Prints for each kind of work a line `speed-up: WORK on N CPUs: X.XX`: N CPUs do N times the work of one, so many
/// times as fast as if one had to do it all. For what takes the nucleus lock also how often, for each object, a CPU waits for the
/// lock and is stopped by the one that has it.
pub fn up(cpus: u64) -> Result<(), String> {
    let cpus = match usize::try_from(cpus) {
        Ok(cpus @ 1..=peer::MOST) => cpus,
        _ => return Err(alloc::format!("this takes 1 to {} CPUs, not {cpus}", peer::MOST)),
    };
    // They must be there as long as they are used.
    let _portals = parallel::open(cpus)?;
    let all: [(&str, Work); 3] =
        [("computing", compute), ("calls, without a lock", call), (OBJECTS_MADE, make_and_remove)];
    for (what, work) in all {
        let one = best(1, work)?;
        let before = disturbances()?;
        let several = best(cpus, work)?;
        let after = disturbances()?;
        let ratio = (100 * cpus as u64 * one).checked_div(several).ok_or("the clock stands still")?;
        println!("speed-up: {what}: on {cpus} CPUs {}", decimal(ratio));
        if what == OBJECTS_MADE {
            let objects = TRIES as u64 * cpus as u64 * OBJECTS;
            let each = |kind: usize| decimal((100 * (after[kind] - before[kind])).div_ceil(objects));
            println!("speed-up: for each object: a CPU waits {} times, and is stopped {} times", each(0), each(1));
        }
    }
    Ok(())
}

/// Hundredths as a number with a point.
fn decimal(hundredths: u64) -> String {
    alloc::format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// How often CPUs had to wait for the nucleus lock, and were stopped by the one that had it.
fn disturbances() -> Result<[u64; 2], String> {
    let cpus = inspect::cpus().map_err(|error| error.to_string())?;
    Ok([cpus.iter().map(|cpu| cpu.lock_waits).sum(), cpus.iter().map(|cpu| cpu.stops).sum()])
}

fn best(cpus: usize, work: Work) -> Result<u64, String> {
    let mut best = u64::MAX;
    for _ in 0..TRIES {
        best = best.min(together(cpus, work)?);
    }
    Ok(best)
}

fn compute(cpu: usize, meeting: &Meeting) -> Result<(), String> {
    meeting.timed(|| {
        let mut state = cpu as u64 + 1;
        for _ in 0..COMPUTED {
            // A shift register: Marsaglia, "Xorshift RNGs", 2003.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        black_box(state);
    });
    Ok(())
}

fn call(cpu: usize, meeting: &Meeting) -> Result<(), String> {
    parallel::call_often(cpu, meeting, CALLS, || ())
}

fn make_and_remove(_cpu: usize, meeting: &Meeting) -> Result<(), String> {
    let mut made = Ok(());
    meeting.timed(|| {
        for _ in 0..OBJECTS {
            made = made.and(op::semaphore_new(Entry::OWN, 0).map(|semaphore| drop(Owned::new(semaphore))));
        }
    });
    made.map_err(|error| error.to_string())
}
