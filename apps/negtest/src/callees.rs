//! Callees that do not do what their callers hope for. The callee is this program again, in a domain named `victim`
//! with a service: word 0 of a call says what it does. Callers do not share its fate.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use idl::{Reply, Request};
use protocols::names::NamesClient;
use runtime::abi::{Control, Error, MAX_DEPTH, MESSAGE_BYTES, info::status, op as abi_op};
use runtime::connection::Direct;
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::thread::{self, Thread};
use runtime::{Entry, arch, message, op};

use crate::case::{Case, expect};
use crate::deaths;
use crate::launch::Process;

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("callee-exits", "a callee ends its thread instead of returning", exits),
    Case::tried("callee-dies", "a callee dies of a page fault", || dies(READ, status::PAGE_FAULT)),
    Case::tried("callee-overflows", "a callee overflows its stack", || dies(OVERFLOW, status::STACK_OVERFLOW)),
    Case::tried("callee-halts", "a callee runs a privileged instruction", || dies(HALT, crate::arch::HALT_STATUS)),
    Case::tried("callee-panics", "a callee panics", || dies(PANIC, status::KILLED + status::PANICKED)),
    Case::tried("callee-kills-itself", "a callee ends its own domain", || dies(KILL, status::KILLED + 9)),
    Case::tried("callee-killed", "a callee that never returns is killed", killed),
    Case::tried("callee-silent", "a callee never returns, and sleeps", || never(SLEEP)),
    Case::tried("callee-spins", "a callee never returns, and spins", || never(SPIN)),
    Case::tried("callee-late", "a callee returns after its caller stopped waiting", late),
    Case::tried("callee-twice", "a callee returns a second time", twice),
    Case::tried("callee-odd-return", "a callee returns more bytes than there are", odd_return),
    Case::tried("callee-busy", "more callers than the callee has activations", busy),
    Case::tried("callee-crowd", "240 threads call one that can serve two at a time", crowd),
    Case::tried("callee-deep", "a callee calls itself without end", deep),
    Case::tried("callee-sinks", "a callee calls itself as deep as it may, and dies there", sinks),
    Case::tried("caller-dies", "a caller dies while its callee is at work", caller_dies),
];

// The requests to the callee; word 1 is the operand.
const ANSWER: u64 = 0;
const SLEEP: u64 = 1;
const EXIT: u64 = 2;
const READ: u64 = 3;
const OVERFLOW: u64 = 4;
const HALT: u64 = 5;
const PANIC: u64 = 6;
const KILL: u64 = 7;
const SPIN: u64 = 8;
const AGAIN: u64 = 9;
const ODD: u64 = 10;
const DEEP: u64 = 11;
const FINISHED: u64 = 12;
const LOWER: u64 = 13;
const SINK: u64 = 14;

const MILLISECOND: u64 = 1_000_000;
/// Under which the callee is found.
pub const NAME: &str = "negtest-victim";
/// As many as a chain can have, and some.
pub const ACTIVATIONS: usize = MAX_DEPTH + 4;

// The callee's side.

static FINISHED_COUNT: AtomicU64 = AtomicU64::new(0);
static SECOND_RETURN: AtomicU64 = AtomicU64::new(0);
static OWN: AtomicUsize = AtomicUsize::new(0);

struct Victim;

impl Serve for Victim {
    fn serve(request: &mut Request<'_>) -> Reply {
        let operand = request.words[1];
        match request.words[0] {
            ANSWER => return Reply::word(operand + 1),
            SLEEP => {
                let _ = thread::sleep(operand);
                FINISHED_COUNT.fetch_add(1, Ordering::SeqCst);
                return Reply::word(operand);
            }
            EXIT => op::exit(0),
            READ => deaths::read(0),
            OVERFLOW => drop(deaths::recurse(core::hint::black_box(1))),
            HALT => crate::arch::halt(),
            PANIC => panic!("on purpose"),
            KILL => drop(op::domain_kill(Entry::OWN, 9)),
            SPIN => loop {
                core::hint::black_box(operand);
            },
            AGAIN => return Reply::word(again()),
            // SAFETY: refused.
            ODD => return Reply::word(unsafe { arch::leave([0; 5], Control(MESSAGE_BYTES as u64 + 1)) }),
            DEEP => return Reply::word(descend(operand)),
            LOWER => {
                let lowest = op::Schedule { priority: 0, slice: 1_000 };
                return Reply::word(op::thread_schedule(Entry::OWN, lowest).map_or_else(|error| error as u64, |_| 0));
            }
            SINK if operand + 2 == MAX_DEPTH as u64 => deaths::read(0),
            SINK => {
                let own = Entry(OWN.load(Ordering::Relaxed));
                let _ = message::call(own, [SINK, operand + 1, 0, 0, 0], Control(0));
            }
            FINISHED => return Reply::word(FINISHED_COUNT.load(Ordering::SeqCst)),
            _ => {}
        }
        Reply::word(u64::MAX)
    }
}

