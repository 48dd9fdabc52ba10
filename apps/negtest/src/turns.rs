//! Waiting for what there is one of, behind those that wait for it with a lower priority, or wait no more. Others keep the CPU from
//! those: the first in a queue may never run.

use alloc::format;
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use idl::{Reply, Request, Words};
use protocols::names::NamesClient;
use protocols::sigma0::Sigma0Client;
use runtime::abi::rights::{MAP_READ, MAP_WRITE};
use runtime::abi::{Control, Error, NEVER, PAGE_BYTES};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::server::{self, Serve, ServeWord};
use runtime::sync::Mutex;
use runtime::thread::{self, Thread};
use runtime::{Direct, Entry, message, table};
use tool::random::Random;

use crate::arch;
use crate::case::{Case, text};
use crate::child::{self, Child};

/// All of them. Each runs in a process of its own.
pub const ALL: &[Case] = &[
    Case::tried("turn-call", "a call behind one of the lowest priority, while another thread spins", call_behind),
    Case::tried(
        "turn-lock",
        "a lock behind one that waits with the lowest priority, while another thread spins",
        lock_behind,
    ),
    Case::tried("turn-again", "a lock that others take again as soon as they let go of it", lock_again),
    Case::tried("turn-dead", "a call behind one whose domain ends before it is restarted", dead_before),
    Case::tried("turn-gone", "a call behind one whose portal is gone before it is restarted", gone_before),
    Case::tried(
        "turn-server",
        "a call of names, and of sigma0, behind one of the lowest priority, while another thread spins",
        || server_behind(Entry::NAMES).and_then(|_| server_behind(Entry::SIGMA0)),
    ),
    Case::tried("turn-fault", "a call behind one whose page is there before it faults again", there_before),
];

pub const MILLISECOND: u64 = 1_000_000;
/// So often somebody looks whether it is done.
const LOOKS: usize = 50;

/// P lets the one that has what there is one of go on.
static GATE: AtomicUsize = AtomicUsize::new(0);
pub static PORTAL: AtomicUsize = AtomicUsize::new(0);
static LOCK: Mutex<()> = Mutex::new(());
/// How many have had it, whether the thread that waits behind others is done, and whether the one that spins stops.
pub static INSIDE: AtomicUsize = AtomicUsize::new(0);
pub static DONE: AtomicBool = AtomicBool::new(false);
pub static STOPS: AtomicBool = AtomicBool::new(false);

