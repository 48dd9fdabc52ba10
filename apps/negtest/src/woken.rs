//! Callers that were woken to call again, and do something else, or have their turn later: the next one must not wait for them.

use alloc::format;
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use idl::{Reply, Request};
use runtime::abi::layout::ENTRY_BYTES;
use runtime::abi::rights::{self, MAP_READ, MAP_WRITE};
use runtime::abi::{Control, Error, NEVER, PAGE_BYTES, op as abi_op};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::server::{self, Serve};
use runtime::thread::{self, Thread};
use runtime::{Entry, message, table};

use crate::arch;
use crate::case::{Case, text};
use crate::child::{self, Child};
use crate::turns::{
    DONE, INSIDE, MILLISECOND, NO_TURN, PORTAL, STOPS, call, has_its_turn, let_on, prepare, second, spin, start,
    start_with, until, wait_inside,
};

/// All of them. Each runs in a process of its own.
pub const ALL: &[Case] = &[
    Case::tried(
        "turn-lent",
        "a call that takes the turn of one that was woken, by lending, while it is about to wait",
        wakes_itself,
    ),
    Case::tried("turn-cancelled", "a call that is cancelled after it was woken, before it is restarted", cancelled),
    Case::tried("turn-pointer", "a call behind one that sets its thread pointer in place of it", pointer_before),
    Case::tried("turn-parked", "a call behind two orphans that have no turn", parked_before),
    Case::tried(
        "turn-two",
        "a call behind one that does something else, and lets an orphan that has no turn call, too",
        behind_two,
    ),
    Case::tried("turn-rest", "a call behind many orphans that have no turn, on a CPU that rests", behind_at_rest),
    Case::tried("turn-new", "a call of a domain that has no activation, and gets one", activation_made),
    Case::tried(
        "turn-falls",
        "an orphan waits for its turn while what was lent to another one is taken back",
        orphan_falls,
    ),
    Case::tried("turn-moved", "an orphan waits for its turn while its domain goes to another CPU", orphan_moved),
    Case::tried("turn-exit", "an interrupt comes while a program ends", exit_late),
];

/// A service whose calls do what word 1 says.
struct Does;
const WAIT: u64 = 0;
const SPIN: u64 = 1;
/// These two first wait for gates of their own.
const SPIN_LATER: u64 = 2;
const CALL_LATER: u64 = 3;
const NOTHING: u64 = 4;
const CALL_ONCE: u64 = 5;
const CALL_OWN: u64 = 6;
const DONE_LATER: u64 = 7;
/// The activation that spins, as P takes it.
static HOLDER: AtomicU64 = AtomicU64::new(0);

/// Calls that spin end.
static SPUN: AtomicBool = AtomicBool::new(false);
static SPIN_GATE: AtomicUsize = AtomicUsize::new(0);
static CALL_GATE: AtomicUsize = AtomicUsize::new(0);
/// The portal that [`CALL_LATER`] calls.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// The portal that [`CALL_ONCE`] calls; [`CALL_OWN`] calls that of this service.
static ONCE: AtomicUsize = AtomicUsize::new(0);

impl Serve for Does {
    fn serve(request: &mut Request<'_>) -> Reply {
        let what = request.words[1];
        match what {
            WAIT => wait_inside(),
            SPIN_LATER => drop(op::p(Entry(SPIN_GATE.load(Ordering::SeqCst)), NEVER)),
            CALL_LATER => {
                let _ = op::p(Entry(CALL_GATE.load(Ordering::SeqCst)), NEVER);
                let _ = message::call(Entry(NEXT.load(Ordering::SeqCst)), [0, NOTHING, 0, 0, 0], Control(0));
            }
            CALL_ONCE => drop(message::call(Entry(ONCE.load(Ordering::SeqCst)), [0; 5], Control(0))),
            CALL_OWN => do_in_call(NOTHING as usize),
            DONE_LATER => {
                let _ = op::p(Entry(CALL_GATE.load(Ordering::SeqCst)), NEVER);
                DONE.store(true, Ordering::SeqCst);
            }
            SPIN => HOLDER.store(message::activation() as u64 + 1, Ordering::SeqCst),
            _ => {}
        }
        while matches!(what, SPIN | SPIN_LATER) && !SPUN.load(Ordering::SeqCst) {
            core::hint::spin_loop();
        }
        Reply::word(0)
    }
}