/// Another thread returns while our caller waits: nobody called it. Gives the error it got.
fn again() -> u64 {
    let other = Thread::start(
        |_| {
            // SAFETY: nobody called, so nothing returns.
            SECOND_RETURN.store(unsafe { arch::leave([666; 5], Control(0)) }, Ordering::SeqCst);
        },
        0,
    );
    match other {
        Ok(other) => other.join(),
        Err(error) => return error as u64,
    }
    SECOND_RETURN.load(Ordering::SeqCst)
}

/// Calls itself until that is refused; gives error and depth.
fn descend(depth: u64) -> u64 {
    let own = Entry(OWN.load(Ordering::Relaxed));
    match message::call(own, [DEEP, depth + 1, 0, 0, 0], Control(0)) {
        Ok((words, _)) => words[0],
        Err(error) => error as u64 | depth << 32,
    }
}

/// Is the callee.
pub fn serve(activations: usize) -> u8 {
    let publish = || -> Result<(), String> {
        let text = |error: Error| error.to_string();
        server::activations(activations).map_err(text)?;
        let service = server::service_with::<Victim>(abi_op::SERVICE_DEADLINE).map_err(text)?;
        let own = runtime::table::allocate().map_err(text)?;
        op::portal_new(Entry::OWN, service, 0, own, 0).map_err(text)?;
        OWN.store(own.0, Ordering::Relaxed);
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
    let _ = Server::ask(entry.entry(), SLEEP, 20 * MILLISECOND);
    0
}

// The caller's side.

/// The callee.
struct Server {
    process: Process,
    entry: Owned,
}

fn open() -> Result<Owned, String> {
    for _ in 0..100 {
        // One that is just going may still be there: it must answer.
        if let Ok(entry) = NamesClient(Direct(Entry::NAMES)).open(NAME) {
            let entry = Owned::new(entry.into());
            if Server::ask(entry.entry(), ANSWER, 1) == Ok(2) {
                return Ok(entry);
            }
        }
        thread::sleep(MILLISECOND).map_err(|error| error.to_string())?;
    }
    Err("the callee cannot be reached".to_string())
}

/// Starts the callee for another test.
pub fn victim() -> Result<(Process, Owned), String> {
    Server::start().map(|server| (server.process, server.entry))
}

/// Asks a callee.
pub fn ask(entry: Entry, what: u64, operand: u64) -> Result<u64, Error> {
    Server::ask(entry, what, operand)
}

impl Server {
    fn start() -> Result<Self, String> {
        let process = Process::start("victim", &["--serve"])?;
        Ok(Self { process, entry: open()? })
    }

    fn ask(entry: Entry, what: u64, operand: u64) -> Result<u64, Error> {
        message::call(entry, [what, operand, 0, 0, 0], Control(0)).map(|(words, _)| words[0])
    }

    fn call(&self, what: u64, operand: u64) -> Result<u64, Error> {
        Self::ask(self.entry.entry(), what, operand)
    }

    /// As `call`, for so many nanoseconds at most.
    fn call_within(&self, what: u64, operand: u64, nanoseconds: u64) -> Result<u64, Error> {
        let words = [what, operand, 0, 0, op::clock() + nanoseconds];
        message::call(self.entry.entry(), words, Control(Control::DEADLINE)).map(|(words, _)| words[0])
    }

    /// It works as it should.
    fn answers(&self) -> Result<(), String> {
        expect("the next call", self.call(ANSWER, 41), Ok(42))
    }

    fn end(self) -> Result<(), String> {
        expect("its end", self.process.kill(), Ok(status::KILLED))
    }
}

fn exits() -> Result<String, String> {
    let server = Server::start()?;
    expect("the call", server.call(EXIT, 0), Err(Error::PeerDied))?;
    server.answers()?;
    server.end()?;
    Ok(format!("the call ends: {}; the callee goes on", Error::PeerDied))
}

fn dies(how: u64, status: u64) -> Result<String, String> {
    let Server { process, entry } = Server::start()?;
    expect("the call", Server::ask(entry.entry(), how, 0), Err(Error::PeerDied))?;
    expect("its status", process.wait(), Ok(status))?;
    expect("the next call", Server::ask(entry.entry(), ANSWER, 1), Err(Error::Revoked))?;
    Ok(format!("the call ends: {}; the next one: {}", Error::PeerDied, Error::Revoked))
}

fn killed() -> Result<String, String> {
    let Server { process, entry } = Server::start()?;
    let process = Arc::new(process);
    let killer = thread::spawn({
        let process = process.clone();
        move || {
            let _ = thread::sleep(5 * MILLISECOND);
            process.begin_end();
        }
    });
    let ended = Server::ask(entry.entry(), SLEEP, 60_000 * MILLISECOND);
    killer.map_err(|error| error.to_string())?.join();
    expect("the call", ended, Err(Error::PeerDied))?;
    expect("its status", Arc::into_inner(process).ok_or("it is still held")?.wait(), Ok(status::KILLED))?;
    Ok(format!("the call ends: {}", Error::PeerDied))
}

fn never(how: u64) -> Result<String, String> {
    const PATIENCE: u64 = 20 * MILLISECOND;
    let server = Server::start()?;
    let start = op::clock();
    expect("the call", server.call_within(how, 60_000 * MILLISECOND, PATIENCE), Err(Error::Timeout))?;
    let waited = op::clock() - start;
    if !(PATIENCE..3 * PATIENCE).contains(&waited) {
        return Err(format!("it waited for {waited} ns"));
    }
    server.answers()?;
    server.end()?;
    Ok(format!("the call ends: {}; the callee answers others", Error::Timeout))
}

fn late() -> Result<String, String> {
    let server = Server::start()?;
    expect("the call", server.call_within(SLEEP, 10 * MILLISECOND, 5 * MILLISECOND), Err(Error::Timeout))?;
    // The late return comes while this one waits.
    expect("the next call", server.call(SLEEP, 20 * MILLISECOND), Ok(20 * MILLISECOND))?;
    expect("what was finished", server.call(FINISHED, 0), Ok(2))?;
    server.end()?;
    Ok("the late return goes nowhere; the next call has its own answer".to_string())
}

fn twice() -> Result<String, String> {
    let server = Server::start()?;
    expect("the second return", server.call(AGAIN, 0), Ok(Error::NoCaller as u64))?;
    server.answers()?;
    server.end()?;
    Ok(format!("the second return is refused: {}", Error::NoCaller))
}

fn odd_return() -> Result<String, String> {
    let server = Server::start()?;
    expect("the return", server.call(ODD, 0), Ok(Error::BadArgument as u64))?;
    server.answers()?;
    server.end()?;
    Ok(format!("the return is refused: {}; a right one follows", Error::BadArgument))
}

fn busy() -> Result<String, String> {
    static SERVER: AtomicUsize = AtomicUsize::new(0);
    static ENDED: AtomicU64 = AtomicU64::new(0);
    const TIME: u64 = 30 * MILLISECOND;
    ENDED.store(0, Ordering::SeqCst);
    let server = Server::start()?;
    SERVER.store(server.entry.entry().0, Ordering::SeqCst);
    let caller = |_| {
        Thread::start(
            |_| {
                if Server::ask(Entry(SERVER.load(Ordering::SeqCst)), SLEEP, TIME) == Ok(TIME) {
                    ENDED.fetch_add(1, Ordering::SeqCst);
                }
            },
            0,
        )
    };
    let callers: Vec<_> = (0..ACTIVATIONS).map(caller).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    thread::sleep(TIME / 3).map_err(|error| error.to_string())?;
    let now = message::call(server.entry.entry(), [ANSWER, 0, 0, 0, 0], Control(Control::NO_WAIT));
    expect("a call that does not wait", now.map(drop), Err(Error::Busy))?;
    let start = op::clock();
    expect("a call with a deadline", server.call_within(ANSWER, 0, MILLISECOND), Err(Error::Timeout))?;
    let waited = op::clock() - start;
    if !(MILLISECOND..TIME / 3).contains(&waited) {
        return Err(format!("it waited for {waited} ns"));
    }
    // This one waits for its turn.
    server.answers()?;
    callers.into_iter().for_each(Thread::join);
    expect("calls that were answered", ENDED.load(Ordering::SeqCst), ACTIVATIONS as u64)?;
    server.end()?;
    Ok(format!("{}, or: {}; waiting threads have their turn", Error::Busy, Error::Timeout))
}

/// Threads of each process of a crowd, and how often each of them calls.
const CALLERS: usize = 60;
const TIMES: u64 = 3;

/// Is a part of a crowd.
pub fn part_of_crowd() -> u8 {
    static WRONG: AtomicUsize = AtomicUsize::new(0);
    static PORTAL: AtomicUsize = AtomicUsize::new(0);
    let call = |number| {
        for time in (0..TIMES).map(|time| 50_000 + 1_000 * time + number as u64) {
            if Server::ask(Entry(PORTAL.load(Ordering::SeqCst)), SLEEP, time) != Ok(time) {
                WRONG.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let Ok(entry) = open() else { return 1 };
    PORTAL.store(entry.entry().0, Ordering::SeqCst);
    let Ok(threads) = (0..CALLERS).map(|number| Thread::start(call, number)).collect::<Result<Vec<_>, _>>() else {
        return 2;
    };
    threads.into_iter().for_each(Thread::join);
    if WRONG.load(Ordering::SeqCst) == 0 { 0 } else { 3 }
}

fn crowd() -> Result<String, String> {
    const PARTS: usize = 4;
    const FRAMES: u64 = 500;
    let process = Process::start("victim", &["--serve", "2"])?;
    let server = Server { process, entry: open()? };
    let parts =
        (0..PARTS).map(|_| Process::start_with("callers", &["--crowd"], FRAMES)).collect::<Result<Vec<_>, _>>()?;
    parts.into_iter().try_for_each(|part| expect("status of callers", part.wait(), Ok(0)))?;
    let calls = (PARTS * CALLERS) as u64 * TIMES;
    expect("calls that were served", server.call(FINISHED, 0), Ok(calls))?;
    server.answers()?;
    server.end()?;
    Ok(format!("{calls} calls have their answers"))
}

fn deep() -> Result<String, String> {
    let server = Server::start()?;
    let end = server.call(DEEP, 1).map_err(|error| error.to_string())?;
    // We are the first of the chain.
    expect("depth and error", (end >> 32, end as u32), (MAX_DEPTH as u64 - 1, Error::TooDeep as u32))?;
    server.answers()?;
    server.end()?;
    Ok(format!("refused at depth {}: {}", end >> 32, Error::TooDeep))
}

/// Our thread leaves all activations of a domain that died, one after the other.
fn sinks() -> Result<String, String> {
    let server = Server::start()?;
    expect("the call", server.call(SINK, 0), Err(Error::PeerDied))?;
    expect("a later one", server.call(ANSWER, 0), Err(Error::Revoked))?;
    expect("its end", server.process.wait(), Ok(status::PAGE_FAULT))?;
    Ok(Error::PeerDied.to_string())
}

/// A callee sets the priority of the thread that runs in it: ours.
pub fn lowers_caller() -> Result<(), Error> {
    let Ok(server) = Server::start() else { return Ok(()) };
    Error::from_status(server.call(LOWER, 0)?)
}

fn caller_dies() -> Result<String, String> {
    let server = Server::start()?;
    let caller = Process::start("caller", &["--call"])?;
    thread::sleep(10 * MILLISECOND).map_err(|error| error.to_string())?;
    expect("its end", caller.kill(), Ok(status::KILLED))?;
    expect("what was finished", server.call(FINISHED, 0), Ok(0))?;
    thread::sleep(20 * MILLISECOND).map_err(|error| error.to_string())?;
    expect("what was finished later", server.call(FINISHED, 0), Ok(1))?;
    server.end()?;
    Ok("the callee finishes its work, and answers others".to_string())
}
