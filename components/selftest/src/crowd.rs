//! As many threads as the machine has numbers for, all ready before one of them runs: more than the ring of a scheduler has room for.

use abi::{Error, NEVER, op as numbers};
use alloc::vec::Vec;
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::{Entry, thread};

use crate::check::{Check, hold};
use crate::table::child::{Child, Page, Program, on_semaphore};
use crate::table::places::PATIENCE;

pub const CHECKS: &[Check] = &[
    ("each of eight thousand threads that are ready at once runs", all_run),
    ("their numbers are given back", all_run),
];

/// Threads of a domain: it has no room for more message areas.
const OF_A_DOMAIN: usize = abi::layout::MAX_ACTIVATIONS;

/// The steps of every thread: V on one semaphore, then P on another one that nobody raises.
static STEPS: Page = Page::new();

fn text(error: Error) -> &'static str {
    error.text()
}

/// A domain that knows both semaphores, in the same places as every other one.
fn domain(semaphores: [&Owned; 2]) -> Result<Child, Error> {
    let child = Child::new(Entry::ACCOUNT, 0, 1)?;
    child.show(&STEPS, 1, false)?;
    let [raised, never] = semaphores.map(|semaphore| child.give(semaphore.entry()));
    let raises = on_semaphore(raised?, [numbers::V, 0, 0, 0, 0, 0]);
    let waits = on_semaphore(never?, [numbers::P, NEVER, 0, 0, 0, 0]);
    STEPS.set_steps(0, &[raises, waits]);
    Ok(child)
}

/// Starts threads until there is no number left; gives them with their domains.
fn start_all(semaphores: [&Owned; 2]) -> Result<(Vec<Child>, Vec<Owned>), Error> {
    let (mut domains, mut threads) = (Vec::new(), Vec::new());
    loop {
        let child = match domain(semaphores) {
            Ok(child) => child,
            Err(Error::NoThreads | Error::NoDomains) => return Ok((domains, threads)),
            Err(error) => return Err(error),
        };
        for _ in 0..OF_A_DOMAIN {
            match child.start(Program::Steps(0)) {
                Ok(thread) => threads.push(thread),
                Err(Error::NoThreads) => break,
                Err(error) => return Err(error),
            }
        }
        domains.push(child);
    }
}

fn all_run() -> Result<(), &'static str> {
    let raised = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let never = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    // Nobody else runs on this CPU meanwhile, and the scheduler reads nothing.
    let long = Schedule { priority: 16, slice: 1_000_000 };
    let before = op::thread_schedule_on(Entry::OWN, long, 1).map_err(text)?;
    op::yield_now();
    let (domains, threads) = start_all([&raised, &never]).map_err(text)?;
    hold(threads.len() >= 8_000, "there is room for fewer")?;
    for _ in &threads {
        op::p(raised.entry(), op::clock() + PATIENCE).map_err(|_| "one of them does not run")?;
    }
    thread::sleep(1_000_000).map_err(text)?;
    hold(op::p(raised.entry(), 0).is_err(), "one of them ran twice")?;
    drop(threads);
    drop(domains);
    op::thread_schedule_on(Entry::OWN, before, u64::MAX).map_err(text).map(drop)
}
