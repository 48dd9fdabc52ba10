//! Semaphores whose entries are revoked, removed or led elsewhere, and pages that go, while both sides use them.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::rights::{self, MAP_READ};
use abi::{Error, NEVER};
use runtime::entry::Owned;
use runtime::{Entry, op, table};

use super::case::{Case, one_of, text};
use super::child::{self, Child, Page};
use super::places::{PATIENCE, Turn, Victim, When, code, pause, play, until};
use super::waits::{MICROSECOND, semaphore, tokens};
use crate::check::hold;

use When::{After, Asleep, Before, Busy, Race};

pub const CASES: &[Case] = &[
    Case { name: "revocation of a semaphore against P", whens: &[Before, Asleep, After, Race], run: against_p },
    Case {
        name: "revocation of a semaphore against V",
        whens: &[Before, Busy, Race],
        run: |turn| against_v(turn, true),
    },
    Case { name: "removal of a semaphore against V", whens: &[Before, Busy, Race], run: |turn| against_v(turn, false) },
    Case { name: "a semaphore's entry that leads elsewhere", whens: &[Busy, Race], run: elsewhere },
    Case { name: "a page that goes while P and V go on", whens: &[Busy], run: page_goes },
];

/// A waiting thread goes on waiting and gets its token; nobody begins to wait any more.
fn against_p(turn: &mut Turn) -> Result<(), &'static str> {
    let semaphore = semaphore()?;
    let copy = Owned::new(op::entry_duplicate(semaphore.entry(), rights::ALL).map_err(text)?);
    let (original, entry, when) = (semaphore.entry(), copy.entry(), turn.when);
    let work = move || {
        let deadline = if when == After { op::clock() + 20 * MICROSECOND } else { NEVER };
        code(op::p(entry, deadline))
    };
    let victim = play(turn, 1, work, |_| op::entry_revoke(Entry::OWN, original).map_err(text))?;
    hold(op::v(entry) == Err(Error::Revoked), "the copy can be used")?;
    if when == Asleep {
        hold(!victim.is_done(), "it does not wait any more")?;
    }
    op::v(original).map_err(text)?;
    let result = victim.finish()?;
    match when {
        Before => hold(result == Error::Revoked as u64, "not revoked")?,
        Asleep => hold(result == 0, "another result")?,
        After => hold(result == Error::Timeout as u64, "no time-out")?,
        _ => one_of(result, &[0, Error::Revoked as u64])?,
    }
    hold(tokens(original) == u64::from(result != 0), "a token was lost or made")
}

/// Every V that succeeded made a token, and none does after the entry went.
fn against_v(turn: &mut Turn, revokes: bool) -> Result<(), &'static str> {
    const MOST: u64 = 1 << 40;
    static GIVEN: AtomicU64 = AtomicU64::new(0);
    GIVEN.store(0, Ordering::SeqCst);
    let semaphore = semaphore()?;
    let copy = Owned::new(op::entry_duplicate(semaphore.entry(), rights::ALL).map_err(text)?);
    let (original, entry) = (semaphore.entry(), copy.entry());
    let victim = Victim::new(turn.victim, move || {
        let end = op::clock() + PATIENCE;
        loop {
            match op::v(entry) {
                Ok(()) => drop(GIVEN.fetch_add(1, Ordering::SeqCst)),
                Err(error) => return error as u64,
            }
            if op::clock() > end {
                return MOST;
            }
        }
    })?;
    if turn.when != Before {
        victim.go();
    }
    if turn.when == Busy {
        until(|| GIVEN.load(Ordering::SeqCst) > 2, "the victim does not begin")?;
    }
    turn.delay();
    if !revokes {
        drop(semaphore);
        victim.go();
        return hold(victim.finish()? == Error::Revoked as u64, "not revoked");
    }
    op::entry_revoke(Entry::OWN, original).map_err(text)?;
    let made = tokens(original);
    victim.go();
    hold(victim.finish()? == Error::Revoked as u64, "not revoked")?;
    hold(tokens(original) == 0, "a token was made after the entry went")?;
    hold(made == GIVEN.load(Ordering::SeqCst), "a token was lost or made")
}

