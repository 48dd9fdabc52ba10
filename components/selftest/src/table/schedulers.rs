//! The scheduler of one CPU dies: the one that stands by takes its threads over, and those of others notice nothing.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{NEVER, info};
use alloc::sync::Arc;
use alloc::vec::Vec;
use protocols::parent::{Force, ParentClient};
use runtime::entry::Owned;
use runtime::{Direct, Entry, op, thread};

use super::case::{Case, text};
use super::places::{Turn, Victim, When, until};
use crate::check::hold;

use When::Race;

pub const CASES: &[Case] = &[Case { name: "death of a CPU's scheduler", whens: &[Race], run: scheduler_dies }];

const MICROSECOND: u64 = 1_000;
/// Nanoseconds from one death to the next: no component may die more often than 250 times in a minute.
const PAUSE: u64 = 260_000 * MICROSECOND;

/// For each CPU the domain of its scheduler.
fn seated() -> Result<Vec<u64>, &'static str> {
    let cpus = op::records(Entry::SPECIAL).collect::<Result<Vec<info::Cpu>, _>>().map_err(text)?;
    let runs = |cpu: &info::Cpu| cpu.state != info::cpu_state::OFFLINE;
    Ok(cpus.into_iter().filter(runs).map(|cpu| cpu.scheduler).collect())
}

/// Schedulers that live, the one that stands by included.
fn living() -> Result<usize, &'static str> {
    let domains = op::records(Entry::SPECIAL).collect::<Result<Vec<info::Domain>, _>>().map_err(text)?;
    // One without pages is not loaded yet.
    let lives = |domain: &&info::Domain| domain.name.starts_with(b"sched\0") && domain.state == 0 && domain.pages != 0;
    Ok(domains.iter().filter(lives).count())
}

/// Each CPU has its scheduler, and one stands by.
fn complete() -> bool {
    seated().is_ok_and(|seated| seated.iter().all(|one| *one != 0) && living() == Ok(seated.len() + 1))
}

/// The state shared by the working threads.
struct Work {
    over: AtomicU64,
    /// The rounds that each of them did: runs and sleeps on both CPUs, passes a token to and fro.
    done: [AtomicU64; 6],
    semaphores: [Owned; 2],
}

fn scheduler_dies(turn: &mut Turn) -> Result<(), &'static str> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    until(complete, "no scheduler stands by")?;
    let semaphore = || op::semaphore_new(Entry::OWN, 0).map(Owned::new).map_err(text);
    let work = Arc::new(Work {
        over: AtomicU64::new(0),
        done: [const { AtomicU64::new(0) }; 6],
        semaphores: [semaphore()?, semaphore()?],
    });
    let mut victims = Vec::new();
    for number in 0..work.done.len() {
        let its = work.clone();
        let cpu = if number % 2 == 0 { turn.victim } else { turn.actor };
        let victim = Victim::new(cpu, move || {
            while its.over.load(Ordering::SeqCst) == 0 {
                let result = match number {
                    0 | 1 => {
                        core::hint::black_box(());
                        Ok(())
                    }
                    2 | 3 => thread::sleep(50 * MICROSECOND),
                    // Each waits for the other's token, and gives it back.
                    _ => op::p(its.semaphores[number % 2].entry(), NEVER)
                        .and_then(|()| op::v(its.semaphores[(number + 1) % 2].entry())),
                };
                if let Err(error) = result {
                    return error as u64;
                }
                its.done[number].fetch_add(1, Ordering::SeqCst);
            }
            0
        })?;
        victim.go();
        victims.push(victim);
    }
    op::v(work.semaphores[0].entry()).map_err(text)?;
    let all_get_on = |otherwise| {
        for done in &work.done {
            let before = done.load(Ordering::SeqCst);
            until(|| done.load(Ordering::SeqCst) > before + 2, otherwise)?;
        }
        Ok::<(), &'static str>(())
    };
    all_get_on("a thread does not begin")?;
    let pause = (LAST.load(Ordering::SeqCst) + PAUSE).saturating_sub(op::clock());
    if LAST.load(Ordering::SeqCst) != 0 && pause != 0 {
        thread::sleep(pause).map_err(text)?;
    }
    turn.delay();
    let before = seated()?;
    LAST.store(op::clock(), Ordering::SeqCst);
    ParentClient(Direct(Entry::PARENT))
        .kill(before[turn.victim], Force::Gentle)
        .map_err(|_| "roottask does not kill the scheduler")?;
    all_get_on("a thread does not go on when a scheduler died")?;
    let after = seated()?;
    for (cpu, (before, after)) in before.iter().zip(&after).enumerate() {
        hold((before != after) == (cpu == turn.victim), "another CPU got a new scheduler, or this one got none")?;
        hold(*after != 0, "a CPU has no scheduler")?;
    }
    until(complete, "no new scheduler stands by")?;
    all_get_on("a thread does not go on with the new scheduler")?;
    work.over.store(1, Ordering::SeqCst);
    // Both may wait for the token.
    work.semaphores.iter().try_for_each(|semaphore| op::v(semaphore.entry())).map_err(text)?;
    for victim in victims {
        hold(victim.finish()? == 0, "an error of somebody who was not killed")?;
    }
    // Three tokens were made.
    let left: u64 = work.semaphores.iter().map(|semaphore| super::waits::tokens(semaphore.entry())).sum();
    hold((1..=3).contains(&left), "a token was lost or made")
}
