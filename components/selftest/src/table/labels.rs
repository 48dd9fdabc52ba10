//! Labels: a domain changes its own in each state of a call, an orphan, a fault, a window, a torn page, a wait and a write, on either
//! side.
//!
//! We own the handle, made both domains, and accept what taints them, so that we can have them do things; they do not accept it
//! from each other.

use core::sync::atomic::Ordering;

use abi::layout::{ENTRY_BYTES, PAGE_FAULT};
use abi::level::{ONE, STAR, THREE, TWO, ZERO};
use abi::op::OperandKind;
use abi::window::WRITABLE;
use abi::{Control, Error, NEVER, PAGE_BYTES, expect, info, op as abi_op};
use alloc::boxed::Box;
use idl::WINDOW_PORTAL;
use runtime::entry::Owned;
use runtime::op::{LabelFrom, Schedule};
use runtime::sync::Once;
use runtime::{Entry, message, op, port, thread};

use super::case::{Case, one_of, text};
use super::child::{Child, Page, Program, Service, Unit, awaited, word_address};
use super::places::{
    BLOCKED, PRIORITY, Prng, RETURN, RUN, SCHEDULE, SLEEP, Turn, Victim, When, pause, pin_thread, play, until, vacant,
};
use super::programs::{PLACE, THEIRS};
use crate::check::hold;
use crate::pagers::{newest, status};

use When::{After, Asleep, Before, Busy, Race};

const SOME: &[When] = &[Before, Asleep, Race];
const RUNS: &[When] = &[Before, Busy, Race];

/// A change in each state of the domain that makes it.
macro_rules! states {
    ($name:literal, $change:ident) => {
        states! { $name:
            " who calls", When::ALL, |turn| calls(turn, Change::$change, Way::Out);
            " who is called", When::ALL, |turn| calls(turn, Change::$change, Way::In);
            " who lends a window", When::ALL, |turn| calls(turn, Change::$change, Way::Lent);
            " who has a window", When::ALL, |turn| calls(turn, Change::$change, Way::Borrowed);
            " who tears a page away", When::ALL, |turn| tears(turn, Change::$change, Way::Out);
            " who gets a page", When::ALL, |turn| tears(turn, Change::$change, Way::In);
            " who waits for a semaphore", SOME, |turn| waits(turn, Change::$change, OperandKind::Semaphore);
            " who waits at a port", SOME, |turn| waits(turn, Change::$change, OperandKind::Port);
            " who waits for an activation", SOME, |turn| queues(turn, Change::$change);
            " whose caller was removed", &[Asleep, Busy, Race], |turn| leaves(turn, Change::$change);
            " whose fault is handled", SOME, |turn| faults(turn, Change::$change, true);
            " who handles a fault", &[Before, Asleep, After, Race], |turn| faults(turn, Change::$change, false);
            " who writes in common", RUNS, |turn| writes(turn, Change::$change);
        }
    };
    ($name:literal: $($state:literal, $whens:expr, $run:expr;)*) => {
        [$(Case { name: concat!($name, $state), whens: $whens, run: $run }),*]
    };
}

/// A call that comes in the middle of a change.
pub const AMID: &[Case] = &[Case { name: "a call amid a taint of who is called", whens: &[Race], run: amid }];

/// A domain accepts less than the other side of a call has.
pub static LOWER: [Case; 4] = states! { "less accepted than the other side has, by":
    " who calls", When::ALL, |turn| calls(turn, Change::Lower, Way::Out);
    " who is called", When::ALL, |turn| calls(turn, Change::Lower, Way::In);
    " who lends a window", When::ALL, |turn| calls(turn, Change::Lower, Way::Lent);
    " who has a window", When::ALL, |turn| calls(turn, Change::Lower, Way::Borrowed);
};

pub static CASES: [[Case; 13]; 5] = [
    states!("a taint of", Taint),
    states!("less accepted by", Narrow),
    states!("a change that is refused, of", Refused),
    states!("a message that would taint", Message),
    states!("a call that would taint", Call),
];

const FLOW: u64 = Error::Flow as u64;
const TIMEOUT: u64 = Error::Timeout as u64;

