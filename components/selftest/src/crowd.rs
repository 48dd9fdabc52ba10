//! As many threads as the machine has numbers for, all ready before one of them runs: more than the ring of a scheduler has room for.
//! A thousand that call one service, each with a window, and a thousand that send to one port.

use abi::info;
use abi::layout::{PROGRAM_START, USER_END};
use abi::level::{ONE, STAR, THREE, TWO};
use abi::window::SLOTS;
use abi::{Control, Error, NEVER, PAGE_BYTES, op as numbers};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use idl::{Reply, Request};
use protocols::parent::{Force, ParentClient};
use runtime::entry::Owned;
use runtime::op::{self, LabelFrom, Schedule};
use runtime::port::{self, Options, Port, Received, Size};
use runtime::server::{self, Serve};
use runtime::window::Window;
use runtime::{Direct, Entry, thread};

use crate::check::{Check, frames, hold};
use crate::raw::{self, service_here};
use crate::table::child::{Child, PLACE, Page, Program, on_semaphore, operation};
use crate::table::places::PATIENCE;

pub const CHECKS: &[Check] = &[
    ("each of eight thousand threads that are ready at once runs", || all_run(|| Ok(()))),
    ("their numbers are given back, and each runs when the scheduler ends while they are ready", || {
        all_run(end_scheduler)
    }),
    ("as many domains as there can be, and no more, twice", all_domains),
    (
        "a scheduler's seat is refused at no user address, without an activation for it, and to an untrusted domain",
        seats,
    ),
    ("a thousand calls with windows wait at once, and each is served", thousand_windows),
    (
        "a thousand send to one port: none waits, the oldest messages stay, and other ports have their turn",
        thousand_senders,
    ),
];

/// Threads of a domain: it has no room for more message areas.
const OF_A_DOMAIN: usize = abi::layout::MAX_ACTIVATIONS;

/// The steps of every thread: perhaps a call, V on one semaphore, then P on another one that nobody raises.
static STEPS: Page = Page::new();

fn text(error: Error) -> &'static str {
    error.text()
}

/// The first steps of the threads of a domain.
enum First<'a> {
    Nothing,
    /// Call this service, with the page of their steps as the window.
    Call(Entry),
    /// Send to this port, [`SENT`] times.
    Send(&'a Port),
}

/// A domain that knows both semaphores and what its threads use first, in the same places as every other one.
fn domain(semaphores: [&Owned; 2], first: &First<'_>) -> Result<Child, Error> {
    let child = Child::new(Entry::ACCOUNT, 0, 1)?;
    child.show(&STEPS, 1, false)?;
    let [raised, never] = semaphores.map(|semaphore| child.give(semaphore.entry()));
    let mut steps = Vec::new();
    match first {
        First::Nothing => {}
        First::Call(service) => {
            let portal = op::portal_new(child.domain.entry(), *service, 0, Entry(0), 0)?;
            steps.push(operation(portal.0, [0, 0, 0, 0, (PLACE + PAGE_BYTES as u64) | 1, Control::WINDOW]));
        }
        First::Send(port) => {
            let port = child.give(port.entry())?;
            steps.extend([operation(port.0, [numbers::SEND, 0, 0, 0, 0, 0]); SENT]);
        }
    }
    steps.push(on_semaphore(raised?, [numbers::V, 0, 0, 0, 0, 0]));
    steps.push(on_semaphore(never?, [numbers::P, NEVER, 0, 0, 0, 0]));
    STEPS.set_steps(0, &steps);
    Ok(child)
}

/// Starts threads until there is no number left; gives them with their domains.
fn start_all(semaphores: [&Owned; 2]) -> Result<(Vec<Child>, Vec<Owned>), Error> {
    let (mut domains, mut threads) = (Vec::new(), Vec::new());
    loop {
        let child = match domain(semaphores, &First::Nothing) {
            Ok(child) => child,
            Err(Error::NoThreads | Error::NoDomains) => return Ok((domains, threads)),
            Err(error) => return Err(error),
        };
        for _ in 0..OF_A_DOMAIN {
            match child.start(Program::Steps(0)) {
                Ok(thread) => threads.push(thread),
                Err(Error::NoThreads) => break,
                Err(error) => return Err(error),
            }
        }
        domains.push(child);
    }
}

