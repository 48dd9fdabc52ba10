//! Negative tests of lenders and receivers of windows. The callee is this program again, in a domain named `victim` with a service
//! that takes windows: word 0 of a call says what it does. It uses a window without asking whether it may.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use idl::{Reply, Request};
use protocols::names::NamesClient;
use runtime::abi::rights::{MAP_READ, MAP_WRITE, UNMAP_SELF};
use runtime::abi::window::WRITABLE;
use runtime::abi::{Control, Error, PAGE_BYTES, info::status, layout};
use runtime::connection::Direct;
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::thread::{self, Thread};
use runtime::{Entry, message, op};

use crate::case::Case;
use crate::launch::Process;

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("window-kept", "a callee reads its window after its return", || dies(KEEP, USE, 1)),
    Case::tried("window-passed", "a callee reads past its window", || dies(ANSWER, BEHIND, 1)),
    Case::tried("window-written", "a callee writes to a window that is to be read", || dies(ANSWER, WRITE, 1)),
    Case::tried("window-run", "a callee jumps into its window", || dies(ANSWER, JUMP, 1)),
    Case::tried("window-pages-written", "a callee writes to a window of two pages that are to be read", || {
        dies(ANSWER, WRITE, 2)
    }),
    Case::tried("window-pages-run", "a callee jumps into its window of two pages", || dies(ANSWER, JUMP, 2)),
    Case::tried("window-dropped", "a callee dies with a window open", || dies(ANSWER, KILL, 1)),
    Case::tried("window-exited", "a callee ends its thread with a window open", exits),
    Case::tried("window-killed", "a callee is killed with a window open", killed),
    Case::tried("window-unmapped", "a caller unmaps a page that it lends", || taken(MAP_READ | UNMAP_SELF)),
    Case::tried("window-reduced", "a caller takes the right to write from a page that it lends", || {
        taken(MAP_WRITE | UNMAP_SELF)
    }),
    Case::tried("window-cancelled", "a call with a window is cut off", cancelled),
    Case::tried("window-orphaned", "a caller is killed while its callee has a window", orphaned),
    Case::tried("window-moved", "a caller goes to another CPU while its callee has a window", moved),
    Case::tried("window-crowd", "28 windows of the same 16 pages, which go", crowd),
    Case::tried("window-chain", "a call is cut off below a window of 16 pages that was handed on three times", chain),
    Case::tried("window-peeked", "a callee reads the slot of a window that is open on another CPU", peeked),
];

// The requests to the callee; word 1 is the operand.
const ANSWER: u64 = 0;
const KEEP: u64 = 1;
const USE: u64 = 2;
const BEHIND: u64 = 3;
const WRITE: u64 = 4;
const JUMP: u64 = 5;
const KILL: u64 = 6;
const EXIT: u64 = 7;
const WAIT: u64 = 8;
const SPIN: u64 = 9;
const SEEN: u64 = 10;
const HAND_ON: u64 = 11;
const NAP: u64 = 12;

const MILLISECOND: u64 = 1_000_000;
/// Under which the callee is found.
const NAME: &str = "negtest-window";
const ACTIVATIONS: usize = 28;

// The callee's side.

static KEPT: AtomicU64 = AtomicU64::new(0);
static SEEN_LAST: AtomicU64 = AtomicU64::new(0);
static OWN: AtomicUsize = AtomicUsize::new(0);

struct Victim;

fn read(address: u64) -> u64 {
    // SAFETY: none is needed to die.
    unsafe { (address as *const u64).read_volatile() }
}

fn write(address: u64, word: u64) {
    // SAFETY: a window, of which nobody has a reference; or we die.
    unsafe { (address as *mut u64).write_volatile(word) }
}

