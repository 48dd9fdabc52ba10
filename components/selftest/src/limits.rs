//! Where things end: accounts, chains, deadlines all at once.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::level::{ONE, TWO};
use abi::{Control, Error, MAX_DEPTH, MAX_THREADS, NEVER, rights};
use idl::{Reply, Request};
use runtime::entry::Owned;
use runtime::op::{self, LabelFrom, Schedule};
use runtime::server::{self, Serve};
use runtime::sync::Mutex;
use runtime::thread::Thread;
use runtime::{Entry, message, table};

use crate::check::{Check, frames, hold};

pub const CHECKS: &[Check] = &[
    ("an account too small for a semaphore", || exhaust(semaphore)),
    ("an account too small for an account", || exhaust(account)),
    ("an account too small for a domain", || exhaust(domain)),
    ("more domains that get too little than there are numbers", domains_in_vain),
    ("an account too small for a domain with a large table", || exhaust(large_domain)),
    ("an account too small for a domain with floating point and a thread", || exhaust(fpu_thread)),
    ("an account too small for an activation", || exhaust(activation)),
    ("an account too small for a thread", || exhaust(thread)),
    ("a table of the account's domain that a mapping needs", || exhaust(mapping)),
    ("a table of the account's domain that the boot archive needs", || exhaust(archive)),
    ("the labels of the account's domain", labels),
    ("frames move only as far as there are any", moves),
    ("calls go as deep as they may and no deeper", depth),
    ("forty deadlines at the same instant", storm),
];

/// Does `work` with an account of 0, 1, 2 … frames: each time it must be refused as exhausted, until it has
/// enough. So each allocation that it makes fails in turn, and none may lose a frame.
fn exhaust(work: fn(Entry) -> Result<(), Error>) -> Result<(), &'static str> {
    // Our own account's memory for accounts and entries is there after the first.
    let _ = with_account(0, work)?;
    let before = frames()?;
    for count in 0..200 {
        let outcome = with_account(count, work)?;
        hold(frames()? == before, "frames were lost")?;
        match outcome {
            Ok(()) => return hold(count > 0, "it costs nothing"),
            Err(Error::OtherExhausted) => {}
            Err(error) => return Err(error.text()),
        }
    }
    Err("200 frames are not enough")
}

fn with_account(frames: u64, work: fn(Entry) -> Result<(), Error>) -> Result<Result<(), Error>, &'static str> {
    let account = op::account_new(Entry::OWN, frames).map(Owned::new).map_err(|error| error.text())?;
    Ok(work(account.entry()))
}

fn semaphore(account: Entry) -> Result<(), Error> {
    op::semaphore_new(account, 0).map(Owned::new).map(drop)
}

fn account(parent: Entry) -> Result<(), Error> {
    op::account_new(parent, 0).map(Owned::new).map(drop)
}

fn domain(account: Entry) -> Result<(), Error> {
    op::domain_new(account, 0, "small").map(Owned::new).map(drop)
}

/// A domain for which the account is too small gives all back: a place for its portal table, a thread's number.
fn domains_in_vain() -> Result<(), &'static str> {
    let mut enough = 0;
    while with_account(enough, domain)?.is_err() {
        enough += 1;
    }
    for _ in 0..=MAX_THREADS {
        for frames in 0..enough {
            hold(with_account(frames, domain)? == Err(Error::OtherExhausted), "another error")?;
        }
    }
    hold(with_account(enough, domain)?.is_ok(), "there is no room for another domain")
}

fn large_domain(account: Entry) -> Result<(), Error> {
    let domain = Owned::new(op::domain_new(account, 0, "large")?);
    op::entry_copy(Entry::OWN, account, domain.entry(), Entry(4_095), rights::READ).map(drop)
}

fn thread_in(account: Entry, flags: u64) -> Result<(), Error> {
    let domain = Owned::new(op::domain_new(account, flags, "small")?);
    // It never runs: nothing is mapped there, and it goes at once.
    let thread = crate::start_nowhere(domain.entry(), Schedule { priority: 1, slice: 1_000 })?;
    drop(Owned::new(thread));
    Ok(())
}

fn fpu_thread(account: Entry) -> Result<(), Error> {
    thread_in(account, abi::op::DOMAIN_FPU)
}

fn thread(account: Entry) -> Result<(), Error> {
    thread_in(account, 0)
}

fn activation(account: Entry) -> Result<(), Error> {
    let domain = Owned::new(op::domain_new(account, 0, "small")?);
    crate::activation_in(domain.entry())
}

fn mapping(account: Entry) -> Result<(), Error> {
    let domain = Owned::new(op::domain_new(account, 0, "small")?);
    crate::map_code(domain.entry(), 0x7000_0000_0000)
}

fn archive(account: Entry) -> Result<(), Error> {
    let domain = Owned::new(op::domain_new(account, 0, "small")?);
    op::machine_archive(Entry::SPECIAL, domain.entry())
}