/// A change that a domain makes to its own labels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// It is tainted more than others accept, or than they are: that forbids.
    Taint,
    /// It accepts no more than it got so far: that forbids nothing.
    Narrow,
    /// It accepts less than the other side has: that forbids. Both sides have a taint, which we own.
    Lower,
    /// It would accept less than pages have that it sees: nothing changes.
    Refused,
    /// It takes a message that taints it, unless that would end something: then the message vanishes.
    Message,
    /// It calls a tainted domain, which taints it, unless that would end something: then the call is refused.
    Call,
}

impl Change {
    /// Whether it taints its maker by what somebody else sends: that ends nothing.
    fn contaminates(self) -> bool {
        matches!(self, Self::Message | Self::Call)
    }

    /// Says what [`Side::change`] will do. The value that it gives must last until then.
    fn prepare(self, side: &Side, random: &mut Prng) -> Result<Option<(Child, Owned)>, &'static str> {
        let handle = handle()?;
        let words = match self {
            Self::Taint => [abi_op::LABEL_SEND, handle, if random.below(2) == 0 { TWO } else { THREE }, 0, 0, 0],
            Self::Narrow | Self::Lower => [abi_op::LABEL_RECEIVE, handle, ONE, 0, 0, 0],
            Self::Refused => [abi_op::LABEL_RECEIVE, handle, ZERO, 0, 0, 0],
            Self::Message => return side.sends_itself(handle).map(|()| None),
            Self::Call => return side.has_tainted_callee().map(Some),
        };
        set(CHANGE, abi_op::LABEL, words);
        Ok(None)
    }

    /// Whether its domain is tainted after the change, or accepts less than the other side has, by its status.
    fn taints(self, status: u64) -> Result<bool, &'static str> {
        match (self, status) {
            (Self::Taint | Self::Lower | Self::Message | Self::Call, 0) => Ok(true),
            (Self::Narrow, 0) | (Self::Refused | Self::Call, FLOW) | (Self::Message, TIMEOUT) => Ok(false),
            _ => Err("another result of the change"),
        }
    }

    /// A message or a call taints no domain with a call in flight, or that writes a shared page.
    fn is_as_due(self, when: When, writes: bool, is_tainted: bool) -> Result<(), &'static str> {
        let is_right = match when {
            _ if !self.contaminates() => true,
            Before | After => is_tainted != writes,
            Race => !(is_tainted && writes),
            Asleep | Busy => !is_tainted,
        };
        hold(is_right, "a message or a call taints, or does not")
    }
}

/// A handle of ours, whose taint we accept.
fn handle() -> Result<u64, &'static str> {
    static HANDLE: Once<Result<u64, Error>> = Once::new();
    let made = || {
        let handle = op::label_handle()?;
        op::label_receive(handle, THREE).map(|()| handle)
    };
    (*HANDLE.get_or_make(made)).map_err(text)
}

/// A send label that is tainted by [`handle`], and a receive label that accepts that.
fn secret() -> Result<[Owned; 2], &'static str> {
    let label = |level| op::label_new(LabelFrom::Level(level)).map(Owned::new).map_err(text);
    let (send, receive) = (label(ONE)?, label(TWO)?);
    op::label_put(send.entry(), handle()?, TWO).map_err(text)?;
    Ok([send, receive])
}

/// The page with the system calls that the domains make, one at each of these words.
static STEPS: Page = Page::new();
const FAULT: usize = 0;
const WORK: usize = 16;
const ACCEPT: usize = 32;
const SETUP: usize = 48;
const CHANGE: usize = 64;
/// Where a domain has a label, and its port.
const LABEL: u64 = 120;
const PORT: u64 = 121;

/// Nanoseconds until a change begins amid which a call comes.
const DELAY: u64 = 300_000;

/// Where pages that are torn away arrive.
const TORN: u64 = 0x3800_0000;

fn set(place: usize, index: usize, words: [u64; 6]) {
    let call = (index * ENTRY_BYTES) as u64;
    for (number, word) in core::iter::once(call).chain(words).enumerate() {
        STEPS.0[place + number].store(word, Ordering::SeqCst);
    }
}

