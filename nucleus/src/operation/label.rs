//! Operations on labels, and the source of handles.

use super::operands::{Operands, in_steps};
use crate::control::flows::{self, Change};
use crate::memory::labels::{self, Pool};
use crate::memory::portals::Content;
use crate::objects::{Outcome, Stop};
use crate::pointer::Nucleus;
use abi::rights::{self, Kind};
use abi::{Error, op};
use core::cell::Cell;
use flow::rules::{self, Labels, Work};
use flow::{Exhausted, Handle, Handles, Label, Level, Next};

/// Generator of handles; None until it has a key.
static HANDLES: Nucleus<Cell<Option<Handles>>> = Nucleus::new(Cell::new(None));

/// Bits in the result of [`op::LABEL_CALLER`].
const OBSERVE: u64 = 1;
const CHANGE: u64 = 2;

/// Entries of a label that one operation writes into the message area.
const ENTRIES: usize = 32;

pub fn set_key(operands: &Operands) -> Result<u64, Error> {
    let handles = HANDLES.get(operands.held());
    if handles.get().is_some() {
        return Err(Error::HasKey);
    }
    // SAFETY: the message area is a page of the nucleus, in the direct map, so it is aligned and longer than a key.
    handles.set(Some(Handles::new(unsafe { *(operands.0.message_kernel as *const [u64; 2]) })));
    Ok(0)
}

/// A change that a domain requests of its labels.
#[derive(Clone, Copy)]
enum LabelChange {
    /// Makes it the owner of a handle.
    Own(Handle),
    /// Sets a level of its send label.
    Send(Handle, Level),
    /// Sets a level of its receive label.
    Receive(Handle, Level),
    /// Begins or ends explicit mode.
    Explicit(bool),
}

impl LabelChange {
    /// The labels after the change.
    fn made(self, pool: &mut Pool, own: &Labels) -> Result<Result<Labels, Error>, Exhausted> {
        let (mut send, mut receive, mut is_explicit) = (None, None, own.is_explicit);
        match self {
            Self::Own(handle) => send = Some(pool.set(own.send, handle, Level::Star)?),
            Self::Send(handle, level) => match rules::raised_at(pool, own.send, handle, level)? {
                Some(raised) => send = Some(raised),
                None => return Ok(Err(Error::NotOwned)),
            },
            Self::Receive(handle, level) => match rules::accepted_at(pool, own, handle, level)? {
                Some(accepted) => receive = Some(accepted),
                None => return Ok(Err(Error::NotOwned)),
            },
            Self::Explicit(is) => is_explicit = is,
        }
        let send = send.unwrap_or_else(|| pool.keep(own.send));
        let receive = receive.unwrap_or_else(|| pool.keep(own.receive));
        Ok(Ok(Labels { send, receive, is_explicit }))
    }
}

pub fn label(operands: &Operands) -> Outcome {
    if operands.word(0) == op::LABEL_CALLER {
        return caller_may(operands);
    }
    let own = operands.own().labels();
    match operands.word(0) {
        op::LABEL_HANDLE => {
            let handle = new_handle(operands)?;
            change(operands, LabelChange::Own(handle))?;
            Ok(handle.number())
        }
        op::LABEL_SEND => change(operands, LabelChange::Send(handle(operands, 1)?, level(operands, 2)?)),
        op::LABEL_RECEIVE => change(operands, LabelChange::Receive(handle(operands, 1)?, level(operands, 2)?)),
        op::LABEL_EXPLICIT => change(operands, LabelChange::Explicit(operands.truth(1)?)),
        op::LABEL_LEVELS => {
            let handle = handle(operands, 1)?;
            Ok(labels::with(operands.held(), operands.own().account, |pool| {
                let [send, receive] = [own.send, own.receive].map(|label| pool.get(label, handle) as u64);
                send | receive << 3
            }))
        }
        op::LABEL_READ => {
            let label = match operands.word(1) {
                0 => own.send,
                1 => own.receive,
                _ => operands.label(1, rights::READ)?,
            };
            // SAFETY: the message area is a page of the nucleus, aligned and longer than the array; nothing else refers to
            // it.
            let area = unsafe { &mut *(operands.0.message_kernel as *mut [u64; ENTRIES]) };
            let position = u32::try_from(operands.word(2)).unwrap_or(u32::MAX);
            Ok(labels::with(operands.held(), operands.own().account, |pool| {
                pool.read(label, position, area);
                pool.entries(label) as u64 | (label.default as u64) << 32
            }))
        }
        op::LABEL_NEW => {
            let from = match operands.word(1) {
                5 => own.send,
                6 => own.receive,
                _ => Label::of(level(operands, 1)?),
            };
            let (place, index) = operands.vacancy(operands.own(), 2)?;
            let label = labels::with(operands.held(), operands.own().account, |pool| pool.keep(from));
            place.fill(Content::label(label), None)?;
            Ok(index as u64)
        }
        op::LABEL_PUT => {
            tidy(operands);
            let (label, handle, level) = (operands.label(1, rights::WRITE)?, handle(operands, 2)?, level(operands, 3)?);
            replace(operands, |pool| pool.set(label, handle, level).map_err(|full| labels::refusal(pool, full).into()))
        }
        op::LABEL_COMBINE => {
            tidy(operands);
            let [one, other] = [operands.label(1, rights::WRITE)?, operands.label(2, rights::READ)?];
            let is_lower = operands.truth(3)?;
            let bound = |pool: &mut Pool, work: &mut Work| rules::bound(pool, work, one, other, is_lower);
            let made = ask(operands, labels::BOUND + is_lower as u8, &[one, other], bound)?;
            replace(operands, |_| Ok(made))
        }
        _ => Err(Error::NoSuchWay.into()),
    }
}

