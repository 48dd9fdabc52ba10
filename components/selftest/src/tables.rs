//! Portal tables that grow.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use abi::layout::{FIRST_FREE, MAX_TABLE_ENTRIES, PAGE_FAULT, TABLE_ENTRIES};
use abi::rights::{self, Kind};
use abi::{Control, Error, info, op as operations};
use idl::{Reply, Request};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::server::{self, Serve};
use runtime::thread::{Thread, sleep};
use runtime::{Entry, message, table};

use crate::check::{Check, frames, hold};
use crate::table::places::cpus;

pub const CHECKS: &[Check] = &[
    ("an index to which a table has not grown is empty, one beyond all tables is none", not_there),
    ("a table grows to its last index, and is paid for", grows),
    ("a full table has no index, and one that is free is found", full),
    ("nothing of a table that is gone is in the next one", again),
    ("more domains than a directory of windows has", many),
    ("a removal that is stopped leaves a domain its number, and can be gone on with", stopped),
    ("an entry with a large index goes along with a message, either way", wide),
    ("threads use an entry as soon as the table has grown to it", together),
];

const LAST: usize = MAX_TABLE_ENTRIES - 1;

fn text(error: Error) -> &'static str {
    error.text()
}

fn domain() -> Result<Owned, &'static str> {
    op::domain_new(Entry::OWN, 0, "tables").map(Owned::new).map_err(text)
}

fn semaphore() -> Result<Owned, &'static str> {
    op::semaphore_new(Entry::OWN, 0).map(Owned::new).map_err(text)
}

/// Copies an entry of ours into a table, at this index.
fn put(entry: &Owned, domain: &Owned, index: usize) -> Result<Entry, Error> {
    op::entry_copy(Entry::OWN, entry.entry(), domain.entry(), Entry(index), rights::ALL)
}

fn is_empty(domain: &Owned, index: usize) -> bool {
    op::entry_info(domain.entry(), Entry(index)) == Ok((Kind::Empty, 0))
}

fn has_semaphore(domain: &Owned, index: usize) -> bool {
    op::entry_info(domain.entry(), Entry(index)) == Ok((Kind::Semaphore, rights::ALL))
}

fn not_there() -> Result<(), &'static str> {
    let (victim, semaphore) = (domain()?, semaphore()?);
    let before = frames()?;
    let looks = |index| {
        let (domain, entry) = (victim.entry(), Entry(index));
        let copied = op::entry_copy(domain, entry, domain, Entry(FIRST_FREE), rights::ALL).map(drop);
        [copied, op::entry_remove(domain, entry), op::entry_revoke(domain, entry)]
    };
    for index in [op_free(), 4 * TABLE_ENTRIES, 100_000, LAST] {
        hold(is_empty(&victim, index), "something stands there")?;
        hold(looks(index) == [Err(Error::Empty); 3], "another refusal than that it is empty")?;
    }
    hold(looks(operations::CLOCK) == [Err(Error::WrongKind); 3], "a kernel operation can be copied or removed")?;
    // In our own table, too.
    hold(op::p(Entry(LAST), 0) == Err(Error::Empty), "it can be traversed")?;
    hold(op::p(Entry(MAX_TABLE_ENTRIES), 0) == Err(Error::BadIndex), "an index beyond all can be traversed")?;
    for index in [MAX_TABLE_ENTRIES, MAX_TABLE_ENTRIES + 1, 1 << 40] {
        hold(looks(index) == [Err(Error::BadIndex); 3], "another refusal than that there is no such index")?;
        hold(op::entry_info(victim.entry(), Entry(index)) == Err(Error::BadIndex), "there is an entry")?;
        hold(put(&semaphore, &victim, index) == Err(Error::BadIndex), "it can be filled")?;
    }
    hold(put(&semaphore, &victim, op_free()) == Err(Error::ReservedIndex), "the page of the operations can be filled")?;
    hold(frames()? == before, "to look cost a frame")
}

/// The last index of the page with the operations, at which there is none.
fn op_free() -> usize {
    PAGE_FAULT[0] - 1
}

/// Frames charged to the account of a domain.
fn charged(domain: &Owned) -> Result<u64, &'static str> {
    charged_to(op::domain_number(domain.entry()).map_err(text)?)
}

/// As [`charged`], of the domain with this number, which may be dead.
fn charged_to(number: u64) -> Result<u64, &'static str> {
    let (record, _) = op::record::<info::Domain>(Entry::SPECIAL, number + 1).map_err(text)?;
    hold(record.number == number, "the record is of another domain")?;
    Ok(record.charged)
}

