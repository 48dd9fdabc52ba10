//! Semaphores: woken, cancelled, timed out, gone.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{Error, NEVER, rights};
use alloc::sync::Arc;
use runtime::entry::Owned;
use runtime::serial::Serial;
use runtime::{Entry, op};

use super::case::{Case, one_of, text};
use super::places::{PATIENCE, Turn, Victim, When, code, pin, play, until};
use crate::check::hold;

use When::{After, Asleep, Before, Busy, Race};

pub const CASES: &[Case] = &[
    Case { name: "V against P", whens: &[Before, Asleep, Race], run: woken },
    Case { name: "V against a deadline", whens: &[Before, Asleep, After, Race], run: deadline },
    Case { name: "cancelling against P", whens: &[Before, Asleep, After, Race], run: cancelled },
    Case { name: "removal of a semaphore against P", whens: &[Before, Asleep, After, Race], run: removed },
    Case { name: "P and V from both sides", whens: &[Busy], run: both },
    Case { name: "an interrupt against P", whens: &[Before, Asleep, Race], run: interrupt },
    Case { name: "an interrupt bound elsewhere", whens: &[Before, Asleep, Race], run: rebound },
];

pub const MICROSECOND: u64 = 1_000;

/// One of ours, without a token.
pub fn semaphore() -> Result<Owned, &'static str> {
    op::semaphore_new(Entry::OWN, 0).map(Owned::new).map_err(text)
}

/// How many tokens a semaphore has left.
pub fn tokens(semaphore: Entry) -> u64 {
    let mut count = 0;
    while op::p(semaphore, 0).is_ok() {
        count += 1;
    }
    count
}

fn woken(turn: &mut Turn) -> Result<(), &'static str> {
    let semaphore = semaphore()?;
    let entry = semaphore.entry();
    let victim = play(turn, 1, move || code(op::p(entry, NEVER)), |_| op::v(entry).map_err(text))?;
    hold(victim.finish()? == 0, "another result")?;
    hold(tokens(entry) == 0, "a token too many")
}

fn deadline(turn: &mut Turn) -> Result<(), &'static str> {
    let semaphore = semaphore()?;
    let entry = semaphore.entry();
    let patience = if matches!(turn.when, Race | After) {
        20 * MICROSECOND + turn.random.below(30 * MICROSECOND)
    } else {
        PATIENCE
    };
    let victim = play(turn, 1, move || code(op::p(entry, op::clock() + patience)), |_| op::v(entry).map_err(text))?;
    let result = victim.finish()?;
    match turn.when {
        Before | Asleep => hold(result == 0, "another result")?,
        After => hold(result == Error::Timeout as u64, "no time-out")?,
        _ => one_of(result, &[0, Error::Timeout as u64])?,
    }
    hold(tokens(entry) == u64::from(result != 0), "a token was lost or made")
}

fn cancelled(turn: &mut Turn) -> Result<(), &'static str> {
    let semaphore = semaphore()?;
    let entry = semaphore.entry();
    let when = turn.when;
    let work = move || {
        let deadline = if when == After { op::clock() + 20 * MICROSECOND } else { NEVER };
        code(op::p(entry, deadline))
    };
    let victim = play(turn, 1, work, |victim| match op::thread_cancel(victim.entry()) {
        Ok(()) => Ok(()),
        // It may have ended.
        Err(Error::Ended) if when == After => Ok(()),
        Err(error) => Err(error.text()),
    })?;
    op::v(entry).map_err(text)?;
    let result = victim.finish()?;
    match when {
        Before => hold(result == 0, "another result")?,
        Asleep => hold(result == Error::Cancelled as u64, "not cancelled")?,
        After => hold(result == Error::Timeout as u64, "no time-out")?,
        _ => one_of(result, &[0, Error::Cancelled as u64])?,
    }
    hold(tokens(entry) == u64::from(result != 0), "a token was lost or made")
}

fn removed(turn: &mut Turn) -> Result<(), &'static str> {
    let semaphore = semaphore()?;
    let copy = Owned::new(op::entry_duplicate(semaphore.entry(), rights::ALL).map_err(text)?);
    let entry = copy.entry();
    let when = turn.when;
    let work = move || {
        let deadline = if when == After { op::clock() + 20 * MICROSECOND } else { NEVER };
        code(op::p(entry, deadline))
    };
    let victim = play(turn, 1, work, |_| {
        drop(semaphore);
        Ok(())
    })?;
    let result = victim.finish()?;
    match when {
        Before => hold(result == Error::Revoked as u64, "not revoked"),
        Asleep => hold(result == Error::Removed as u64, "it is not removed"),
        After => hold(result == Error::Timeout as u64, "no time-out"),
        _ => one_of(result, &[Error::Revoked as u64, Error::Removed as u64]),
    }
}

