//! Windows and torn pages: the page, either side, or the CPU goes while a callee has them.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::rights::{MAP_READ, MAP_WRITE};
use abi::window::WRITABLE;
use abi::{Control, Error, NEVER};
use alloc::boxed::Box;
use idl::{Reply, Request};
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::sync::{Mutex, Once};
use runtime::window::Window;
use runtime::{Entry, op, table};

use super::case::{Case, one_of, text};
use super::child::{self, Child, Page, Program, Question, block, set_block};
use super::late::Calls;
use super::places::{RETURN, SLEEP, Turn, Victim, When, code, pause, pin_thread, play, until};
use super::programs::{ANSWER, PLACE, THEIRS, word};
use crate::check::hold;
use crate::raw::{call_showing, service_here};
use crate::torn::{self, FIRST_BYTE, HERE, Keeper, THERE};

use When::{After, Asleep, Before, Busy, Race};

pub const CASES: &[Case] = &[
    Case { name: "unmapping a page that is lent", whens: When::ALL, run: |turn| taken(turn, Taken::Page) },
    Case {
        name: "a page that is lent may only be read any more",
        whens: When::ALL,
        run: |turn| taken(turn, Taken::Right),
    },
    Case {
        name: "granting a page that is lent, and unmapping it there",
        whens: When::ALL,
        run: |turn| taken(turn, Taken::Grant),
    },
    Case { name: "cancelling a call with a window", whens: &[Asleep, Busy, Race], run: cancelled },
    Case { name: "death of the domain that lends", whens: &[Asleep, Busy, Race], run: lender_dies },
    Case { name: "death of the domain that has a window", whens: When::ALL, run: borrower_dies },
    Case { name: "a caller moved while its window is open", whens: &[Asleep, Busy], run: moved },
    Case { name: "unmapping a page that is torn away", whens: &[Before, After, Race], run: torn_unmapped },
    Case { name: "death of the domain that pages are torn to", whens: &[Before, After, Race], run: keeper_dies },
];

/// Written to the page by its owner when the window must be gone: no callee may read it.
const SECRET: u64 = 0x5ec2e7;
/// The first word of the page before that.
const KNOWN: u64 = 5;
static BLOCKS: Page = Page::new();

/// The calls to [`Looks`].
static CALLS: Calls = Calls::new();
/// Calls that came, and that went to their end.
static CAME: AtomicU64 = AtomicU64::new(0);
static WENT: AtomicU64 = AtomicU64::new(0);
/// The last word that was read in a window, and whether it ever was [`SECRET`].
static SEEN: AtomicU64 = AtomicU64::new(0);
static LEAKED: AtomicU64 = AtomicU64::new(0);

/// The page that is lent. It is heap memory: when it is granted away the pager supplies another page.
fn source() -> &'static Page {
    static PAGE: Once<&'static Page> = Once::new();
    PAGE.get_or_make(|| Box::leak(Box::new(Page::new())))
}

fn get(word: &AtomicU64) -> u64 {
    word.load(Ordering::SeqCst)
}

/// Reads the first word of its window and writes the second one: twice, whenever somebody does V, or without pause; then once more.
struct Looks;

impl Serve for Looks {
    fn serve(request: &mut Request<'_>) -> Reply {
        CALLS.serve(request.badge, || looks(request))
    }
}

fn looks(request: &mut Request<'_>) -> Reply {
    let mode = request.words[0];
    let Some(window) = Window::of(request) else { return Reply::word(0) };
    let look = || {
        let mut word = [0; 8];
        window.read(0, &mut word);
        window.write(8, &THEIRS.to_le_bytes());
        SEEN.store(u64::from_le_bytes(word), Ordering::SeqCst);
        if get(&SEEN) == SECRET {
            LEAKED.store(1, Ordering::SeqCst);
        }
    };
    look();
    CAME.fetch_add(1, Ordering::SeqCst);
    while mode != RETURN && !CALLS.is_open() {
        if mode == SLEEP {
            CALLS.wait();
        }
        look();
    }
    look();
    WENT.fetch_add(1, Ordering::SeqCst);
    Reply::word(ANSWER)
}

/// Our service with a portal to it.
struct Gate {
    service: Owned,
    portal: Owned,
}