/// An index has a semaphore with all rights, nothing, or another one with which nothing may be done, in turn. P and V by
/// the index reach the first one or are refused.
fn elsewhere(turn: &mut Turn) -> Result<(), &'static str> {
    const TIMES: u64 = 5;
    static OVER: AtomicU64 = AtomicU64::new(0);
    static GIVEN: AtomicU64 = AtomicU64::new(0);
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    for word in [&OVER, &GIVEN, &TAKEN] {
        word.store(0, Ordering::SeqCst);
    }
    let (open, shut) = (semaphore()?, semaphore()?);
    op::v(shut.entry()).map_err(text)?;
    let index = Owned::new(table::allocate().map_err(text)?);
    let entry = index.entry();
    let use_it = move || {
        let mut turns = 0;
        while OVER.load(Ordering::SeqCst) == 0 {
            turns += 1;
            let (result, count) = match turns % 3 {
                0 => (op::v(entry), &GIVEN),
                1 => (op::p(entry, 0), &TAKEN),
                // It finds no token, now and then, and waits.
                _ => (op::p(entry, op::clock() + 5 * MICROSECOND), &TAKEN),
            };
            match result {
                Ok(()) => drop(count.fetch_add(1, Ordering::SeqCst)),
                Err(Error::Timeout | Error::Empty | Error::Revoked | Error::NoRight) => {}
                Err(error) => return error as u64,
            }
        }
        0
    };
    let victim = Victim::new(turn.victim, use_it)?;
    victim.go();
    // In a race the other side uses it, too.
    let second = if turn.when == Race { Some(Victim::new(turn.actor, use_it)?) } else { None };
    second.iter().for_each(Victim::go);
    for _ in 0..TIMES {
        op::entry_copy(Entry::OWN, open.entry(), Entry::OWN, entry, rights::ALL).map_err(text)?;
        let before = GIVEN.load(Ordering::SeqCst);
        until(|| GIVEN.load(Ordering::SeqCst) > before || victim.is_done(), "the victim does not get on")?;
        turn.delay();
        op::entry_remove(Entry::OWN, entry).map_err(text)?;
        op::entry_copy(Entry::OWN, shut.entry(), Entry::OWN, entry, rights::COPY).map_err(text)?;
        turn.delay();
        op::entry_remove(Entry::OWN, entry).map_err(text)?;
    }
    OVER.store(1, Ordering::SeqCst);
    for side in [Some(victim), second].into_iter().flatten() {
        hold(side.finish()? == 0, "another error")?;
    }
    let left = GIVEN.load(Ordering::SeqCst) - TAKEN.load(Ordering::SeqCst);
    hold(tokens(open.entry()) == left, "a token was lost or made")?;
    hold(tokens(shut.entry()) == 1, "a token of what was closed")
}

/// A page that many see is taken from all of them, which takes long and lets others in, while both sides take and give.
fn page_goes(turn: &mut Turn) -> Result<(), &'static str> {
    const CHILDREN: usize = 4;
    const TIMES: u64 = 12;
    static PAGE: Page = Page::new();
    static OVER: AtomicU64 = AtomicU64::new(0);
    OVER.store(0, Ordering::SeqCst);
    let semaphore = semaphore()?;
    let entry = semaphore.entry();
    let side = |ours: u64| {
        move || {
            let mut left = 0;
            for round in ours.. {
                if OVER.load(Ordering::SeqCst) != 0 {
                    break;
                }
                if op::v(entry).is_err() {
                    return 1 << 32;
                }
                let deadline = if round % 2 == 0 { 0 } else { op::clock() + 5 * MICROSECOND };
                left += u64::from(op::p(entry, deadline).is_err());
            }
            left
        }
    };
    let children = [(); CHILDREN].map(|()| Child::new(Entry::OWN, 0, 1 << turn.victim));
    let sides = [Victim::new(turn.victim, side(0))?, Victim::new(turn.actor, side(1))?];
    sides.iter().for_each(Victim::go);
    for _ in 0..TIMES {
        for child in &children {
            child.as_ref().map_err(|error| text(*error))?.show(&PAGE, 0, false).map_err(text)?;
        }
        turn.delay();
        child::take_away(&PAGE, MAP_READ).map_err(text)?;
        pause();
    }
    OVER.store(1, Ordering::SeqCst);
    let mut left = 0;
    for side in sides {
        left += side.finish()?;
    }
    hold(tokens(entry) == left, "a token was lost or made")
}