/// Each side makes as many tokens as it takes, and takes each in another way.
fn both(turn: &mut Turn) -> Result<(), &'static str> {
    const ROUNDS: u64 = 60;
    let semaphore = semaphore()?;
    let entry = semaphore.entry();
    let side = |ours: u64| {
        move || {
            let mut taken = 0;
            for round in 0..ROUNDS {
                if op::v(entry).is_err() {
                    return 1 << 32;
                }
                taken += match (round + ours) % 3 {
                    0 => u64::from(op::p(entry, 0).is_ok()),
                    1 => u64::from(op::p(entry, op::clock() + 10 * MICROSECOND).is_ok()),
                    _ => u64::from(op::p(entry, NEVER).is_ok()),
                };
            }
            taken
        }
    };
    let first = Victim::new(turn.victim, side(0))?;
    let second = Victim::new(turn.actor, side(1))?;
    first.go();
    turn.delay();
    second.go();
    let waited = first.has_finished().and_then(|()| second.has_finished());
    waited?;
    let taken = first.finish()? + second.finish()?;
    hold(taken + tokens(entry) == 2 * ROUNDS, "a token was lost or made")
}

/// The serial line gives no interrupt any more.
fn mask_serial_interrupts() -> Result<(), &'static str> {
    Serial::new().be_quiet().map_err(text)?;
    op::interrupt_enable(Entry::INTERRUPT).map_err(text)
}

/// The serial line says that it is ready to send, by interrupt; its semaphore wakes the waiter.
fn interrupt(turn: &mut Turn) -> Result<(), &'static str> {
    let semaphore = semaphore()?;
    let entry = semaphore.entry();
    let mut line = Serial::new();
    // The acting CPU drives the line now; another CPU may have driven it before.
    op::interrupt_bind(Entry::INTERRUPT, entry).map_err(text)?;
    let victim = play(
        turn,
        1,
        move || code(op::p(entry, op::clock() + PATIENCE)),
        |_| line.interrupt_when_ready().map_err(text),
    )?;
    let result = victim.finish()?;
    mask_serial_interrupts()?;
    pin(turn.actor).map_err(text)?;
    hold(result == 0, "the interrupt woke nobody")?;
    until(|| tokens(entry) == 0, "interrupts go on")
}

/// The serial line gives interrupts while it is bound to one semaphore and then to the other, and so goes from CPU to CPU:
/// each comes to one of them, and what is not bound gets none.
fn rebound(turn: &mut Turn) -> Result<(), &'static str> {
    const TIMES: u64 = 20;
    let (first, second) = (semaphore()?, semaphore()?);
    let (here, there) = (first.entry(), second.entry());
    let bind = |to| op::interrupt_bind(Entry::INTERRUPT, to);
    bind(here).map_err(text)?;
    if turn.when != Race {
        // A thread that waits at what was bound before is left alone.
        let when = turn.when;
        let victim = play(
            turn,
            1,
            move || code(op::p(here, if when == Before { op::clock() + 50 * MICROSECOND } else { NEVER })),
            |_| {
                bind(there).map_err(text)?;
                Serial::new().interrupt_when_ready().map_err(text)
            },
        )?;
        op::p(there, op::clock() + PATIENCE).map_err(|_| "the interrupt woke nobody")?;
        mask_serial_interrupts()?;
        if when == Asleep {
            hold(!victim.is_done(), "it woke a waiter at the old one")?;
            op::v(here).map_err(text)?;
        }
        let result = victim.finish()?;
        hold(result == if when == Before { Error::Timeout as u64 } else { 0 }, "another result")?;
        pin(turn.actor).map_err(text)?;
        return hold(tokens(here) == 0, "an interrupt at the old one");
    }
    let enough = Arc::new(AtomicU64::new(0));
    let its = enough.clone();
    // It binds from its CPU, too, and gives the interrupts.
    let victim = Victim::new(turn.victim, move || {
        let (mut round, mut line) = (0, Serial::new());
        while round < TIMES || its.load(Ordering::SeqCst) == 0 {
            let mut interrupts = || -> Result<(), Error> {
                if round % 4 == 0 {
                    bind(here)?;
                    op::yield_now();
                }
                if line.asks_until_served() {
                    // Those that came again, as the line was bound before it was served.
                    let _ = (tokens(here), tokens(there));
                }
                line.interrupt_when_ready()?;
                let end = op::clock() + PATIENCE;
                // To one of them it comes.
                while op::p(here, 0).is_err() && op::p(there, 0).is_err() {
                    if op::clock() > end {
                        return Err(Error::Timeout);
                    }
                    op::yield_now();
                }
                line.be_quiet()?;
                line.was_served()
            };
            if let Err(error) = interrupts() {
                return error as u64;
            }
            round += 1;
        }
        0
    })?;
    victim.go();
    for bound in 0..TIMES {
        bind(if bound % 2 == 0 { there } else { here }).map_err(text)?;
        turn.delay();
        op::yield_now();
    }
    enough.store(1, Ordering::SeqCst);
    let result = victim.finish()?;
    mask_serial_interrupts()?;
    hold(result == 0, "an interrupt came to neither")?;
    if Serial::new().asks_until_served() {
        return until(|| tokens(here) + tokens(there) == 0, "interrupts go on");
    }
    hold(tokens(here) + tokens(there) == 0, "an interrupt came twice")
}