impl Gate {
    fn new() -> Result<Self, &'static str> {
        static MADE: Mutex<bool> = Mutex::new(false);
        let mut made = MADE.lock();
        if !*made {
            server::activations(2).map_err(text)?;
            *made = true;
        }
        let shape = shape()?;
        let service = Owned::new(service_here::<Looks>(shape.entry()).map_err(text)?);
        let portal = Owned::new(table::allocate().map_err(text)?);
        CALLS.begin()?;
        op::portal_new(Entry::OWN, service.entry(), CALLS.badge(), portal.entry(), 0).map_err(text)?;
        for word in [&CAME, &WENT, &SEEN, &LEAKED, &source().0[1]] {
            word.store(0, Ordering::SeqCst);
        }
        source().0[0].store(KNOWN, Ordering::SeqCst);
        Ok(Self { service, portal })
    }

    /// Lets the waiting ones go on, and sees to it that all who came go to their end.
    fn open(&self) -> Result<(), &'static str> {
        CALLS.open();
        // A call that was cut off may wait, and the next one of the same caller.
        CALLS.let_go(2)?;
        until(|| get(&CAME) == get(&WENT), "a callee does not go to its end")
    }

    /// After [`keep_secret`] and [`Self::open`].
    fn was_kept(&self) -> Result<(), &'static str> {
        hold(get(&LEAKED) == 0, "the callee still sees the page")?;
        hold(get(&source().0[1]) == SECRET, "the callee still writes to the page")
    }
}

fn shape() -> Result<Owned, &'static str> {
    op::shape_new(Entry::SPECIAL, idl::WINDOW_PORTAL.as_bytes()).map(Owned::new).map_err(text)
}

/// Writes the secret: from here on no callee may read or overwrite it.
fn keep_secret() {
    source().0[0].store(SECRET, Ordering::SeqCst);
    source().0[1].store(SECRET, Ordering::SeqCst);
}

fn said(what: usize) -> u64 {
    get(block(&BLOCKS, 0, what))
}

/// A domain to which we map the page, and whose thread lends it again and again.
struct Lender {
    child: Child,
    portal: Entry,
    thread: Option<Owned>,
}

impl Lender {
    fn new(gate: &Gate, cpus: u64) -> Result<Self, &'static str> {
        let child = Child::new(Entry::OWN, 0, cpus).map_err(text)?;
        child.show(source(), 0, true).map_err(text)?;
        child.show(&BLOCKS, 1, true).map_err(text)?;
        let portal =
            op::portal_new(child.domain.entry(), gate.service.entry(), CALLS.badge(), Entry(0), 0).map_err(text)?;
        Ok(Self { child, portal, thread: None })
    }

    fn begin(&mut self, mode: u64, flags: u64) -> Result<(), &'static str> {
        set_block(&BLOCKS, 0, 0, Some(Question(self.portal.0, mode, 0, Control::WINDOW)));
        block(&BLOCKS, 0, word::LAST).store(PLACE | flags | 1, Ordering::SeqCst);
        self.thread = Some(self.child.start(Program::Ask(0)).map_err(text)?);
        Ok(())
    }

    /// As [`Self::begin`]; its callee has looked.
    fn begin_and_come(&mut self, mode: u64, flags: u64) -> Result<(), &'static str> {
        self.begin(mode, flags)?;
        until(|| get(&CAME) != 0, "nobody calls")
    }

    fn thread(&self) -> Entry {
        self.thread.as_ref().map_or(Entry::OWN, Owned::entry)
    }

    /// It ends when its call has: the call's result.
    fn end(&self, gate: &Gate) -> Result<u64, &'static str> {
        block(&BLOCKS, 0, word::STOP).store(1, Ordering::SeqCst);
        gate.open()?;
        until(|| said(word::ENDED) != 0, "the caller does not go on")?;
        Ok(said(word::STATUS))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Page,
    Right,
    Grant,
}