/// Its first word is not 0 when the thread that runs in a call may go on.
static CLOSED: Page = Page::new();

/// A page that children see, too, and lend.
fn common() -> &'static Page {
    static PAGE: Once<&'static Page> = Once::new();
    PAGE.get_or_make(|| Box::leak(Box::new(Page::new())))
}

/// A domain that obeys.
struct Side {
    portal: Owned,
    service: Owned,
    child: Child,
}

impl Side {
    /// `page`: the value that it sees at its first place, and whether it may write there.
    fn new(activations: usize, page: &'static Page, may_write: bool) -> Result<Self, &'static str> {
        Self::with(activations, |child| child.show(page, 0, may_write))
    }

    /// `place`: puts a page at its first place.
    fn with(activations: usize, place: impl FnOnce(&Child) -> Result<(), Error>) -> Result<Self, &'static str> {
        Self::of(Child::new(Entry::OWN, activations, NEVER).map_err(text)?, place)
    }

    /// One with these labels, which sees a page at its first place, and may not write there.
    fn labelled(labels: [Entry; 2], page: &'static Page) -> Result<Self, &'static str> {
        let child = Child::labelled(Unit::None, Entry::OWN, 2, NEVER, Some(labels)).map_err(text)?;
        Self::of(child, |child| child.show(page, 0, false))
    }

    fn of(child: Child, place: impl FnOnce(&Child) -> Result<(), Error>) -> Result<Self, &'static str> {
        place(&child).map_err(text)?;
        child.show(&STEPS, 1, false).map_err(text)?;
        let (service, portal) = child.portal_to(Service::Obey).map_err(text)?;
        Ok(Self { child, service, portal })
    }

    /// It changes its labels, as was [prepared](Change::prepare); whether it is tainted then.
    fn change(&self, change: Change) -> Result<bool, &'static str> {
        change.taints(self.try_change())
    }

    /// It has a port, where a message of its own waits that taints by this handle. Nobody needs to own that.
    fn sends_itself(&self, handle: u64) -> Result<(), &'static str> {
        let steps = [
            (abi_op::LABEL, [abi_op::LABEL_NEW, STAR, LABEL, 0, 0, 0]),
            (abi_op::LABEL, [abi_op::LABEL_PUT, LABEL, handle, TWO, 0, 0]),
            (abi_op::PORT_NEW, [0, 1 << 16, PORT, 0, 0, 0]),
            (PORT as usize, [abi_op::SEND, LABEL, 0, 0, 0, 0]),
        ];
        for (index, words) in steps {
            set(SETUP, index, words);
            hold(obeyed(self.portal.entry(), SETUP) == 0, "no message to itself")?;
        }
        set(CHANGE, PORT as usize, [abi_op::RECEIVE, 0, 0, 0, 0, 0]);
        Ok(())
    }

    /// It has a portal to a domain so tainted that it is tainted by a call.
    fn has_tainted_callee(&self) -> Result<(Child, Owned), &'static str> {
        let [send, receive] = secret()?;
        let made = || {
            let callee = Child::labelled(Unit::None, Entry::OWN, 1, NEVER, Some([send.entry(), receive.entry()]))?;
            let (service, portal) = callee.portal_for(&self.child)?;
            set(CHANGE, portal.0, [RETURN, 0, 0, 0, 0, 0]);
            Ok((callee, service))
        };
        made().map_err(text)
    }

    fn try_change(&self) -> u64 {
        obeyed(self.portal.entry(), CHANGE)
    }
}

/// Status of the system call that a domain makes; 1,000 more: of our call to it.
fn obeyed(portal: Entry, place: usize) -> u64 {
    match message::call(portal, [word_address(place), 0, 0, 0, 0], Control(0)) {
        Ok((words, _)) => words[0],
        Err(error) => 1000 + error as u64,
    }
}

/// Which side of a call changes its labels, and whether a window is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    In,
    Lent,
    Borrowed,
}