fn grows() -> Result<(), &'static str> {
    let before = frames()?;
    {
        let semaphore = semaphore()?;
        let account = op::account_new(Entry::OWN, 4_200).map(Owned::new).map_err(text)?;
        let victim = op::domain_new(account.entry(), 0, "tables").map(Owned::new).map_err(text)?;
        let mut paid = charged(&victim)?;
        // A page for 64 entries, a page table for 512 pages.
        let (page, pages_of_table) = (64, 512);
        let steps = [(127, 0), (128, 1), (64 * 512 - 1, 509), (64 * 512, 2), (LAST, 7 * pages_of_table - 1 + 6)];
        for (index, more) in steps {
            put(&semaphore, &victim, index).map_err(text)?;
            let now = charged(&victim)?;
            hold(now == paid + more, "it costs another number of frames")?;
            hold(has_semaphore(&victim, index), "it is not there")?;
            hold(put(&semaphore, &victim, index) == Err(Error::Occupied), "it is filled twice")?;
            paid = now;
        }
        hold(is_empty(&victim, LAST - 1) && is_empty(&victim, LAST - page), "something stands beside it")?;
        op::entry_remove(victim.entry(), Entry(LAST)).map_err(text)?;
        hold(is_empty(&victim, LAST), "it is still there")?;
    }
    hold(frames()? == before, "frames were lost")
}

fn full() -> Result<(), &'static str> {
    let (semaphore, victim) = (semaphore()?, domain()?);
    let fill = || op::entry_copy(Entry::OWN, semaphore.entry(), victim.entry(), Entry::OWN, rights::ALL);
    for index in FIRST_FREE..MAX_TABLE_ENTRIES {
        hold(fill() == Ok(Entry(index)), "it is not the next index that is filled")?;
    }
    hold(fill() == Err(Error::TableFull), "it is not full")?;
    for index in [100_000, LAST] {
        op::entry_remove(victim.entry(), Entry(index)).map_err(text)?;
        hold(fill() == Ok(Entry(index)), "the free index is not found")?;
        hold(fill() == Err(Error::TableFull), "there is another one")?;
    }
    Ok(())
}

fn again() -> Result<(), &'static str> {
    let semaphore = semaphore()?;
    for _ in 0..3 {
        let victim = domain()?;
        let is_clean = (FIRST_FREE..8 * TABLE_ENTRIES).all(|index| is_empty(&victim, index));
        hold(is_clean, "a new table is not empty")?;
        for index in [200, 5_000] {
            put(&semaphore, &victim, index + 1).map_err(text)?;
            hold(is_empty(&victim, index) && is_empty(&victim, index + 2), "its new page is not empty")?;
            put(&semaphore, &victim, index).map_err(text)?;
        }
    }
    Ok(())
}

fn many() -> Result<(), &'static str> {
    const COUNT: usize = 150;
    const PLACE: usize = 2 * TABLE_ENTRIES;
    let semaphore = semaphore()?;
    // The frames that our own account and table keep are there after the first time.
    let mut before = 0;
    for _ in 0..2 {
        before = frames()?;
        let mut victims = Vec::with_capacity(COUNT);
        for number in 0..COUNT {
            let victim = domain()?;
            put(&semaphore, &victim, PLACE + number).map_err(text)?;
            victims.push(victim);
        }
        for (number, victim) in victims.iter().enumerate() {
            let found = (0..COUNT).filter(|place| has_semaphore(victim, PLACE + place));
            hold(found.eq([number]), "its table has not what is its own, or something of another")?;
        }
        // The first of a directory's domains go before the last.
        victims.drain(..).for_each(drop);
    }
    hold(frames()? == before, "frames were lost")
}

/// A thread below us removes a domain, and is ended when some of the table is gone: long after the threads.
fn stopped() -> Result<(), &'static str> {
    const BELOW: Schedule = Schedule { priority: 8, slice: 10_000 };
    let account = op::account_new_with(Entry::OWN, 4_200, 1).map(Owned::new).map_err(text)?;
    let another = || op::domain_new(account.entry(), 0, "tables").map(Owned::new);
    let (semaphore, victim) = (semaphore()?, another().map_err(text)?);
    put(&semaphore, &victim, LAST).map_err(text)?;
    let number = op::domain_number(victim.entry()).map_err(text)?;
    let whole = charged_to(number)?;
    let removes = |index| {
        let _ = op::entry_remove(Entry::OWN, Entry(index));
    };
    let remover = Thread::start_with(removes, victim.entry().0, BELOW).map_err(text)?;
    while charged_to(number)? == whole {
        sleep(20_000).map_err(text)?;
    }
    op::entry_remove(Entry::OWN, remover.entry()).map_err(text)?;
    hold(charged_to(number)? > 0, "nothing of it is left")?;
    hold(another().err() == Some(Error::AccountThreads), "its number is free")?;
    drop(victim);
    another().map(drop).map_err(text)
}

