//! Who may tell whom: calls are judged by the labels of both domains, and domains change their own. The rules are [`flow::rules`].
//!
//! A return is not judged: before a domain has other labels no call is in flight that these forbid. So a change looks at each, one in
//! a step. Whoever wants to make a call of the domain, or to call it, meanwhile goes on with the change first, so that nobody waits for who was preempted, and no
//! call is in flight that was judged by labels which are about to go.

use super::chain;
use crate::cpus::cpu;
use crate::memory::labels;
use crate::objects::{Activation, Domain, Entry, Labelled, SLOW_LABELS, Stage, State, Stop, USUAL};
use crate::pointer::{Link, Ref};
use abi::Error;
use abi::layout::{ENTRY_BYTES, EXCEPTION, PAGE_FAULT};
use flow::rules::{self, Admission, Labels, admit_plain};
use flow::{Exhausted, Label, Level, Pool};

/// In the progress of an activation: it began a change of labels.
const BEGUN: u64 = 1 << 63;
/// In the progress of an activation: the change that it began was made.
const MADE: u64 = 1 << 62;
/// In the progress of an activation: what changes of labels have there.
pub const CHANGE: u64 = BEGUN | MADE;

/// What a domain needs to go on: these must admit it, whatever its labels become.
const UPCALLS: [usize; 5] = [PAGE_FAULT[0], PAGE_FAULT[1], PAGE_FAULT[2], PAGE_FAULT[3], EXCEPTION];

/// The label of portals.
const PORTAL: Label = Label::of(Level::Three);

/// What an activation began, for a call, is over: its next operation starts anew.
#[inline(always)]
pub fn forget_change(caller: Ref<Activation>) {
    caller.progress.update(|progress| progress & !CHANGE);
}

/// What a step of a change has come to.
pub enum Change {
    /// There is more to do.
    Goes,
    /// The same, but the chain of who makes it was cut: it goes on when it has a thread again.
    Cut,
    /// The labels are as they were to be.
    Done,
}

/// Whether a call may be made whose entry does not know that. The entry learns it. A caller that floats is raised.
#[cold]
#[inline(never)]
pub fn judge(caller: Ref<Activation>, entry: Ref<Entry>, callee: Ref<Domain>) -> Result<(), Stop> {
    let own = caller.domain;
    if let Some(labelled) = pending(own) {
        let _ = advance_with(caller, labelled)?;
        return Err(Stop::Repeat);
    }
    if let Some(labelled) = pending(callee) {
        if matches!(advance(callee, labelled), Err(Stop::Refused(_))) {
            // Who began it finds that out when it looks.
            give_up(callee, labelled);
        }
        return Err(Stop::Repeat);
    }
    let labels = own.labels();
    let judged = if own == callee { Admission::Admitted } else { admit(own, &labels, &callee.labels())? };
    match judged {
        Admission::Admitted => {}
        Admission::Refused => return Err(Error::Flow.into()),
        Admission::Raised(send) => {
            let receive = labels::with(own.held(), own.account, |pool| pool.keep(labels.receive));
            begin(caller, Labels { send, receive, ..labels }, false)?;
            return Err(Stop::Repeat);
        }
    }
    // Who calls found it in its table, which cannot be written there; for an upcall it was looked up.
    let index = entry.address().wrapping_sub(own.table.get()) / ENTRY_BYTES;
    let entry = own.place(index).unwrap_or(entry);
    entry.allow(own, callee);
    // The call has a stretch of its own, if the entry knows now.
    if entry.allows(own, callee) { Err(Stop::Repeat) } else { Ok(()) }
}

/// A step of judging a call. What is made is `payer`'s.
#[inline(never)]
fn admit(payer: Ref<Domain>, from: &Labels, to: &Labels) -> Result<Admission, Stop> {
    match admit_plain(from, to) {
        Some(true) => Ok(Admission::Admitted),
        Some(false) => Ok(Admission::Refused),
        None => {
            let all = [from.send, from.receive, to.send, to.receive];
            labels::ask(payer.held(), from.is_explicit as u8, payer.account, &all, |pool, work| {
                rules::admit(pool, work, from, to, PORTAL)
            })
        }
    }
}