fn do_in_call(what: usize) {
    let _ = message::call(Entry(PORTAL.load(Ordering::SeqCst)), [0, what as u64, 0, 0, 0], Control(0));
}

/// As [`prepare_all`], with all threads of this domain on the first CPU, that of its orphans, too.
fn prepare_on_first(activations: usize) -> Result<[Owned; 5], String> {
    op::domain_set_cpus(Entry::OWN, 1).map_err(text)?;
    prepare_all(activations)
}

/// As [`prepare`], with a service [`Does`] and so many activations. Gives the gates first: that of [`let_on`], of spinning, of calling.
fn prepare_all(activations: usize) -> Result<[Owned; 5], String> {
    let [gate, ..] = prepare()?;
    server::activations(activations - 1).map_err(text)?;
    let later = |place: &AtomicUsize| {
        let gate = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
        place.store(gate.entry().0, Ordering::SeqCst);
        Ok::<_, String>(gate)
    };
    let (spin_gate, call_gate) = (later(&SPIN_GATE)?, later(&CALL_GATE)?);
    let service = Owned::new(server::service::<Does>().map_err(text)?);
    let portal = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0).map_err(text)?;
    PORTAL.store(portal.entry().0, Ordering::SeqCst);
    Ok([gate, spin_gate, call_gate, service, portal])
}

/// An orphan was woken to call and has its domain's orphan thread. A caller lends to a second orphan, which takes that thread. So the
/// first one loses its turn to call, and the caller is next in the queue: while it is about to wait.
fn wakes_itself() -> Result<String, String> {
    let kept = prepare_on_first(3)?;
    NEXT.store(PORTAL.load(Ordering::SeqCst), Ordering::SeqCst);
    let spins_inside = start_with(4, do_in_call, SPIN as usize)?;
    let holder = start_with(10, do_in_call, WAIT as usize)?;
    op::v(kept[2].entry()).map_err(text)?;
    let waits = start_with(5, do_in_call, CALL_LATER as usize)?;
    op::thread_cancel(waits.entry()).map_err(text)?;
    waits.join();
    let spins = start(9, spin)?;
    let_on(|| true)?;
    holder.join();
    // The first orphan is woken. The second one waits for its turn; its activation is newer, so the caller lends to that.
    op::thread_cancel(spins_inside.entry()).map_err(text)?;
    let takes_its_place = start_with(10, do_in_call, WAIT as usize)?;
    let caller = start_with(
        12,
        |_| {
            do_in_call(NOTHING as usize);
            DONE.store(true, Ordering::SeqCst);
        },
        0,
    )?;
    SPUN.store(true, Ordering::SeqCst);
    until(NO_TURN, || DONE.load(Ordering::SeqCst))?;
    STOPS.store(true, Ordering::SeqCst);
    let_on(|| true)?;
    [spins, spins_inside, takes_its_place, caller].into_iter().for_each(Thread::join);
    drop(kept);
    Ok("it has its turn".to_string())
}

/// The first in the queue is woken, cannot run, and is cancelled. It does not call; the second does.
fn cancelled() -> Result<String, String> {
    let kept = prepare()?;
    let holder = start(10, call)?;
    let first = start(8, |_| {
        let outcome = message::call(Entry(PORTAL.load(Ordering::SeqCst)), [0; 5], Control(0));
        INSIDE.fetch_add(if outcome == Err(Error::Cancelled) { 100 } else { 0 }, Ordering::SeqCst);
    })?;
    let second = second()?;
    let_on(|| true)?;
    holder.join();
    op::thread_cancel(first.entry()).map_err(text)?;
    let reported = has_its_turn(second)?;
    first.join();
    drop(kept);
    if INSIDE.load(Ordering::SeqCst) == 102 { Ok(reported) } else { Err("the first was not cancelled".to_string()) }
}

