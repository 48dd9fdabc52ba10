//! Negative tests of programs that copy objects during their removal, faster than they go.

use alloc::format;
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use protocols::sigma0::Sigma0Client;
use runtime::abi::layout::{FIRST_FREE, FREE_START};
use runtime::abi::rights::{MAP_READ, MAP_WRITE, UNMAP_SELF};
use runtime::abi::{Error, NEVER, PAGE_BYTES, op as abi_op, rights};
use runtime::connection::Direct;
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::thread::{self, Thread};
use runtime::{Entry, table};

use crate::case::{Case, text};
use crate::child;
use crate::child::{Child, PATIENCE};

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("chase-entries", "copies of entries whose object is being removed", entries),
    Case::tried("chase-pages", "mappings of a page that is being unmapped everywhere", pages),
    Case::tried("dead-copied", "copies of what is of a domain that is dead", dead),
];

const PAGE: u64 = PAGE_BYTES as u64;
/// Copies that a domain has.
const COPIES: usize = 900;
/// The priority of the thread that removes: below the accomplice's.
const LOW: Schedule = Schedule { priority: 8, slice: 10_000 };
const USUAL: Schedule = Schedule { priority: 16, slice: 10_000 };
/// The accomplice looks so often, in nanoseconds.
const REST: u64 = 5_000;

/// Where the copies are.
static HOLDER: AtomicUsize = AtomicUsize::new(0);
/// The removal is over.
static OVER: AtomicBool = AtomicBool::new(false);
/// Copies that the accomplice made, and the error that ended it, if that came before the removal was over.
static MADE: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Has `remove` done while an accomplice of higher priority does `copy` now and then, until that is refused with the error
/// `right`. False if it came too late for that.
fn chased(copy: fn(usize), right: Error, remove: impl FnOnce() -> Result<(), Error>) -> Result<bool, String> {
    OVER.store(false, Ordering::SeqCst);
    [&MADE, &REFUSED].into_iter().for_each(|count| count.store(0, Ordering::SeqCst));
    op::thread_schedule(Entry::OWN, LOW).map_err(text)?;
    let accomplice = Thread::start_with(copy, 0, USUAL);
    let removed = remove();
    OVER.store(true, Ordering::SeqCst);
    op::thread_schedule(Entry::OWN, USUAL).map_err(text)?;
    accomplice.map_err(text)?.join();
    removed.map_err(text)?;
    match (MADE.load(Ordering::SeqCst), Error::from_status(REFUSED.load(Ordering::SeqCst))) {
        (0, Ok(())) => Ok(false),
        (0, Err(error)) if error == right => Ok(true),
        (0, Err(error)) => Err(format!("{error} in the middle")),
        (made, _) => Err(format!("{made} copies were made meanwhile")),
    }
}

/// How often the accomplice may come too late.
const ROUNDS: usize = 20;

/// Does it until the accomplice is not too late.
fn some_time(mut round: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    for _ in 0..ROUNDS {
        if round()? {
            return Ok(());
        }
    }
    Err("the accomplice is always too late".to_string())
}

/// Tries until it is refused, or too late; an error that says that it is too early does not count.
fn accomplice(early: Error, mut copy: impl FnMut() -> Result<(), Error>) {
    while !OVER.load(Ordering::SeqCst) && thread::sleep(REST).is_ok() {
        match copy() {
            Ok(()) => drop(MADE.fetch_add(1, Ordering::SeqCst)),
            Err(error) if error == early => {}
            Err(error) => {
                if !OVER.load(Ordering::SeqCst) {
                    REFUSED.store(error as u64, Ordering::SeqCst);
                }
                return;
            }
        }
    }
}

/// Copies the last copy to the places that were emptied.
fn copies(_: usize) {
    let holder = Entry(HOLDER.load(Ordering::SeqCst));
    let place = |number: usize| Entry(FIRST_FREE + number % COPIES);
    let mut last = COPIES - 1;
    accomplice(Error::Occupied, || {
        op::entry_copy(holder, place(last), holder, place(last + 1), rights::ALL)?;
        last += 1;
        Ok(())
    });
}

/// Removes `original`, or the domain that is its home, when the holder has copies of it, each made from the one before.
fn remove_copied((original, home): (Owned, Option<Owned>)) -> Result<bool, String> {
    let holder = Owned::new(op::domain_new(Entry::ACCOUNT, 0, "holder").map_err(text)?);
    HOLDER.store(holder.entry().0, Ordering::SeqCst);
    op::entry_copy(Entry::OWN, original.entry(), holder.entry(), Entry(FIRST_FREE), rights::ALL).map_err(text)?;
    for number in FIRST_FREE..FIRST_FREE + COPIES - 1 {
        op::entry_copy(holder.entry(), Entry(number), holder.entry(), Entry(number + 1), rights::ALL).map_err(text)?;
    }
    let (removed, rest) = match home {
        Some(home) => (home.leak(), Some(original)),
        None => (original.leak(), None),
    };
    let outcome = chased(copies, Error::Revoked, || op::entry_remove(Entry::OWN, removed));
    table::free(removed);
    drop(rest);
    outcome
}

