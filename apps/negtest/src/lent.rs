//! Priorities that were lent: where they go, and that a thread which loses one yields.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use idl::{Reply, Request, Words};
use protocols::process::OWN;
use runtime::abi::info::{self, Record};
use runtime::abi::rights::MAP_READ;
use runtime::abi::{Control, NEVER, PAGE_BYTES};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::server::{self, Serve, ServeWord};
use runtime::thread::Thread;
use runtime::{Entry, message, table};
use tool::inspect::PROC;

use crate::case::{Case, text};
use crate::child::Child;
use crate::turns::{STOPS, let_on, prepare, spin, start, start_with, until, wait_inside};

/// All of them. Each runs in a process of its own.
pub const ALL: &[Case] = &[
    Case::tried("lent-dead", "the domain dies in which a call has the priority of its portal", dead),
    Case::tried("lent-orphan", "an orphan ends, and the next one has a lower priority", orphan_ends),
    Case::tried("lent-above", "an orphan has a higher priority than the one that has its turn", orphan_comes),
    Case::tried("lent-v", "a thread does V for one that lent to it and ranks below it by now", wakes_the_lower),
    Case::tried("lent-waits", "a priority is lent along more waits than are followed", along_waits),
    Case::tried("lent-most", "an orphan had a priority above the highest of its domain", at_most),
];

const LOW: u8 = 4;
const MIDDLE: u8 = 8;
const HIGH: u8 = 12;

/// The priority of a thread, with what was lent to it.
fn priority(thread: u64) -> u64 {
    let mut record = [0; size_of::<info::Thread>()];
    // An orphan that calls us has no such list of its own: that takes `with admin`.
    let reported = PROC.inspect(info::THREAD | OWN, thread - 1, &mut record);
    let reported = reported.or_else(|_| PROC.inspect(info::THREAD, thread - 1, &mut record));
    reported.ok().and(info::Thread::read(&record)).map_or(u64::MAX, |thread| thread.priority)
}

fn expect(what: &str, found: u64, right: u8) -> Result<(), String> {
    if found == right.into() { Ok(()) } else { Err(format!("{what} is {found}, not {right}")) }
}

/// A portal to a service of the child, which page-faults at `ADDRESS` and so calls [`Pager`].
static FAULTS: AtomicUsize = AtomicUsize::new(0);
const ADDRESS: u64 = 1 << 40;

/// The thread that calls it, and the priority it has when the call has ended.
static CALLER: AtomicU64 = AtomicU64::new(0);
static AFTERWARDS: AtomicU64 = AtomicU64::new(0);
/// The priority with which the pager goes on.
static PAGER: AtomicU64 = AtomicU64::new(0);

/// Waits inside; the page is there from now on.
struct Pager;

impl ServeWord for Pager {
    fn serve(victim: u64, [address, ..]: Words) -> u64 {
        wait_inside();
        PAGER.store(priority(op::thread_id()), Ordering::SeqCst);
        // SAFETY: a page that is only read.
        let mapped = unsafe { op::map(Entry(victim as usize), PAGE.0.as_ptr() as u64, address, 0, MAP_READ) };
        u64::from(mapped.is_err())
    }
}

/// The page that the children read.
#[repr(C, align(4096))]
struct Page([u64; PAGE_BYTES / 8]);
static PAGE: Page = Page([7; PAGE_BYTES / 8]);

/// A child that serves [`FAULTS`], which has a ceiling, and its pager's service.
fn faulting_child(ceiling: u8) -> Result<(Child, Owned), String> {
    let pager = Owned::new(server::word_service::<Pager>().map_err(text)?);
    let victim = Child::new().map_err(text)?;
    let badge = victim.entry().0 as u64;
    victim.pages_by(pager.entry(), badge, ADDRESS, ADDRESS + PAGE_BYTES as u64).map_err(text)?;
    let service = victim.reading_service(1).map_err(text)?;
    let portal = table::allocate().map_err(text)?;
    op::portal_new(Entry::OWN, service, ADDRESS, portal, ceiling.into()).map_err(text)?;
    FAULTS.store(portal.0, Ordering::SeqCst);
    Ok((victim, pager))
}

fn call_child(_: usize) {
    CALLER.store(op::thread_id(), Ordering::SeqCst);
    let _ = message::call(Entry(FAULTS.load(Ordering::SeqCst)), [0; 5], Control(0));
    AFTERWARDS.store(priority(op::thread_id()), Ordering::SeqCst);
}

