//! Priorities lent to calls: as long as they are served, and only then. Without floating point, so that returns
//! could take the short way.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::MAX_ACTIVATIONS;
use abi::{Control, Error, info};
use interface::{Reply, Request};
use interfaces::process::ProcessClient;
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::server::{self, Serve};
use runtime::thread::{self, Thread};
use runtime::{Connection, Entry, message, table};

use crate::{Check, hold};

pub const CHECKS: &[Check] =
    &[("what is lent to a call goes when the call ends", taken_back), ("a call that has ended is lent nothing", ended)];

const MILLISECOND: u64 = 1_000_000;
const LOW: u8 = 4;
const HIGH: u8 = 12;

/// The activation in the service, from 1.
static SERVES: AtomicU64 = AtomicU64::new(0);
/// The portal to the service.
static PORTAL: AtomicU64 = AtomicU64::new(0);
/// Nobody does V on it.
static NEVER: AtomicU64 = AtomicU64::new(0);
/// Thread number and, when it came back, priority of the caller.
static CALLER: AtomicU64 = AtomicU64::new(0);
static AFTERWARDS: AtomicU64 = AtomicU64::new(0);

/// Stays in a call for some milliseconds.
struct Linger;

impl Serve for Linger {
    fn serve(_: &mut Request<'_>) -> Reply {
        SERVES.store(message::activation() as u64 + 1, Ordering::SeqCst);
        let _ = thread::sleep(8 * MILLISECOND);
        Reply::word(0)
    }
}

fn text(error: Error) -> &'static str {
    error.text()
}

fn entry(place: &AtomicU64) -> Entry {
    Entry(place.load(Ordering::SeqCst) as usize)
}

/// The priority with which a thread runs, whatever was lent to it included.
fn priority(thread: u64) -> u64 {
    let mut record = [0; size_of::<info::Thread>()];
    let told = ProcessClient(Connection::named("proc")).inspect(info::THREAD, thread - 1, &mut record);
    let word = record[32..40].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    told.ok().and(word).unwrap_or(u64::MAX)
}

fn call(_: usize) {
    CALLER.store(op::thread_id(), Ordering::SeqCst);
    let _ = message::call(entry(&PORTAL), [0; 5], Control(0));
    AFTERWARDS.store(priority(op::thread_id()), Ordering::SeqCst);
}

/// Makes what the checks need, and keeps it while `work` goes on.
fn with_service(work: fn() -> Result<(), &'static str>) -> Result<(), &'static str> {
    server::activations(1).map_err(text)?;
    let service = Owned::new(server::service::<Linger>().map_err(text)?);
    let portal = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0).map_err(text)?;
    let never = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    PORTAL.store(portal.entry().0 as u64, Ordering::SeqCst);
    NEVER.store(never.entry().0 as u64, Ordering::SeqCst);
    SERVES.store(0, Ordering::SeqCst);
    work()
}

fn start(priority: u8, function: fn(usize)) -> Result<Thread, &'static str> {
    Thread::start_with(function, 0, Schedule { priority, slice: 1_000 }).map_err(text)
}

fn taken_back() -> Result<(), &'static str> {
    with_service(|| {
        let caller = start(LOW, call)?;
        while SERVES.load(Ordering::SeqCst) == 0 {
            thread::sleep(MILLISECOND / 10).map_err(text)?;
        }
        let lender = start(HIGH, |_| {
            let holder = SERVES.load(Ordering::SeqCst) as u32;
            let _ = op::p_lending(entry(&NEVER), op::clock() + 30 * MILLISECOND, holder);
        })?;
        thread::sleep(MILLISECOND).map_err(text)?;
        let lent = priority(CALLER.load(Ordering::SeqCst));
        caller.join();
        let afterwards = AFTERWARDS.load(Ordering::SeqCst);
        lender.join();
        hold(lent == HIGH.into(), "nothing was lent")?;
        hold(afterwards == LOW.into(), "the caller kept it")
    })
}

fn ended() -> Result<(), &'static str> {
    with_service(|| {
        start(LOW, call)?.join();
        // The thread is gone; the activation that served it is in the pool, whichever it is.
        for holder in 1..=MAX_ACTIVATIONS as u32 {
            let waited = op::p_lending(entry(&NEVER), op::clock() + MILLISECOND / 50, holder);
            hold(waited == Err(Error::Timeout), "the wait did not end at its deadline")?;
        }
        Ok(())
    })
}
