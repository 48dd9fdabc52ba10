//! Calls with deadlines: the caller goes on in time, and what it called goes on without it.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{Control, Error, op as abi_op};
use idl::{Reply, Request};
use runtime::server::{self, Serve};
use runtime::sync::Mutex;
use runtime::thread::{self, Thread};
use runtime::{Entry, message, op, table};

use crate::check::{Check, hold};

pub const CHECKS: &[Check] = &[
    ("a call that returns in time has its result", in_time),
    ("a call that takes too long ends at its deadline", too_long),
    ("a callee goes on without its caller", orphan),
    ("orphans that wake together have their turns", turns),
    CAME_BACK,
    ("the earlier of two nested deadlines ends both calls", nested),
    ("waiting for an activation ends at the deadline", full),
    ("a deadline that has passed is refused at once", passed),
    ("a service that allows no deadline refuses it", not_allowed),
    ("a deadline and a badge do not go together", with_badge),
];

/// Also without floating point, where calls and returns take the fast path.
pub const CAME_BACK: Check = ("a split leaves alone what was called and came back before", came_back);

const MILLISECOND: u64 = 1_000_000;
const ACTIVATIONS: u64 = 6;

static FINISHED: AtomicU64 = AtomicU64::new(0);
static OPEN: Mutex<Option<(Entry, Entry)>> = Mutex::new(None);

/// Word 0: nanoseconds to sleep. Word 1: a deadline for a call of its own that sleeps a second; 0 = none.
/// Word 2: nanoseconds to be busy after that.
/// Word 3: 1 = a call of its own that comes back at once, before.
struct Sleeper;

impl Serve for Sleeper {
    fn serve(request: &mut Request<'_>) -> Reply {
        let [sleep, inner, busy, before, ..] = request.words;
        if before != 0 {
            let _ = open().map(|(portal, _)| message::call(portal, [0; 5], Control(0)));
        }
        if inner != 0 {
            let (_, portal) = match open() {
                Ok(open) => open,
                Err(error) => return Reply::word(error as u64),
            };
            return match call(portal, 1000 * MILLISECOND, 0, inner) {
                Ok(_) => Reply::word(0),
                Err(error) => Reply::word(error as u64),
            };
        }
        let _ = thread::sleep(sleep);
        let end = op::clock() + busy;
        while busy != 0 && op::clock() < end {}
        FINISHED.fetch_add(1, Ordering::SeqCst);
        Reply::word(sleep + 1)
    }
}

/// Portals to a service that allows deadlines, and to one that does not: (without, with).
fn open() -> Result<(Entry, Entry), Error> {
    let mut open = OPEN.lock();
    if let Some(entries) = *open {
        return Ok(entries);
    }
    server::activations(ACTIVATIONS as usize)?;
    let portal = |flags| -> Result<Entry, Error> {
        let service = server::service_with::<Sleeper>(flags)?;
        let portal = table::allocate()?;
        op::portal_new(Entry::OWN, service, 0, portal, 0)?;
        Ok(portal)
    };
    let entries = (portal(0)?, portal(abi_op::SERVICE_DEADLINE)?);
    *open = Some(entries);
    Ok(entries)
}

fn call(portal: Entry, sleep: u64, inner: u64, deadline: u64) -> Result<u64, Error> {
    let words = [sleep, inner, 0, 0, deadline];
    message::call(portal, words, Control(Control::DEADLINE)).map(|(words, _)| words[0])
}

fn bounded() -> Result<Entry, &'static str> {
    open().map(|(_, portal)| portal).map_err(|error| error.text())
}

/// Waits until no call is under way, so that checks do not count each other's calls.
fn wait_until_idle() -> Result<(), &'static str> {
    thread::sleep(30 * MILLISECOND).map_err(|error| error.text())?;
    FINISHED.store(0, Ordering::SeqCst);
    Ok(())
}

fn in_time() -> Result<(), &'static str> {
    let portal = bounded()?;
    for _ in 0..20 {
        let deadline = op::clock() + 100 * MILLISECOND;
        hold(call(portal, MILLISECOND, 0, deadline) == Ok(MILLISECOND + 1), "no result")?;
    }
    // The last deadline passes while nothing is called: nothing may come of it.
    thread::sleep(110 * MILLISECOND).map_err(|error| error.text())
}

fn too_long() -> Result<(), &'static str> {
    let portal = bounded()?;
    let deadline = op::clock() + 5 * MILLISECOND;
    hold(call(portal, 20 * MILLISECOND, 0, deadline) == Err(Error::Timeout), "no time-out")?;
    let late = op::clock().saturating_sub(deadline);
    hold(op::clock() >= deadline && late < 5 * MILLISECOND, "not at the deadline")?;
    wait_until_idle()
}

fn orphan() -> Result<(), &'static str> {
    let portal = bounded()?;
    wait_until_idle()?;
    for _ in 0..3 {
        let deadline = op::clock() + 2 * MILLISECOND;
        hold(call(portal, 8 * MILLISECOND, 0, deadline) == Err(Error::Timeout), "no time-out")?;
    }
    hold(FINISHED.load(Ordering::SeqCst) < 3, "it went on too early")?;
    wait_for_ends(3)
}