/// Its thread waits in a pager that the domain called, so the call ends when the domain is removed.
fn dead() -> Result<String, String> {
    let _kept = prepare()?;
    let (victim, _pager) = faulting_child(HIGH)?;
    let caller = start(LOW, call_child)?;
    expect("the priority of the call", priority(CALLER.load(Ordering::SeqCst)), HIGH)?;
    drop(victim);
    caller.join();
    let_on(|| PAGER.load(Ordering::SeqCst) != 0)?;
    expect("the priority after the call", AFTERWARDS.load(Ordering::SeqCst), LOW)?;
    Ok("its caller has its own priority again".to_string())
}

/// The rounds that each of two orphans has done, and whether it ends.
static ROUNDS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static ENDS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// The rounds of the lower one when the higher one ended, and one more than it had when the thread between them ran.
static AT_END: AtomicU64 = AtomicU64::new(0);
static AT_RUN: AtomicU64 = AtomicU64::new(0);
const LOWER: usize = 0;
const HIGHER: usize = 1;

/// The portal to [`Counts`].
static COUNTS: AtomicUsize = AtomicUsize::new(0);

/// Counts until it ends.
struct Counts;

impl Serve for Counts {
    fn serve(request: &mut Request<'_>) -> Reply {
        let number = request.words[1] as usize % ROUNDS.len();
        while ENDS[number].load(Ordering::SeqCst) == 0 {
            ROUNDS[number].fetch_add(1, Ordering::SeqCst);
        }
        if number == HIGHER {
            AT_END.store(ROUNDS[LOWER].load(Ordering::SeqCst), Ordering::SeqCst);
        }
        Reply::word(0)
    }
}

/// An orphan of this domain, with a priority.
fn make_orphan(priority: u8, number: usize) -> Result<(), String> {
    let caller = start_with(
        priority,
        |number| {
            let words = [0, number as u64, 0, 0, 0];
            let _ = message::call(Entry(COUNTS.load(Ordering::SeqCst)), words, Control(0));
        },
        number,
    )?;
    let has_begun = || ROUNDS[number].load(Ordering::SeqCst) != 0;
    until("nobody is called", has_begun)?;
    op::thread_cancel(caller.entry()).map_err(text)?;
    caller.join();
    let before = ROUNDS[number].load(Ordering::SeqCst);
    until("the orphan has no turn", || ROUNDS[number].load(Ordering::SeqCst) != before)
}

/// Makes the portal to [`Counts`]. All threads of this domain are on the first CPU, that of its orphans, too.
fn prepare_orphans() -> Result<[Owned; 5], String> {
    op::domain_set_cpus(Entry::OWN, 1).map_err(text)?;
    let [gate, first, other] = prepare()?;
    server::activations(1).map_err(text)?;
    let service = Owned::new(server::service::<Counts>().map_err(text)?);
    let portal = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0).map_err(text)?;
    COUNTS.store(portal.entry().0, Ordering::SeqCst);
    Ok([gate, first, other, service, portal])
}

/// A thread between the two precedes the lower one as soon as the higher one has ended.
fn orphan_ends() -> Result<String, String> {
    let _kept = prepare_orphans()?;
    make_orphan(LOW, LOWER)?;
    make_orphan(HIGH, HIGHER)?;
    let between = start(MIDDLE, |_| AT_RUN.store(ROUNDS[LOWER].load(Ordering::SeqCst) + 1, Ordering::SeqCst))?;
    if AT_RUN.load(Ordering::SeqCst) != 0 {
        return Err("the higher orphan does not precede it".to_string());
    }
    ENDS[HIGHER].store(1, Ordering::SeqCst);
    between.join();
    ENDS[LOWER].store(1, Ordering::SeqCst);
    let rounds = AT_RUN.load(Ordering::SeqCst) - 1 - AT_END.load(Ordering::SeqCst);
    expect("what the lower one did before", rounds, 0)?;
    Ok("a thread between the two runs first".to_string())
}

/// A thread between the two keeps the lower one from running, but not the higher one.
fn orphan_comes() -> Result<String, String> {
    let _kept = prepare_orphans()?;
    make_orphan(LOW, LOWER)?;
    let between = start(MIDDLE, spin)?;
    let outcome = make_orphan(HIGH, HIGHER);
    ENDS.iter().for_each(|ends| ends.store(1, Ordering::SeqCst));
    STOPS.store(true, Ordering::SeqCst);
    between.join();
    outcome.map(|()| "it precedes a thread between the two".to_string())
}

