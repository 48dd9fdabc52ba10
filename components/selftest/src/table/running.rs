//! Threads that run: moved, killed, removed, interrupted without end; and the memory that they use meanwhile.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::info::status::PAGE_FAULT;
use abi::rights::{MAP_READ, MAP_WRITE};
use abi::{Error, NEVER};
use alloc::boxed::Box;
use alloc::vec::Vec;
use runtime::entry::Owned;
use runtime::op::Schedule;
use runtime::{Entry, op};

use super::case::{Case, text};
use super::child::{self, Child, Page, Program};
use super::places::{PATIENCE, PRIORITY, Turn, Victim, When, pause, pin_thread, reported, until};
use crate::check::hold;
use crate::pagers::status;

use When::{After, Asleep, Before, Busy, Race};

pub const CASES: &[Case] = &[
    Case {
        name: "unmapping against a reader",
        whens: &[Before, Busy, After, Race],
        run: |turn| unmapped(turn, MAP_READ),
    },
    Case {
        name: "a writer that may only read any more",
        whens: &[Before, Busy, After, Race],
        run: |turn| unmapped(turn, MAP_WRITE),
    },
    Case { name: "granting under a reader", whens: &[Before, Busy, Race], run: granted },
    Case { name: "death of a domain that runs", whens: &[Before, Busy, Race], run: |turn| stopped(turn, Stop::Kill) },
    Case {
        name: "removal of a domain that runs",
        whens: &[Before, Busy, Race],
        run: |turn| stopped(turn, Stop::Domain),
    },
    Case {
        name: "removal of a thread that runs",
        whens: &[Before, Busy, Race],
        run: |turn| stopped(turn, Stop::Thread),
    },
    Case {
        name: "removal of the account of what runs",
        whens: &[Before, Busy, Race],
        run: |turn| stopped(turn, Stop::Account),
    },
    Case { name: "a thread moved while it runs", whens: &[Busy, Asleep], run: moved },
    Case { name: "a thread moved while it is ready", whens: &[Busy], run: moved_ready },
    Case { name: "new registers for a thread that runs", whens: &[Before, Busy, Race], run: registers },
    Case { name: "a CPU interrupted without end", whens: &[Busy], run: flooded },
    Case { name: "deaths on all sides", whens: &[Race], run: storm },
];

/// A value that must never be read.
const SECRET: u64 = 0x5ec2e7;

fn page(place: &'static runtime::sync::Once<&'static Page>) -> &'static Page {
    place.get_or_make(|| Box::leak(Box::new(Page::new())))
}

/// Two pages of ours that children see: one to read, one to say what was read.
fn pages() -> (&'static Page, &'static Page) {
    static FIRST: runtime::sync::Once<&'static Page> = runtime::sync::Once::new();
    static SECOND: runtime::sync::Once<&'static Page> = runtime::sync::Once::new();
    (page(&FIRST), page(&SECOND))
}

fn look(page: &Page, word: usize) -> u64 {
    page.0[word].load(Ordering::SeqCst)
}

fn write(page: &Page, word: usize, value: u64) {
    page.0[word].store(value, Ordering::SeqCst);
}

/// A page is taken away (or the right to write to it) while a child reads (writes) it without pause: what we
/// write there from then on is never read (overwritten), and the child dies of its next access.
fn unmapped(turn: &mut Turn, rights: u64) -> Result<(), &'static str> {
    let (source, reported) = pages();
    for (page, word) in [(source, 0), (reported, 0), (reported, 1)] {
        write(page, word, 0);
    }
    let child = Child::new(Entry::OWN, 0, 1 << turn.victim).map_err(text)?;
    child.show(source, 0, rights == MAP_WRITE).map_err(text)?;
    child.show(reported, 1, true).map_err(text)?;
    let program = if rights == MAP_WRITE { Program::Write } else { Program::Read };
    let runs = || if rights == MAP_WRITE { look(source, 0) != 0 } else { look(reported, 1) != 0 };
    let mut thread = None;
    if turn.when != Before {
        thread = Some(child.start(program).map_err(text)?);
    }
    if matches!(turn.when, Busy | After) {
        until(runs, "the child does not run")?;
    }
    if turn.when == After {
        // A thread that ran and was stopped has used the translation, too.
        drop(thread.take());
    }
    turn.delay();
    child::take_away(source, rights).map_err(text)?;
    write(source, 0, SECRET);
    let again = if thread.is_none() { Some(child.start(program).map_err(text)?) } else { None };
    child.dies()?;
    drop((thread, again));
    hold(status()? == PAGE_FAULT, "it died of something else")?;
    hold(look(reported, 0) != SECRET, "an unmapped page was read")?;
    hold(look(source, 0) == SECRET, "a read-only page was written")
}