impl Serve for Victim {
    fn serve(request: &mut Request<'_>) -> Reply {
        let operand = request.words[1];
        let window = request.window.as_ref().map_or(0, |window| window.word());
        let base = window & !(PAGE_BYTES as u64 - 1);
        match request.words[0] {
            ANSWER => {}
            KEEP => KEPT.store(base, Ordering::SeqCst),
            USE => return Reply::word(read(KEPT.load(Ordering::SeqCst))),
            BEHIND => return Reply::word(read(base + (window & 0x1f) * PAGE_BYTES as u64)),
            WRITE => write(base, operand),
            JUMP => {
                // SAFETY: `nothing` is there. It is not executed, so we die.
                let code: extern "C" fn() = unsafe { core::mem::transmute((base + operand) as usize) };
                code();
            }
            KILL => drop(op::domain_kill(Entry::OWN, 9)),
            EXIT => op::exit(0),
            WAIT | SPIN => {
                KEPT.store(base, Ordering::SeqCst);
                let first = read(base);
                let end = op::clock() + operand;
                if request.words[0] == WAIT {
                    let _ = thread::sleep(operand);
                }
                while op::clock() < end {
                    core::hint::black_box(read(base));
                }
                let mut last = read(base);
                match window & WRITABLE {
                    0 => last |= read(base + 8),
                    _ => write(base + 8, last + 1),
                }
                SEEN_LAST.store(last | 1 << 63, Ordering::SeqCst);
                return Reply { words: [first, last, base, 0, 0], control: Control(0) };
            }
            NAP => {
                // It does not look again.
                let first = read(base);
                let _ = thread::sleep(operand);
                return Reply { words: [first, 0, 0, 0, 0], control: Control(0) };
            }
            HAND_ON => {
                let (what, time) = if operand == 0 { (WAIT, 30 * MILLISECOND) } else { (HAND_ON, operand - 1) };
                let answer = ask(Entry(OWN.load(Ordering::SeqCst)), what, time, window);
                let [first, last] = answer.unwrap_or_else(|error| [u64::MAX, error as u64]);
                return Reply { words: [first, last, 0, 0, 0], control: Control(0) };
            }
            SEEN => return Reply::word(SEEN_LAST.swap(0, Ordering::SeqCst)),
            _ => return Reply::word(u64::MAX),
        }
        Reply::word(if base == 0 { operand } else { read(base) })
    }
}

/// Is the callee.
pub fn serve() -> u8 {
    let publish = || -> Result<(), String> {
        server::activations(ACTIVATIONS).map_err(|error| error.to_string())?;
        let service = server::window_service::<Victim>().map_err(|error| error.to_string())?;
        let own = runtime::table::allocate().map_err(|error| error.to_string())?;
        op::portal_new(Entry::OWN, service, 0, own, 0).map_err(|error| error.to_string())?;
        OWN.store(own.0, Ordering::SeqCst);
        server::publish_service(NAME, service).map_err(|error| error.to_string())
    };
    match publish() {
        Ok(()) => server::park(),
        Err(error) => {
            runtime::log!("cannot serve: {error}");
            1
        }
    }
}

/// Is a caller that is going to die.
pub fn call() -> u8 {
    let Ok(entry) = open() else { return 1 };
    let _ = ask(entry.entry(), SPIN, 30 * MILLISECOND, own() | 1 | WRITABLE);
    0
}

// The caller's side.

#[repr(C, align(4096))]
struct Lent([AtomicU64; PAGE_BYTES / 8]);

/// The page that is lent, one that is not, and three that are lent and go.
static LENT: [Lent; 5] = [const { Lent([const { AtomicU64::new(0) }; PAGE_BYTES / 8]) }; 5];

/// The value of its first word.
const MARK: u64 = 0x5eed;

/// The address of the page, with the mark in it.
fn own() -> u64 {
    LENT[0].0[0].store(MARK, Ordering::SeqCst);
    LENT[0].0[1].store(0, Ordering::SeqCst);
    LENT[1].0[0].store(!MARK, Ordering::SeqCst);
    LENT[0].0.as_ptr() as u64
}

fn open() -> Result<Owned, String> {
    for _ in 0..200 {
        if let Ok(entry) = NamesClient(Direct(Entry::NAMES)).open(NAME) {
            let entry = Owned::new(entry.into());
            if message::call(entry.entry(), [ANSWER, 7, 0, 0, 0], Control(0)).is_ok_and(|(words, _)| words[0] == 7) {
                return Ok(entry);
            }
        }
        thread::sleep(MILLISECOND).map_err(|error| error.to_string())?;
    }
    Err("the callee cannot be reached".to_string())
}

/// Words 0 and 1 of the answer to a call with a window, or without.
fn ask(entry: Entry, what: u64, operand: u64, window: u64) -> Result<[u64; 2], Error> {
    let control = Control(if window == 0 { 0 } else { Control::WINDOW });
    // SAFETY: pages of `LENT`, code, which is not written, or pages that cannot be lent.
    let answer = unsafe { message::call_showing(entry, [what, operand, 0, 0, window], control) };
    answer.map(|(words, _)| [words[0], words[1]])
}

fn start() -> Result<(Process, Owned), String> {
    let process = Process::start("victim", &["--serve-windows"])?;
    Ok((process, open()?))
}

fn expect<T: PartialEq + core::fmt::Debug>(what: &str, is: T, right: T) -> Result<(), String> {
    if is == right { Ok(()) } else { Err(format!("{what}: {is:x?} instead of {right:x?}")) }
}

