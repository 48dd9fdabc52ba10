//! Which flows are allowed: calls are judged by the labels of both domains, and domains change their own. The rules are [`flow::rules`].
//!
//! A return is not judged: before a domain has other labels no call is in flight that these forbid. So a change looks at each, one in
//! a step. Whoever wants to make a call of the domain, or to call it, meanwhile goes on with the change first, so that nobody waits for who was preempted, and no
//! call is in flight that was judged by labels which are about to go.

use super::{chain, domain as domains};
use crate::cpus::{assembly, cpu};
use crate::memory::mapping::Shown;
use crate::memory::{labels, mapping, space};
use crate::objects::{
    Activation, Changes, Domain, Entry, Labelled, OPEN, PLAIN, Part, SLOW_LABELS, Semaphore, Stage, State, Stop, USUAL,
    Wait,
};
use crate::pointer::{Held, Link, Nucleus, Ref};
use abi::Error;
use abi::layout::{ARCHIVE, ENTRY_BYTES, EXCEPTION, PAGE_FAULT, USER_END, WINDOWS, WINDOWS_END};
use abi::rights::Kind;
use core::cell::Cell;
use flow::rules::{self, Admission, Labels, admit_plain};
use flow::{Exhausted, Label, Pool};

const PAGE: u64 = abi::PAGE_BYTES as u64;
/// Bytes of user space in which the boot archive is shown.
const ARCHIVE_BYTES: u64 = 1 << 30;

/// What a domain needs to go on: these must admit it, whatever its labels become.
const UPCALLS: [usize; 5] = [PAGE_FAULT[0], PAGE_FAULT[1], PAGE_FAULT[2], PAGE_FAULT[3], EXCEPTION];

/// What an activation began, for a call, is over: its next operation starts from the beginning.
#[inline(always)]
pub fn forget_change(caller: Ref<Activation>) {
    caller.changes.set(Changes::Nothing);
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
    judge_domain(caller, entry, callee)?;
    // The call has a step of its own, if the entry knows now.
    if entry.allows(caller.domain, callee) { Err(Stop::Repeat) } else { Ok(()) }
}

/// Whether an operation may work on another domain, by an entry that does not know that. The rule is that of calls: an operation on a domain is a flow to
/// it, and its outcome is one back.
#[cold]
#[inline(never)]
pub fn judge_domain(by: Ref<Activation>, entry: Ref<Entry>, other: Ref<Domain>) -> Result<(), Stop> {
    judge_by(by, other, entry.portal_label())?;
    // Who calls found it in its table, which cannot be written there; for an upcall it was looked up.
    let own = by.domain;
    let index = entry.address().wrapping_sub(own.table.get()) / ENTRY_BYTES;
    own.place(index).unwrap_or(entry).allow(own, other);
    Ok(())
}

/// The same, by whatever leads to the other domain: nothing learns it.
pub fn judge_pair(by: Ref<Activation>, other: Ref<Domain>) -> Result<(), Stop> {
    judge_by(by, other, OPEN)
}

/// The same, by a portal of this label.
#[inline(never)]
fn judge_by(by: Ref<Activation>, other: Ref<Domain>, portal: Label) -> Result<(), Stop> {
    let own = by.domain;
    go_on(by)?;
    if let Some(labelled) = pending(other) {
        if matches!(advance(other, labelled), Err(Stop::Refused(_))) {
            // Who began it finds that out when it looks.
            give_up(other, labelled);
        }
        return Err(Stop::Repeat);
    }
    let labels = own.labels();
    let judged = if own == other { Admission::Admitted } else { admit(own, &labels, &other.labels(), portal)? };
    act_on(by, judged)
}

/// Whether an object of this label may be used by an entry that does not know that. To use it is to change it and to see what comes of that: a call to a
/// domain both of whose labels are the object's.
#[cold]
#[inline(never)]
pub fn judge_object(by: Ref<Activation>, entry: Ref<Entry>, label: Label) -> Result<(), Stop> {
    let own = by.domain;
    go_on(by)?;
    act_on(by, admit(own, &own.labels(), &both(label), OPEN)?)?;
    entry.allow(own, own);
    Ok(())
}