/// Gives back the entry that came along.
struct Back;

impl Serve for Back {
    fn serve(request: &mut Request<'_>) -> Reply {
        let index = request.delegated.take().map_or(0, |delegated| delegated.0);
        Reply { words: [index as u64, 0, 0, 0, 0], control: Control::bytes(0).delegate(index, rights::ALL) }
    }
}

/// Above what 16 bits can name.
const SENT: usize = 70_000;
const RECEIVED: usize = 70_001;
static PORTAL: AtomicUsize = AtomicUsize::new(0);
static OUTCOME: AtomicU64 = AtomicU64::new(0);

fn wide() -> Result<(), &'static str> {
    server::activations(1).map_err(text)?;
    let service = Owned::new(server::service::<Back>().map_err(text)?);
    let place = table::allocate().map_err(text)?;
    let portal = Owned::new(op::portal_new(Entry::OWN, service.entry(), 0, place, 0).map_err(text)?);
    let semaphore = semaphore()?;
    op::entry_copy(Entry::OWN, semaphore.entry(), Entry::OWN, Entry(SENT), rights::ALL).map_err(text)?;
    PORTAL.store(portal.entry().0, Ordering::SeqCst);
    OUTCOME.store(0, Ordering::SeqCst);
    // We set where entries go for its activation, not the runtime.
    let exchange = |_| {
        let received = op::activation_set(operations::ACTIVATION_RECEIVE, RECEIVED as u64).and_then(|()| {
            let control = Control::bytes(0).delegate(SENT, rights::ALL);
            message::call(Entry(PORTAL.load(Ordering::SeqCst)), [0; 5], control)
        });
        OUTCOME.store(received.map_or(0, |(_, control)| control.delegated() as u64), Ordering::SeqCst);
    };
    Thread::start(exchange, 0).map_err(text)?.join();
    hold(OUTCOME.load(Ordering::SeqCst) == RECEIVED as u64, "it did not come back where it should")?;
    op::v(semaphore.entry()).map_err(text)?;
    hold(op::p(Entry(RECEIVED), 0) == Ok(()), "it is another one")?;
    [SENT, RECEIVED].into_iter().try_for_each(|index| op::entry_remove(Entry::OWN, Entry(index))).map_err(text)
}

static NEXT: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Uses each entry that is named, until that is 1.
fn use_entries(_: usize) {
    let mut last = 0;
    loop {
        match NEXT.load(Ordering::SeqCst) {
            1 => return,
            next if next != last => {
                if let Err(error) = op::v(Entry(next)) {
                    REFUSED.store(error as u64, Ordering::SeqCst);
                }
                last = next;
                USED.store(next, Ordering::SeqCst);
            }
            _ => op::yield_now(),
        }
    }
}

fn together() -> Result<(), &'static str> {
    const FIRST: usize = 80_000;
    let semaphore = semaphore()?;
    let schedule = Schedule { priority: 16, slice: 1_000 };
    NEXT.store(0, Ordering::SeqCst);
    let helper = Thread::start_with(use_entries, 0, schedule).map_err(text)?;
    op::thread_schedule_on(helper.entry(), schedule, 1 << (cpus()? - 1)).map_err(text)?;
    let indices = (FIRST..).step_by(64).take(100);
    for index in indices.clone() {
        op::entry_copy(Entry::OWN, semaphore.entry(), Entry::OWN, Entry(index), rights::ALL).map_err(text)?;
        NEXT.store(index, Ordering::SeqCst);
        // It is used here and there.
        op::v(Entry(index)).map_err(text)?;
        while USED.load(Ordering::SeqCst) != index {
            op::yield_now();
        }
    }
    NEXT.store(1, Ordering::SeqCst);
    helper.join();
    hold(REFUSED.load(Ordering::SeqCst) == 0, "the other thread was refused")?;
    for _ in 0..200 {
        op::p(semaphore.entry(), 0).map_err(text)?;
    }
    indices.into_iter().try_for_each(|index| op::entry_remove(Entry::OWN, Entry(index))).map_err(text)
}