/// Starts as many threads as there can be. `meanwhile` runs when all are ready.
fn all_run(meanwhile: impl FnOnce() -> Result<(), &'static str>) -> Result<(), &'static str> {
    let raised = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let never = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    // Nobody else runs on this CPU meanwhile, and the scheduler reads nothing.
    let long = Schedule { priority: 16, slice: 1_000_000 };
    let before = op::thread_schedule_on(Entry::OWN, long, 1).map_err(text)?;
    op::yield_now();
    let (domains, threads) = start_all([&raised, &never]).map_err(text)?;
    hold(threads.len() >= 8_000, "there is room for fewer")?;
    meanwhile()?;
    for _ in &threads {
        op::p(raised.entry(), op::clock() + PATIENCE).map_err(|_| "one of them does not run")?;
    }
    thread::sleep(1_000_000).map_err(text)?;
    hold(op::p(raised.entry(), 0).is_err(), "one of them ran twice")?;
    drop(threads);
    drop(domains);
    op::thread_schedule_on(Entry::OWN, before, u64::MAX).map_err(text).map(drop)
}

/// The component that schedules ends, and the one that stands by takes over.
fn end_scheduler() -> Result<(), &'static str> {
    let mut domains = op::records::<info::Domain>(Entry::SPECIAL).filter_map(Result::ok);
    let scheduler = domains.find(|domain| domain.name.starts_with(b"sched") && domain.state == 0);
    let number = scheduler.ok_or("no scheduler is listed")?.number;
    let ended = ParentClient(Direct(Entry::PARENT)).kill(number, Force::Gentle);
    hold(ended.is_ok(), "the scheduler is not ended")
}

/// Domains until there is no address space left, and their end.
fn all_domains() -> Result<(), &'static str> {
    let mut counts = [0; 2];
    for count in &mut counts {
        let mut domains = Vec::with_capacity(abi::MAX_THREADS);
        let ended = loop {
            match op::domain_new(Entry::OWN, 0, "victim") {
                Ok(domain) => domains.push(Owned::new(domain)),
                Err(error) => break error,
            }
        };
        *count = domains.len();
        hold(ended == Error::NoDomains, ended.text())?;
    }
    hold(counts[0] > abi::MAX_THREADS / 2 - 32 && counts[0] == counts[1], "another number of domains")
}