/// A domain with one activation, in which a thread waits; [`NEXT`] is a portal to it. Every switch to a domain takes the slow path while
/// callers wait for one of its activations. Those of this domain would hide what is tried here, so callers wait elsewhere.
struct Elsewhere {
    child: Child,
    service: Entry,
    badge: u64,
    gate: Owned,
    holder: Thread,
}

impl Elsewhere {
    fn new() -> Result<Self, String> {
        let child = Child::new().map_err(text)?;
        let gate = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
        let (service, badge) = next_waits(&child, &gate, 1)?;
        let holder = start(10, call_next)?;
        Ok(Self { child, service, badge, gate, holder })
    }

    /// Lets the thread that waits go on, and those that call after it.
    fn open(&self) -> Result<(), String> {
        (0..8).try_for_each(|_| op::v(self.gate.entry()).map_err(text))
    }

    /// As [`Self::open`], and waits until that thread has ended. Gives what callers still need.
    fn release(self) -> Result<(Child, Owned), String> {
        self.open()?;
        self.holder.join();
        Ok((self.child, self.gate))
    }
}

/// Makes [`NEXT`] a portal to a child with so many activations, which waits at a gate. Gives the service and the badge.
fn next_waits(child: &Child, gate: &Owned, activations: usize) -> Result<(Entry, u64), String> {
    let (service, badge) = child.waiting_service(gate.entry(), activations).map_err(text)?;
    let portal = table::allocate().map_err(text)?;
    op::portal_new(Entry::OWN, service, badge, portal, 0).map_err(text)?;
    NEXT.store(portal.0, Ordering::SeqCst);
    Ok((service, badge))
}

fn call_next(_: usize) {
    let _ = message::call(Entry(NEXT.load(Ordering::SeqCst)), [0; 5], Control(0));
}

/// When the last in the queue had its answer.
static LAST_WAS: AtomicU64 = AtomicU64::new(0);

/// The last in the queue.
fn call_next_as_last(_: usize) {
    call_next(0);
    LAST_WAS.store(op::clock(), Ordering::SeqCst);
    DONE.store(true, Ordering::SeqCst);
}

/// The first in the queue is woken, finds no portal, sets its thread pointer and waits.
fn pointer_before() -> Result<String, String> {
    let _kept = prepare()?;
    let elsewhere = Elsewhere::new()?;
    let never = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    let victim = Child::new().map_err(text)?;
    let portal = op::portal_new(victim.entry(), elsewhere.service, elsewhere.badge, Entry::OWN, 0).map_err(text)?;
    let waits = victim.give(never.entry(), rights::ALL).map_err(text)?;
    let calls = [
        [(portal.0 * ENTRY_BYTES) as u64, 0, 0, 0, 0, 0, 0],
        [(abi_op::ACTIVATION_SET * ENTRY_BYTES) as u64, abi_op::ACTIVATION_THREAD_POINTER, 0, 0, 0, 0, 0],
        [waits * ENTRY_BYTES as u64, abi_op::P, NEVER, 0, 0, 0, 0],
    ];
    let first = child::start_in(victim.entry(), arch::three_calls, &calls.concat()).map_err(text)?;
    op::thread_schedule_on(first.entry(), Schedule { priority: 8, slice: 1_000 }, 1).map_err(text)?;
    thread::sleep(MILLISECOND).map_err(text)?;
    let second = start(4, call_next_as_last)?;
    let spins = start(9, spin)?;
    // Keeps the CPU from resting until the second has its turn.
    let busy = start(2, spin_behind)?;
    let kept = elsewhere.release()?;
    op::entry_remove(victim.entry(), portal).map_err(text)?;
    let reported = has_its_turn([second, spins]);
    BEHIND.store(true, Ordering::SeqCst);
    busy.join();
    drop(kept);
    reported
}