/// One child calls the other one, whose call waits, runs or returns, and one of them changes its labels.
fn calls(turn: &mut Turn, change: Change, way: Way) -> Result<(), &'static str> {
    CLOSED.0[0].store(0, Ordering::SeqCst);
    common().0[0].store(0, Ordering::SeqCst);
    let [send, receive] = secret()?;
    // The semaphore has the label of both sides, so that the callee may wait for it.
    let account = Owned::new(op::account_new_labelled(Entry::OWN, 8, 0, send.entry()).map_err(text)?);
    let (caller, callee, pays) = if change == Change::Lower {
        let labels = [send.entry(), receive.entry()];
        (Side::labelled(labels, common())?, Side::labelled(labels, &CLOSED)?, account.entry())
    } else {
        // A caller that can write to a shared page is refused: a raise would forbid it the page.
        (Side::new(2, common(), !change.contaminates() || way != Way::Out)?, Side::new(2, &CLOSED, false)?, Entry::OWN)
    };
    let gate = Owned::new(op::semaphore_new(pays, 0).map_err(text)?);
    let its = callee.child.give(gate.entry()).map_err(text)?.0 as u64;
    let has_window = matches!(way, Way::Lent | Way::Borrowed);
    let (service, _) = if has_window {
        let shape = Owned::new(op::shape_new(Entry::SPECIAL, WINDOW_PORTAL.as_bytes()).map_err(text)?);
        callee.child.portal_of(shape.entry())
    } else {
        callee.child.portal()
    }
    .map_err(text)?;
    let index = op::portal_new(caller.child.domain.entry(), service.entry(), 0, Entry(0), 0).map_err(text)?.0;
    let mode = turn.mode();
    let writes = if !has_window || change == Change::Lower { 0 } else { turn.random.below(2) };
    let window = if has_window { [PLACE | 1 | (WRITABLE * writes), Control::WINDOW] } else { [0, 0] };
    // The callee writes to its window once it goes on.
    let wrote = || common().0[1].swap(0, Ordering::SeqCst) == THEIRS;
    wrote();
    let work = |mode| set(WORK, index, [mode, its, 0, writes, window[0], window[1]]);
    work(mode);
    let (entry, changes) = (caller.portal.entry(), if matches!(way, Way::Out | Way::Lent) { &caller } else { &callee });
    let _kept = change.prepare(changes, &mut turn.random)?;
    let mut is_tainted = false;
    let act = |_: &Victim| changes.change(change).map(|is| is_tainted = is);
    let victim = play(turn, 3, move || obeyed(entry, WORK), act)?;
    change.is_as_due(turn.when, way == Way::Lent, is_tainted)?;
    CLOSED.0[0].store(1, Ordering::SeqCst);
    op::v(gate.entry()).map_err(text)?;
    let result = victim.finish()?;
    let forbidden = if is_tainted { FLOW } else { 0 };
    match turn.when {
        After => hold(result == 0, "another result")?,
        Race => one_of(result, &[0, forbidden])?,
        _ => one_of(result, &[forbidden])?,
    }
    // A callee that was cut off goes on, and no longer sees the page.
    pause();
    if (turn.when, result) != (Race, FLOW) {
        hold(
            wrote() == (result == 0 && writes != 0),
            "the callee writes to a page that it must not see, or not to one that it sees",
        )?;
    }
    work(RETURN);
    hold(obeyed(entry, WORK) == forbidden, "the next call has another result")
}

/// Shared pages of the callee: its change looks at each in a step of its own.
const SHARED: u64 = 64;
/// Calls, at different times of the change.
const CALLS: u64 = 24;