fn seats() -> Result<(), &'static str> {
    const STANDBY: u64 = 1;
    let made = |flags| op::domain_new(Entry::OWN, flags, "victim").map(Owned::new).map_err(text);
    let new = || made(numbers::DOMAIN_TRUSTED);
    let seat = |domain: &Owned, entry, stack| {
        let words = [domain.entry().0 as u64, numbers::SET_SCHEDULER, STANDBY, entry, stack, 0];
        raw::call(numbers::DOMAIN_SET, words).map(drop)
    };
    let domain = new()?;
    for address in [USER_END, u64::MAX] {
        for (entry, stack) in [(address, 0), (PROGRAM_START, address)] {
            hold(seat(&domain, entry, stack) == Err(Error::BadAddress), "a bad address is taken")?;
        }
    }
    let full = new()?;
    for _ in 0..OF_A_DOMAIN {
        raw::activation_in(full.entry()).map_err(text)?;
    }
    hold(raw::activation_in(full.entry()) == Err(Error::TooManyActivations), "there is room for another activation")?;
    hold(seat(&full, PROGRAM_START, 0) == Err(Error::TooManyActivations), "there is room for a seat")?;
    let thread = [full.entry().0 as u64, PROGRAM_START, 0, 0, 0, 0];
    hold(raw::call(numbers::THREAD_NEW, thread) == Err(Error::TooManyActivations), "there is room for a thread")?;
    let shape = Owned::new(op::shape_new(Entry::SPECIAL, idl::WINDOW_PORTAL.as_bytes()).map_err(text)?);
    let windows = new()?;
    raw::service(&windows, 0, shape.entry()).map_err(text)?;
    for _ in 0..SLOTS {
        raw::activation_in(windows.entry()).map_err(text)?;
    }
    hold(seat(&windows, PROGRAM_START, 0) == Err(Error::TooManyForWindows), "there is room for a seat with windows")?;
    drop((windows, shape));
    // One that accepts all taints, and one that owns all handles, are not enough either.
    let levels = [(ONE, THREE), (STAR, TWO)];
    let usual = made(0)?;
    hold(seat(&usual, PROGRAM_START, 0) == Err(Error::NotTrusted), "a usual domain has a seat")?;
    for (send, receive) in levels {
        let [send, receive] = [send, receive].map(|level| op::label_new(LabelFrom::Level(level)).map(Owned::new));
        let (send, receive) = (send.map_err(text)?, receive.map_err(text)?);
        let domain = made(0)?;
        op::domain_set_labels(domain.entry(), send.entry(), receive.entry(), false).map_err(text)?;
        hold(seat(&domain, PROGRAM_START, 0) == Err(Error::NotTrusted), "a domain that is not trusted has a seat")?;
    }
    Ok(())
}

const CALLS: usize = 1_000;
const SERVERS: usize = 2;

/// Waits for the gate, then reads the number of steps in its window.
struct Counts;

static GATE: AtomicUsize = AtomicUsize::new(0);
static CAME: AtomicUsize = AtomicUsize::new(0);
static RIGHT: AtomicUsize = AtomicUsize::new(0);

impl Serve for Counts {
    fn serve(request: &mut Request<'_>) -> Reply {
        CAME.fetch_add(1, Ordering::SeqCst);
        let _ = op::p(Entry(GATE.load(Ordering::SeqCst)), NEVER);
        let mut first = [0; 8];
        if let Some(window) = Window::of(request) {
            window.read(0, &mut first);
        }
        let is_right = u64::from_le_bytes(first) == STEPS.0[0].load(Ordering::SeqCst);
        RIGHT.fetch_add(is_right.into(), Ordering::SeqCst);
        Reply::word(0)
    }
}

fn thousand_windows() -> Result<(), &'static str> {
    server::activations(SERVERS).map_err(text)?;
    let shape = Owned::new(op::shape_new(Entry::SPECIAL, idl::WINDOW_PORTAL.as_bytes()).map_err(text)?);
    let service = Owned::new(service_here::<Counts>(shape.entry()).map_err(text)?);
    // Our table and our heap grow in the first round.
    windows_at_once(service.entry())?;
    let before = frames()?;
    windows_at_once(service.entry())?;
    hold(frames()? == before, "frames were lost")
}

/// Starts a thousand threads; gives them with their domains.
fn start_thousand(semaphores: [&Owned; 2], first: &First<'_>) -> Result<(Vec<Child>, Vec<Owned>), &'static str> {
    let (mut domains, mut threads) = (Vec::new(), Vec::new());
    while threads.len() < CALLS {
        let child = domain(semaphores, first).map_err(text)?;
        for _ in 0..OF_A_DOMAIN.min(CALLS - threads.len()) {
            threads.push(child.start(Program::Steps(0)).map_err(text)?);
        }
        domains.push(child);
    }
    Ok((domains, threads))
}

/// Messages of each sender, and those that the port has room for.
const SENT: usize = 5;
const ROOM: usize = 31;
/// The badges of the port that they send to, and of another one.
const STORMED: u64 = 5;
const QUIET: u64 = 6;

fn thousand_senders() -> Result<(), &'static str> {
    let size = Size { bytes: 64, messages: ROOM };
    let port = Port::new(Entry::OWN, size, None, None, STORMED).map_err(text)?;
    let quiet = Port::new(Entry::OWN, size, None, Some(&port), QUIET).map_err(text)?;
    senders_at_once(&port, &quiet)?;
    let before = frames()?;
    senders_at_once(&port, &quiet)?;
    hold(frames()? == before, "frames were lost")
}

