//! Flow control: calls are judged by the labels of both domains, and domains change their own. The rules are [`flow::rules`].
//!
//! A return is not judged: when a domain gets new labels, no call that they forbid is in flight. So a change checks each call,
//! one per step. Meanwhile, a call from or to the domain first does steps of the change. So no caller blocks on a preempted
//! thread, and no call in flight was judged by labels that are about to be replaced.

use super::{chain, lent, numbers};
use crate::cpus::{assembly, cpu};
use crate::memory::labels::Pool;
use crate::memory::mapping::Shown;
use crate::memory::{labels, mapping, space};
use crate::objects::{
    Activation, Changes, Domain, Entry, Labelled, NOTHING_RECEIVED, OPEN, PLAIN, Part, SLOW_LABELS, Semaphore, Stage,
    State, Stop, TRUSTED, Thread, USUAL, Wait,
};
use crate::pointer::{Held, Link, Nucleus, Ref};
use crate::report::forbidden::{Against, refuse};
use abi::Error;
use abi::layout::{ARCHIVE, ENTRY_BYTES, EXCEPTION, PAGE_FAULT, USER_END, WINDOWS, WINDOWS_END};
use abi::rights::Kind;
use core::cell::Cell;
use flow::rules::{self, Admission, Labels, admit_plain};
use flow::{Exhausted, Label};

const PAGE: u64 = abi::PAGE_BYTES as u64;
/// Bytes of user space where the boot archive is mapped.
const ARCHIVE_BYTES: u64 = 1 << 30;

/// Portals that every domain needs: they must admit it, whatever its labels become.
const UPCALLS: [usize; 5] = [PAGE_FAULT[0], PAGE_FAULT[1], PAGE_FAULT[2], PAGE_FAULT[3], EXCEPTION];

/// Forgets the change that an activation began for a call: its next operation starts from the beginning.
#[inline(always)]
pub fn forget_change(caller: Ref<Activation>) {
    caller.changes.set(Changes::Nothing);
}

/// Outcome of a step of a change.
pub enum Change {
    /// More steps remain.
    Goes,
    /// The same, but the caller's chain was split: it continues when it has a thread again.
    Cut,
    /// The domain has the new labels.
    Done,
}

/// Judges a call whose entry has not cached the verdict. Caches it in the entry. Raises a floating caller.
#[cold]
#[inline(never)]
pub fn judge(caller: Ref<Activation>, entry: Ref<Entry>, callee: Ref<Domain>) -> Result<(), Stop> {
    judge_domain(caller, entry, callee)?;
    // If the verdict is cached now, the call is its own step.
    if entry.allows(caller.domain, callee) { Err(Stop::Repeat) } else { Ok(()) }
}

/// Judges an operation on another domain, whose entry has not cached the verdict. The rule is that of calls: an operation on a
/// domain is a flow to it, and its outcome is one back.
#[cold]
#[inline(never)]
pub fn judge_domain(by: Ref<Activation>, entry: Ref<Entry>, other: Ref<Domain>) -> Result<(), Stop> {
    judge_by(by, other, entry.portal_label())?;
    // A caller's entry lies in the read-only range of its table; that of an upcall was looked up.
    let own = by.domain;
    let index = entry.address().wrapping_sub(own.table.get()) / ENTRY_BYTES;
    own.place(index).unwrap_or(entry).allow(own, other);
    Ok(())
}

/// Judges a step of an operation that leaves nothing in flight, with the present labels of the other domain. A change of these goes on
/// meanwhile: else one change after the other would put the operation off. No verdict is cached.
pub fn judge_at_once(by: Ref<Activation>, other: Ref<Domain>) -> Result<(), Stop> {
    go_on(by)?;
    judge_present(by, other, OPEN)
}

/// Judges a flow to another domain by a portal with this label, and back.
#[inline(never)]
fn judge_by(by: Ref<Activation>, other: Ref<Domain>, portal: Label) -> Result<(), Stop> {
    go_on(by)?;
    if let Some(labelled) = pending(other) {
        if let Err(Stop::Refused(error)) = advance(other, labelled) {
            give_up_anothers(other, labelled, error);
        }
        if pending(other).is_some() {
            return Err(Stop::Repeat);
        }
        // It goes on before the other domain begins another change.
    }
    judge_present(by, other, portal)
}