/// Labels of more handles than a page has room for beside the domain.
fn labels() -> Result<(), &'static str> {
    const HANDLES: u64 = 300;
    let text = |error: Error| error.text();
    let label = |level| op::label_new(LabelFrom::Level(level)).map(Owned::new).map_err(text);
    let (send, receive) = (label(ONE)?, label(TWO)?);
    for number in 1..=HANDLES {
        op::label_put(receive.entry(), number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3, ONE).map_err(text)?;
    }
    let account = op::account_new(Entry::OWN, 100).map(Owned::new).map_err(text)?;
    let domain = op::domain_new(account.entry(), 0, "small").map(Owned::new).map_err(text)?;
    while op::account_move(account.entry(), Entry::OWN, 1).is_ok() {}
    let labelled = || op::domain_set_labels(domain.entry(), send.entry(), receive.entry(), false).map(drop);
    hold(labelled() == Err(Error::OtherExhausted), "another error")?;
    op::account_move(Entry::OWN, account.entry(), 60).and_then(|()| labelled()).map_err(text)?;
    drop((send, receive, domain, account));
    // A change of a label frees first what is left of others.
    op::label_put(label(ONE)?.entry(), 1, TWO).map_err(text)
}

fn moves() -> Result<(), &'static str> {
    let text = |error: Error| error.text();
    let before = frames()?;
    let child = op::account_new(Entry::OWN, 4).map(Owned::new).map_err(text)?;
    hold(op::account_move(child.entry(), Entry::OWN, 5) == Err(Error::OtherExhausted), "5 of 4")?;
    hold(op::account_move(child.entry(), Entry::OWN, u64::MAX) == Err(Error::OtherExhausted), "all there are")?;
    op::account_move(child.entry(), Entry::OWN, 4).map_err(text)?;
    hold(op::account_move(child.entry(), Entry::OWN, 1) == Err(Error::OtherExhausted), "1 of none")?;
    op::account_move(Entry::OWN, child.entry(), 2).map_err(text)?;
    hold(op::account_move(child.entry(), child.entry(), 1) == Err(Error::NotParent), "to itself")?;
    drop(child);
    hold(frames()? == before, "frames were lost")
}

/// Calls itself until it may not; answers how often it could, and why no more.
struct Deep;

static PORTAL: Mutex<Option<Entry>> = Mutex::new(None);

impl Serve for Deep {
    fn serve(request: &mut Request<'_>) -> Reply {
        let portal = *PORTAL.lock();
        let Some(portal) = portal else { return Reply::word(0) };
        let depth = request.words[0] + 1;
        match message::call(portal, [depth, 0, 0, 0, 0], Control(0)) {
            Ok((words, _)) => Reply::word(words[0]),
            Err(error) => Reply::word(depth << 8 | error as u64),
        }
    }
}

/// The fast path of a call if this domain has no floating point, else the slow one: two systems run this.
pub fn depth() -> Result<(), &'static str> {
    let text = |error: Error| error.text();
    server::activations(MAX_DEPTH).map_err(text)?;
    let service = Owned::new(server::service::<Deep>().map_err(text)?);
    let portal = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0).map_err(text)?;
    *PORTAL.lock() = Some(portal.entry());
    for _ in 0..3 {
        let words = message::call(portal.entry(), [0; 5], Control(0)).map_err(text)?.0;
        hold(words[0] == (MAX_DEPTH as u64 - 1) << 8 | Error::TooDeep as u64, "another depth or error")?;
    }
    Ok(())
}

fn storm() -> Result<(), &'static str> {
    const THREADS: usize = 40;
    static TIMED_OUT: AtomicU64 = AtomicU64::new(0);
    static INSTANT: AtomicU64 = AtomicU64::new(0);
    static LATEST: AtomicU64 = AtomicU64::new(0);
    let text = |error: Error| error.text();
    let semaphore = op::semaphore_new(Entry::OWN, 0).map(Owned::new).map_err(text)?;
    INSTANT.store(op::clock() + 50_000_000, Ordering::SeqCst);
    let wait = |semaphore| {
        let instant = INSTANT.load(Ordering::SeqCst);
        let result = op::p(Entry(semaphore), instant);
        let now = op::clock();
        LATEST.fetch_max(now, Ordering::SeqCst);
        TIMED_OUT.fetch_add(u64::from(result == Err(Error::Timeout) && now >= instant), Ordering::SeqCst);
    };
    let threads = [(); THREADS].map(|()| Thread::start(wait, semaphore.entry().0));
    for thread in threads {
        thread.map_err(text)?.join();
    }
    hold(TIMED_OUT.load(Ordering::SeqCst) == THREADS as u64, "not all timed out")?;
    let late = LATEST.load(Ordering::SeqCst) - INSTANT.load(Ordering::SeqCst);
    hold(late < 5_000_000, "the last was late by five milliseconds")?;
    hold(op::p(semaphore.entry(), 0) == Err(Error::Timeout), "the count is wrong")?;
    op::v(semaphore.entry()).map_err(text)?;
    hold(op::p(semaphore.entry(), NEVER).is_ok(), "the semaphore is lost")
}