/// [`spin_behind`] ends.
static BEHIND: AtomicBool = AtomicBool::new(false);

fn spin_behind(_: usize) {
    while !BEHIND.load(Ordering::SeqCst) {
        core::hint::spin_loop();
    }
}

/// The first and the second in the queue are orphans. They are woken, but the orphan thread has another orphan, and does not run.
fn parked_before() -> Result<String, String> {
    let kept = prepare_on_first(3)?;
    let elsewhere = Elsewhere::new()?;
    // Each waits for threads of a higher priority, so nobody lends anything.
    let orphans = [
        start_with(10, do_in_call, SPIN_LATER as usize)?,
        start_with(9, do_in_call, CALL_LATER as usize)?,
        start_with(8, do_in_call, CALL_LATER as usize)?,
    ];
    op::v(kept[2].entry()).map_err(text)?;
    op::v(kept[2].entry()).map_err(text)?;
    let third = start(6, call_next_as_last)?;
    // Keeps the CPU from resting, and orphans from running, until the third has its turn.
    let busy = start(4, spin_behind)?;
    for orphan in &orphans {
        op::thread_schedule(orphan.entry(), Schedule { priority: 2, slice: 1_000 }).map_err(text)?;
        op::thread_cancel(orphan.entry()).map_err(text)?;
    }
    op::v(kept[1].entry()).map_err(text)?;
    let child = elsewhere.release()?;
    let outcome = until("the third has no turn", || DONE.load(Ordering::SeqCst));
    BEHIND.store(true, Ordering::SeqCst);
    SPUN.store(true, Ordering::SeqCst);
    [third, busy].into_iter().chain(orphans).for_each(Thread::join);
    drop(child);
    outcome.map(|()| "the third has its turn".to_string())
}

/// The first in the queue is woken, finds no portal, and returns from the call that it is in. In the domain that it returns from an orphan
/// is first in the queue, which is woken and has no turn. So this CPU has to see to the queues of both domains.
fn behind_two() -> Result<String, String> {
    let kept = prepare_on_first(3)?;
    let elsewhere = Elsewhere::new()?;
    let once = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, elsewhere.service, elsewhere.badge, once.entry(), 0).map_err(text)?;
    ONCE.store(once.entry().0, Ordering::SeqCst);
    // Each waits for threads of a higher priority, so nobody lends anything.
    let has_the_turn = start_with(9, do_in_call, SPIN_LATER as usize)?;
    let first = start_with(8, do_in_call, CALL_ONCE as usize)?;
    let parked = start_with(7, do_in_call, CALL_OWN as usize)?;
    let last = start(6, call_next_as_last)?;
    // Keeps the CPU from resting, and orphans from running, until the last has its turn.
    let busy = start(3, spin_behind)?;
    for orphan in [&has_the_turn, &parked] {
        op::thread_schedule(orphan.entry(), Schedule { priority: 2, slice: 1_000 }).map_err(text)?;
        op::thread_cancel(orphan.entry()).map_err(text)?;
    }
    op::v(kept[1].entry()).map_err(text)?;
    let spins = start(9, spin)?;
    let child = elsewhere.release()?;
    drop(once);
    STOPS.store(true, Ordering::SeqCst);
    let outcome = until("the last has no turn", || DONE.load(Ordering::SeqCst));
    BEHIND.store(true, Ordering::SeqCst);
    SPUN.store(true, Ordering::SeqCst);
    if outcome.is_err() {
        // It would wait for ever.
        let _ = op::thread_cancel(last.entry());
    }
    [spins, has_the_turn, first, parked, last, busy].into_iter().for_each(Thread::join);
    drop(child);
    outcome.map(|()| "the last has its turn".to_string())
}