/// Its labels, if they are changing.
fn pending(domain: Ref<Domain>) -> Option<Ref<Labelled>> {
    domain.labelled().filter(|labelled| labelled.next.get().is_some())
}

/// Makes labels of others, or says why it does not.
type Make<'a> = &'a mut dyn FnMut(&mut Pool, &Labels) -> Result<Result<Labels, Error>, Exhausted>;

/// A step of changing the labels of the caller's domain to what `make` makes of them.
pub fn change_step(by: Ref<Activation>, make: Make<'_>) -> Result<Change, Error> {
    let (held, domain) = (by.held(), by.domain);
    if !labels::tidy(held, domain.account) {
        return Ok(Change::Goes);
    }
    // Others may have changed the labels once more since.
    if by.progress.get() & MADE != 0 {
        return Ok(Change::Done);
    }
    if let Some(labelled) = pending(domain) {
        return advance_with(by, labelled);
    }
    let now = domain.labels();
    let (made, is_new) = labels::with(held, domain.account, |pool| {
        let made = make(pool, &now).map_err(|exhausted| labels::refusal(pool, exhausted))??;
        let names = |labels: &Labels| ([labels.send, labels.receive].map(|label| pool.name(label)), labels.is_explicit);
        Ok::<_, Error>((made, names(&made) != names(&now)))
    })?;
    if !is_new {
        labels::release(domain, made);
        return Ok(Change::Done);
    }
    begin(by, made, true).map(|()| Change::Goes)
}

/// The labels of the caller's domain are to become these, which are its from here on.
fn begin(by: Ref<Activation>, next: Labels, cuts: bool) -> Result<(), Error> {
    let domain = by.domain;
    let labelled = match domain.labelled().map_or_else(|| labels::give(domain, USUAL), Ok) {
        Ok(labelled) => labelled,
        Err(error) => {
            labels::release(domain, next);
            return Err(error);
        }
    };
    labelled.next.set(Some(next));
    labelled.stage.set(Stage { done: 0, side: false, by: by.number, cuts });
    by.progress.update(|progress| progress & !CHANGE | BEGUN);
    // Nobody calls, or is called, on a fast path from here on; and who was on one is seen by the steps to come.
    domain.set_slow(SLOW_LABELS, true);
    cpu::others(by.held()).for_each(cpu::hold_up);
    Ok(())
}

/// A step of the change of the caller's domain, whoever began it.
fn advance_with(by: Ref<Activation>, labelled: Ref<Labelled>) -> Result<Change, Error> {
    let is_own = labelled.stage.get().by == by.number;
    if is_own && by.progress.get() & BEGUN == 0 {
        // It was begun by something that this activation does no more.
        give_up(by.domain, labelled);
        return Ok(Change::Goes);
    }
    match advance(by.domain, labelled) {
        Ok(()) if by.thread.get().is_none() => Ok(Change::Cut),
        Ok(()) | Err(Stop::Repeat) => Ok(Change::Goes),
        Err(Stop::Refused(error)) => {
            give_up(by.domain, labelled);
            by.progress.update(|progress| progress & !BEGUN);
            if is_own { Err(error) } else { Ok(Change::Goes) }
        }
    }
}