/// The same, with the other's present labels.
fn judge_present(by: Ref<Activation>, other: Ref<Domain>, portal: Label) -> Result<(), Stop> {
    let own = by.domain;
    let labels = own.labels();
    let judged = if own == other { Admission::Admitted } else { admit(own, &labels, &other.labels(), portal)? };
    act_on(by, judged, Against::Domain(other))
}

/// Judges the end of a domain, or of a thread that is at home there. The removal of a dead domain, which ends live ones in its table,
/// shows nothing new to its remover: it is a flow to that domain only.
pub fn judge_end(by: Ref<Activation>, other: Ref<Domain>) -> Result<(), Stop> {
    if !other.is_dead() {
        return judge_at_once(by, other);
    }
    go_on(by)?;
    let own = by.domain;
    if other.is_being_removed() || may_report(own, &own.labels(), &other.labels())? {
        Ok(())
    } else {
        Err(refuse(own, Against::Domain(other)).into())
    }
}

/// Judges the use of an object with this label, whose entry has not cached the verdict. Use changes the object and sees the
/// outcome: it is like a call to a domain both of whose labels are the object's.
#[cold]
#[inline(never)]
pub fn judge_object(by: Ref<Activation>, entry: Ref<Entry>, label: Label) -> Result<(), Stop> {
    let own = by.domain;
    go_on(by)?;
    act_on(by, admit(own, &own.labels(), &both(label), OPEN)?, Against::Thing("an object"))?;
    entry.allow(own, own);
    Ok(())
}

/// A domain's labels, both equal to the object's.
fn both(label: Label) -> Labels {
    Labels { send: label, receive: label, is_explicit: false }
}

/// If the caller's domain is changing labels, does a step of that first.
#[inline(never)]
pub fn go_on(by: Ref<Activation>) -> Result<(), Stop> {
    match pending(by.domain) {
        Some(labelled) => {
            let _ = advance_with(by, labelled)?;
            Err(Stop::Repeat)
        }
        None => Ok(()),
    }
}