/// Nobody sees or writes what we write to the page afterwards; the call goes to its end.
fn taken(turn: &mut Turn, taken: Taken) -> Result<(), &'static str> {
    let gate = Gate::new()?;
    let owner = Child::new(Entry::OWN, 0, NEVER).map_err(text)?;
    let mut lender = Lender::new(&gate, 1 << turn.victim)?;
    let mode = turn.mode();
    let flags = if taken == Taken::Right { WRITABLE } else { WRITABLE * turn.random.below(2) };
    match turn.when {
        Before => {}
        Race => lender.begin(mode, flags)?,
        _ => lender.begin_and_come(mode, flags)?,
    }
    turn.delay();
    match taken {
        Taken::Page => child::take_away(source(), MAP_READ),
        Taken::Right => child::take_away(source(), MAP_WRITE),
        Taken::Grant => owner.grant(source()).and_then(|()| child::take_from(&owner)),
    }
    .map_err(text)?;
    keep_secret();
    if matches!(turn.when, Asleep | Busy) {
        hold(lender.end(&gate)? == 0, "the call was disturbed")?;
        hold(get(&SEEN) == 0, "the callee sees something else than scrap")?;
    } else {
        if turn.when == Before {
            lender.begin(mode, flags)?;
        }
        gate.open()?;
        let refused = if taken == Taken::Right { Error::PageRights } else { Error::NotMapped } as u64;
        until(|| said(word::STATUS) == refused, "it can still be lent")?;
    }
    drop(lender);
    gate.was_kept()
}

/// After a call is cancelled its callee neither reads nor writes the page.
fn cancelled(turn: &mut Turn) -> Result<(), &'static str> {
    let gate = Gate::new()?;
    let mut lender = Lender::new(&gate, 1 << turn.victim)?;
    let mode = turn.mode();
    if turn.when == Race {
        lender.begin(mode, WRITABLE)?;
    } else {
        lender.begin_and_come(mode, WRITABLE)?;
        block(&BLOCKS, 0, word::STOP).store(1, Ordering::SeqCst);
    }
    turn.delay();
    op::thread_cancel(lender.thread()).map_err(text)?;
    if turn.when == Race {
        // It came to nothing if the call had not begun.
        one_of(lender.end(&gate)?, &[0, Error::Cancelled as u64])?;
    } else {
        until(|| said(word::ENDED) != 0, "the caller does not go on")?;
        hold(said(word::STATUS) == Error::Cancelled as u64, "not cancelled")?;
    }
    keep_secret();
    gate.open()?;
    gate.was_kept()
}

/// The callee goes on as an orphan, and no longer sees the page.
fn lender_dies(turn: &mut Turn) -> Result<(), &'static str> {
    let gate = Gate::new()?;
    let mut lender = Lender::new(&gate, 1 << turn.victim)?;
    let mode = turn.mode();
    if turn.when == Race { lender.begin(mode, WRITABLE) } else { lender.begin_and_come(mode, WRITABLE) }?;
    turn.delay();
    op::domain_kill(lender.child.domain.entry(), 5).map_err(text)?;
    // Its call goes on until it is removed.
    drop(lender);
    keep_secret();
    pause();
    gate.open()?;
    gate.was_kept()
}

/// The window goes along: our writes are seen there, and its writes here.
fn moved(turn: &mut Turn) -> Result<(), &'static str> {
    const MOVES: u64 = 6;
    let gate = Gate::new()?;
    let mut lender = Lender::new(&gate, NEVER)?;
    lender.begin_and_come(turn.mode(), WRITABLE)?;
    for round in 1..=MOVES {
        let cpu = if round % 2 == 0 { turn.victim } else { turn.actor };
        pin_thread(lender.thread(), cpu).map_err(text)?;
        turn.delay();
        source().0[0].store(KNOWN + round, Ordering::SeqCst);
        source().0[1].store(0, Ordering::SeqCst);
        CALLS.let_go(1)?;
        until(|| get(&SEEN) == KNOWN + round, "a write is not seen")?;
        until(|| get(&source().0[1]) == THEIRS, "its write is not here")?;
    }
    hold(lender.end(&gate)? == 0, "another result")
}

/// Calls with the page as window, from our own domain; 0, the number of an error, or 1000 for a wrong answer.
fn call(portal: Entry, mode: u64, second: u64) -> u64 {
    match call_showing(portal, [mode, second, 0, 0, 0], source().address() | WRITABLE | 1) {
        Ok(words) if words[0] == ANSWER => 0,
        Ok(_) => 1000,
        Err(error) => error as u64,
    }
}