/// A child calls another one amid the other's change, which takes many steps. The call is judged by the new labels, so none succeeds.
fn amid(turn: &mut Turn) -> Result<(), &'static str> {
    let caller = Side::new(1, common(), true)?;
    let entry = caller.portal.entry();
    let mut took = 0;
    for call in 0..=CALLS {
        let callee = Side::new(2, &CLOSED, false)?;
        (2..2 + SHARED).try_for_each(|place| callee.child.show(common(), place, false)).map_err(text)?;
        let gate = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
        let its = callee.child.give(gate.entry()).map_err(text)?.0 as u64;
        let (service, _) = callee.child.portal().map_err(text)?;
        let index = op::portal_new(caller.child.domain.entry(), service.entry(), 0, Entry(0), 0).map_err(text)?.0;
        // A call that has begun waits, so that the change has its end before the call.
        set(WORK, index, [SLEEP, its, 0, 0, 0, 0]);
        let _kept = Change::Taint.prepare(&callee, &mut turn.random)?;
        let begin = op::clock() + DELAY;
        // The first call comes after the change, which says how long that takes.
        let at = if call == 0 { begin + 100 * DELAY } else { begin + took * (call - 1) / (CALLS - 1) };
        let victim = Victim::new(turn.victim, move || {
            // More urgent than the thread that changes the labels.
            let urgent = Schedule { priority: PRIORITY + 1, ..SCHEDULE };
            let slept =
                op::thread_schedule(Entry::OWN, urgent).and_then(|_| thread::sleep(at.saturating_sub(op::clock())));
            slept.map_or(9999, |()| obeyed(entry, WORK))
        })?;
        victim.go();
        while op::clock() < begin {}
        hold(callee.change(Change::Taint)?, "no taint")?;
        if call == 0 {
            took = op::clock() - begin;
        }
        op::v(gate.entry()).map_err(text)?;
        hold(victim.finish()? == FLOW, "a call amid the change succeeds")?;
    }
    Ok(())
}

/// Of a page that one child tears away for the other one, exactly one has it, whichever of them changes its labels, and when.
fn tears(turn: &mut Turn, change: Change, way: Way) -> Result<(), &'static str> {
    const NO_TEARING: u64 = Error::NoTearing as u64;
    CLOSED.0[0].store(0, Ordering::SeqCst);
    let caller = Side::with(2, |child| {
        child.grant(granted())?;
        // A caller that can write to a shared page is refused: a raise would forbid it the page.
        child.show(common(), 2, true)
    })?;
    let callee = Side::new(2, &CLOSED, false)?;
    let gate = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let its = callee.child.give(gate.entry()).map_err(text)?.0 as u64;
    let shape = Owned::new(op::shape_new(Entry::SPECIAL, b"npiia>i").map_err(text)?);
    let (service, _) = callee.child.portal_of(shape.entry()).map_err(text)?;
    let index = op::portal_new(caller.child.domain.entry(), service.entry(), 0, Entry(0), 0).map_err(text)?.0;
    let mode = turn.mode();
    let control = Control::expecting(expect::words(0b111) | expect::PAGES).0;
    let work = |mode| set(WORK, index, [mode, its, PLACE | 1, 0, 0, control]);
    work(mode);
    set(ACCEPT, abi_op::ACTIVATION_SET, [abi_op::ACTIVATION_TEAR, TORN, 0, 0, 0, 0]);
    hold(obeyed(callee.portal.entry(), ACCEPT) == 0, "no page is accepted")?;
    let (entry, changes) = (caller.portal.entry(), if way == Way::Out { &caller } else { &callee });
    let _kept = change.prepare(changes, &mut turn.random)?;
    let mut is_tainted = false;
    let act = |_: &Victim| changes.change(change).map(|is| is_tainted = is);
    let victim = play(turn, 3, move || obeyed(entry, WORK), act)?;
    change.is_as_due(turn.when, way == Way::Out, is_tainted)?;
    CLOSED.0[0].store(1, Ordering::SeqCst);
    op::v(gate.entry()).map_err(text)?;
    let result = victim.finish()?;
    let forbidden = if is_tainted { FLOW } else { 0 };
    match turn.when {
        After => hold(result == 0, "another result")?,
        // The change may have the activation that accepts pages.
        Race => one_of(result, &[0, forbidden, NO_TEARING])?,
        _ => one_of(result, &[forbidden])?,
    }
    let has = |side: &Side, address| side.child.has(address, &CLOSED).map_err(text);
    let (there, here) = (has(&callee, TORN)?, has(&caller, PLACE)?);
    hold(there != here, "both have the page, or nobody")?;
    match (turn.when, result) {
        (Race, FLOW) => {}
        (Before, FLOW) | (_, NO_TEARING) => hold(here, "a page is gone, though the call was refused")?,
        _ => hold(there, "the page did not come")?,
    }
    Ok(())
}