/// Acts on a verdict about a flow to a domain or to an object: continues, refuses, or raises the caller and restarts the operation.
#[inline(never)]
fn act_on(by: Ref<Activation>, admission: Admission, to: Against) -> Result<(), Stop> {
    match admission {
        Admission::Admitted => {
            forget_change(by);
            Ok(())
        }
        Admission::Refused => Err(refuse(by.domain, to).into()),
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

/// Allows everything from now on, whatever the labels: for tests and measurements.
pub fn switch_off(held: Held) {
    OFF.get(held).set(true);
}

/// Whether label checks are off.
pub fn is_off(held: Held) -> bool {
    OFF.get(held).get()
}

/// The labels by which it is judged which labels a domain gives to what it makes.
pub fn of_maker(domain: Ref<Domain>) -> Labels {
    if is_off(domain.held()) { TRUSTED } else { domain.labels() }
}

/// Whether a domain may change state of the nucleus: the machine, its devices, the log. That has the label {1}, and reports of
/// the nucleus taint no domain.
#[inline(never)]
pub fn may_change(domain: Ref<Domain>) -> Result<(), Error> {
    if domain.labelled().is_none() || labels::may_change_plain(domain) || is_off(domain.held()) {
        Ok(())
    } else {
        Err(Error::Flow)
    }
}

/// Whether a domain may change an object without seeing the outcome.
pub fn may_change_object(own: Ref<Domain>, label: Label) -> Result<bool, Stop> {
    is_below(own, own.labels().send, label)
}

/// A step of comparing a send label with another label.
#[inline(never)]
fn is_below(own: Ref<Domain>, send: Label, label: Label) -> Result<bool, Stop> {
    if is_off(own.held()) {
        return Ok(true);
    }
    let about = [send, label];
    labels::ask(own.held(), labels::CHANGES, own.account, &about, |pool, work| {
        rules::may_change(pool, work, send, label)
    })
}

/// A step of judging a call through a portal with this label. New labels are `payer`'s.
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

/// A step of judging whether a domain may report to another.
#[inline(never)]
fn may_report(payer: Ref<Domain>, from: &Labels, to: &Labels) -> Result<bool, Stop> {
    if is_off(payer.held()) {
        return Ok(true);
    }
    let all = [from.send, from.receive, to.send, to.receive];
    labels::ask(payer.held(), labels::REPORTS, payer.account, &all, |pool, work| {
        rules::may_report(pool, work, from, to)
    })
}

/// A domain's labels while they change.
fn pending(domain: Ref<Domain>) -> Option<Ref<Labelled>> {
    domain.labelled().filter(|labelled| labelled.next.get().is_some() && !domain.is_dead())
}

/// Makes new labels from old ones, or gives an error.
type Make<'a> = &'a mut dyn FnMut(&mut Pool, &Labels) -> Result<Result<Labels, Error>, Exhausted>;

/// A step of changing the labels of the caller's domain to the result of `make`. A change that `only_allows` forbids nothing
/// that was allowed before: it takes effect at once.
pub fn change_step(by: Ref<Activation>, only_allows: bool, make: Make<'_>) -> Result<Change, Error> {
    let (held, domain) = (by.held(), by.domain);
    if !labels::tidy(held, domain.account) {
        return Ok(Change::Goes);
    }
    // Others may have changed the labels again since.
    match by.changes.get() {
        Changes::Made => return Ok(Change::Done),
        Changes::Refused => {
            forget_change(by);
            return Err(Error::Flow);
        }
        Changes::Nothing | Changes::Raise | Changes::Own | Changes::Judged | Changes::JudgedTwice => {}
    }
    if let Some(labelled) = pending(domain) {
        return advance_with(by, labelled);
    }
    if only_allows && domain.labelled().is_some_and(|labelled| lent::end_step(labelled).is_err()) {
        return Ok(Change::Goes);
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

/// Gives the domain these labels, which forbid nothing in flight. A change of its mode alone leaves verdicts as they are: they allow nothing
/// that would raise it.
pub fn take_at_once(domain: Ref<Domain>, next: Labels) -> Result<(), Error> {
    let (labelled, before) = (room_for(domain, next)?, domain.labels());
    let is_same = [before.send, before.receive] == [next.send, next.receive];
    take(domain, labelled, next);
    if !is_same {
        domain.count_version();
    }
    Ok(())
}

/// The object for the domain's labels. If they cannot change, releases `next`.
fn room_for(domain: Ref<Domain>, next: Labels) -> Result<Ref<Labelled>, Error> {
    let room = match domain.labelled() {
        _ if domain.is_at_last_version() => Err(Error::TooManyChanges),
        Some(labelled) => Ok(labelled),
        None => labels::give(domain, USUAL),
    };
    room.inspect_err(|_| labels::release(domain, next))
}

/// Gives up a change that the caller began for a message, which another receiver took.
pub fn give_up_own(by: Ref<Activation>) {
    if let Some(labelled) = pending(by.domain)
        && by.changes.get() == Changes::Raise
        && labelled.stage.get().by == by.number
    {
        give_up(by.domain, labelled);
    }
    forget_change(by);
}

/// Begins a change of the caller's domain that a message requires. If the change would cut off a call in flight, the next
/// [`go_on`] is refused.
pub fn begin_for_message(by: Ref<Activation>, next: Labels) -> Result<(), Error> {
    begin(by, next, false)
}

/// Begins a change of the caller's domain to `next`, which it now owns.
#[inline(never)]
fn begin(by: Ref<Activation>, next: Labels, cuts: bool) -> Result<(), Error> {
    let domain = by.domain;
    let labelled = room_for(domain, next)?;
    labelled.next.set(Some(next));
    labelled.stage.set(Stage { by: by.number, cuts, ..Stage::NEW });
    by.changes.set(if cuts { Changes::Own } else { Changes::Raise });
    // From here on no call from or to the domain takes the fast path. The steps find those already in flight.
    domain.set_slow(SLOW_LABELS, true);
    cpu::others(by.held()).for_each(cpu::stop);
    Ok(())
}

/// A step of the change of the caller's domain, begun by it or another.
fn advance_with(by: Ref<Activation>, labelled: Ref<Labelled>) -> Result<Change, Error> {
    let is_own = labelled.stage.get().by == by.number;
    if is_own && by.changes.get() == Changes::Nothing {
        // This activation abandoned the operation that began it.
        give_up(by.domain, labelled);
        return Ok(Change::Goes);
    }
    match advance(by.domain, labelled) {
        Ok(()) if by.thread.get().is_none() => Ok(Change::Cut),
        Ok(()) | Err(Stop::Repeat) => Ok(Change::Goes),
        Err(Stop::Refused(error)) if is_own => {
            give_up(by.domain, labelled);
            forget_change(by);
            Err(error)
        }
        Err(Stop::Refused(error)) => {
            give_up_anothers(by.domain, labelled, error);
            Ok(Change::Goes)
        }
    }
}

/// Outcome of a check.
enum Look {
    /// Repeat the check.
    Again,
    /// Allowed: the check continues after this place.
    Past(u64),
    /// The part is complete.
    Over,
}

/// A step of a change.
fn advance(domain: Ref<Domain>, labelled: Ref<Labelled>) -> Result<(), Stop> {
    let Some(next) = labelled.next.get() else { return Ok(()) };
    let stage = labelled.stage.get();
    // All shared objects have label {1}, and may be used as before.
    let shares_on = || stage.done == 0 && !domain.shares_labelled.get() && labels::keeps_plain(domain, &next);
    let look = match stage.part {
        Part::Table | Part::Reads | Part::Pages if shares_on() => Look::Over,
        Part::Messages => lent::end_step(labelled).map(|()| Look::Over)?,
        Part::Upcalls => look_at_upcall(domain, labelled)?,
        Part::Maker => look_at_maker(domain, labelled)?,
        Part::Children => look_at_child(domain, labelled)?,
        Part::Table => look_at_table(domain, stage.done),
        Part::Activations => look_at_activation(domain, labelled, &next)?,
        Part::Reads | Part::Pages => look_at_page(domain, &next, stage)?,
    };
    match (look, stage.part.next()) {
        (Look::Again, _) => {}
        (Look::Past(done), _) => labelled.stage.set(Stage { done, allowed: (0, 0), ..stage }),
        (Look::Over, Some(part)) => labelled.stage.set(Stage { part, done: 0, allowed: (0, 0), ..stage }),
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

/// Thread numbers that a step checks. Each domain has an orphan thread.
const NUMBERS: usize = 32;

/// In the order of the numbers of their orphan threads.
fn look_at_child(domain: Ref<Domain>, labelled: Ref<Labelled>) -> Result<Look, Stop> {
    let (held, done) = (domain.held(), labelled.stage.get().done as usize);
    if done >= numbers::used(held) {
        return Ok(Look::Over);
    }
    let end = done + NUMBERS;
    let is_child = |thread: &Ref<Thread>| thread.carries_orphans && thread.home.maker == Some(domain);
    let child = (done..end).find_map(|number| numbers::by_number(held, number).filter(is_child));
    let Some(child) = child else { return Ok(Look::Past(end as u64)) };
    match stays(domain, labelled, child.home, How::IsReportedTo)? {
        Some(true) => Ok(Look::Past(child.number as u64 + 1)),
        Some(false) => Err(Error::Flow.into()),
        None => Ok(Look::Again),
    }
}

/// Two steps per activation: first its caller, then its callee or the semaphore on which it blocks.
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
        // A free activation keeps a stale caller.
        (true, _) | (false, State::Free) => None,
        (false, _) => activation.caller.get().map(|caller| (caller, caller.domain, How::IsCalled)),
    };
    if let Some((lower, other, how)) = call {
        // A callee that owns the handle judged its caller before: it does not see what the domain writes when it is tainted.
        let shows_taint = calls && sees_window(lower, other) && taints(domain, labelled, next.send)?;
        match stays(domain, labelled, other, how)? {
            Some(true) if !shows_taint => {}
            Some(_) if !cuts => return Err(Error::Flow.into()),
            Some(_) => {
                chain::split_above(lower);
                chain::fail_call(lower, Error::Flow);
                chain::resume(lower);
            }
            None => return Ok(Look::Again),
        }
    }
    Ok(Look::Past(place + 1))
}

/// Whether another domain sees a page of the caller: the one that is called, even a dead one, may have handed the window on.
fn sees_window(caller: Ref<Activation>, other: Ref<Domain>) -> bool {
    other != caller.domain && caller.callee.get().is_some_and(|callee| callee.window.get() != 0)
}

/// Whether the domain's next send label is not below the present one, which is asked once.
fn taints(domain: Ref<Domain>, labelled: Ref<Labelled>, next: Label) -> Result<bool, Stop> {
    let stage = labelled.stage.get();
    if let Some(taints) = stage.taints {
        return Ok(taints);
    }
    let taints = !is_below(domain, next, domain.labels().send)?;
    labelled.stage.set(Stage { taints: Some(taints), ..stage });
    Err(Stop::Repeat)
}

/// Table entries that a step checks.
const ENTRIES: u64 = 16;

/// Has semaphore entries judged again on their next use, some entries per step.
fn look_at_table(domain: Ref<Domain>, done: u64) -> Look {
    if done >= domain.table_entries() as u64 {
        // A CPU that read an entry's old code restarts the operation.
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

/// Unshared pages, and missing page tables, that a step skips.
const PLACES_PASSED: usize = 16;

/// Write-protects pages that the domain may no longer write; a page that it may no longer read forbids the change.
fn look_at_page(
    domain: Ref<Domain>,
    next: &Labels,
    Stage { part, done: address, cuts, .. }: Stage,
) -> Result<Look, Stop> {
    let protects = matches!(part, Part::Pages);
    let mut page = address;
    for _ in 0..PLACES_PASSED {
        let unmapped = match page {
            USER_END.. => return Ok(Look::Over),
            // All may read it, and none can write it.
            ARCHIVE if space::shown_archive(domain).is_some() => ARCHIVE_BYTES / PAGE,
            // Windows close with the calls that are cut off; those of other calls stay open.
            WINDOWS => (WINDOWS_END - WINDOWS) / PAGE,
            _ => space::unmapped_pages(domain, page),
        };
        if unmapped != 0 {
            page += unmapped * PAGE;
            continue;
        }
        if let Some(Shown { label, is_alone: false, is_writable }) = mapping::shown(domain, page) {
            if page != address {
                return Ok(Look::Past(page));
            }
            let (reads, writes) = may_share(domain, next, label)?;
            if !reads || is_writable && !writes && !cuts {
                return Err(Error::Flow.into());
            }
            // It goes on until no window shows the page to be written either.
            if protects && !writes && !mapping::protect(domain, page) {
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

/// Whether a domain with these labels may read, and may write, shared memory of this label.
fn may_share(domain: Ref<Domain>, own: &Labels, label: Label) -> Result<(bool, bool), Stop> {
    if is_off(domain.held()) || label == PLAIN && labels::may_use_plain(domain, own) {
        return Ok((true, true));
    }
    let about = [label, own.send, own.receive];
    labels::ask(domain.held(), labels::MAY, domain.account, &about, |pool, work| {
        rules::caller_may(pool, work, own, label)
    })
}

/// Whether two domains may share memory of this label, each for writing or only for reading.
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

/// Whether a domain's death may do V on a semaphore. On a shared one, only if labels allow it without a search.
#[inline(never)]
pub fn may_end_loudly(domain: Ref<Domain>, semaphore: Ref<Semaphore>) -> bool {
    let (labels, label) = (domain.labels(), labels::of_object(semaphore));
    !semaphore.is_shared.get()
        || is_off(domain.held())
        || labels::with(domain.held(), domain.account, |pool| {
            pool.name(labels.send) == pool.name(label) || pool.bounds(labels.send).most <= pool.bounds(label).least
        })
}

/// The domain's activation with the lowest number not below `number`.
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

/// How a domain relates to another.
#[derive(Clone, Copy)]
enum How {
    /// Calls the other through a portal of this label, which was judged already for a call in flight.
    Calls(Label),
    /// Called by the other.
    IsCalled,
    /// Reports to the other.
    Reports,
    /// The other reports to it.
    IsReportedTo,
}

/// Whether this relation may go on with the domain's new labels. If the other domain is changing too, its new labels are
/// checked in a step of their own: until then the answer is None.
fn stays(domain: Ref<Domain>, labelled: Ref<Labelled>, other: Ref<Domain>, how: How) -> Result<Option<bool>, Stop> {
    let (stage, Some(next)) = (labelled.stage.get(), labelled.next.get()) else { return Ok(Some(true)) };
    if other == domain || other.is_dead() {
        return Ok(Some(true));
    }
    let others_next = pending(other).and_then(|labelled| labelled.next.get());
    let present = (other.number, other.version());
    let is_second = stage.allowed == present;
    let side = others_next.filter(|_| is_second).unwrap_or(other.labels());
    let allowed = match how {
        How::Calls(portal) => may_call(domain, &next, &side, portal)?,
        How::IsCalled => may_call(domain, &side, &next, OPEN)?,
        How::Reports => may_report(domain, &next, &side)?,
        How::IsReportedTo => may_report(domain, &side, &next)?,
    };
    if allowed && others_next.is_some() && !is_second {
        labelled.stage.set(Stage { allowed: present, ..stage });
        return Ok(None);
    }
    Ok(Some(allowed))
}

/// Whether a domain with labels `from` may, without a raise, call one with `to` through a portal of this label. New labels are
/// `payer`'s.
#[inline(never)]
fn may_call(payer: Ref<Domain>, from: &Labels, to: &Labels, portal: Label) -> Result<bool, Stop> {
    // Whatever its mode, so that a switch of the mode does not restart the question.
    let from = Labels { is_explicit: true, ..*from };
    Ok(matches!(admit(payer, &from, to, portal)?, Admission::Admitted))
}

/// Ends the change: the new labels forbid nothing in flight.
fn end(domain: Ref<Domain>, labelled: Ref<Labelled>, next: Labels) {
    if let Some(begun) = initiator(domain, labelled) {
        // Unless it does something else by now.
        begun.changes.update(|changes| if changes == Changes::Own { Changes::Made } else { changes });
    }
    labelled.next.set(None);
    take(domain, labelled, next);
    domain.count_version();
}

/// Replaces the domain's labels.
fn take(domain: Ref<Domain>, labelled: Ref<Labelled>, next: Labels) {
    let before = labelled.now.replace(next);
    labelled.received.set(NOTHING_RECEIVED);
    labels::note(domain, &next);
    labels::release(domain, before);
}

/// Gives up a change of a domain about to die.
pub fn stop_changing(domain: Ref<Domain>) {
    if let Some(labelled) = pending(domain) {
        give_up(domain, labelled);
    }
}

/// The activation that began the change.
fn initiator(domain: Ref<Domain>, labelled: Ref<Labelled>) -> Link<Activation> {
    let by = labelled.stage.get().by;
    activation_from(domain, by).filter(|activation| activation.number == by)
}

/// Gives up a change in whose step another activation than its initiator was refused. If it was requested, the initiator must not restart
/// it: then others could put its refusal off for ever. A raise restarts: its operation may have become another one by then.
fn give_up_anothers(domain: Ref<Domain>, labelled: Ref<Labelled>, error: Error) {
    let begun = initiator(domain, labelled).filter(|begun| begun.changes.get() == Changes::Own);
    if let Some(begun) = begun.filter(|_| error == Error::Flow) {
        begun.changes.set(Changes::Refused);
    }
    give_up(domain, labelled);
}

/// Drops the change: the labels stay.
fn give_up(domain: Ref<Domain>, labelled: Ref<Labelled>) {
    if let Some(next) = labelled.next.take() {
        labels::release(domain, next);
    }
    // Calls meanwhile were judged by these labels. The new version shows that the change is over.
    domain.count_version();
}