/// The semaphore of waiters that lend.
static WAITS: AtomicUsize = AtomicUsize::new(0);

/// Waits that the nucleus follows from one waiter.
const FOLLOWED: usize = 8;

/// By number: the activation of a thread that others wait for, from 1, and the thread.
static HOLDERS: [AtomicU64; FOLLOWED + 1] = [const { AtomicU64::new(0) }; FOLLOWED + 1];
static THREADS: [AtomicU64; FOLLOWED + 1] = [const { AtomicU64::new(0) }; FOLLOWED + 1];

fn note_holder(number: usize) {
    HOLDERS[number].store(message::activation() as u64 + 1, Ordering::SeqCst);
    THREADS[number].store(op::thread_id(), Ordering::SeqCst);
}

/// Waits for what one of them holds.
fn wait_for(holder: usize) {
    let holder = HOLDERS[holder].load(Ordering::SeqCst) as u32;
    let _ = op::p_lending(Entry(WAITS.load(Ordering::SeqCst)), NEVER, holder);
}

fn prepare_waits() -> Result<Owned, String> {
    let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    WAITS.store(semaphore.entry().0, Ordering::SeqCst);
    Ok(semaphore)
}

/// The waiter ranks below the one that wakes it, so it is a third thread that goes on.
fn wakes_the_lower() -> Result<String, String> {
    static RAN: AtomicU64 = AtomicU64::new(0);
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let _kept = prepare()?;
    let _waits = prepare_waits()?;
    let holder = start(LOW, |_| {
        note_holder(0);
        wait_inside();
        spin(0);
        let _ = op::v(Entry(WAITS.load(Ordering::SeqCst)));
        SEEN.store(RAN.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
    })?;
    // Its slice is not to end meanwhile.
    op::thread_schedule(holder.entry(), Schedule { priority: LOW, slice: 10_000 }).map_err(text)?;
    let waiter = start(HIGH, |_| wait_for(0))?;
    expect("what the waiter lends", priority(THREADS[0].load(Ordering::SeqCst)), HIGH)?;
    op::thread_schedule(waiter.entry(), Schedule { priority: 1, slice: 1_000 }).map_err(text)?;
    let_on(|| true)?;
    let third = start(MIDDLE, |_| RAN.store(1, Ordering::SeqCst))?;
    expect("what the third one did while the priority was lent", RAN.load(Ordering::SeqCst), 0)?;
    STOPS.store(true, Ordering::SeqCst);
    [holder, waiter, third].into_iter().for_each(Thread::join);
    expect("what the third one did before V came back", SEEN.load(Ordering::SeqCst) - 1, 1)?;
    Ok("the thread that it kept from running goes on at once".to_string())
}

/// Each waits for the one before it.
fn along_waits() -> Result<String, String> {
    let _kept = prepare()?;
    let waits = prepare_waits()?;
    let mut threads = Vec::new();
    for number in 0..=FOLLOWED {
        threads.push(start_with(
            1,
            |number| {
                note_holder(number);
                if number == 0 { wait_inside() } else { wait_for(number - 1) }
            },
            number,
        )?);
    }
    threads.push(start(HIGH, |_| wait_for(FOLLOWED))?);
    let found = THREADS.each_ref().map(|thread| priority(thread.load(Ordering::SeqCst)));
    let_on(|| true)?;
    for _ in 0..=FOLLOWED {
        op::v(waits.entry()).map_err(text)?;
    }
    threads.into_iter().for_each(Thread::join);
    found[1..].iter().try_for_each(|found| expect("what is lent along eight waits", *found, HIGH))?;
    expect("what is lent along nine waits", found[0], 1)?;
    Ok("eight are followed, the ninth is not".to_string())
}

/// The caller of the child has a higher priority than any thread of the child may have, and leaves.
fn at_most() -> Result<String, String> {
    let _kept = prepare()?;
    let (victim, _pager) = faulting_child(0)?;
    op::domain_set_max_priority(victim.entry(), LOW.into()).map_err(text)?;
    let caller = start(HIGH, call_child)?;
    expect("the priority of the call", priority(CALLER.load(Ordering::SeqCst)), HIGH)?;
    op::thread_cancel(caller.entry()).map_err(text)?;
    caller.join();
    let_on(|| PAGER.load(Ordering::SeqCst) != 0)?;
    expect("the priority of the orphan", PAGER.load(Ordering::SeqCst), LOW)?;
    Ok("it has the highest of its domain".to_string())
}