/// The caller is notified, and can lend the page to others.
fn borrower_dies(turn: &mut Turn) -> Result<(), &'static str> {
    let gate = Gate::new()?;
    let borrower = Child::new(Entry::OWN, 2, NEVER).map_err(text)?;
    static CLOSED: Page = Page::new();
    borrower.show(&CLOSED, 0, false).map_err(text)?;
    let its = borrower.give(CALLS.semaphore()).map_err(text)?.0 as u64;
    let (_service, portal) = borrower.portal_of(shape()?.entry()).map_err(text)?;
    let (entry, mode) = (portal.entry(), turn.mode());
    let mut borrower = Some(borrower);
    let kill = |borrower: &Child| op::domain_kill(borrower.domain.entry(), 5).map_err(text);
    let victim = play(turn, 2, move || call(entry, mode, its), |_| borrower.as_ref().map_or(Ok(()), kill))?;
    if matches!(turn.when, Asleep | Race) {
        // A caller that waits in a dead domain is notified when the domain is removed.
        drop(borrower.take());
    }
    let result = victim.finish()?;
    match turn.when {
        Before => hold(result == Error::Revoked as u64, "the portal is not revoked")?,
        Asleep | Busy => hold(result == Error::PeerDied as u64, "no dead peer")?,
        After => hold(result == 0, "another result")?,
        Race => one_of(result, &[0, Error::Revoked as u64, Error::PeerDied as u64])?,
    }
    hold(call(gate.portal.entry(), RETURN, 0) == 0, "the page cannot be lent any more")
}

/// A page for somebody to tear away, and the domain that takes it and gives it back.
fn keeper() -> Result<Keeper, &'static str> {
    let keeper = Keeper::new(64).map_err(text)?;
    hold(keeper.call(0, THERE) == Ok(0), "a call without pages")?;
    keeper.bring_page().map_err(text)?;
    Ok(keeper)
}

/// Tears the page away and has it back, so often; 0 or the number of the error.
fn tears(portal: Entry, times: u64) -> u64 {
    code(torn::coming_here(|| (0..times).try_for_each(|_| torn::call(portal, HERE | 1, 0).map(drop))))
}

/// The page is gone, or it is not: then the next time finds nothing.
fn torn_unmapped(turn: &mut Turn) -> Result<(), &'static str> {
    let keeper = keeper()?;
    let (entry, times) = (keeper.portal.entry(), if turn.when == Race { 20 } else { 1 });
    let act = |_: &Victim| {
        torn::unmap(1);
        Ok(())
    };
    let victim = play(turn, 2, move || tears(entry, times), act)?;
    let result = victim.finish()?;
    match turn.when {
        Before => hold(result == Error::NotMapped as u64, "a page that is not there was torn away")?,
        After => hold(result == 0, "another result")?,
        _ => one_of(result, &[0, Error::NotMapped as u64])?,
    }
    torn::unmap(1);
    hold(tears(entry, 1) == Error::NotMapped as u64, "the page is still there")?;
    hold(keeper.call(0, THERE) == Ok(0), "the other side does not answer")
}

/// The page is here or went with it; the domain that tears it away is notified.
fn keeper_dies(turn: &mut Turn) -> Result<(), &'static str> {
    let keeper = keeper()?;
    let (entry, times) = (keeper.portal.entry(), if turn.when == Race { 20 } else { 1 });
    let act = |_: &Victim| op::domain_kill(keeper.domain.entry(), 5).map_err(text);
    let result = play(turn, 2, move || tears(entry, times), act)?.finish()?;
    match turn.when {
        Before => hold(result == Error::Revoked as u64, "the portal is not revoked")?,
        After => hold(result == 0, "another result")?,
        _ => one_of(result, &[0, Error::Revoked as u64, Error::PeerDied as u64])?,
    }
    drop(keeper);
    if matches!(turn.when, Before | After) {
        let passed = u8::from(turn.when == After);
        hold(crate::raw::peek(HERE) == FIRST_BYTE + passed, "the page is not here, or is another one")?;
    }
    torn::unmap(1);
    Ok(())
}
