//! Calls: cut off by deaths, cancellation, deadlines; entries that go; pools; a callee that is left goes on.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{Control, Error, NEVER, op as abi_op, rights};
use alloc::sync::Arc;
use idl::{Reply, Request};
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::sync::Mutex;
use runtime::{Entry, message, op};

use super::case::{Case, one_of, text};
use super::child::{Child, Page, Program};
use super::late::Calls;
use super::places::{PATIENCE, RETURN, RUN, SLEEP, Turn, Victim, When, code, pin, play, reported, until, vacant};
use super::programs::ANSWER;
use crate::check::hold;
use crate::pagers::status;

use When::{After, Asleep, Before, Busy, Race};

pub const CASES: &[Case] = &[
    Case { name: "death of the domain called", whens: When::ALL, run: |turn| end_callee(turn, End::Kill) },
    Case { name: "removal of the domain called", whens: When::ALL, run: |turn| end_callee(turn, End::Domain) },
    Case {
        name: "removal of the account of the domain called",
        whens: When::ALL,
        run: |turn| end_callee(turn, End::Account),
    },
    Case { name: "death of the domain that calls", whens: When::ALL, run: |turn| end_caller(turn, End::Kill) },
    Case { name: "removal of the thread that calls", whens: When::ALL, run: |turn| end_caller(turn, End::Thread) },
    Case { name: "removal of the domain that calls", whens: When::ALL, run: |turn| end_caller(turn, End::Domain) },
    Case {
        name: "removal of the account of the domain that calls",
        whens: When::ALL,
        run: |turn| end_caller(turn, End::Account),
    },
    Case { name: "cancelling a call", whens: When::ALL, run: cancelled },
    Case { name: "the deadline of a call", whens: &[Before, Asleep, Busy, Race], run: deadline },
    Case { name: "revocation of a portal", whens: When::ALL, run: |turn| entry_goes(turn, Goes::Revoked) },
    Case { name: "removal of a portal", whens: When::ALL, run: |turn| entry_goes(turn, Goes::Removed) },
    Case { name: "removal of a service", whens: When::ALL, run: |turn| entry_goes(turn, Goes::Service) },
    Case { name: "waiting for an activation", whens: &[Asleep, Race], run: pool_waited },
    Case { name: "cancelling who waits for an activation", whens: &[Asleep, Race], run: pool_cancelled },
    Case { name: "an activation fetched from the other side", whens: &[After, Race], run: pool_shared },
    Case { name: "two who split one chain", whens: &[Asleep, Busy, Race], run: two_split },
    Case { name: "priority lent to a call", whens: &[Asleep, Busy], run: lending },
];

// The service that is ours.

/// The calls to [`Hold`].
static CALLS: Calls = Calls::new();
/// Calls that came, and that went to their end.
static CAME: AtomicU64 = AtomicU64::new(0);
static WENT: AtomicU64 = AtomicU64::new(0);

struct Hold;

impl Serve for Hold {
    fn serve(request: &mut Request<'_>) -> Reply {
        CALLS.serve(request.badge, || {
            CAME.fetch_add(1, Ordering::SeqCst);
            match request.words[0] {
                SLEEP => CALLS.wait(),
                RUN => {
                    while !CALLS.is_open() {
                        core::hint::black_box(());
                    }
                }
                _ => {}
            }
            WENT.fetch_add(1, Ordering::SeqCst);
            Reply::word(ANSWER)
        })
    }
}

/// Our service.
struct Gate {
    service: Owned,
}

impl Gate {
    fn new() -> Result<Self, &'static str> {
        static MADE: Mutex<bool> = Mutex::new(false);
        let mut made = MADE.lock();
        if !*made {
            server::activations(6).map_err(text)?;
            *made = true;
        }
        let service = Owned::new(server::service_with::<Hold>(abi_op::SERVICE_DEADLINE).map_err(text)?);
        CALLS.begin()?;
        for word in [&CAME, &WENT] {
            word.store(0, Ordering::SeqCst);
        }
        Ok(Self { service })
    }

    fn portal(&self) -> Result<Owned, &'static str> {
        let portal = Owned::new(vacant().map_err(text)?);
        portal_to(Entry::OWN, self.service.entry(), portal.entry())?;
        Ok(portal)
    }

    /// Lets the waiting ones go on, and sees to it that all who came go to their end.
    fn open(&self, sleepers: u64) -> Result<(), &'static str> {
        CALLS.open();
        CALLS.let_go(sleepers)?;
        until(|| CAME.load(Ordering::SeqCst) == WENT.load(Ordering::SeqCst), "a callee does not go to its end")
    }
}