/// A page that children get for good. It is heap memory: the pager supplies another one then.
fn granted() -> &'static Page {
    static PAGE: Once<&'static Page> = Once::new();
    PAGE.get_or_make(|| Box::leak(Box::new(Page::new())))
}

/// A child waits for a semaphore, or at a port, that others have, too.
fn waits(turn: &mut Turn, change: Change, kind: OperandKind) -> Result<(), &'static str> {
    let side = Side::new(2, common(), false)?;
    let object = awaited(kind).map_err(text)?;
    let index = side.child.give(object.entry()).map_err(text)?.0;
    set(WORK, index, [abi_op::P, NEVER, 0, 0, 0, 0]);
    let entry = side.portal.entry();
    let _kept = change.prepare(&side, &mut turn.random)?;
    let mut is_tainted = false;
    let act = |_: &Victim| side.change(change).map(|is| is_tainted = is);
    let victim = play(turn, 2, move || obeyed(entry, WORK), act)?;
    change.is_as_due(turn.when, false, is_tainted)?;
    let given = match kind {
        OperandKind::Port => port::send_words(object.entry(), &[1]),
        _ => op::v(object.entry()),
    };
    given.map_err(text)?;
    hold(victim.finish()? == if is_tainted { FLOW } else { 0 }, "another result")?;
    let is_left = match kind {
        OperandKind::Port => port::receive_words::<1>(object.entry(), 0).is_ok(),
        _ => op::p(object.entry(), 0).is_ok(),
    };
    hold(is_left == is_tainted, "a token or a message was lost or made")
}

/// A child waits for the only activation of another one.
fn queues(turn: &mut Turn, change: Change) -> Result<(), &'static str> {
    let side = Side::new(2, common(), false)?;
    let narrow = Child::new(Entry::OWN, 1, NEVER).map_err(text)?;
    let gate = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let its = narrow.give(gate.entry()).map_err(text)?.0 as u64;
    let (service, portal) = narrow.portal().map_err(text)?;
    let index = op::portal_new(side.child.domain.entry(), service.entry(), 0, Entry(0), 0).map_err(text)?.0;
    let held = portal.entry();
    let holder = Victim::new(turn.actor, move || {
        message::call(held, [SLEEP, its, 0, 0, 0], Control(0)).map_or_else(|error| error as u64, |_| 0)
    })?;
    holder.go();
    holder.is_inside(2, true)?;
    set(WORK, index, [RETURN, 0, 0, 0, 0, 0]);
    let entry = side.portal.entry();
    let _kept = change.prepare(&side, &mut turn.random)?;
    let mut is_tainted = false;
    let act = |_: &Victim| side.change(change).map(|is| is_tainted = is);
    let victim = play(turn, 2, move || obeyed(entry, WORK), act)?;
    op::v(gate.entry()).map_err(text)?;
    hold(holder.finish()? == 0, "the holder of the activation is disturbed")?;
    // The call has not begun, so a message or another call may taint the waiting domain.
    hold(is_tainted == (change == Change::Taint || change.contaminates()), "it is tainted, or is not")?;
    hold(victim.finish()? == if is_tainted { FLOW } else { 0 }, "another result")?;
    hold(message::call(held, [RETURN, 0, 0, 0, 0], Control(0)).is_ok(), "the activation is lost")
}

fn threads() -> impl Iterator<Item = info::Thread> {
    op::records(Entry::SPECIAL).flatten()
}

/// Whether somebody calls the domain with this number, and waits or runs there.
fn is_in(domain: u64, asleep: bool) -> bool {
    threads().any(|thread| thread.depth == 2 && thread.now == domain && (thread.state == BLOCKED) == asleep)
}

/// Whether the thread that carries the orphans of the domain with this number has one, or is to have one.
fn has_orphan(domain: u64) -> bool {
    threads().any(|thread| thread.home == domain && (thread.depth != 0 || thread.state != BLOCKED))
}

