//! Children whose page faults come to us: answered, refused, never answered, answered with a lie.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::PAGE_FAULT;
use abi::rights::{MAP_EXECUTE, MAP_READ};
use abi::{Error, PAGE_BYTES, info};
use idl::{Reply, Request};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::server::{self, Serve};
use runtime::sync::Mutex;
use runtime::{Entry, thread};

use crate::arch::children;
use crate::check::{Check, frames, hold};

pub const CHECKS: &[Check] = &[
    ("a child goes on after its page fault was answered", answered),
    ("a child dies when its pager gives up, and nobody else", refused),
    ("a child whose pager never answers can be removed", silent),
    ("a child whose pager lies spins alone, and can be removed", lying),
    ("a child without a pager dies of its page fault", nobody),
];

/// Where the child reads, and the page of ours that it may see there.
const PLACE: u64 = 0x5000_0000;
const RANGE: u64 = 0x1000_0000;
const MILLISECOND: u64 = 1_000_000;

#[repr(align(4096))]
struct Page([u64; 512]);
static PAGE: Page = Page([42; 512]);

/// The requests to the pager.
const ANSWER: u64 = 0;
const GIVE_UP: u64 = 1;
const SLEEP: u64 = 2;
const LIE: u64 = 3;

static SERVED: AtomicU64 = AtomicU64::new(0);
static CHILD: Mutex<Option<Entry>> = Mutex::new(None);

struct Pager;

impl Serve for Pager {
    fn serve(request: &mut Request<'_>) -> Reply {
        SERVED.fetch_add(1, Ordering::SeqCst);
        match request.badge {
            ANSWER => {
                let Some(child) = *CHILD.lock() else { return Reply::word(1) };
                let place = request.words[0] & !(PAGE_BYTES as u64 - 1);
                // SAFETY: a page of constants, for reading.
                let mapped = unsafe { op::map(child, &raw const PAGE.0 as u64, place, 0, MAP_READ) };
                Reply::word(mapped.is_err().into())
            }
            GIVE_UP => Reply::word(1),
            SLEEP => {
                let _ = thread::sleep(60 * MILLISECOND);
                Reply::word(0)
            }
            _ => Reply::word(0),
        }
    }
}

/// A child that reads at [`PLACE`]. Let go, the thread is removed first, then what is left.
struct Victim {
    _thread: Owned,
    _domain: Owned,
    died: Owned,
}

impl Victim {
    /// With a pager that behaves as `badge` says, or without.
    fn start(pager: Option<u64>) -> Result<Self, Error> {
        let domain = Owned::new(op::domain_new(Entry::OWN, 0, "victim")?);
        let died = Owned::new(op::semaphore_new(Entry::OWN, 0)?);
        op::domain_set_death_semaphore(domain.entry(), died.entry())?;
        let code = children::read as *const () as u64;
        let start = code & !(PAGE_BYTES as u64 - 1);
        // SAFETY: code of ours, which may be read and executed.
        unsafe { op::map(domain.entry(), start, start, 0, MAP_READ | MAP_EXECUTE)? };
        if let Some(badge) = pager {
            // Another pager has the pages after them.
            let ranges = [(0, GIVE_UP, PLACE + RANGE), (2, badge, PLACE), (3, GIVE_UP, PLACE + 2 * RANGE)];
            for (slot, badge, start) in ranges {
                op::portal_new(domain.entry(), service()?, badge, Entry(PAGE_FAULT[slot]), 0)?;
                op::domain_set_fault_range(domain.entry(), slot as u64, start, start + RANGE)?;
            }
        }
        *CHILD.lock() = Some(domain.entry());
        SERVED.store(0, Ordering::SeqCst);
        let schedule = Schedule { priority: 8, slice: 1_000 };
        // SAFETY: the code is made for this and uses no stack.
        let thread = unsafe { op::thread_new(domain.entry(), code, 0, PLACE + 8, schedule)? };
        Ok(Self { _thread: Owned::new(thread), _domain: domain, died })
    }

    /// Waits until it has died, for some milliseconds.
    fn dies_within(&self, milliseconds: u64) -> Result<(), Error> {
        op::p(self.died.entry(), op::clock() + milliseconds * MILLISECOND)
    }
}

fn service() -> Result<Entry, Error> {
    static SERVICE: Mutex<Option<Entry>> = Mutex::new(None);
    let mut service = SERVICE.lock();
    if service.is_none() {
        server::activations(2)?;
        *service = Some(server::service::<Pager>()?);
    }
    service.ok_or(Error::Empty)
}

/// Runs `check` twice; the second time it must not change the number of free frames.
fn twice(check: fn() -> Result<(), &'static str>) -> Result<(), &'static str> {
    check()?;
    let before = frames()?;
    check()?;
    hold(frames()? == before, "frames were lost")
}

fn start(pager: Option<u64>) -> Result<Victim, &'static str> {
    Victim::start(pager).map_err(|error| error.text())
}

/// The newest domain with the victim's name.
pub fn newest() -> Result<info::Domain, &'static str> {
    let victim = |domain: &info::Domain| domain.name.starts_with(b"victim\0");
    op::records(Entry::SPECIAL).filter_map(Result::ok).find(victim).ok_or("the child is not listed")
}

/// Status of the newest domain with the victim's name.
pub fn status() -> Result<u64, &'static str> {
    newest().map(|domain| domain.status)
}

fn answered() -> Result<(), &'static str> {
    twice(|| {
        let victim = start(Some(ANSWER))?;
        hold(victim.dies_within(100).is_ok(), "it did not end")?;
        hold(status()? == 42, "it read something else")?;
        hold(SERVED.load(Ordering::SeqCst) == 1, "not one fault")
    })
}

fn refused() -> Result<(), &'static str> {
    twice(|| {
        let victim = start(Some(GIVE_UP))?;
        hold(victim.dies_within(100).is_ok(), "it did not die")?;
        hold(status()? == info::status::PAGE_FAULT, "another status")
    })
}

fn silent() -> Result<(), &'static str> {
    twice(|| {
        let victim = start(Some(SLEEP))?;
        hold(victim.dies_within(10) == Err(Error::Timeout), "it ended")?;
        drop(victim);
        // The pager's call goes on as an orphan; its activation is free again when it ends.
        thread::sleep(80 * MILLISECOND).map_err(|error| error.text())?;
        hold(SERVED.load(Ordering::SeqCst) == 1, "not one fault")
    })
}

fn lying() -> Result<(), &'static str> {
    twice(|| {
        let victim = start(Some(LIE))?;
        hold(victim.dies_within(10) == Err(Error::Timeout), "it ended")?;
        hold(SERVED.load(Ordering::SeqCst) > 100, "it did not fault again and again")?;
        drop(victim);
        let served = SERVED.load(Ordering::SeqCst);
        thread::sleep(2 * MILLISECOND).map_err(|error| error.text())?;
        hold(SERVED.load(Ordering::SeqCst) <= served + 1, "it goes on")
    })
}

fn nobody() -> Result<(), &'static str> {
    twice(|| {
        let victim = start(None)?;
        hold(victim.dies_within(100).is_ok(), "it did not die")?;
        hold(status()? == info::status::PAGE_FAULT, "another status")
    })
}