/// A portal to a service of the last gate, for a domain, at this index or a free one.
fn portal_to(domain: Entry, service: Entry, index: Entry) -> Result<Entry, &'static str> {
    op::portal_new(domain, service, CALLS.badge(), index, 0).map_err(text)
}

/// Calls; 0, the number of an error, or 1000 for a wrong answer.
fn call(portal: Entry, mode: u64, word: u64, control: Control, deadline: u64) -> u64 {
    match message::call(portal, [mode, word, 0, 0, deadline], control) {
        Ok((words, _)) if words[0] == ANSWER => 0,
        Ok(_) => 1000,
        Err(error) => error as u64,
    }
}

fn call_plainly(portal: Entry, mode: u64, word: u64) -> u64 {
    call(portal, mode, word, Control(0), 0)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Kill,
    Domain,
    Account,
    Thread,
}

/// A page whose first word lets children that run in a call go on when it is not 0.
static CLOSED: Page = Page::new();

fn end_callee(turn: &mut Turn, end: End) -> Result<(), &'static str> {
    let account = Owned::new(op::account_new(Entry::OWN, 64).map_err(text)?);
    let child = Child::new(account.entry(), 2, NEVER).map_err(text)?;
    CLOSED.0[0].store(0, Ordering::SeqCst);
    child.show(&CLOSED, 0, false).map_err(text)?;
    let gate = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let its = child.give(gate.entry()).map_err(text)?;
    let (_service, portal) = child.portal().map_err(text)?;
    let (entry, mode) = (portal.entry(), turn.mode());
    let mut child = Some(child);
    let mut account = Some(account);
    let victim = play(
        turn,
        2,
        move || call_plainly(entry, mode, its.0 as u64),
        |_| match end {
            End::Kill => child.as_ref().map_or(Ok(()), |child| op::domain_kill(child.domain.entry(), 5)).map_err(text),
            End::Account => {
                account.take().map_or(Ok(()), |account| op::entry_remove(Entry::OWN, account.entry())).map_err(text)
            }
            _ => {
                drop(child.take());
                Ok(())
            }
        },
    )?;
    if end == End::Account {
        // Frames in an account stay until their owner goes by itself: the call has its result.
        CLOSED.0[0].store(1, Ordering::SeqCst);
        op::v(gate.entry()).map_err(text)?;
        return hold(victim.finish()? == 0, "the account took what was in it along");
    }
    if matches!(turn.when, Asleep | Race) {
        // A waiting thread of a dead domain is notified when the domain is removed.
        drop(child.take());
    }
    let result = victim.finish()?;
    match turn.when {
        // It was not carried.
        Before => hold(result == Error::Revoked as u64, "the portal is not revoked"),
        Asleep | Busy => hold(result == Error::PeerDied as u64, "no dead peer"),
        After => hold(result == 0, "another result"),
        Race if mode == RETURN && result == 0 => Ok(()),
        Race => one_of(result, &[Error::Revoked as u64, Error::PeerDied as u64]),
    }
}