fn senders_at_once(port: &Port, quiet: &Port) -> Result<(), &'static str> {
    let [raised, never] = [(); 2].map(|()| op::semaphore_new(Entry::OWN, 0).map(Owned::new).map_err(text));
    let (raised, never) = (raised?, never?);
    let (domains, threads) = start_thousand([&raised, &never], &First::Send(port))?;
    let quiet = || port::send(quiet.entry(), &[], &Options::default()).map_err(text);
    let take = |until| port::receive(port.entry(), until, None, |Received { badge, .. }, _| badge);
    quiet()?;
    // All others run until they wait; only then this thread goes on.
    let last = Schedule { priority: 1, slice: 10_000 };
    let before = op::thread_schedule_on(Entry::OWN, last, 1).map_err(text)?;
    for _ in 0..CALLS {
        op::p(raised.entry(), op::clock() + PATIENCE).map_err(|_| "a sender waits")?;
    }
    let mut came = [0; 2];
    while let Ok(badge) = take(0) {
        came[usize::from(badge == QUIET)] += 1;
    }
    hold(came == [ROOM, 1], "other messages than there is room for")?;
    drop(threads);
    drop(domains);
    // Now the receiver runs at once whenever something comes.
    op::thread_schedule_on(Entry::OWN, Schedule { priority: 18, slice: 10_000 }, 1).map_err(text)?;
    let (domains, threads) = start_thousand([&raised, &never], &First::Send(port))?;
    for number in 0..CALLS * SENT {
        hold(take(op::clock() + PATIENCE) == Ok(STORMED), "one of them does not send, or a message is lost")?;
        if number % 500 == 0 {
            quiet()?;
            hold(take(op::clock() + PATIENCE) == Ok(QUIET), "another port has no turn")?;
        }
    }
    for _ in 0..CALLS {
        op::p(raised.entry(), op::clock() + PATIENCE).map_err(|_| "a sender waits")?;
    }
    hold(take(0) == Err(Error::Timeout), "one message too many")?;
    drop(threads);
    drop(domains);
    op::thread_schedule_on(Entry::OWN, before, u64::MAX).map_err(text).map(drop)
}

fn windows_at_once(service: Entry) -> Result<(), &'static str> {
    let [raised, never, gate] = [(); 3].map(|()| op::semaphore_new(Entry::OWN, 0).map(Owned::new).map_err(text));
    let (raised, never, gate) = (raised?, never?, gate?);
    GATE.store(gate.entry().0, Ordering::SeqCst);
    for count in [&CAME, &RIGHT] {
        count.store(0, Ordering::SeqCst);
    }
    let (domains, threads) = start_thousand([&raised, &never], &First::Call(service))?;
    // All others run until they wait; only then this thread goes on.
    let last = Schedule { priority: 1, slice: 10_000 };
    let before = op::thread_schedule_on(Entry::OWN, last, 1).map_err(text)?;
    thread::sleep(1_000_000).map_err(text)?;
    let came = CAME.load(Ordering::SeqCst);
    hold(came == SERVERS, "others are served at once")?;
    for _ in 0..CALLS {
        op::v(gate.entry()).map_err(text)?;
    }
    for _ in 0..CALLS {
        op::p(raised.entry(), op::clock() + PATIENCE).map_err(|_| "one of them is not served")?;
    }
    hold([&CAME, &RIGHT].map(|count| count.load(Ordering::SeqCst)) == [CALLS; 2], "one saw something else")?;
    drop(threads);
    drop(domains);
    op::thread_schedule_on(Entry::OWN, before, u64::MAX).map_err(text).map(drop)
}