/// `op::LABEL_CALLER`: whether the domain that called this activation may observe and change objects with a label. The
/// label's entry caches the last verdict.
fn caller_may(operands: &Operands) -> Outcome {
    let entry = operands.entry(1, Kind::Label, rights::READ)?;
    let thing = entry.label().ok_or(Error::WrongKind)?;
    let domain = operands.0.caller.get().ok_or(Error::NoCaller)?.domain;
    if flows::is_off(operands.held()) {
        return Ok(OBSERVE | CHANGE);
    }
    if let Some(known) = entry.verdict_on(domain) {
        return Ok(known);
    }
    let caller = domain.labels();
    let may = |pool: &mut Pool, work: &mut Work| rules::caller_may(pool, work, &caller, thing);
    let (observe, change) = ask(operands, labels::MAY, &[thing, caller.send, caller.receive], may)?;
    Ok(entry.note_verdict(domain, if observe { OBSERVE } else { 0 } | if change { CHANGE } else { 0 }))
}

/// Evaluates a label rule in preemptible steps. New labels are charged to the caller's account.
fn ask<T>(
    operands: &Operands,
    rule: u8,
    about: &[Label],
    mut work: impl FnMut(&mut Pool, &mut Work) -> Result<T, rules::Stop>,
) -> Result<T, Stop> {
    let mut outcome = Err(Stop::Repeat);
    in_steps(operands, || {
        outcome = labels::ask(operands.held(), rule, operands.own().account, about, &mut work);
        matches!(outcome, Err(Stop::Repeat))
    });
    outcome
}

/// Frees label nodes that earlier operations left, in preemptible steps. The operation must not have had effects yet.
fn tidy(operands: &Operands) {
    in_steps(operands, || !labels::tidy(operands.held(), operands.own().account));
}

/// Replaces the label in the entry that word 1 names.
fn replace(operands: &Operands, make: impl FnOnce(&mut Pool) -> Result<Label, Stop>) -> Outcome {
    let (entry, account) = (operands.entry(1, Kind::Label, rights::WRITE)?, operands.own().account);
    let made = labels::with(operands.held(), account, make)?;
    let old = Label::from_word(entry.word0.replace(made.word()));
    entry.versions.set(0);
    labels::release_of(account, old);
    Ok(0)
}

fn handle(operands: &Operands, word: usize) -> Result<Handle, Error> {
    Handle::new(operands.word(word)).ok_or(Error::BadArgument)
}

fn level(operands: &Operands, word: usize) -> Result<Level, Error> {
    let level = usize::try_from(operands.word(word)).ok().and_then(|level| Level::ALL.get(level));
    level.copied().ok_or(Error::BadArgument)
}

/// Changes the labels of the caller's domain, in preemptible steps.
fn change(operands: &Operands, requested: LabelChange) -> Outcome {
    let only_allows = matches!(requested, LabelChange::Own(_) | LabelChange::Explicit(_));
    let mut outcome = Ok(Change::Goes);
    in_steps(operands, || {
        outcome = flows::change_step(operands.0, only_allows, &mut |pool, own| requested.made(pool, own));
        matches!(outcome, Ok(Change::Goes))
    });
    match outcome? {
        Change::Done => Ok(0),
        Change::Goes | Change::Cut => Err(Stop::Repeat),
    }
}

/// Flag in an activation's `progress`: the bits below are a handle. No other operation sets it. Without it a domain that
/// replaces its code between two steps could own a handle of its choice.
const IS_HANDLE: u64 = 1 << 62;

/// A handle that was never given out before. A restarted operation gets the same one, from its progress.
fn new_handle(operands: &Operands) -> Result<Handle, Stop> {
    let (progress, handles) = (&operands.0.progress, HANDLES.get(operands.held()));
    if let Some(handle) = Handle::new(progress.get() ^ IS_HANDLE) {
        return Ok(handle);
    }
    let mut made = handles.get().ok_or(Error::NoKey)?;
    let mut next = Next::Again;
    in_steps(operands, || {
        made = handles.get().unwrap_or(made);
        next = made.step();
        handles.set(Some(made));
        next == Next::Again
    });
    let Next::Handle(handle) = next else { return Err(Error::NoHandles.into()) };
    progress.set(handle.number() | IS_HANDLE);
    Ok(handle)
}