pub fn wait_inside() {
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

pub fn call(_: usize) {
    let _ = message::call(Entry(PORTAL.load(Ordering::SeqCst)), [0; 5], Control(0));
}

fn lock(_: usize) {
    let _held = LOCK.lock();
    wait_inside();
}

/// On the first CPU, where all of them are.
pub fn start(priority: u8, work: fn(usize)) -> Result<Thread, String> {
    start_with(priority, work, 0)
}

/// As [`start`], with an argument.
pub fn start_with(priority: u8, work: fn(usize), argument: usize) -> Result<Thread, String> {
    let schedule = Schedule { priority, slice: 1_000 };
    let thread = Thread::start_with(work, argument, Schedule { priority: 0, ..schedule }).map_err(text)?;
    op::thread_schedule_on(thread.entry(), schedule, 1).map_err(text)?;
    thread::sleep(MILLISECOND).map_err(text)?;
    Ok(thread)
}

pub fn spin(_: usize) {
    while !STOPS.load(Ordering::SeqCst) {
        core::hint::spin_loop();
    }
}

/// Makes the gate, the service and its portal. They go when the result does.
pub fn prepare() -> Result<[Owned; 3], String> {
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
pub fn let_on(is_so: impl Fn() -> bool) -> Result<(), String> {
    op::v(Entry(GATE.load(Ordering::SeqCst))).map_err(text)?;
    until(NO_TURN, is_so)
}

/// The failure when [`let_on`] waits in vain.
pub const NO_TURN: &str = "a thread that waits behind others has no turn";

/// Waits until `is_so`; fails with `otherwise` if that takes too long.
pub fn until(otherwise: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
    for _ in 0..LOOKS {
        if is_so() {
            return Ok(());
        }
        thread::sleep(MILLISECOND).map_err(text)?;
    }
    Err(otherwise.to_string())
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

/// Asks the server at this index again and again.
fn ask_always(server: usize) {
    while !STOPS.load(Ordering::SeqCst) {
        ask(server);
    }
}

fn ask(server: usize) {
    if server == Entry::NAMES.0 {
        let _ = NamesClient(Direct(Entry::NAMES)).list(0, &mut [0; 512]);
    } else {
        let _ = Sigma0Client(Direct(Entry::SIGMA0)).draw(0, 0, MAP_READ | MAP_WRITE);
    }
}

/// A thread of priority 0 is preempted in a call of a server with one activation, by one that spins from then on.
fn server_behind(server: Entry) -> Result<String, String> {
    const TRIES: usize = 20_000;
    const SPINS: u64 = 100 * MILLISECOND;
    let kept = prepare()?;
    STOPS.store(false, Ordering::SeqCst);
    DONE.store(false, Ordering::SeqCst);
    let low = start_with(0, ask_always, server.0)?;
    let caller = start_with(
        16,
        |server| {
            wait_inside();
            ask(server);
            DONE.store(true, Ordering::SeqCst);
        },
        server.0,
    )?;
    let mut random = Random(server.0 as u64);
    let is_busy = (0..TRIES).any(|_| {
        let _ = thread::sleep(MILLISECOND / 50 + random.below(MILLISECOND / 20));
        message::call(server, [u64::MAX; 5], Control(Control::NO_WAIT)) == Err(Error::Busy)
    });
    // The caller precedes this thread, and this one that which has the activation.
    let below = Schedule { priority: 15, slice: 10_000 };
    op::thread_schedule_on(Entry::OWN, below, 1).map_err(text)?;
    let begun = op::clock();
    op::v(Entry(GATE.load(Ordering::SeqCst))).map_err(text)?;
    while !DONE.load(Ordering::SeqCst) && op::clock() < begun + SPINS {
        core::hint::spin_loop();
    }
    let waited = op::clock() - begun;
    STOPS.store(true, Ordering::SeqCst);
    [low, caller].into_iter().for_each(Thread::join);
    drop(kept);
    match is_busy {
        true if waited < 5 * MILLISECOND => Ok("names and sigma0 answer".to_string()),
        true => Err(format!("{} answers after {} us", server.0, waited / 1000)),
        false => Err("nobody was ever preempted there".to_string()),
    }
}

/// Holds the lock nearly all the time.
fn lock_always(_: usize) {
    while !STOPS.load(Ordering::SeqCst) {
        let _held = LOCK.lock();
        let until = op::clock() + MILLISECOND / 5;
        while op::clock() < until {}
    }
}

/// Of those that have the lock at the end of their slices, each time.
fn lock_again() -> Result<String, String> {
    const TIMES: usize = 10;
    /// Slices are 1 ms.
    const SOON: u64 = 20 * MILLISECOND;
    let _kept = prepare()?;
    let others = [start(16, lock_always)?, start(16, lock_always)?];
    let mut longest = 0;
    for _ in 0..TIMES {
        let begun = op::clock();
        drop(LOCK.lock());
        longest = longest.max(op::clock() - begun);
        thread::sleep(MILLISECOND).map_err(text)?;
    }
    STOPS.store(true, Ordering::SeqCst);
    others.into_iter().for_each(Thread::join);
    if longest < SOON {
        Ok("each time within some slices".to_string())
    } else {
        Err(format!("after {} us", longest / 1000))
    }
}

/// The second in the queue calls, when the first was woken. Gives what has to be kept until then.
pub fn second() -> Result<[Thread; 2], String> {
    let second = start(4, |word| {
        call(word);
        DONE.store(true, Ordering::SeqCst);
    })?;
    // The first is of priority 8.
    let spins = start(9, spin)?;
    Ok([second, spins])
}

/// The first goes on, and does not call.
pub fn has_its_turn([second, spins]: [Thread; 2]) -> Result<String, String> {
    STOPS.store(true, Ordering::SeqCst);
    spins.join();
    let_on(|| DONE.load(Ordering::SeqCst))?;
    second.join();
    Ok("the second has its turn".to_string())
}

/// The first in the queue is woken, cannot run, and ends.
fn dead_before() -> Result<String, String> {
    let [_gate, service, _portal] = prepare()?;
    let victim = Child::new().map_err(text)?;
    let portal = op::portal_new(victim.entry(), service.entry(), 0, Entry::OWN, 0).map_err(text)?;
    let holder = start(10, call)?;
    let _first = child::calls_in(victim.entry(), portal.0 as u64, [0; 6]).map_err(text)?;
    thread::sleep(MILLISECOND).map_err(text)?;
    let second = second()?;
    let_on(|| true)?;
    holder.join();
    op::domain_kill(victim.entry(), 1).map_err(text)?;
    has_its_turn(second)
}

/// The first in the queue is woken, and finds no portal.
fn gone_before() -> Result<String, String> {
    static OTHER: AtomicUsize = AtomicUsize::new(0);
    let [_gate, service, _portal] = prepare()?;
    let other = table::allocate().map_err(text)?;
    op::portal_new(Entry::OWN, service.entry(), 0, other, 0).map_err(text)?;
    OTHER.store(other.0, Ordering::SeqCst);
    let holder = start(10, call)?;
    let first = start(8, |_| {
        let outcome = message::call(Entry(OTHER.load(Ordering::SeqCst)), [0; 5], Control(0));
        INSIDE.fetch_add(if outcome == Err(Error::Empty) { 100 } else { 0 }, Ordering::SeqCst);
    })?;
    let second = second()?;
    let_on(|| true)?;
    holder.join();
    drop(Owned::new(other));
    let reported = has_its_turn(second)?;
    first.join();
    if INSIDE.load(Ordering::SeqCst) == 102 { Ok(reported) } else { Err("the first called".to_string()) }
}

/// A page fault, at an address that the badge names; the page is there from now on.
struct Pager;

impl ServeWord for Pager {
    fn serve(victim: u64, [address, ..]: Words) -> u64 {
        wait_inside();
        // SAFETY: a page that is only read.
        let mapped = unsafe { op::map(Entry(victim as usize), PAGE.0.as_ptr() as u64, address, 0, MAP_READ) };
        u64::from(mapped.is_err())
    }
}

/// The page that the children read.
#[repr(C, align(4096))]
struct Page([u64; PAGE_BYTES / 8]);
static PAGE: Page = Page([7; PAGE_BYTES / 8]);

/// Two threads fault at the same address. The second is woken when the page is there, and faults no more.
fn there_before() -> Result<String, String> {
    const ADDRESS: u64 = 1 << 40;
    let [_gate, _service, _portal] = prepare()?;
    let pager = Owned::new(server::word_service::<Pager>().map_err(text)?);
    let mut victim = Child::new().map_err(text)?;
    victim.pages_by(pager.entry(), victim.entry().0 as u64, ADDRESS, ADDRESS + PAGE_BYTES as u64).map_err(text)?;
    victim.reads(ADDRESS).map_err(text)?;
    thread::sleep(MILLISECOND).map_err(text)?;
    // It goes on before the other one does, whose end is that of their domain.
    let first = child::start_in(victim.entry(), arch::read, &[ADDRESS]).map_err(text)?;
    op::thread_schedule(first.entry(), Schedule { priority: 12, slice: 1_000 }).map_err(text)?;
    thread::sleep(MILLISECOND).map_err(text)?;
    let second = second()?;
    let_on(|| true)?;
    has_its_turn(second)
}