/// The page moves from us to another child while a child that got it from us reads it: that goes on, and ends when the
/// new owner loses the page.
fn granted(turn: &mut Turn) -> Result<(), &'static str> {
    let (source, reported) = pages();
    for (page, word) in [(source, 0), (reported, 0), (reported, 1)] {
        write(page, word, 0);
    }
    let reader = Child::new(Entry::OWN, 0, 1 << turn.victim).map_err(text)?;
    let owner = Child::new(Entry::OWN, 0, NEVER).map_err(text)?;
    reader.show(source, 0, false).map_err(text)?;
    reader.show(reported, 1, true).map_err(text)?;
    let mut thread = None;
    if turn.when != Before {
        thread = Some(reader.start(Program::Read).map_err(text)?);
    }
    if turn.when == Busy {
        until(|| look(reported, 1) != 0, "the child does not run")?;
    }
    turn.delay();
    owner.grant(source).map_err(text)?;
    if thread.is_none() {
        thread = Some(reader.start(Program::Read).map_err(text)?);
    }
    let before = look(reported, 1);
    until(|| look(reported, 1) > before + 10, "the reader does not go on")?;
    hold(!reader.has_died(), "the reader died")?;
    child::take_from(&owner).map_err(text)?;
    // Our own is another page now, from the pager.
    write(source, 0, SECRET);
    reader.dies()?;
    drop(thread);
    hold(look(reported, 0) != SECRET, "it sees our new page")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Kill,
    Domain,
    Thread,
    Account,
}

/// Checks that a thread no longer runs when the operation that ends it has come back.
fn stopped(turn: &mut Turn, stop: Stop) -> Result<(), &'static str> {
    let (source, _) = pages();
    write(source, 0, 0);
    let account = Owned::new(op::account_new(Entry::OWN, 64).map_err(text)?);
    let child = Child::new(account.entry(), 0, 1 << turn.victim).map_err(text)?;
    child.show(source, 0, true).map_err(text)?;
    let mut thread = None;
    if turn.when != Before || stop == Stop::Thread {
        thread = Some(child.start(Program::Write).map_err(text)?);
    }
    if turn.when == Busy {
        until(|| look(source, 0) > 10, "the child does not run")?;
    }
    turn.delay();
    match stop {
        Stop::Kill => op::domain_kill(child.domain.entry(), 5).map_err(text)?,
        Stop::Domain => op::entry_remove(Entry::OWN, child.domain.entry()).map_err(text)?,
        Stop::Thread => drop(thread.take()),
        Stop::Account => op::entry_remove(Entry::OWN, account.entry()).map_err(text)?,
    }
    if stop == Stop::Account {
        // Frames in an account stay until their owner goes by itself.
        if thread.is_none() {
            // The frames that it had left went back.
            let started = child.start(Program::Write);
            return hold(matches!(started, Err(Error::OtherExhausted)), "frames of an account that is gone");
        }
        let before = look(source, 0);
        until(|| look(source, 0) != before, "the account took what was in it along")?;
        drop((thread, child));
        return Ok(());
    }
    write(source, 0, SECRET);
    if stop == Stop::Kill {
        hold(child.has_died() && status()? == 0x105, "it did not die as it should")?;
    }
    pause();
    hold(look(source, 0) == SECRET, "it runs still")
}

/// A thread keeps its thread pointer and what it counts wherever it is moved to.
fn moved(turn: &mut Turn) -> Result<(), &'static str> {
    static WORD: AtomicU64 = AtomicU64::new(SECRET);
    static SEEN: AtomicU64 = AtomicU64::new(0);
    static ENOUGH: AtomicU64 = AtomicU64::new(0);
    const MOVES: u64 = 6;
    SEEN.store(0, Ordering::SeqCst);
    ENOUGH.store(0, Ordering::SeqCst);
    let naps = turn.when == Asleep;
    let victim = Victim::new(turn.victim, move || {
        if child::set_thread_pointer(&WORD).is_err() {
            return 1;
        }
        let mut count = 0;
        while ENOUGH.load(Ordering::SeqCst) == 0 {
            if crate::arch::programs::pointed_to() != SECRET {
                return 2;
            }
            count += 1;
            SEEN.store(count, Ordering::SeqCst);
            if naps && runtime::thread::sleep(2_000).is_err() {
                return 3;
            }
        }
        0
    })?;
    victim.go();
    for round in 0..MOVES {
        let cpu = if round % 2 == 0 { turn.actor } else { turn.victim };
        pin_thread(victim.entry(), cpu).map_err(text)?;
        until(|| reported(victim.number()).is_some_and(|reported| reported.cpu == cpu as u64), "it was not moved")?;
        let seen = SEEN.load(Ordering::SeqCst);
        until(|| SEEN.load(Ordering::SeqCst) > seen + 2 || victim.is_done(), "it does not go on")?;
        turn.delay();
    }
    ENOUGH.store(1, Ordering::SeqCst);
    hold(victim.finish()? == 0, "the thread pointer was not kept")
}