fn end_caller(turn: &mut Turn, end: End) -> Result<(), &'static str> {
    let gate = Gate::new()?;
    let account = Owned::new(op::account_new(Entry::OWN, 64).map_err(text)?);
    let child = Child::new(account.entry(), 0, 1 << turn.victim).map_err(text)?;
    let portal = portal_to(child.domain.entry(), gate.service.entry(), Entry(0))?;
    let mode = turn.mode();
    let mut thread = None;
    if turn.when != Before {
        thread = Some(child.start(Program::Call(portal, mode, Entry(0))).map_err(text)?);
    }
    let came = || CAME.load(Ordering::SeqCst) == 1;
    match turn.when {
        Asleep | Busy => {
            until(came, "nobody calls")?;
            turn.delay();
        }
        After => {
            child.dies()?;
            hold(status()? == 0, "another result of the call")?;
        }
        _ => turn.delay(),
    }
    match end {
        End::Kill if turn.when == After => {}
        End::Kill => op::domain_kill(child.domain.entry(), 5)
            .or_else(|error| if turn.when == Race { Ok(()) } else { Err(error) })
            .map_err(text)?,
        End::Thread => drop(thread.take()),
        End::Domain => op::entry_remove(Entry::OWN, child.domain.entry()).map_err(text)?,
        End::Account => op::entry_remove(Entry::OWN, account.entry()).map_err(text)?,
    }
    match (turn.when, end) {
        (Before, End::Kill) => {
            let started = child.start(Program::Call(portal, mode, Entry(0)));
            hold(matches!(started, Err(Error::PeerDied)), "a thread in a dead domain")?;
            hold(CAME.load(Ordering::SeqCst) == 0, "somebody calls")?;
        }
        (Before, End::Thread) => {}
        (Before, End::Account) => {
            // The frames that it had left went back.
            let started = child.start(Program::Call(portal, mode, Entry(0)));
            hold(matches!(started, Err(Error::OtherExhausted)), "frames of an account that is gone")?;
        }
        (_, End::Account) => {
            until(came, "nobody calls")?;
            gate.open(1)?;
            if turn.when != After {
                child.dies()?;
            }
            hold(status()? == 0, "the account took what was in it along")?;
        }
        (Before, _) => {
            let started = child.start(Program::Call(portal, mode, Entry(0)));
            hold(started.is_err(), "a thread in a domain that is gone")?;
        }
        _ => {}
    }
    drop((thread, child, account));
    // The caller is gone; the call goes to its end all the same, and nobody comes any more.
    gate.open(1)?;
    if matches!(turn.when, Asleep | Busy | After) {
        hold(CAME.load(Ordering::SeqCst) == 1, "not one call")?;
    }
    Ok(())
}

fn cancelled(turn: &mut Turn) -> Result<(), &'static str> {
    let gate = Gate::new()?;
    let portal = gate.portal()?;
    let (entry, mode, when) = (portal.entry(), turn.mode(), turn.when);
    let work = move || call_plainly(entry, mode, 0);
    let victim = play(turn, 2, work, |victim| match op::thread_cancel(victim.entry()) {
        Ok(()) => Ok(()),
        Err(Error::Ended) if matches!(when, After | Race) => Ok(()),
        Err(error) => Err(error.text()),
    })?;
    if when != Race {
        let result = victim.finish()?;
        hold(result == if matches!(when, Asleep | Busy) { Error::Cancelled as u64 } else { 0 }, "another result")?;
        return gate.open(1);
    }
    // It came to nothing if the call had not begun: then the gate must be opened.
    gate.open(1)?;
    let result = victim.finish()?;
    one_of(result, &[0, Error::Cancelled as u64])?;
    gate.open(0)
}

fn deadline(turn: &mut Turn) -> Result<(), &'static str> {
    const MICROSECOND: u64 = 1_000;
    let gate = Gate::new()?;
    let portal = gate.portal()?;
    let (entry, mode) = (portal.entry(), turn.mode());
    let (when, early) = (turn.when, 30 * MICROSECOND + turn.random.below(50 * MICROSECOND));
    let work = move || {
        let deadline = op::clock() + if when == Before { PATIENCE } else { early };
        call(entry, mode, 0, Control(Control::DEADLINE), deadline)
    };
    let victim = Victim::new(turn.victim, work)?;
    victim.go();
    match when {
        Before => hold(victim.finish()? == 0, "another result")?,
        Asleep | Busy => hold(victim.finish()? == Error::Timeout as u64, "no time-out")?,
        _ => {
            // The gate opens at about the same time.
            let end = op::clock() + early;
            while op::clock() < end {
                core::hint::black_box(());
            }
            turn.delay();
            gate.open(1)?;
            one_of(victim.finish()?, &[0, Error::Timeout as u64])?;
            return gate.open(0);
        }
    }
    gate.open(1)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    Revoked,
    Removed,
    Service,
}