/// One thread carries all orphans of a domain: those that could go on wait until it is free.
fn turns() -> Result<(), &'static str> {
    const COUNT: u64 = 4;
    let portal = bounded()?;
    wait_until_idle()?;
    let wake = op::clock() + 20 * MILLISECOND;
    for _ in 0..COUNT {
        let now = op::clock();
        let words = [wake - now, 0, 3 * MILLISECOND, 0, now + MILLISECOND];
        let result = message::call(portal, words, Control(Control::DEADLINE));
        hold(result.is_err_and(|error| error == Error::Timeout), "no time-out")?;
    }
    hold(FINISHED.load(Ordering::SeqCst) == 0, "it went on too early")?;
    wait_for_ends(COUNT)
}

/// Waits until so many calls have gone to their end.
fn wait_for_ends(count: u64) -> Result<(), &'static str> {
    let end = op::clock() + 200 * MILLISECOND;
    while FINISHED.load(Ordering::SeqCst) < count {
        hold(op::clock() < end, "an orphan did not go on")?;
        thread::sleep(MILLISECOND).map_err(|error| error.text())?;
    }
    wait_until_idle()
}

fn came_back() -> Result<(), &'static str> {
    static ANSWER: AtomicU64 = AtomicU64::new(0);
    let portal = bounded()?;
    wait_until_idle()?;
    // The call makes one of its own, whose activation another thread then has when the split comes.
    let first = Thread::start(
        |portal| {
            let words = [30 * MILLISECOND, 0, 0, 1, op::clock() + 10 * MILLISECOND];
            let result = message::call(Entry(portal), words, Control(Control::DEADLINE));
            ANSWER.fetch_add(u64::from(result == Err(Error::Timeout)), Ordering::SeqCst);
        },
        portal.0,
    );
    thread::sleep(3 * MILLISECOND).map_err(|error| error.text())?;
    let second = Thread::start(
        |portal| {
            let result = message::call(Entry(portal), [20 * MILLISECOND, 0, 0, 0, 0], Control(0));
            ANSWER.fetch_add(2 * u64::from(result.is_ok()), Ordering::SeqCst);
        },
        portal.0,
    );
    // Not joined: a thread that is lost would keep us waiting.
    drop((first.map_err(|error| error.text())?, second.map_err(|error| error.text())?));
    thread::sleep(60 * MILLISECOND).map_err(|error| error.text())?;
    hold(ANSWER.swap(0, Ordering::SeqCst) == 3, "one of the two did not come back")?;
    hold(FINISHED.load(Ordering::SeqCst) == 3, "one of the three calls did not go to its end")?;
    wait_until_idle()
}

fn nested() -> Result<(), &'static str> {
    let portal = bounded()?;
    wait_until_idle()?;
    let now = op::clock();
    // Outer first: both calls end, the middle one learns of it as an orphan.
    let outer = call(portal, 0, now + 40 * MILLISECOND, now + 5 * MILLISECOND);
    hold(outer == Err(Error::Timeout), "the outer deadline")?;
    hold(op::clock() < now + 20 * MILLISECOND, "the inner deadline was waited for")?;
    let now = op::clock();
    let inner = call(portal, 0, now + 5 * MILLISECOND, now + 500 * MILLISECOND);
    hold(inner == Ok(Error::Timeout as u64), "the inner deadline")?;
    hold(op::clock() < now + 20 * MILLISECOND, "the outer deadline was waited for")?;
    thread::sleep(1100 * MILLISECOND).map_err(|error| error.text())?;
    wait_until_idle()
}

fn full() -> Result<(), &'static str> {
    static BUSY: AtomicU64 = AtomicU64::new(0);
    let portal = bounded()?;
    wait_until_idle()?;
    BUSY.store(0, Ordering::SeqCst);
    let start = |_| {
        Thread::start(
            |portal| {
                BUSY.fetch_add(1, Ordering::SeqCst);
                let words = [60 * MILLISECOND, 0, 0, 0, 0];
                let _ = message::call(Entry(portal), words, Control(0));
            },
            portal.0,
        )
    };
    let threads = [0; 16].map(start);
    while BUSY.load(Ordering::SeqCst) < 16 {
        thread::sleep(MILLISECOND).map_err(|error| error.text())?;
    }
    thread::sleep(2 * MILLISECOND).map_err(|error| error.text())?;
    let deadline = op::clock() + 5 * MILLISECOND;
    let result = call(portal, 0, 0, deadline);
    let now = op::clock();
    for thread in threads {
        thread.map_err(|error| error.text())?.join();
    }
    hold(result == Err(Error::Timeout), "no time-out")?;
    hold(now >= deadline && now < deadline + 5 * MILLISECOND, "not at the deadline")?;
    hold(call(portal, 0, 0, op::clock() + 100 * MILLISECOND) == Ok(1), "the service does not go on")
}

fn passed() -> Result<(), &'static str> {
    let portal = bounded()?;
    wait_until_idle()?;
    hold(call(portal, 0, 0, op::clock() - 1) == Err(Error::Timeout), "no time-out")?;
    hold(call(portal, 0, 0, 0) == Err(Error::Timeout), "no time-out at 0")?;
    hold(FINISHED.load(Ordering::SeqCst) == 0, "it was called")
}

fn not_allowed() -> Result<(), &'static str> {
    let (portal, _) = open().map_err(|error| error.text())?;
    hold(call(portal, 0, 0, op::clock() + MILLISECOND) == Err(Error::NoDeadline), "not refused")
}

fn with_badge() -> Result<(), &'static str> {
    let portal = bounded()?;
    let words = [0, 0, 0, 0, op::clock() + MILLISECOND];
    let control = Control(Control::DEADLINE | Control::MINT).delegate(Entry::DOMAIN.0, 0);
    let result = message::call(portal, words, control).map(|_| ());
    hold(result == Err(Error::BadControl), "not refused")
}