/// Makes what is copied, and, if that goes with its home, the home.
type Make<'m> = &'m dyn Fn() -> Result<(Owned, Option<Owned>), Error>;

fn domain() -> Result<Owned, Error> {
    op::domain_new(Entry::ACCOUNT, 0, "victim").map(Owned::new)
}

fn entries() -> Result<String, String> {
    let never = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    let home = domain().map_err(text)?;
    child::equip(home.entry()).map_err(text)?;
    let waits = op::entry_copy(Entry::OWN, never.entry(), home.entry(), Entry::OWN, rights::ALL).map_err(text)?;
    let waiting = |home: Entry, waits: Entry| child::calls_in(home, waits.0 as u64, [abi_op::P, NEVER, 0, 0, 0, 0]);
    let thread = || waiting(home.entry(), waits);
    // The first thread of a domain ends it.
    let first = thread().map_err(text)?;
    let kinds: [(&str, Make<'_>); 5] = [
        ("domain", &|| Ok((domain()?, None))),
        ("thread", &|| Ok((thread()?, None))),
        ("thread of a domain", &|| {
            let home = domain()?;
            child::equip(home.entry())?;
            let waits = op::entry_copy(Entry::OWN, never.entry(), home.entry(), Entry::OWN, rights::ALL)?;
            Ok((waiting(home.entry(), waits)?, Some(home)))
        }),
        ("account", &|| Ok((op::account_new(Entry::ACCOUNT, 8).map(Owned::new)?, None))),
        ("semaphore", &|| Ok((op::semaphore_new(Entry::ACCOUNT, 0).map(Owned::new)?, None))),
    ];
    for (name, make) in kinds {
        some_time(|| make().map_err(text).and_then(remove_copied)).map_err(|cause| format!("{name}: {cause}"))?;
    }
    drop(first);
    Ok(format!("no copy is made of what goes: {}", kinds.map(|(name, _)| name).join(", ")))
}

/// The page, where another domain has it from there on, and where that maps it back to us.
const DRAWN: u64 = FREE_START;
const OTHERS: u64 = 0x4000_0000;
const BACK: u64 = 0x5000_0000;

/// Maps what is derived from the page to the places that were unmapped: the last mapping goes first.
fn maps(_: usize) {
    let holder = Entry(HOLDER.load(Ordering::SeqCst));
    let mut place = OTHERS + COPIES as u64 * PAGE;
    accomplice(Error::Occupied, || {
        // SAFETY: a page to which nothing refers.
        unsafe { op::map(holder, BACK, place - PAGE, 0, MAP_READ) }?;
        place -= PAGE;
        Ok(())
    });
}

fn pages() -> Result<String, String> {
    some_time(unmap_mapped)?;
    Ok("nothing more is mapped of what goes".to_string())
}

/// Unmaps a page that another domain has in many places, and we have from there.
fn unmap_mapped() -> Result<bool, String> {
    let draw = Sigma0Client(Direct(Entry::SIGMA0)).draw(DRAWN, 0, MAP_READ | MAP_WRITE);
    draw.map_err(|error| error.to_string())?;
    let mut other = Child::new().map_err(text)?;
    let [turn, done] = other.plays(OTHERS, BACK).map_err(text)?;
    // SAFETY: a page to which nothing refers.
    let map = |place| unsafe { op::map(other.entry(), DRAWN, place, 0, MAP_READ) }.map_err(text);
    map(OTHERS)?;
    op::v(turn.entry()).and_then(|()| op::p(done.entry(), op::clock() + PATIENCE)).map_err(text)?;
    (1..COPIES as u64).try_for_each(|number| map(OTHERS + number * PAGE))?;
    HOLDER.store(other.entry().0, Ordering::SeqCst);
    // SAFETY: a page to which nothing refers.
    let unmap = || unsafe { op::unmap(Entry::OWN, DRAWN, 0, MAP_READ | UNMAP_SELF) };
    chased(maps, Error::NotMapped, unmap)
}

fn dead() -> Result<String, String> {
    let victim = Child::new().map_err(text)?;
    let service = victim.reading_service(1).map(Owned::new).map_err(text)?;
    let never = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    let waits = victim.give(never.entry(), rights::ALL).map_err(text)?;
    let thread = child::calls_in(victim.entry(), waits, [abi_op::P, NEVER, 0, 0, 0, 0]).map_err(text)?;
    let all = [("domain", victim.entry()), ("service", service.entry()), ("thread", thread.entry())];
    for is_dead in [false, true] {
        for (name, entry) in all {
            let place = Owned::new(table::allocate().map_err(text)?);
            let copied = op::entry_copy(Entry::OWN, entry, Entry::OWN, place.entry(), rights::ALL).map(drop);
            if copied != Ok(()) {
                return Err(format!("a copy of a {name}: {copied:?}, dead: {is_dead}"));
            }
        }
        if !is_dead {
            op::domain_kill(victim.entry(), 0).map_err(text)?;
        }
    }
    Ok("as of a live one: domain, service, thread".to_string())
}