/// Of a domain all of whose labels are those of an object.
fn both(label: Label) -> Labels {
    Labels { send: label, receive: label, is_explicit: false }
}

/// If the labels of the caller's domain are changing, that goes on first.
pub fn go_on(by: Ref<Activation>) -> Result<(), Stop> {
    match pending(by.domain) {
        Some(labelled) => {
            let _ = advance_with(by, labelled)?;
            Err(Stop::Repeat)
        }
        None => Ok(()),
    }
}

/// Acts on a verdict: goes on, refuses, or raises the caller and restarts the operation.
#[inline(never)]
fn act_on(by: Ref<Activation>, admission: Admission) -> Result<(), Stop> {
    match admission {
        Admission::Admitted => {
            forget_change(by);
            Ok(())
        }
        Admission::Refused => Err(Error::Flow.into()),
        Admission::Raised(send) => {
            let own = by.domain;
            let labels = own.labels();
            let receive = labels::with(own.held(), own.account, |pool| pool.keep(labels.receive));
            begin(by, Labels { send, receive, ..labels }, false)?;
            Err(Stop::Repeat)
        }
    }
}

/// Set by [`switch_off`].
static OFF: Nucleus<Cell<bool>> = Nucleus::new(Cell::new(false));

/// From now on everything is allowed, whatever the labels: for tests and for measuring.
pub fn switch_off(held: Held) {
    OFF.get(held).set(true);
}

/// Whether labels forbid nothing.
pub fn is_off(held: Held) -> bool {
    OFF.get(held).get()
}

/// Whether a domain may change what is the nucleus's: the machine, its devices, the log. It has the label {1}, and what the nucleus reports taints nobody.
#[inline(never)]
pub fn may_change(domain: Ref<Domain>) -> Result<(), Error> {
    if domain.labelled().is_none() || labels::may_change_plain(domain) || is_off(domain.held()) {
        Ok(())
    } else {
        Err(Error::Flow)
    }
}

/// Whether a domain may change an object, without seeing what comes of it.
pub fn may_change_object(own: Ref<Domain>, label: Label) -> Result<bool, Stop> {
    let send = own.labels().send;
    if is_off(own.held()) {
        return Ok(true);
    }
    let about = [send, label];
    labels::ask(own.held(), labels::CHANGES, own.account, &about, |pool, work| {
        rules::may_change(pool, work, send, label)
    })
}

/// A step of judging a call by a portal of this label. What is made is `payer`'s.
#[inline(never)]
fn admit(payer: Ref<Domain>, from: &Labels, to: &Labels, portal: Label) -> Result<Admission, Stop> {
    if is_off(payer.held()) {
        return Ok(Admission::Admitted);
    }
    match admit_plain(from, to).filter(|_| portal == OPEN) {
        Some(true) => Ok(Admission::Admitted),
        Some(false) => Ok(Admission::Refused),
        None => {
            let all = [from.send, from.receive, to.send, to.receive, portal];
            labels::ask(payer.held(), from.is_explicit as u8, payer.account, &all, |pool, work| {
                rules::admit(pool, work, from, to, portal)
            })
        }
    }
}

/// A step of finding out whether a domain may report something to another one.
fn may_report(payer: Ref<Domain>, from: &Labels, to: &Labels) -> Result<bool, Stop> {
    if is_off(payer.held()) {
        return Ok(true);
    }
    let all = [from.send, from.receive, to.send, to.receive];
    labels::ask(payer.held(), labels::REPORTS, payer.account, &all, |pool, work| {
        rules::may_report(pool, work, from, to)
    })
}

/// Its labels, if they are changing.
fn pending(domain: Ref<Domain>) -> Option<Ref<Labelled>> {
    domain.labelled().filter(|labelled| labelled.next.get().is_some() && !domain.is_dead())
}

/// Makes labels of others, or says why it does not.
type Make<'a> = &'a mut dyn FnMut(&mut Pool, &Labels) -> Result<Result<Labels, Error>, Exhausted>;