/// A call that is under way goes to its end, later ones are refused.
fn entry_goes(turn: &mut Turn, goes: Goes) -> Result<(), &'static str> {
    let gate = Gate::new()?;
    // The copy is what goes, so that each turn has its own.
    let service = Owned::new(op::entry_duplicate(gate.service.entry(), rights::ALL).map_err(text)?);
    let portal = Owned::new(vacant().map_err(text)?);
    portal_to(Entry::OWN, service.entry(), portal.entry())?;
    let (entry, mode) = (portal.entry(), turn.mode());
    let act = || match goes {
        Goes::Revoked => op::entry_revoke(Entry::OWN, service.entry()),
        Goes::Removed => op::entry_remove(Entry::OWN, entry),
        Goes::Service => op::entry_remove(Entry::OWN, service.entry()),
    };
    let refused = if goes == Goes::Removed { Error::Empty } else { Error::Revoked } as u64;
    let victim = play(turn, 2, move || call_plainly(entry, mode, 0), |_| act().map_err(text))?;
    hold(call_plainly(entry, RETURN, 0) == refused, "it can still be called")?;
    gate.open(1)?;
    let result = victim.finish()?;
    match turn.when {
        Before => hold(result == refused, "not refused")?,
        Asleep | Busy | After => hold(result == 0, "the call under way was disturbed")?,
        // For an entry that is being removed the error may also be `Revoked`.
        Race => one_of(result, &[0, refused, Error::Revoked as u64])?,
    }
    gate.open(0)
}

/// A child with one activation, and the semaphore for which it waits.
struct Narrow {
    child: Child,
    gate: Owned,
    its: u64,
    portal: Owned,
    _service: Owned,
}

impl Narrow {
    fn new() -> Result<Self, &'static str> {
        let child = Child::new(Entry::OWN, 1, NEVER).map_err(text)?;
        CLOSED.0[0].store(0, Ordering::SeqCst);
        child.show(&CLOSED, 0, false).map_err(text)?;
        let gate = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
        let its = child.give(gate.entry()).map_err(text)?.0 as u64;
        let (_service, portal) = child.portal().map_err(text)?;
        Ok(Self { child, gate, its, portal, _service })
    }
}

/// The victim is in the only activation, another one on the actor's CPU waits for it.
fn pool_waited(turn: &mut Turn) -> Result<(), &'static str> {
    let narrow = Narrow::new()?;
    let (entry, its) = (narrow.portal.entry(), narrow.its);
    let first = Victim::new(turn.victim, move || call_plainly(entry, SLEEP, its))?;
    let second = Victim::new(turn.actor, move || call_plainly(entry, RETURN, 0))?;
    first.go();
    first.is_inside(2, true)?;
    hold(call(entry, RETURN, 0, Control(Control::NO_WAIT), 0) == Error::Busy as u64, "an activation is free")?;
    second.go();
    if turn.when == Asleep {
        second.is_inside(1, true)?;
        hold(!second.is_done(), "it did not wait")?;
    }
    turn.delay();
    op::v(narrow.gate.entry()).map_err(text)?;
    hold(first.finish()? == 0 && second.finish()? == 0, "another result")
}

/// The waiting one is cancelled; the activation is as free as ever.
fn pool_cancelled(turn: &mut Turn) -> Result<(), &'static str> {
    let narrow = Narrow::new()?;
    let (entry, its) = (narrow.portal.entry(), narrow.its);
    let holder = Victim::new(turn.actor, move || call_plainly(entry, SLEEP, its))?;
    holder.go();
    holder.is_inside(2, true)?;
    let victim = play(
        turn,
        1,
        move || call_plainly(entry, RETURN, 0),
        |victim| op::thread_cancel(victim.entry()).map_err(text),
    )?;
    op::v(narrow.gate.entry()).map_err(text)?;
    let result = victim.finish()?;
    match turn.when {
        Asleep => hold(result == Error::Cancelled as u64, "not cancelled")?,
        _ => one_of(result, &[0, Error::Cancelled as u64])?,
    }
    hold(holder.finish()? == 0, "another result")?;
    hold(call(entry, RETURN, 0, Control(Control::NO_WAIT), 0) == 0, "the activation is lost")
}