/// It works as it should, and sees what we lend, and nothing else.
fn answers(entry: Entry) -> Result<(), String> {
    expect("a message area", ask(entry, ANSWER, 0, layout::MESSAGE_START | 1), Err(Error::Reserved))?;
    expect("the next window", ask(entry, ANSWER, 0, own() | 1), Ok([MARK, 0]))
}

/// The callee would return from it.
#[inline(never)]
extern "C" fn nothing() {}

/// After a call that does `first`, a call with a window of so many pages does `how`, and the callee dies.
fn dies(first: u64, how: u64, pages: u64) -> Result<String, String> {
    let (process, entry) = start()?;
    expect("the first call", ask(entry.entry(), first, 0, own() | 1), Ok([MARK, 0]))?;
    let code = nothing as *const () as u64;
    let in_page = PAGE_BYTES as u64 - 1;
    let (window, operand) = match how {
        USE => (0, 0),
        // It may be executed here.
        JUMP => (code & !in_page | pages, code & in_page),
        _ => (own() | pages, MARK + 1),
    };
    // The code of portals opens a window on one page that was lent before, the nucleus all others.
    if window != 0 {
        ask(entry.entry(), ANSWER, 0, window).map_err(|error| error.to_string())?;
    }
    expect("the call", ask(entry.entry(), how, operand, window), Err(Error::PeerDied))?;
    expect("the page", LENT[0].0[0].load(Ordering::SeqCst), MARK)?;
    let ended = if how == KILL { status::KILLED + 9 } else { status::PAGE_FAULT };
    expect("its status", process.wait(), Ok(ended))?;
    expect("the call after that", ask(entry.entry(), ANSWER, 1, own() | 1), Err(Error::Revoked))?;
    Ok(format!("the call ends: {}", Error::PeerDied))
}

fn exits() -> Result<String, String> {
    let (process, entry) = start()?;
    expect("the call", ask(entry.entry(), EXIT, 0, own() | 1 | WRITABLE), Err(Error::PeerDied))?;
    answers(entry.entry())?;
    expect("its end", process.kill(), Ok(status::KILLED))?;
    Ok(format!("the call ends: {}; the callee goes on", Error::PeerDied))
}

fn killed() -> Result<String, String> {
    let (process, entry) = start()?;
    let process = Arc::new(process);
    let killer = thread::spawn({
        let process = process.clone();
        move || {
            let _ = thread::sleep(5 * MILLISECOND);
            process.begin_end();
        }
    });
    let ended = ask(entry.entry(), WAIT, 60_000 * MILLISECOND, own() | 1 | WRITABLE);
    killer.map_err(|error| error.to_string())?.join();
    expect("the call", ended, Err(Error::PeerDied))?;
    expect("its status", Arc::into_inner(process).ok_or("it is still held")?.wait(), Ok(status::KILLED))?;
    Ok(format!("the call ends: {}", Error::PeerDied))
}

/// A call that takes its time, from a thread of ours.
fn begin(entry: Entry, what: u64, time: u64, window: u64) -> Result<(Thread, Arc<[AtomicU64; 3]>), String> {
    begin_on(None, entry, what, time, window)
}

/// The same on a given CPU.
fn begin_on(
    cpu: Option<u64>,
    entry: Entry,
    what: u64,
    time: u64,
    window: u64,
) -> Result<(Thread, Arc<[AtomicU64; 3]>), String> {
    let result = Arc::new([const { AtomicU64::new(0) }; 3]);
    let its = result.clone();
    let caller = thread::spawn(move || {
        if let Some(cpu) = cpu {
            let _ = pin(Entry::OWN, cpu);
        }
        let [error, first, last] = match ask(entry, what, time, window) {
            Ok([first, last]) => [0, first, last],
            Err(error) => [error as u64, 0, 0],
        };
        its[1].store(first, Ordering::SeqCst);
        its[2].store(last, Ordering::SeqCst);
        its[0].store(error, Ordering::SeqCst);
    })
    .map_err(|error| error.to_string())?;
    thread::sleep(5 * MILLISECOND).map_err(|error| error.to_string())?;
    Ok((caller, result))
}

fn ended(caller: Thread, result: &[AtomicU64; 3]) -> [u64; 3] {
    caller.join();
    [0, 1, 2].map(|word: usize| result[word].load(Ordering::SeqCst))
}