/// Seven orphans are first in the queue, and the orphan thread spins on another CPU. The orphans are woken when a call returns, when its
/// caller goes on, and when that ends; the others, and the last in the queue, when the CPU has nothing to run.
fn behind_at_rest() -> Result<String, String> {
    /// Nothing else wakes the CPU earlier.
    const LONG: u64 = 20 * MILLISECOND;
    let kept = prepare_all(8)?;
    let schedule = Schedule { priority: 5, slice: 1_000 };
    let spins = Thread::start_with(do_in_call, SPIN as usize, schedule).map_err(text)?;
    // A machine with one CPU keeps it.
    let _ = op::thread_schedule_on(spins.entry(), schedule, 2);
    thread::sleep(MILLISECOND).map_err(text)?;
    op::thread_cancel(spins.entry()).map_err(text)?;
    // The thread leaves that CPU to its orphan.
    op::thread_schedule(spins.entry(), Schedule { priority: 1, slice: 1_000 }).map_err(text)?;
    let elsewhere = Elsewhere::new()?;
    let orphans = [9, 9, 8, 8, 8, 7, 7].map(|priority| start_with(priority, do_in_call, CALL_LATER as usize));
    for _ in &orphans {
        op::v(kept[2].entry()).map_err(text)?;
    }
    thread::sleep(MILLISECOND).map_err(text)?;
    let last = start(6, call_next_as_last)?;
    for orphan in orphans.iter().flatten() {
        op::thread_schedule(orphan.entry(), Schedule { priority: 2, slice: 1_000 }).map_err(text)?;
        op::thread_cancel(orphan.entry()).map_err(text)?;
    }
    thread::sleep(MILLISECOND).map_err(text)?;
    let opened = op::clock();
    elsewhere.open()?;
    thread::sleep(LONG).map_err(text)?;
    SPUN.store(true, Ordering::SeqCst);
    let child = elsewhere.release()?;
    [spins, last].into_iter().chain(orphans.into_iter().flatten()).for_each(Thread::join);
    drop(child);
    match LAST_WAS.load(Ordering::SeqCst).saturating_sub(opened) {
        soon if soon < LONG / 2 => Ok("the last has its turn".to_string()),
        late => Err(format!("the last has its turn after {} us", late / 1000)),
    }
}

/// A caller waits for an activation where there is none, until one is made.
fn activation_made() -> Result<String, String> {
    let child = Child::new().map_err(text)?;
    let gate = Owned::new(op::semaphore_new(Entry::ACCOUNT, 1).map_err(text)?);
    next_waits(&child, &gate, 0)?;
    let caller = start(4, call_next_as_last)?;
    thread::sleep(MILLISECOND).map_err(text)?;
    if DONE.load(Ordering::SeqCst) {
        return Err("it did not wait".to_string());
    }
    child.activation().map_err(text)?;
    until("the caller has no turn", || DONE.load(Ordering::SeqCst))?;
    caller.join();
    Ok("the caller has its turn".to_string())
}

/// A call that has lost its caller.
fn orphan(priority: u8, what: u64) -> Result<(), String> {
    let caller = start_with(priority, do_in_call, what as usize)?;
    op::thread_cancel(caller.entry()).map_err(text)?;
    caller.join();
    Ok(())
}

/// The semaphore that [`orphan_falls`] waits for with P, and lends for.
static LENT_FOR: AtomicUsize = AtomicUsize::new(0);

/// An orphan of 4 has its turn, and a thread of 6 lends to it. An orphan of 9 is woken; then the thread of 6 waits no more. So what is lent
/// is taken back, and the orphan of 9 still precedes a thread of 7.
fn orphan_falls() -> Result<String, String> {
    let kept = prepare_on_first(4)?;
    let lent_for = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    LENT_FOR.store(lent_for.entry().0, Ordering::SeqCst);
    orphan(9, DONE_LATER)?;
    orphan(4, SPIN)?;
    let lends = start(6, |_| {
        let holder = HOLDER.load(Ordering::SeqCst) as u32;
        let _ = op::p_lending(Entry(LENT_FOR.load(Ordering::SeqCst)), NEVER, holder);
    })?;
    let spins = start(7, spin)?;
    op::v(kept[2].entry()).map_err(text)?;
    op::v(lent_for.entry()).map_err(text)?;
    let outcome = until("an orphan of 9 waits behind a thread of 7", || DONE.load(Ordering::SeqCst));
    SPUN.store(true, Ordering::SeqCst);
    STOPS.store(true, Ordering::SeqCst);
    [spins, lends].into_iter().for_each(Thread::join);
    outcome.map(|()| "an orphan of 9 precedes a thread of 7".to_string())
}