/// A thread is ready on a CPU that something more urgent does not let go: it goes on as soon as it may run elsewhere.
fn moved_ready(turn: &mut Turn) -> Result<(), &'static str> {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    static URGENT: AtomicU64 = AtomicU64::new(0);
    static ENOUGH: AtomicU64 = AtomicU64::new(0);
    for word in [&SEEN, &URGENT, &ENOUGH] {
        word.store(0, Ordering::SeqCst);
    }
    if turn.actor == turn.victim {
        return Ok(());
    }
    let count = |word: &'static AtomicU64| {
        move || {
            while ENOUGH.load(Ordering::SeqCst) == 0 {
                word.fetch_add(1, Ordering::SeqCst);
            }
            0
        }
    };
    let (ready, urgent) = (Victim::new(turn.victim, count(&SEEN))?, Victim::new(turn.victim, count(&URGENT))?);
    ready.go();
    until(|| SEEN.load(Ordering::SeqCst) != 0, "it does not run")?;
    let schedule = Schedule { priority: PRIORITY + 1, slice: 1_000 };
    op::thread_schedule_on(urgent.entry(), schedule, 1 << turn.victim).map_err(text)?;
    urgent.go();
    until(|| URGENT.load(Ordering::SeqCst) != 0, "the urgent thread does not run")?;
    turn.delay();
    let seen = SEEN.load(Ordering::SeqCst);
    pin_thread(ready.entry(), turn.actor).map_err(text)?;
    let goes_on = until(|| SEEN.load(Ordering::SeqCst) != seen, "it waits where it may not run");
    ENOUGH.store(1, Ordering::SeqCst);
    ready.finish()?;
    urgent.finish()?;
    goes_on
}

/// A thread that reads for ever is sent to where it writes.
fn registers(turn: &mut Turn) -> Result<(), &'static str> {
    let (source, reported) = pages();
    write(reported, 1, 0);
    let child = Child::new(Entry::OWN, 0, 1 << turn.victim).map_err(text)?;
    child.show(source, 0, true).map_err(text)?;
    child.show(reported, 1, true).map_err(text)?;
    let thread = child.start(Program::Read).map_err(text)?;
    if turn.when == Busy {
        until(|| look(reported, 1) != 0, "the child does not run")?;
    }
    if turn.when == Race {
        turn.delay();
    }
    write(source, 0, SECRET);
    child::send_to_write(thread.entry()).map_err(text)?;
    until(|| look(source, 0) != SECRET, "it goes on where it was")?;
    hold(!child.has_died(), "the child died")?;
    drop(thread);
    Ok(())
}

/// Translations are taken away without pause from where the victim runs; it gets on all the same.
fn flooded(turn: &mut Turn) -> Result<(), &'static str> {
    const TIMES: u64 = 60;
    let (source, reported) = pages();
    write(reported, 1, 0);
    let child = Child::new(Entry::OWN, 0, 1 << turn.victim).map_err(text)?;
    child.show(reported, 1, true).map_err(text)?;
    child.show(source, 0, false).map_err(text)?;
    let thread = child.start(Program::Read).map_err(text)?;
    until(|| look(reported, 1) != 0, "the child does not run")?;
    static OTHER: Page = Page::new();
    let before = look(reported, 1);
    for _ in 0..TIMES {
        child.show(&OTHER, 2, false).map_err(text)?;
        child::take_away(&OTHER, MAP_READ).map_err(text)?;
    }
    until(|| look(reported, 1) > before, "the victim does not get on")?;
    hold(!child.has_died(), "the victim died")?;
    drop(thread);
    Ok(())
}

/// Domains on both sides that call each other's services or run; both sides kill them, at once and in another order.
fn storm(turn: &mut Turn) -> Result<(), &'static str> {
    const DOMAINS: usize = 6;
    let closed = pages().1;
    write(closed, 0, 0);
    let mut children = Vec::new();
    for number in 0..DOMAINS {
        let cpu = if number % 2 == 0 { turn.victim } else { turn.actor };
        let child = Child::new(Entry::OWN, 1, 1 << cpu).map_err(text)?;
        child.show(closed, 0, false).map_err(text)?;
        children.push(child);
    }
    // All portals first: a child that was called ends by itself.
    let (mut portals, mut services) = (Vec::new(), Vec::new());
    for number in 0..DOMAINS {
        let (service, portal) = children[(number + 1) % DOMAINS].portal_for(&children[number]).map_err(text)?;
        services.push(service);
        portals.push(portal);
    }
    let mut threads = Vec::new();
    for (child, portal) in children.iter().zip(portals) {
        threads.push(child.start(Program::Call(portal, 2 * turn.random.below(2), Entry(0))).map_err(text)?);
    }
    turn.delay();
    let kill = |domain: Entry| match op::domain_kill(domain, 5) {
        // It may have ended by itself.
        Ok(()) | Err(Error::PeerDied) => 0,
        Err(error) => error as u64,
    };
    let domains: Vec<Entry> = children.iter().map(|child| child.domain.entry()).collect();
    let backwards: Vec<Entry> = domains.iter().rev().copied().collect();
    let other = Victim::new(turn.victim, move || backwards.into_iter().map(kill).max().unwrap_or(0))?;
    other.go();
    turn.delay();
    let ours = domains.into_iter().map(kill).max().unwrap_or(0);
    hold(ours == 0 && other.finish()? == 0, "a kill was refused")?;
    let end = op::clock() + PATIENCE;
    for child in &children {
        hold(op::clock() < end, "too late")?;
        child.dies()?;
    }
    drop(threads);
    Ok(())
}