fn taken(rights: u64) -> Result<String, String> {
    let (process, entry) = start()?;
    // The callee spins on one CPU while we unmap on the other, if there is one.
    let apart = pin(Entry::OWN, 1).is_ok();
    for (round, what) in [WAIT, SPIN].into_iter().enumerate() {
        // Nobody brings a page of ours that is gone: each round has its own.
        let page = &LENT[2 + round];
        let address = page.0.as_ptr() as u64;
        page.0[0].store(MARK, Ordering::SeqCst);
        let window = address | 1 | WRITABLE;
        let (caller, result) = begin_on(apart.then_some(0), entry.entry(), what, 20 * MILLISECOND, window)?;
        // SAFETY: words whose values nobody relies on.
        unsafe { op::unmap(Entry::OWN, address, 0, rights) }.map_err(|error| error.to_string())?;
        expect("what the callee saw", ended(caller, &result), [0, MARK, 0])?;
        let refused = ask(entry.entry(), ANSWER, 0, address | 1 | WRITABLE);
        let seen = ask(entry.entry(), ANSWER, 0, address | 1);
        if rights & MAP_READ == 0 {
            expect("the page", [page.0[0].load(Ordering::SeqCst), page.0[1].load(Ordering::SeqCst)], [MARK, 0])?;
            expect("a window to be written", refused, Err(Error::PageRights))?;
            expect("a window to be read", seen, Ok([MARK, 0]))?;
        } else {
            expect("a window on nothing", [refused, seen], [Err(Error::NotMapped); 2])?;
        }
        answers(entry.entry())?;
    }
    if rights & MAP_READ != 0 {
        // Nor does it see there what it wrote for another caller.
        let page = &LENT[4];
        page.0[0].store(MARK, Ordering::SeqCst);
        let address = page.0.as_ptr() as u64;
        let (caller, result) = begin(entry.entry(), WAIT, 20 * MILLISECOND, address | 1)?;
        // SAFETY: words whose values nobody relies on.
        unsafe { op::unmap(Entry::OWN, address, 0, rights) }.map_err(|error| error.to_string())?;
        expect("what the callee saw", ended(caller, &result), [0, MARK, 0])?;
    }
    expect("its end", process.kill(), Ok(status::KILLED))?;
    Ok("the callee sees scrap from then on, and goes on".to_string())
}

fn cancelled() -> Result<String, String> {
    let (process, entry) = start()?;
    for what in [WAIT, SPIN] {
        let (caller, result) = begin(entry.entry(), what, 30 * MILLISECOND, own() | 1 | WRITABLE)?;
        op::thread_cancel(caller.entry()).map_err(|error| error.to_string())?;
        expect("the call", ended(caller, &result)[0], Error::Cancelled as u64)?;
        saw_scrap(entry.entry())?;
        expect("what it wrote", LENT[0].0[1].load(Ordering::SeqCst), 0)?;
        answers(entry.entry())?;
    }
    expect("its end", process.kill(), Ok(status::KILLED))?;
    Ok(format!("the call ends: {}; the callee sees scrap, and goes on", Error::Cancelled))
}

/// Waits until a call that nobody waits for has ended, which saw zeros at last.
fn saw_scrap(entry: Entry) -> Result<(), String> {
    for _ in 0..1000 {
        match ask(entry, SEEN, 0, 0).map_err(|error| error.to_string())? {
            [0, _] => thread::sleep(MILLISECOND).map_err(|error| error.to_string())?,
            [seen, _] => return expect("what the callee saw", seen, 1 << 63),
        }
    }
    Err("the callee hangs".to_string())
}

fn orphaned() -> Result<String, String> {
    let (process, entry) = start()?;
    let caller = Process::start("caller", &["--lend"])?;
    thread::sleep(15 * MILLISECOND).map_err(|error| error.to_string())?;
    expect("its end", caller.kill(), Ok(status::KILLED))?;
    saw_scrap(entry.entry())?;
    answers(entry.entry())?;
    expect("its end", process.kill(), Ok(status::KILLED))?;
    Ok("the callee sees scrap, finishes its work, and answers others".to_string())
}

/// From now on a thread, or ours, runs on that CPU only.
fn pin(thread: Entry, cpu: u64) -> Result<(), String> {
    let schedule = op::Schedule { priority: 10, slice: 1_000 };
    op::thread_schedule_on(thread, schedule, 1 << cpu).map(drop).map_err(|error| error.to_string())
}