/// An orphan is woken, and before its thread is dispatched its domain may run on the second CPU only, which has something to do.
fn orphan_moved() -> Result<String, String> {
    const BOTH: u64 = 3;
    const SECOND: u64 = 2;
    let kept = prepare_all(3)?;
    // The orphan thread comes to this CPU.
    op::domain_set_cpus(Entry::OWN, BOTH).map_err(text)?;
    orphan(4, DONE_LATER)?;
    let spins = start(3, spin)?;
    op::thread_schedule_on(spins.entry(), Schedule { priority: 3, slice: 1_000 }, SECOND).map_err(text)?;
    thread::sleep(20 * MILLISECOND).map_err(text)?;
    op::v(kept[2].entry()).map_err(text)?;
    op::domain_set_cpus(Entry::OWN, SECOND).map_err(text)?;
    let outcome = until("the orphan has no turn", || DONE.load(Ordering::SeqCst));
    STOPS.store(true, Ordering::SeqCst);
    spins.join();
    outcome.map(|()| "the orphan has its turn on the second CPU".to_string())
}

/// The thread of [`exit_late`] waits until this time, when it is let.
static WAKES_AT: AtomicU64 = AtomicU64::new(0);

fn wakes_later(_: usize) {
    while !STOPS.load(Ordering::SeqCst) {
        wait_inside();
        let _ = thread::sleep(WAKES_AT.load(Ordering::SeqCst).saturating_sub(op::clock()));
    }
}

/// A page that a program writes to if it continues after its end.
#[repr(C, align(4096))]
struct After([AtomicU64; PAGE_BYTES / 8]);
static AFTER: After = After([const { AtomicU64::new(0) }; PAGE_BYTES / 8]);

/// Programs end, with status 0 and 1, and would write next. A thread that precedes nobody wakes at every few instructions
/// of their end.
fn exit_late() -> Result<String, String> {
    const ROUNDS: u64 = 400;
    /// From here to the end of a program, and how much later in each round; in nanoseconds.
    const FIRST: u64 = 5_000;
    const STEP: u64 = 50;
    let kept = prepare()?;
    let after = &raw const AFTER as u64;
    let wakes = start(0, wakes_later)?;
    for round in 0..ROUNDS {
        let victim = Child::new().map_err(text)?;
        // SAFETY: only a program that goes on after its end writes there.
        unsafe { op::map(victim.entry(), after, after, 0, MAP_READ | MAP_WRITE) }.map_err(text)?;
        WAKES_AT.store(op::clock() + FIRST + round * STEP, Ordering::SeqCst);
        op::v(kept[0].entry()).map_err(text)?;
        thread::sleep(FIRST - 1_000).map_err(text)?;
        let first = child::start_in(victim.entry(), arch::exit_and_write, &[round & 1, after]).map_err(text)?;
        op::thread_schedule_on(first.entry(), Schedule { priority: 8, slice: 1_000 }, 1).map_err(text)?;
        thread::sleep(20 * FIRST).map_err(text)?;
        if AFTER.0[0].load(Ordering::SeqCst) != 0 {
            return Err(format!("it goes on after its end, in round {round}"));
        }
    }
    STOPS.store(true, Ordering::SeqCst);
    op::v(kept[0].entry()).map_err(text)?;
    wakes.join();
    drop(kept);
    Ok(format!("{ROUNDS} programs end, and do nothing more"))
}