/// The caller of a child is removed. The call goes on as an orphan. If the orphan waits, no message and no call taints the child: that
/// would end the wait.
fn leaves(turn: &mut Turn, change: Change) -> Result<(), &'static str> {
    CLOSED.0[0].store(0, Ordering::SeqCst);
    let callee = Side::new(2, &CLOSED, false)?;
    let number = newest()?.number;
    let gate = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let its = callee.child.give(gate.entry()).map_err(text)?;
    let _kept = change.prepare(&callee, &mut turn.random)?;
    let caller = Child::new(Entry::OWN, 0, 1 << turn.victim).map_err(text)?;
    let (service, portal) = callee.child.portal_for(&caller).map_err(text)?;
    let mode = turn.mode();
    let thread = caller.start(Program::Call(portal, mode, its)).map_err(text)?;
    // An orphan has a long slice, so we must be more urgent.
    op::thread_schedule(thread.entry(), Schedule { priority: PRIORITY - 1, ..SCHEDULE }).map_err(text)?;
    let mut is_tainted = false;
    if turn.when == Race {
        let act = |_: &Victim| callee.change(change).map(|is| is_tainted = is);
        let removed = move || {
            drop(thread);
            0
        };
        play(turn, 1, removed, act)?.finish()?;
    } else {
        until(|| is_in(number, turn.when == Asleep), "nobody calls")?;
        turn.delay();
        drop(thread);
        is_tainted = callee.change(change)?;
        let ends_nothing = change.contaminates() && turn.when == Busy;
        hold(is_tainted == (change == Change::Taint || ends_nothing), "it is tainted, or is not")?;
    }
    CLOSED.0[0].store(1, Ordering::SeqCst);
    op::v(gate.entry()).map_err(text)?;
    until(|| !has_orphan(number), "a callee does not go to its end")?;
    // Both activations came back.
    let ours = Owned::new(op::portal_new(Entry::OWN, service.entry(), 0, vacant().map_err(text)?, 0).map_err(text)?);
    let entry = ours.entry();
    let call = move |mode, control| {
        message::call(entry, [mode, 0, 0, 0, 0], Control(control)).map_or_else(|error| error as u64, |_| 0)
    };
    hold(call(RETURN, 0) == 0, "it cannot be called")?;
    CLOSED.0[0].store(0, Ordering::SeqCst);
    let holder = Victim::new(turn.actor, move || call(RUN, 0))?;
    holder.go();
    holder.is_inside(2, false)?;
    hold(call(RETURN, Control::NO_WAIT) == 0, "an activation is lost")?;
    CLOSED.0[0].store(1, Ordering::SeqCst);
    hold(holder.finish()? == 0, "the call that has the other one is disturbed")?;
    let next = Child::new(Entry::OWN, 0, NEVER).map_err(text)?;
    // With a page that it can write no call taints it.
    next.show(common(), 2, true).map_err(text)?;
    let (_service, portal) = callee.child.portal_for(&next).map_err(text)?;
    let _calls = next.start(Program::Call(portal, RETURN, Entry(0))).map_err(text)?;
    next.dies()?;
    hold(status()? == if is_tainted { FLOW } else { 0 }, "the next call has another result")
}