fn moved() -> Result<String, String> {
    let (process, entry) = start()?;
    let mut moves = 0;
    for round in 0..6 {
        for (what, pages) in [(WAIT, 1), (SPIN, 1), (NAP, 1), (WAIT, 2), (SPIN, 2), (NAP, 2)] {
            let [here, there] = [round % 2, (round + 1) % 2];
            pin(Entry::OWN, there)?;
            let (caller, result) = begin(entry.entry(), what, 15 * MILLISECOND, own() | pages | WRITABLE)?;
            for cpu in [here, there, here] {
                pin(caller.entry(), cpu)?;
                moves += 1;
                thread::sleep(2 * MILLISECOND).map_err(|error| error.to_string())?;
            }
            let wrote = if what == NAP { 0 } else { MARK + 1 };
            expect("what the callee saw", ended(caller, &result), [0, MARK, if what == NAP { 0 } else { MARK }])?;
            expect("what it wrote", LENT[0].0[1].load(Ordering::SeqCst), wrote)?;
            // The nucleus looks whether the slot is empty, on all CPUs.
            pin(Entry::OWN, here)?;
            for pages in [2, 1] {
                expect("the next window", ask(entry.entry(), ANSWER, 0, own() | pages), Ok([MARK, 0]))?;
            }
        }
    }
    expect("its end", process.kill(), Ok(status::KILLED))?;
    Ok(format!("the window goes along, {moves} times and more"))
}

fn peeked() -> Result<String, String> {
    let (process, entry) = start()?;
    // No window has come to this CPU.
    pin(Entry::OWN, 1)?;
    let portal = entry.entry();
    let other = thread::spawn(move || {
        let _ = pin(Entry::OWN, 0);
        let _ = ask(portal, SPIN, 200 * MILLISECOND, own() | 1);
    })
    .map_err(|error| error.to_string())?;
    thread::sleep(20 * MILLISECOND).map_err(|error| error.to_string())?;
    expect("the look", ask(entry.entry(), USE, 0, 0), Err(Error::PeerDied))?;
    other.join();
    expect("its status", process.wait(), Ok(status::PAGE_FAULT))?;
    Ok("the callee dies of it".to_string())
}

/// Pages that are lent together, and go.
static MANY: [Lent; 16] = [const { Lent([const { AtomicU64::new(0) }; PAGE_BYTES / 8]) }; 16];

fn crowd() -> Result<String, String> {
    let (process, entry) = start()?;
    MANY[0].0[0].store(MARK, Ordering::SeqCst);
    MANY[1..].iter().for_each(|page| page.0[0].store(1, Ordering::SeqCst));
    let window = MANY[0].0.as_ptr() as u64 | 16 | WRITABLE;
    let mut callers = Vec::new();
    for _ in 0..ACTIVATIONS {
        callers.push(begin(entry.entry(), WAIT, 400 * MILLISECOND, window)?);
    }
    for page in &MANY {
        // SAFETY: words whose values nobody relies on.
        unsafe { op::unmap(Entry::OWN, page.0.as_ptr() as u64, 0, MAP_READ | UNMAP_SELF) }
            .map_err(|error| error.to_string())?;
    }
    for (caller, result) in callers {
        expect("what the callee saw", ended(caller, &result), [0, MARK, 0])?;
    }
    answers(entry.entry())?;
    expect("its end", process.kill(), Ok(status::KILLED))?;
    Ok(format!("{ACTIVATIONS} callees see scrap from then on"))
}

fn chain() -> Result<String, String> {
    const HANDED_ON: u64 = runtime::abi::window::MAX_HANDED_ON as u64;
    let (process, entry) = start()?;
    MANY[0].0[0].store(MARK, Ordering::SeqCst);
    let window = MANY[0].0.as_ptr() as u64 | 16 | WRITABLE;
    let (caller, result) = begin(entry.entry(), HAND_ON, HANDED_ON - 1, window)?;
    expect("what the last callee saw", ended(caller, &result), [0, MARK, MARK])?;
    expect("what it wrote", MANY[0].0[1].swap(0, Ordering::SeqCst), MARK + 1)?;
    let _ = ask(entry.entry(), SEEN, 0, 0);
    let too_far = ask(entry.entry(), HAND_ON, HANDED_ON, window);
    expect("once more", too_far, Ok([u64::MAX, Error::TooOften as u64]))?;
    let (caller, result) = begin(entry.entry(), HAND_ON, HANDED_ON - 1, window)?;
    op::thread_cancel(caller.entry()).map_err(|error| error.to_string())?;
    expect("the call", ended(caller, &result)[0], Error::Cancelled as u64)?;
    saw_scrap(entry.entry())?;
    expect("what it wrote after that", MANY[0].0[1].load(Ordering::SeqCst), 0)?;
    answers(entry.entry())?;
    expect("its end", process.kill(), Ok(status::KILLED))?;
    Ok("the last callee sees scrap, and all go on".to_string())
}