/// A step of changing the labels of the caller's domain to what `make` makes of them. A change that `only_allows` forbids nothing that was
/// allowed before: it is made at once.
pub fn change_step(by: Ref<Activation>, only_allows: bool, make: Make<'_>) -> Result<Change, Error> {
    let (held, domain) = (by.held(), by.domain);
    if !labels::tidy(held, domain.account) {
        return Ok(Change::Goes);
    }
    // Others may have changed the labels once more since.
    if by.changes.get() == Changes::Made {
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
    if only_allows {
        return take_at_once(domain, made).map(|()| Change::Done);
    }
    begin(by, made, true).map(|()| Change::Goes)
}

/// The domain has these labels from here on, which forbid nothing that is in flight.
pub fn take_at_once(domain: Ref<Domain>, next: Labels) -> Result<(), Error> {
    take(domain, room_for(domain, next)?, next);
    Ok(())
}

/// Where the domain's labels stand. If they cannot change, those that it was to have go.
fn room_for(domain: Ref<Domain>, next: Labels) -> Result<Ref<Labelled>, Error> {
    let room = match domain.labelled() {
        _ if domain.is_at_last_version() => Err(Error::TooManyChanges),
        Some(labelled) => Ok(labelled),
        None => labels::give(domain, USUAL),
    };
    room.inspect_err(|_| labels::release(domain, next))
}

/// A change of the caller's domain that the caller began for a message is given up: somebody else took that.
pub fn give_up_own(by: Ref<Activation>) {
    if let Some(labelled) = pending(by.domain)
        && by.changes.get() == Changes::Raise
        && labelled.stage.get().by == by.number
    {
        give_up(by.domain, labelled);
    }
    forget_change(by);
}

/// The labels of the caller's domain are to become these, without which it cannot take a message. If they would cut off a call in flight, the next
/// [`go_on`] is refused.
pub fn begin_for_message(by: Ref<Activation>, next: Labels) -> Result<(), Error> {
    begin(by, next, false)
}

/// The labels of the caller's domain are to become these, which are its from here on.
#[inline(never)]
fn begin(by: Ref<Activation>, next: Labels, cuts: bool) -> Result<(), Error> {
    let domain = by.domain;
    let labelled = room_for(domain, next)?;
    labelled.next.set(Some(next));
    labelled.stage.set(Stage { by: by.number, cuts, ..Stage::default() });
    by.changes.set(if cuts { Changes::Own } else { Changes::Raise });
    // Nobody calls, or is called, on a fast path from here on; and who was on one is seen by the steps to come.
    domain.set_slow(SLOW_LABELS, true);
    cpu::others(by.held()).for_each(cpu::stop);
    Ok(())
}

/// A step of the change of the caller's domain, whoever began it.
fn advance_with(by: Ref<Activation>, labelled: Ref<Labelled>) -> Result<Change, Error> {
    let is_own = labelled.stage.get().by == by.number;
    if is_own && by.changes.get() == Changes::Nothing {
        // It was begun by something that this activation does no more.
        give_up(by.domain, labelled);
        return Ok(Change::Goes);
    }
    match advance(by.domain, labelled) {
        Ok(()) if by.thread.get().is_none() => Ok(Change::Cut),
        Ok(()) | Err(Stop::Repeat) => Ok(Change::Goes),
        Err(Stop::Refused(error)) => {
            give_up(by.domain, labelled);
            by.changes.set(Changes::Nothing);
            if is_own { Err(error) } else { Ok(Change::Goes) }
        }
    }
}

/// What looking at something has come to.
enum Look {
    /// It is to be looked at again.
    Again,
    /// It may be as it is; next is what comes after this place.
    Past(u64),
    /// There is nothing more of the part.
    Over,
}

/// A step of a change.
fn advance(domain: Ref<Domain>, labelled: Ref<Labelled>) -> Result<(), Stop> {
    let Some(next) = labelled.next.get() else { return Ok(()) };
    let stage = labelled.stage.get();
    // What has the label {1} stays what it may use.
    let shares_on = || stage.done == 0 && !domain.shares_labelled.get() && labels::may_use_plain(domain, &next);
    let look = match stage.part {
        Part::Table | Part::Reads | Part::Pages if shares_on() => Look::Over,
        Part::Upcalls => look_at_upcall(domain, labelled)?,
        Part::Maker => look_at_maker(domain, labelled)?,
        Part::Children => look_at_child(domain, labelled)?,
        Part::Table => look_at_table(domain, stage.done),
        Part::Activations => look_at_activation(domain, labelled, &next)?,
        Part::Reads | Part::Pages => look_at_page(domain, &next, stage)?,
    };
    match (look, stage.part.next()) {
        (Look::Again, _) => {}
        (Look::Past(done), _) => labelled.stage.set(Stage { done, side: false, ..stage }),
        (Look::Over, Some(part)) => labelled.stage.set(Stage { part, done: 0, side: false, ..stage }),
        (Look::Over, None) => end(domain, labelled, next),
    }
    Ok(())
}

fn look_at_upcall(domain: Ref<Domain>, labelled: Ref<Labelled>) -> Result<Look, Stop> {
    let done = labelled.stage.get().done;
    let Some(index) = UPCALLS.get(done as usize) else { return Ok(Look::Over) };
    let entry = domain.place(*index).ok();
    let handler = entry.and_then(|entry| entry.callee().map(|callee| (callee, How::Calls(entry.portal_label()))));
    match handler.map_or(Ok(Some(true)), |(callee, how)| stays(domain, labelled, callee, how))? {
        Some(true) => Ok(Look::Past(done + 1)),
        Some(false) => Err(Error::Flow.into()),
        None => Ok(Look::Again),
    }
}

fn look_at_maker(domain: Ref<Domain>, labelled: Ref<Labelled>) -> Result<Look, Stop> {
    match domain.maker.map_or(Ok(Some(true)), |maker| stays(domain, labelled, maker, How::Reports))? {
        Some(true) => Ok(Look::Over),
        Some(false) => Err(Error::Flow.into()),
        None => Ok(Look::Again),
    }
}

/// Those with high numbers come first, as in the list of all.
fn look_at_child(domain: Ref<Domain>, labelled: Ref<Labelled>) -> Result<Look, Stop> {
    let done = labelled.stage.get().done;
    let is_next = |child: &Ref<Domain>| child.maker == Some(domain) && (done == 0 || child.number < done);
    let Some(child) = domains::all(domain.held()).find(is_next) else { return Ok(Look::Over) };
    match stays(domain, labelled, child, How::IsReportedTo)? {
        Some(true) => Ok(Look::Past(child.number)),
        Some(false) => Err(Error::Flow.into()),
        None => Ok(Look::Again),
    }
}

/// Two steps for each activation: one for who called it, one for whom it called, or what it waits for.
fn look_at_activation(domain: Ref<Domain>, labelled: Ref<Labelled>, next: &Labels) -> Result<Look, Stop> {
    let Stage { done: place, cuts, .. } = labelled.stage.get();
    let Some(activation) = activation_from(domain, (place / 2 + 1) as u8) else { return Ok(Look::Over) };
    let place = place.max(2 * (activation.number as u64 - 1));
    let calls = !place.is_multiple_of(2);
    if calls && activation.state.get() == State::Top && activation.wait.get() == Wait::Semaphore {
        let semaphore = activation.semaphore();
        if semaphore.is_shared.get() && !may_use(domain, next, labels::of_object(semaphore))? {
            if !cuts {
                return Err(Error::Flow.into());
            }
            semaphore.cut_off(activation);
        }
    }
    let call = match (calls, activation.state.get()) {
        (true, State::Calling) => activation.callee.get().map(|callee| (activation, callee.domain, How::Calls(OPEN))),
        // One that is free keeps its last caller.
        (true, _) | (false, State::Free) => None,
        (false, _) => activation.caller.get().map(|caller| (caller, caller.domain, How::IsCalled)),
    };
    if let Some((lower, other, how)) = call {
        match stays(domain, labelled, other, how)? {
            Some(true) => {}
            Some(false) if !cuts => return Err(Error::Flow.into()),
            Some(false) => {
                chain::split_above(lower);
                chain::fail_call(lower, Error::Flow);
                chain::resume(lower);
            }
            None => return Ok(Look::Again),
        }
    }
    Ok(Look::Past(place + 1))
}

/// Entries of a table that a step looks at.
const ENTRIES: u64 = 16;

/// Semaphores among some entries of the table are judged anew when they are used next.
fn look_at_table(domain: Ref<Domain>, done: u64) -> Look {
    if done >= domain.table_entries() as u64 {
        // Whoever found an entry as it was makes its operation again.
        cpu::others(domain.held()).for_each(cpu::stop);
        return Look::Over;
    }
    for entry in (done..done + ENTRIES).filter_map(|index| domain.place(index as usize).ok()) {
        if entry.is_of(Kind::Semaphore) {
            entry.code.set(assembly::entry_semaphore_judged as *const () as usize);
        }
    }
    Look::Past(done + ENTRIES)
}

/// Pages of nobody else that a step passes.
const PAGES_PASSED: u64 = 16;

/// What the domain may not write any more it does not; a page that it may not read any more forbids the change.
fn look_at_page(
    domain: Ref<Domain>,
    next: &Labels,
    Stage { part, done: address, cuts, .. }: Stage,
) -> Result<Look, Stop> {
    let protects = matches!(part, Part::Pages);
    let mut page = address;
    while page < address + PAGES_PASSED * PAGE {
        if page >= USER_END {
            return Ok(Look::Over);
        }
        if page == ARCHIVE {
            // Everybody may read it, and nobody can write it.
            return Ok(Look::Past(page + ARCHIVE_BYTES));
        }
        // What is shown there goes with the calls that are cut off.
        if page == WINDOWS {
            return Ok(Look::Past(WINDOWS_END));
        }
        let unmapped = space::unmapped_pages(domain, page);
        if unmapped != 0 {
            return Ok(Look::Past(page + unmapped * PAGE));
        }
        if let Some(Shown { label, is_alone: false, is_writable }) = mapping::shown(domain, page) {
            if page != address {
                return Ok(Look::Past(page));
            }
            let (reads, writes) = may_share(domain, next, label)?;
            if !reads || is_writable && !writes && !cuts {
                return Err(Error::Flow.into());
            }
            if protects && is_writable && !writes && !mapping::protect(domain, page) {
                return Ok(Look::Again);
            }
            return Ok(Look::Past(page + PAGE));
        }
        page += PAGE;
    }
    Ok(Look::Past(page))
}

/// Whether a domain with these labels may use an object.
fn may_use(domain: Ref<Domain>, labels: &Labels, object: Label) -> Result<bool, Stop> {
    may_call(domain, labels, &both(object), OPEN)
}

/// Whether a domain with these labels may read, and may write, memory of this label that others have, too.
fn may_share(domain: Ref<Domain>, own: &Labels, label: Label) -> Result<(bool, bool), Stop> {
    if is_off(domain.held()) || label == PLAIN && labels::may_use_plain(domain, own) {
        return Ok((true, true));
    }
    let about = [label, own.send, own.receive];
    labels::ask(domain.held(), labels::MAY, domain.account, &about, |pool, work| {
        rules::caller_may(pool, work, own, label)
    })
}

/// Whether memory of this label may be shared by two domains, each of which writes it, or only reads it.
#[inline(never)]
pub fn may_both_share(
    [from, to]: [Ref<Domain>; 2],
    [from_writes, to_writes]: [bool; 2],
    label: Label,
) -> Result<bool, Stop> {
    let [giver, taker] = [from.labels(), to.labels()];
    if is_off(from.held()) {
        return Ok(true);
    }
    let about = [label, giver.send, giver.receive, taker.send, taker.receive];
    labels::ask(from.held(), labels::SHARE, from.account, &about, |pool, work| {
        let gives = rules::caller_may(pool, work, &giver, label)?;
        let takes = rules::caller_may(pool, work, &taker, label)?;
        Ok(gives.0 && takes.0 && (gives.1 || !from_writes) && (takes.1 || !to_writes))
    })
}

/// Whether a domain may give V on a semaphore by its end. What others have, too, hears of it if that takes no search.
#[inline(never)]
pub fn may_end_loudly(domain: Ref<Domain>, semaphore: Ref<Semaphore>) -> bool {
    let (labels, label) = (domain.labels(), labels::of_object(semaphore));
    !semaphore.is_shared.get()
        || is_off(domain.held())
        || labels::with(domain.held(), domain.account, |pool| {
            pool.name(labels.send) == pool.name(label) || pool.bounds(labels.send).most <= pool.bounds(label).least
        })
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

/// What is between a domain and another one.
#[derive(Clone, Copy)]
enum How {
    /// It calls the other by a portal of this label. Of a call in flight that was asked when it was made.
    Calls(Label),
    /// The other calls it.
    IsCalled,
    /// It reports something to the other.
    Reports,
    /// The other reports something to it.
    IsReportedTo,
}

/// Whether this may go on between the domain, as it will be, and another one. If the other one's labels are changing, too, what it will
/// have is looked at in a step of its own: nothing is said before.
fn stays(domain: Ref<Domain>, labelled: Ref<Labelled>, other: Ref<Domain>, how: How) -> Result<Option<bool>, Stop> {
    let (stage, Some(next)) = (labelled.stage.get(), labelled.next.get()) else { return Ok(Some(true)) };
    if other == domain || other.is_dead() {
        return Ok(Some(true));
    }
    let others_next = pending(other).and_then(|labelled| labelled.next.get());
    let side = if stage.side { others_next.unwrap_or(other.labels()) } else { other.labels() };
    let allowed = match how {
        How::Calls(portal) => may_call(domain, &next, &side, portal)?,
        How::IsCalled => may_call(domain, &side, &next, OPEN)?,
        How::Reports => may_report(domain, &next, &side)?,
        How::IsReportedTo => may_report(domain, &side, &next)?,
    };
    if allowed && others_next.is_some() && !stage.side {
        labelled.stage.set(Stage { side: true, ..stage });
        return Ok(None);
    }
    Ok(Some(allowed))
}

/// Whether a domain with the first labels may call one with the second, as it is, by a portal of this label. What is made is `payer`'s.
#[inline(never)]
fn may_call(payer: Ref<Domain>, from: &Labels, to: &Labels, portal: Label) -> Result<bool, Stop> {
    match admit(payer, from, to, portal)? {
        Admission::Admitted => Ok(true),
        Admission::Refused => Ok(false),
        Admission::Raised(label) => {
            labels::release_of(payer.account, label);
            Ok(false)
        }
    }
}

/// Nothing is in flight that the new labels forbid: the domain has them.
fn end(domain: Ref<Domain>, labelled: Ref<Labelled>, next: Labels) {
    let by = labelled.stage.get().by;
    if let Some(begun) = activation_from(domain, by).filter(|activation| activation.number == by) {
        // Not if it does something else by now.
        begun.changes.update(|changes| if changes == Changes::Own { Changes::Made } else { changes });
    }
    labelled.next.set(None);
    take(domain, labelled, next);
}

/// The domain has these labels from here on.
fn take(domain: Ref<Domain>, labelled: Ref<Labelled>, next: Labels) {
    let before = labelled.now.replace(next);
    labels::note(domain, &next);
    labels::release(domain, before);
    domain.count_version();
}

/// The domain is about to die: its labels stay what they are.
pub fn stop_changing(domain: Ref<Domain>) {
    if let Some(labelled) = pending(domain) {
        give_up(domain, labelled);
    }
}

/// The domain keeps the labels that it has.
fn give_up(domain: Ref<Domain>, labelled: Ref<Labelled>) {
    if let Some(next) = labelled.next.take() {
        labels::release(domain, next);
    }
    // Calls of the meantime were allowed by these labels. The version says that the change is over.
    domain.count_version();
}