/// A step of a change.
fn advance(domain: Ref<Domain>, labelled: Ref<Labelled>) -> Result<(), Stop> {
    let Some(next) = labelled.next.get() else { return Ok(()) };
    let stage = labelled.stage.get();
    if let Some(index) = UPCALLS.get(stage.done as usize) {
        let callee = domain.place(*index).ok().and_then(|entry| entry.callee());
        match callee.map_or(Ok(Some(true)), |callee| stays(domain, labelled, callee, true))? {
            Some(true) => labelled.stage.set(Stage { done: stage.done + 1, side: false, ..stage }),
            Some(false) => return Err(Error::Flow.into()),
            None => {}
        }
        return Ok(());
    }
    // Two steps for each activation: one for who called it, one for whom it called.
    let place = stage.done - UPCALLS.len() as u16;
    let Some(activation) = activation_from(domain, (place / 2 + 1) as u8) else {
        finish(domain, labelled, next);
        return Ok(());
    };
    let place = place.max(2 * (activation.number as u16 - 1));
    let calls = !place.is_multiple_of(2);
    let call = match (calls, activation.state.get()) {
        (true, State::Calling) => activation.callee.get().map(|callee| (activation, callee.domain)),
        // One that is free keeps its last caller.
        (true, _) | (false, State::Free) => None,
        (false, _) => activation.caller.get().map(|caller| (caller, caller.domain)),
    };
    if let Some((lower, other)) = call {
        match stays(domain, labelled, other, calls)? {
            Some(true) => {}
            Some(false) if !stage.cuts => return Err(Error::Flow.into()),
            Some(false) => {
                chain::split_above(lower);
                chain::fail_call(lower, Error::Flow);
                chain::resume(lower);
            }
            None => return Ok(()),
        }
    }
    labelled.stage.set(Stage { done: UPCALLS.len() as u16 + place + 1, side: false, ..stage });
    Ok(())
}

/// The activation of the domain with the lowest number from this one on.
fn activation_from(domain: Ref<Domain>, number: u8) -> Link<Activation> {
    let (mut found, mut next): (Link<Activation>, _) = (None, domain.activations.get());
    while let Some(activation) = next {
        if activation.number >= number && found.is_none_or(|found| activation.number < found.number) {
            found = Some(activation);
        }
        next = activation.domain_next.get();
    }
    found
}

/// Whether a call between the domain, as it will be, and another one may be in flight: one that it makes, or that the other makes. If the other
/// one's labels are changing, too, what it will have is looked at in a step of its own: nothing is said before.
fn stays(domain: Ref<Domain>, labelled: Ref<Labelled>, other: Ref<Domain>, calls: bool) -> Result<Option<bool>, Stop> {
    let (stage, Some(next)) = (labelled.stage.get(), labelled.next.get()) else { return Ok(Some(true)) };
    if other == domain || other.is_dead() {
        return Ok(Some(true));
    }
    let others_next = other.labelled().and_then(|labelled| labelled.next.get());
    let side = if stage.side { others_next.unwrap_or(other.labels()) } else { other.labels() };
    let (from, to) = if calls { (&next, &side) } else { (&side, &next) };
    match admit(domain, from, to)? {
        Admission::Admitted if others_next.is_some() && !stage.side => {
            labelled.stage.set(Stage { side: true, ..stage });
            Ok(None)
        }
        Admission::Admitted => Ok(Some(true)),
        Admission::Refused => Ok(Some(false)),
        Admission::Raised(label) => {
            labels::with(domain.held(), domain.account, |pool| pool.release_later(label));
            Ok(Some(false))
        }
    }
}

/// Nothing is in flight that the new labels forbid: the domain has them.
fn finish(domain: Ref<Domain>, labelled: Ref<Labelled>, next: Labels) {
    let by = labelled.stage.get().by;
    if let Some(begun) = activation_from(domain, by).filter(|activation| activation.number == by) {
        // Not if it does something else by now.
        begun.progress.update(|progress| if progress & BEGUN != 0 { progress | MADE } else { progress });
    }
    labelled.next.set(None);
    let before = labelled.now.replace(next);
    labels::release(domain, before);
    domain.count_version();
}

/// The domain keeps the labels that it has.
fn give_up(domain: Ref<Domain>, labelled: Ref<Labelled>) {
    if let Some(next) = labelled.next.take() {
        labels::release(domain, next);
    }
    // Calls of the meantime were allowed by these labels. The version tells that the change is over.
    domain.count_version();
}