/// A child has a fault that another one handles. The handler could not be tainted by it, so it cannot taint itself. If the handler taints
/// itself, the faulting domain dies; else it gets its page.
fn faults(turn: &mut Turn, change: Change, its_own: bool) -> Result<(), &'static str> {
    let page = common();
    page.0[0].store(0, Ordering::SeqCst);
    // Word 0 of the upcall is the fault's address. The handler has its step at that address.
    let handler = Side::new(2, &STEPS, false)?;
    let number = newest()?.number;
    let gate = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let its = handler.child.give(gate.entry()).map_err(text)?.0;
    set(FAULT, its, [abi_op::P, NEVER, 0, 0, 0, 0]);
    let mut kept = if its_own { None } else { change.prepare(&handler, &mut turn.random)? };
    let faulter = Side::with(1, |child| {
        let domain = child.domain.entry();
        op::portal_new(domain, handler.service.entry(), 0, Entry(PAGE_FAULT[0]), 0)?;
        op::domain_set_fault_range(domain, 0, PLACE, PLACE + PAGE_BYTES as u64)
    })?;
    if its_own {
        kept = change.prepare(&faulter, &mut turn.random)?;
    }
    let cpu = turn.victim;
    let start = || -> Result<Owned, &'static str> {
        let thread = faulter.child.start(Program::Write).map_err(text)?;
        pin_thread(thread.entry(), cpu).map_err(text)?;
        Ok(thread)
    };
    let gets_page = || -> Result<(), &'static str> {
        faulter.child.show(page, 0, true).map_err(text)?;
        op::v(gate.entry()).map_err(text)
    };
    let goes_on = || page.0[0].load(Ordering::SeqCst) != 0;
    let mut thread = None;
    if turn.when != Before {
        thread = Some(start()?);
    }
    if matches!(turn.when, Asleep | After) {
        until(|| is_in(number, true), "nobody handles the fault")?;
    }
    if turn.when == After {
        gets_page()?;
        until(goes_on, "it does not go on")?;
    }
    turn.delay();
    let is_tainted = match (its_own, change) {
        (true, Change::Taint) => faulter.try_change() != FLOW,
        (true, _) => faulter.change(change)?,
        (false, _) => handler.change(change)?,
    };
    if its_own {
        hold(!is_tainted, "its handler could not be tainted by it")?;
    } else {
        change.is_as_due(turn.when, false, is_tainted)?;
    }
    if thread.is_none() {
        thread = Some(start()?);
    }
    match turn.when {
        Before | Asleep if is_tainted => {
            faulter.child.dies()?;
            hold(status()? == abi::info::status::PAGE_FAULT, "it died of something else")?;
        }
        Race if is_tainted => {
            // The fault may come before the page.
            let is_dead = match gets_page() {
                Ok(()) => {
                    until(|| goes_on() || faulter.child.has_died(), "it neither dies nor goes on")?;
                    !goes_on()
                }
                // It is dead, or tainted by the upcall, and dies of what the handler answers.
                Err(error) if error == text(Error::PeerDied) || error == text(Error::Flow) => {
                    faulter.child.dies()?;
                    true
                }
                Err(error) => return Err(error),
            };
            hold(!is_dead || status()? == abi::info::status::PAGE_FAULT, "it died of something else")?;
        }
        After => {}
        _ => {
            gets_page()?;
            until(goes_on, "it does not go on")?;
        }
    }
    if !is_tainted || turn.when == After {
        let count = page.0[0].load(Ordering::SeqCst);
        until(|| page.0[0].load(Ordering::SeqCst) != count, "it does not go on")?;
        hold(!faulter.child.has_died(), "it died")?;
    }
    drop((thread, kept));
    Ok(())
}

/// A child writes to a page that others have, too, without pause.
fn writes(turn: &mut Turn, change: Change) -> Result<(), &'static str> {
    const SECRET: u64 = 1 << 40;
    let page = common();
    page.0[0].store(0, Ordering::SeqCst);
    let side = Side::new(1, page, true)?;
    let count = || page.0[0].load(Ordering::SeqCst);
    let mut thread = None;
    let start = || -> Result<Option<Owned>, &'static str> {
        let thread = side.child.start(Program::Write).map_err(text)?;
        pin_thread(thread.entry(), turn.victim).map_err(text)?;
        Ok(Some(thread))
    };
    if turn.when != Before {
        thread = start()?;
    }
    if turn.when == Busy {
        until(|| count() != 0, "the child does not write")?;
    }
    let _kept = change.prepare(&side, &mut turn.random)?;
    let changed = side.try_change();
    if change == Change::Taint && turn.when != Before && changed != 0 {
        // It may have died of its next write before it said so.
        hold(changed == 1000 + Error::PeerDied as u64, "another result of the change")?;
    } else {
        change.is_as_due(turn.when, true, change.taints(changed)?)?;
    }
    page.0[0].store(SECRET, Ordering::SeqCst);
    if thread.is_none() {
        thread = start()?;
    }
    if change == Change::Taint {
        side.child.dies()?;
        hold(status()? == abi::info::status::PAGE_FAULT, "it died of something else")?;
        pause();
        hold(count() == SECRET, "a page that it may not write any more was written")
    } else {
        until(|| count() != SECRET, "it does not write any more")?;
        drop(thread);
        hold(!side.child.has_died(), "it died")
    }
}