/// One activation for calls from both sides: one after the other it is always free, at once each gets it in the end.
fn pool_shared(turn: &mut Turn) -> Result<(), &'static str> {
    const CALLS: usize = 40;
    let narrow = Narrow::new()?;
    let entry = narrow.portal.entry();
    if turn.when == After {
        for round in 0..8 {
            pin(if round % 2 == 0 { turn.victim } else { turn.actor }).map_err(text)?;
            hold(call(entry, RETURN, 0, Control(Control::NO_WAIT), 0) == 0, "it was not fetched")?;
        }
        return pin(turn.actor).map_err(text);
    }
    let hammer = move || (0..CALLS).map(|_| call_plainly(entry, RETURN, 0)).find(|result| *result != 0).unwrap_or(0);
    let sides = [Victim::new(turn.victim, hammer)?, Victim::new(turn.actor, hammer)?];
    for side in &sides {
        side.go();
        turn.delay();
    }
    for side in sides {
        hold(side.finish()? == 0, "another result")?;
    }
    hold(call(entry, RETURN, 0, Control(Control::NO_WAIT), 0) == 0, "the activation is lost")
}

/// Removal of what is called, and cancelling, both at once and from different CPUs: one of them ends the call.
fn two_split(turn: &mut Turn) -> Result<(), &'static str> {
    let narrow = Narrow::new()?;
    let (entry, its, mode) = (narrow.portal.entry(), narrow.its, turn.mode());
    let victim = Arc::new(Victim::new(turn.victim, move || call_plainly(entry, mode, its))?);
    let aim = victim.clone();
    let second = Victim::new(turn.victim, move || code(op::thread_cancel(aim.entry())))?;
    victim.go();
    if turn.when != Race {
        victim.is_inside(2, turn.when == Asleep)?;
    }
    second.go();
    turn.delay();
    op::entry_remove(Entry::OWN, narrow.child.domain.entry()).map_err(text)?;
    one_of(second.finish()?, &[0, Error::Ended as u64])?;
    let victim = Arc::into_inner(victim).ok_or("somebody keeps the victim")?;
    let result = victim.finish()?;
    match (turn.when, result) {
        (Race, 0) if mode == RETURN => Ok(()),
        (Race, _) => one_of(result, &[Error::Revoked as u64, Error::PeerDied as u64, Error::Cancelled as u64]),
        _ => one_of(result, &[Error::PeerDied as u64, Error::Cancelled as u64]),
    }
}

/// A thread that waits for a call's resource lends it its priority, wherever that call runs; it goes when the call ends.
fn lending(turn: &mut Turn) -> Result<(), &'static str> {
    const HIGH: u8 = 12;
    static SERVES: AtomicU64 = AtomicU64::new(0);
    struct Lends;
    impl Serve for Lends {
        fn serve(request: &mut Request<'_>) -> Reply {
            SERVES.store(message::activation() as u64 + 1, Ordering::SeqCst);
            Hold::serve(request)
        }
    }
    let gate = Gate::new()?;
    SERVES.store(0, Ordering::SeqCst);
    let service = Owned::new(server::service::<Lends>().map_err(text)?);
    let portal = Owned::new(vacant().map_err(text)?);
    portal_to(Entry::OWN, service.entry(), portal.entry())?;
    let never = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    // On our CPU we would not come to open the gate for a thread of a higher priority than ours.
    let mode = if turn.actor == turn.victim { SLEEP } else { turn.mode() };
    let (entry, awaited) = (portal.entry(), never.entry());
    let victim = Victim::new(turn.victim, move || call_plainly(entry, mode, 0))?;
    victim.go();
    until(|| SERVES.load(Ordering::SeqCst) != 0, "nobody is called")?;
    let actor = turn.actor;
    let lender = Victim::new(actor, move || {
        let raised = op::thread_schedule_on(Entry::OWN, op::Schedule { priority: HIGH, slice: 1_000 }, 1 << actor);
        raised.map_or(9999, |_| code(op::p_lending(awaited, NEVER, SERVES.load(Ordering::SeqCst) as u32)))
    })?;
    lender.go();
    let number = victim.number();
    let lent = || reported(number).is_some_and(|reported| reported.priority == HIGH.into());
    until(lent, "nothing was lent")?;
    op::v(awaited).map_err(text)?;
    hold(lender.finish()? == 0, "another result of waiting")?;
    let taken_back = reported(number).is_some_and(|reported| reported.priority == super::places::PRIORITY.into());
    gate.open(1)?;
    hold(victim.finish()? == 0, "another result")?;
    hold(taken_back, "the call kept it")
}
