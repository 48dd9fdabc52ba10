//! Operations on several CPUs. Each row is measured in a run of its own, on a machine with as many CPUs as it takes.
//!
//! The counter of instructions counts those of all CPUs together: a row shows what all of them execute. While
//! instructions are counted, CPUs take turns, and one that waits must say so with `pause`: it hands its turn on at once.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use runtime::arch::relax;

use runtime::abi::layout::HEAP_END;
use runtime::abi::{Control, MAX_CPUS, PAGE_BYTES};
use runtime::entry::{Entry, Owned};
use runtime::message;
use runtime::thread::spawn;

use crate::measure::{Row, begin_row, empty, per_round, timed};
use crate::together::{Meeting, stay_on, together};
use crate::{crossings, pages, peer};

/// Calls of each CPU.
const CALLS: u64 = 10_000;
/// Calls before counting starts.
const WARM_UP: u64 = 100;
/// Where the CPUs take turns depends on the phase of their clocks. If one of them does V before the other one has gone to sleep, round after
/// round, that is not the ping-pong that is meant: it shows in the switches, and so many others are tried.
const TRIES: u64 = 8;
/// Pages that are taken away.
const PAGES: u64 = 500;

/// Call entries to the peers' services of words.
static PORTALS: [AtomicUsize; peer::MOST] = [const { AtomicUsize::new(0) }; peer::MOST];

/// A call and its return, on each CPU at once: a thread of ours calls a peer of its own there.
pub fn calls(cpus: u64) -> Result<Row, String> {
    let cpus = within(cpus, 1, peer::MOST)?;
    // They must be there as long as they are used.
    let _portals = open(cpus)?;
    let idle = empty(CALLS) + CALLS;
    let mut ticks = Ok(0);
    timed(|| ticks = together(cpus, call_in_turns));
    let (calls, loops) = (cpus as u64 * CALLS, cpus as u64 * idle);
    let row = Row::instructions(ticks?.saturating_sub(loops).div_ceil(calls));
    Ok(row.of(calls))
}

/// Starts as many peers, and keeps a call entry to the service of words of each.
pub fn open(cpus: usize) -> Result<Vec<Owned>, String> {
    (0..cpus)
        .map(|number| {
            let words = peer::start_number(number)?.words().map_err(|error| error.to_string())?;
            let portal = Owned::new(words.into());
            PORTALS[number].store(portal.entry().0, Ordering::Relaxed);
            Ok(portal)
        })
        .collect()
}

/// Calls this CPU's peer so many times; `between` is done after each call.
#[inline(always)]
pub fn call_often(cpu: usize, meeting: &Meeting, count: u64, between: impl Fn()) -> Result<(), String> {
    let portal = Entry(PORTALS[cpu].load(Ordering::Relaxed));
    let call = || match message::call(portal, [40, 2, 0, 0, 0], Control(0)) {
        Ok((words, _)) => words[0],
        Err(_) => crossings::refused(),
    };
    for _ in 0..WARM_UP {
        call();
    }
    let mut sum = 0;
    meeting.timed(|| {
        for _ in 0..count {
            sum += call();
            between();
        }
    });
    if sum == 42 * count { Ok(()) } else { Err("a wrong answer".into()) }
}

/// After each call the next CPU has its turn.
fn call_in_turns(cpu: usize, meeting: &Meeting) -> Result<(), String> {
    call_often(cpu, meeting, CALLS, relax)
}

/// Semaphores between two domains, of which one is on CPU 0 and one on the last: there and back.
pub fn ping_pong(cpus: u64) -> Result<Row, String> {
    let cpus = within(cpus, 2, MAX_CPUS)?;
    stay_on(0)?;
    let mut outcome = Err(String::new());
    for tries in 1..=TRIES {
        begin_row();
        outcome = crossings::ping_pong_on(Some(cpus - 1)).map(|row| row.with("tries", tries));
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

const PAGE: u64 = PAGE_BYTES as u64;
/// The page that comes and goes, and one beside it that stays and with it the page table; where the allocator of this
/// program never reaches.
const PLACE: u64 = HEAP_END - 512 * PAGE;

/// The order for the threads on the other CPUs: 0 = wait, [`OVER`], or the number of the page that each is to read.
static REPORTED: AtomicU64 = AtomicU64::new(0);
const OVER: u64 = u64::MAX;
/// How often one of them has done so.
static READ: AtomicU64 = AtomicU64::new(0);
/// By CPU: rounds of its thread's loop.
static BEATS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// A page of our space is taken away. On each other CPU a thread of ours has read it, and runs on meanwhile.
pub fn shootdown(cpus: u64) -> Result<Row, String> {
    let cpus = within(cpus, 1, MAX_CPUS)?;
    stay_on(0)?;
    pages::touch(PLACE + PAGE, 1, PAGE);
    let mut alone = 0;
    for _ in 0..PAGES {
        alone += take_away(|| ())?;
    }
    let others: Vec<usize> = (1..cpus).collect();
    let start = |&cpu: &usize| spawn(move || reader(cpu)).map_err(|error| error.to_string());
    let threads = others.iter().map(start).collect::<Result<Vec<_>, _>>()?;
    begin_row();
    let ticks = all_pages(&others);
    REPORTED.store(OVER, Ordering::Release);
    threads.into_iter().for_each(|thread| thread.join());
    pages::give_back(PLACE + PAGE).map_err(|error| error.to_string())?;
    let row = Row::instructions(per_round(ticks?, PAGES)).with("alone", per_round(alone, PAGES));
    Ok(row.of(PAGES))
}

fn all_pages(others: &[usize]) -> Result<u64, String> {
    let mut sum = 0;
    for page in 1..=PAGES {
        sum += take_away(|| {
            REPORTED.store(page, Ordering::Release);
            while READ.load(Ordering::Acquire) < page * others.len() as u64 {
                relax();
            }
            // None is in the nucleus any more: each goes round.
            for &cpu in others {
                let before = BEATS[cpu].load(Ordering::Relaxed);
                while BEATS[cpu].load(Ordering::Relaxed) < before + 2 {
                    relax();
                }
            }
        })?;
    }
    Ok(sum)
}

/// Has the pager bring the page, does what is to be done before, and gives the ticks that taking it away takes.
fn take_away(before: impl FnOnce()) -> Result<u64, String> {
    pages::touch(PLACE, 1, PAGE);
    before();
    let mut taken = Ok(());
    let ticks = timed(|| taken = pages::give_back(PLACE));
    taken.map(|()| ticks).map_err(|error| error.to_string())
}

/// Reads the page when ordered to, and otherwise spins.
fn reader(cpu: usize) {
    if let Err(problem) = stay_on(cpu) {
        panic!("{problem}");
    }
    let mut last = 0;
    loop {
        let reported = REPORTED.load(Ordering::Acquire);
        if reported == OVER {
            return;
        }
        if reported != last {
            pages::look(PLACE);
            last = reported;
            READ.fetch_add(1, Ordering::AcqRel);
        }
        BEATS[cpu].fetch_add(1, Ordering::Relaxed);
        relax();
    }
}

fn within(cpus: u64, least: usize, most: usize) -> Result<usize, String> {
    match usize::try_from(cpus) {
        Ok(cpus) if (least..=most).contains(&cpus) => Ok(cpus),
        _ => Err(alloc::format!("this takes {least} to {most} CPUs, not {cpus}")),
    }
}
