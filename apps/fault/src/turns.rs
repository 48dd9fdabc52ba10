//! Waiting for what there is one of, behind those that wait for it with a lower priority, or wait no more. Others keep the CPU from
//! those: whoever is first in a queue may never run.

use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use interface::{Reply, Request};
use runtime::abi::{Control, Error, NEVER};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::server::{self, Serve};
use runtime::sync::Mutex;
use runtime::thread::{self, Thread};
use runtime::{Entry, message, table};

use crate::child::{self, Child};
use crate::crime::Crime;

/// All of them.
pub const ALL: &[Crime] = &[
    Crime::tried("turn-call", "a call behind one of the lowest priority, while another thread spins", call_behind),
    Crime::tried(
        "turn-lock",
        "a lock behind one that waits with the lowest priority, while another thread spins",
        lock_behind,
    ),
    Crime::tried("turn-dead", "a call behind one whose domain ends before it is made again", dead_before),
];

const MILLISECOND: u64 = 1_000_000;
/// So often somebody looks whether it is done.
const LOOKS: usize = 50;

/// P lets the one that has what there is one of go on.
static GATE: AtomicUsize = AtomicUsize::new(0);
static PORTAL: AtomicUsize = AtomicUsize::new(0);
static LOCK: Mutex<()> = Mutex::new(());
/// How many have had it, whether who waits behind others is done, and whether the one that spins stops.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static DONE: AtomicBool = AtomicBool::new(false);
static STOPS: AtomicBool = AtomicBool::new(false);

fn text(error: Error) -> String {
    error.to_string()
}

fn wait_inside() {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let _ = op::p(Entry(GATE.load(Ordering::SeqCst)), NEVER);
}

struct Gated;

impl Serve for Gated {
    fn serve(_: &mut Request<'_>) -> Reply {
        wait_inside();
        Reply::word(0)
    }
}

fn call(_: usize) {
    let _ = message::call(Entry(PORTAL.load(Ordering::SeqCst)), [0; 5], Control(0));
}

fn lock(_: usize) {
    let _held = LOCK.lock();
    wait_inside();
}

/// On the first CPU, where all of them are.
fn start(priority: u8, work: fn(usize)) -> Result<Thread, String> {
    let schedule = Schedule { priority, slice: 1_000 };
    let thread = Thread::start_with(work, 0, Schedule { priority: 0, ..schedule }).map_err(text)?;
    op::thread_schedule_on(thread.entry(), schedule, 1).map_err(text)?;
    thread::sleep(MILLISECOND).map_err(text)?;
    Ok(thread)
}

fn spin(_: usize) {
    while !STOPS.load(Ordering::SeqCst) {
        core::hint::spin_loop();
    }
}

/// What all need; gives what goes with the end.
fn prepare() -> Result<[Owned; 3], String> {
    op::thread_schedule_on(Entry::OWN, Schedule { priority: 16, slice: 10_000 }, 1).map_err(text)?;
    let gate = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    server::activations(1).map_err(text)?;
    let service = Owned::new(server::service::<Gated>().map_err(text)?);
    let portal = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0).map_err(text)?;
    GATE.store(gate.entry().0, Ordering::SeqCst);
    PORTAL.store(portal.entry().0, Ordering::SeqCst);
    Ok([gate, service, portal])
}

/// The one that is inside goes on; waits until `is_so`.
fn let_on(is_so: impl Fn() -> bool) -> Result<(), String> {
    op::v(Entry(GATE.load(Ordering::SeqCst))).map_err(text)?;
    for _ in 0..LOOKS {
        if is_so() {
            return Ok(());
        }
        thread::sleep(MILLISECOND).map_err(text)?;
    }
    Err("who waits behind others has no turn".to_string())
}

/// One has it, one waits with the lowest priority, and a third with a higher one, which is before that of the thread that spins.
fn behind(work: fn(usize)) -> Result<String, String> {
    let kept = prepare()?;
    let threads = [start(2, work)?, start(1, work)?];
    let third = start(12, work)?;
    let spins = start(8, spin)?;
    let_on(|| INSIDE.load(Ordering::SeqCst) == 2)?;
    let_on(|| true)?;
    third.join();
    STOPS.store(true, Ordering::SeqCst);
    spins.join();
    let_on(|| true)?;
    threads.into_iter().for_each(Thread::join);
    drop(kept);
    Ok("the highest has its turn first".to_string())
}

fn call_behind() -> Result<String, String> {
    behind(call)
}

fn lock_behind() -> Result<String, String> {
    behind(lock)
}

/// The first in the queue is woken, cannot run, and ends.
fn dead_before() -> Result<String, String> {
    let [_gate, service, _portal] = prepare()?;
    let victim = Child::new().map_err(text)?;
    let portal = op::portal_new(victim.entry(), service.entry(), 0, Entry::OWN, 0).map_err(text)?;
    let holder = start(10, call)?;
    // Of priority 8.
    let _first = child::calls_in(victim.entry(), portal.0 as u64, [0; 6]).map_err(text)?;
    thread::sleep(MILLISECOND).map_err(text)?;
    let second = start(4, |word| {
        call(word);
        DONE.store(true, Ordering::SeqCst);
    })?;
    let spins = start(9, spin)?;
    let_on(|| true)?;
    holder.join();
    op::domain_kill(victim.entry(), 1).map_err(text)?;
    STOPS.store(true, Ordering::SeqCst);
    spins.join();
    let_on(|| DONE.load(Ordering::SeqCst))?;
    second.join();
    Ok("the second has its turn".to_string())
}
