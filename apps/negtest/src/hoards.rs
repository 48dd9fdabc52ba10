//! Negative tests of programs that take all of a shared resource, and never give it back.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use idl::{Delegate, Failure, Protocol, Reply, Request};
use protocols::file::{FileClient, FileError, WRITE};
use protocols::process::{Force, KEPT, ProcessError};
use protocols::sigma0::{Sigma0Client, Sigma0Error};
use protocols::stream::{StreamClient, StreamError, StreamServer};
use runtime::abi::{PAGE_BYTES, info, layout, level, rights};
use runtime::connection::Connection;
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::stream::FILE_SYSTEM;
use runtime::sync::Mutex;
use runtime::{Direct, Entry, op, thread};
use sockets::{Endpoint, NetError, Session};

use loader::startup::Contents;
use runtime::child::Child;
use tool::inspect::{self, PROC};

use crate::case::{Case, text};
use crate::{launch, leaks, statuses};

/// All of them. `sockets` needs a system with a network.
pub const ALL: &[Case] = &[
    Case::tried("tickets", "more tickets of the source of memory than a program may have", tickets),
    Case::tried("all-tickets", "the same by several programs, while components die", all_tickets),
    Case::tried("kv", "a server that is given more than its account can hold", fill_server),
    Case::tried("log", "the kernel log, filled, and lines that somebody else could have written", log),
    Case::tried("rewrite", "the report of a death, overwritten by another thread", rewritten),
    Case::tried("session", "all room for files, and all memory and places for programs", session),
    Case::tried("kept", "the part kept for the shell, asked for by a program", kept),
    Case::tried("processes", "a thousand processes at the same time", processes),
    Case::tried("odd-names", "programs whose names would change a list of domains", odd_names),
    Case::tried(
        "forgotten",
        "with a compartment: tainted programs that end, and whose statuses nobody asks for",
        forgotten,
    ),
    Case::tried("left", "files in a compartment that nobody can name once it has ended", left),
    Case::tried("unasked", "programs that end, and whose status nobody asks for", unasked),
    Case::tried("small", "as many small programs as there is memory for", small),
    Case::tried("all-threads", "all threads that programs can have, by several of them", all_threads),
    Case::tried("all-domains", "all domains that programs can have, on a large machine", all_domains),
    Case::tried("sockets", "connections on an account with too few frames, every number of them", connections),
];

/// Tickets that a program may have.
const TICKETS: usize = 8;

/// Takes tickets until they are refused; gives how many those were, and why the next one was refused.
fn take() -> Result<(usize, Sigma0Error), String> {
    let memory = Sigma0Client(Direct(Entry::SIGMA0));
    let account = Owned::new(op::account_new(Entry::OWN, 0).map_err(|error| error.to_string())?);
    let mut taken = 0;
    loop {
        match memory.manage_account(Delegate::entry(account.entry().0, rights::ALL)) {
            Ok(_) => taken += 1,
            Err(Failure::Refused(error)) => return Ok((taken, error)),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn tickets() -> Result<String, String> {
    match (take()?, take()?) {
        ((TICKETS, Sigma0Error::Full), (0, Sigma0Error::Full)) => {
            Ok(format!("refused after {TICKETS}, which stay: {}", idl::Code::text(Sigma0Error::Full)))
        }
        other => Err(format!("{other:?} of {TICKETS}")),
    }
}

/// A child: takes tickets, and waits.
pub fn take_and_wait() -> u8 {
    let _ = take();
    loop {
        let _ = runtime::thread::sleep(1_000_000_000);
    }
}

/// All tickets that there are for what programs make are taken, by several of them. Meanwhile schedulers and another
/// component die, and programs are started.
fn all_tickets() -> Result<String, String> {
    const PROGRAMS: usize = 4;
    const PAUSE: u64 = 50_000_000;
    let pause = || {
        let _ = runtime::thread::sleep(PAUSE);
    };
    let made = (0..PROGRAMS).map(|_| launch::Process::small("greedy", &["--tickets"]));
    let _greedy = made.collect::<Result<Vec<_>, _>>()?;
    pause();
    let none = take()?;
    if none != (0, Sigma0Error::AllGiven) {
        return Err(format!("they did not take all: {none:?}"));
    }
    for round in 0..10 {
        let domains = inspect::domains().map_err(|error| error.to_string())?;
        for (name, domain) in domains.iter().filter(|(name, _)| name == "sched" || name == "randomd" && round == 0) {
            match PROC.kill_domain(domain.number, Force::Gentle) {
                Ok(()) | Err(Failure::Refused(ProcessError::NoSuchDomain)) => pause(),
                Err(error) => return Err(format!("{name}: {error}")),
            }
        }
        launch::Process::small("started", &["tickets"])?.wait()?;
    }
    let domains = inspect::domains().map_err(|error| error.to_string())?;
    let count = |wanted: &str| domains.iter().filter(|(name, domain)| name == wanted && domain.state == 0).count();
    if count("sched") < 2 || count("randomd") != 1 || count("greedy") != PROGRAMS {
        return Err("somebody did not come back".to_string());
    }
    Ok("none is left for programs; schedulers and a component came back, programs started".to_string())
}

/// Processes at the same time, and frames of each.
const MANY: usize = 1000;
const FRAMES_OF_EACH: u64 = 36;
/// Frames that servers take once, sooner or later, when there are several CPUs.
const ONCE: u64 = 8;
/// State of a thread that waits.
const BLOCKED: u64 = 3;
/// Nanoseconds until all that were started sleep, at most.
const PATIENCE: u64 = 10_000_000_000;

/// A thousand programs are started, sleep, are listed and ended; then all of their memory is back.
fn processes() -> Result<String, String> {
    let text = |error: &dyn core::fmt::Display| error.to_string();
    let domains = || -> Result<BTreeMap<u64, info::Domain>, String> {
        let domains = inspect::domains().map_err(|error| text(&error))?;
        Ok(domains.into_iter().filter(|(name, _)| name == "many").map(|(_, domain)| (domain.number, domain)).collect())
    };
    let us = op::domain_number(Entry::DOMAIN).map_err(|error| text(&error))?;
    // But for our own: the lists that we keep take more or less of the heap.
    let charged = || -> Result<u64, String> {
        let domains = inspect::domains().map_err(|error| text(&error))?;
        let own = domains.iter().find(|(_, domain)| domain.number == us).map_or(0, |(_, domain)| domain.charged);
        inspect::frames().map(|frames| frames.charged - own).map_err(|error| text(&error))
    };
    let ended = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(|error| text(&error))?);
    let contents = Contents { schedule: 0, name: "many", streams: ["null"; 3], compartments: &[] };
    // Room for all handles is allocated before frames are counted.
    let mut made: Vec<Child> = Vec::with_capacity(MANY);
    for round in 0..2 {
        let before = charged()?;
        while made.len() < MANY {
            let child = launch::spawn_with("/bin/sleep", &contents, &["10000"], FRAMES_OF_EACH);
            let child = child.map_err(|error| format!("after {}: {error}", made.len()))?;
            child.notify(ended.entry()).map_err(|error| text(&error))?;
            made.push(child);
        }
        let deadline = op::clock() + PATIENCE;
        let all = loop {
            let all = domains()?;
            let threads = inspect::threads().map_err(|error| text(&error))?;
            let ours = threads.iter().filter(|thread| all.contains_key(&thread.home));
            let asleep = ours.filter(|thread| thread.state == BLOCKED && thread.used > 0).count();
            if all.len() == MANY && asleep == MANY {
                break all;
            }
            if op::clock() > deadline {
                return Err(format!("{} of {MANY} are there, {asleep} of them sleep", all.len()));
            }
        };
        let frames = all.values().map(|domain| domain.charged).sum::<u64>();
        let of_each = frames.div_ceil(MANY as u64);
        if charged()? < before + frames {
            return Err(format!("{frames} frames are not charged"));
        }
        statuses::of_many()?;
        tool::println!("processes: {MANY} sleep, with {} KiB each", of_each * 4);
        for child in made.drain(..) {
            child.kill().map_err(|error| text(&error))?;
            op::p(ended.entry(), runtime::abi::NEVER).map_err(|error| text(&error))?;
            if child.ended().map_err(|error| text(&error))? != Some(info::status::KILLED) {
                return Err("one did not end".to_string());
            }
        }
        let (left, after) = (domains()?.len(), charged()?);
        if left != 0 || round > 0 && after > before + ONCE {
            return Err(format!("{left} are left, and {after} frames are charged, not {before}"));
        }
    }
    Ok(format!("{MANY} ran, were listed and ended, twice"))
}

/// Names that erase a row of a list, add one, or reach over its columns.
const ODD: [&str; 3] = ["\x1b[1A\x1b[2K", "x\n9 9 forged", "a b\tc\u{202e}d"];

/// Each is listed, with a name on one line, without what a terminal takes for a command.
fn odd_names() -> Result<String, String> {
    let holders = ODD.map(|name| launch::Process::start_with(name, &["--hold"], 256));
    let holders: Vec<_> = holders.into_iter().collect::<Result<_, _>>()?;
    let listed = inspect::domains().map_err(text)?;
    let mut names: Vec<String> = listed.into_iter().map(|(name, _)| name).filter(|name| name.contains('.')).collect();
    names.sort();
    drop(holders);
    Ok(names.join(" "))
}

/// Tainted programs of [`forgotten`]: more than have their status kept. And the time in which all of them end, in nanoseconds.
const FORGOTTEN: usize = 40;
const ENDED_BY_THEN: u64 = 500_000_000;

/// The status of an untainted program that ended before them is still there.
fn forgotten() -> Result<String, String> {
    let Some((name, own)) = leaks::own().pop() else { return Err("use: with COMPARTMENT negtest forgotten".into()) };
    let start = |compartments: &[(&str, u64)]| {
        let contents = Contents { schedule: 0, name: "true", streams: ["null"; 3], compartments };
        let child = launch::spawn_with("/bin/true", &contents, &[], FRAMES_OF_EACH).map_err(text)?;
        thread::sleep(ENDED_BY_THEN / FORGOTTEN as u64).map_err(text)?;
        Ok::<_, String>(child)
    };
    let untainted = start(&[])?;
    for _ in 0..FORGOTTEN {
        start(&[(name, own & !7 | level::THREE)])?;
    }
    Ok(format!("status {:?}", untainted.ended().map_err(text)?))
}

/// Files of [`left`].
const LEFT: usize = 20;

/// A directory and files of a compartment of our own, of which the directory had no name in `/compartments`.
fn left() -> Result<String, String> {
    let handle = op::label_handle().map_err(text)?;
    op::label_receive(handle, level::THREE).map_err(text)?;
    FILE_SYSTEM.make_directory("/tmp/left").map_err(text)?;
    FILE_SYSTEM.set_compartment("/tmp/left", handle << 3 | level::THREE).map_err(text)?;
    for number in 0..LEFT {
        let file = FILE_SYSTEM.create(&format!("/tmp/left/{number}"), 0).map_err(text)?;
        drop(Owned::new(file.into()));
    }
    Ok(format!("{LEFT} files"))
}

/// Programs whose end is awaited, and whose status is never asked for, until no more can be started. Their records go when who awaits is
/// gone.
fn unasked() -> Result<String, String> {
    let ended = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(|error| error.to_string())?);
    // As much as is kept of a name.
    let name = "unasked-".repeat(16);
    let contents = Contents { schedule: 0, name: &name, streams: ["null"; 3], compartments: &[] };
    let start = || launch::spawn_with("/bin/true", &contents, &[], FRAMES_OF_EACH);
    let mut children = Vec::new();
    let refusal = loop {
        match start() {
            Ok(child) => {
                child.notify(ended.entry()).map_err(|error| error.to_string())?;
                op::p(ended.entry(), runtime::abi::NEVER).map_err(|error| error.to_string())?;
                children.push(child);
            }
            Err(refusal) => break refusal,
        }
    };
    if refusal != Failure::Refused(ProcessError::TooMany) {
        return Err(format!("after {}: {refusal}", children.len()));
    }
    drop(ended);
    start().and_then(|child| child.wait()).map_err(|error| format!("when nobody awaits them: {error}"))?;
    // The one that ended first was forgotten for that.
    let statuses = [children.first(), children.last()].map(|child| child.map(Child::ended));
    if statuses != [Some(Err(Failure::Refused(ProcessError::NoSuchProcess))), Some(Ok(Some(0)))] {
        return Err(format!("the status of the first and the last is {statuses:?}"));
    }
    Ok(format!("refused after {}: {refusal}", children.len()))
}

/// Small programs are started until there is no memory for another one. A person still has the shell.
fn small() -> Result<String, String> {
    let contents = Contents { schedule: 0, name: "small", streams: ["null"; 3], compartments: &[] };
    let mut made = Vec::new();
    let refusal = loop {
        match launch::spawn_with("/bin/sleep", &contents, &["10000"], FRAMES_OF_EACH) {
            Ok(child) => made.push(child),
            Err(refusal) => break refusal,
        }
    };
    let _ = runtime::thread::sleep(3_000_000_000);
    let count = made.len();
    made.into_iter().try_for_each(|child| child.end().map(drop)).map_err(|error| error.to_string())?;
    match refusal {
        Failure::Refused(ProcessError::NoMemory) => Ok(format!("refused after {count}: {refusal}")),
        refusal => Err(format!("after {count}: {refusal}")),
    }
}

/// Programs have all threads that there are for programs: no further one can be started, but the shell's.
fn all_threads() -> Result<String, String> {
    const PROGRAMS: usize = 4;
    let mut holders = Vec::new();
    let deadline = op::clock() + PATIENCE;
    let refusal = loop {
        let started = match holders.len() {
            PROGRAMS => launch::spawn("late", &["--log"], 256),
            _ => launch::spawn("threads", &["--hold-threads"], 512),
        };
        match started {
            Ok(child) if holders.len() < PROGRAMS => holders.push(child),
            // The holders do not have all yet.
            Ok(child) => drop(child.end().map_err(|error| error.to_string())?),
            Err(refusal) => break refusal,
        }
        if op::clock() > deadline {
            return Err("there are still threads for more".to_string());
        }
    };
    // A person still has the shell.
    let _ = runtime::thread::sleep(3_000_000_000);
    holders.into_iter().try_for_each(|holder| holder.end().map(drop)).map_err(|error| error.to_string())?;
    launch::Process::small("again", &["--log"])?.wait()?;
    match refusal {
        Failure::Refused(ProcessError::TooManyThreads) => Ok(format!("refused: {refusal}")),
        refusal => Err(refusal.to_string()),
    }
}

/// Programs make domains on a machine that has numbers for more of them than the nucleus has tables.
fn all_domains() -> Result<String, String> {
    let mut holders = Vec::new();
    let refusal = loop {
        match launch::spawn("domains", &["--hold-domains"], 768) {
            Ok(child) => holders.push(child),
            Err(refusal) => break refusal,
        }
        // So that it has its domains.
        let _ = runtime::thread::sleep(20_000_000);
    };
    let _ = runtime::thread::sleep(7_000_000_000);
    holders.into_iter().try_for_each(|holder| holder.end().map(drop)).map_err(|error| error.to_string())?;
    match refusal {
        Failure::Refused(ProcessError::TooManyThreads) => Ok(format!("refused: {refusal}")),
        refusal => Err(refusal.to_string()),
    }
}

/// `negtest --hold-domains`: makes domains until it is refused, again and again.
pub fn hold_domains() -> u8 {
    loop {
        match op::domain_new(Entry::ACCOUNT, 0, "held") {
            Ok(_) => {}
            Err(_) => drop(runtime::thread::sleep(5_000_000)),
        }
    }
}

/// `negtest --hold-threads`: starts threads until it is refused, again and again.
pub fn hold_threads() -> u8 {
    let sleep = |_| {
        let _ = runtime::thread::sleep(u64::MAX / 2);
    };
    loop {
        match runtime::thread::Thread::start(sleep, 0) {
            Ok(thread) => core::mem::forget(thread),
            Err(_) => drop(runtime::thread::sleep(5_000_000)),
        }
    }
}

/// Frames that a connection needs at most.
const ENOUGH: u64 = 100;

fn connections() -> Result<String, String> {
    let to = Endpoint::new(Ipv4Addr::LOCALHOST.into(), 80);
    let mut refused = 0;
    for frames in 0..ENOUGH {
        let account = Owned::new(op::account_new(Entry::OWN, frames).map_err(|error| error.to_string())?);
        let outcome = Session::paid_by(account.entry()).and_then(|session| session.connect(0, to).map(drop));
        match outcome {
            Err(Failure::Refused(NetError::NoMemory)) => refused = frames,
            Err(error) => return Err(format!("with {frames} frames: {error}")),
            Ok(()) => return many(to, refused),
        }
    }
    Err(format!("{ENOUGH} frames are not enough"))
}

/// As many as one account pays for; then none is left of any.
fn many(to: Endpoint, refused: u64) -> Result<String, String> {
    let account = Owned::new(op::account_new(Entry::OWN, ENOUGH).map_err(|error| error.to_string())?);
    let session = Session::paid_by(account.entry()).map_err(|error| error.to_string())?;
    let mut streams = Vec::new();
    let cause = loop {
        match session.connect(0, to) {
            Ok(stream) => streams.push(stream),
            Err(cause) => break cause,
        }
    };
    if !matches!(cause, Failure::Refused(NetError::NoMemory)) || streams.len() < 5 {
        return Err(format!("{} connections with {ENOUGH} frames: {cause}", streams.len()));
    }
    Ok(format!("refused with 0 to {refused} frames, and after {} connections with {ENOUGH}: {cause}", streams.len()))
}

/// While this file is there, those that hold memory do.
const HELD: &str = "/tmp/held";
/// This one takes all the room for files.
const FULL: &str = "/tmp/full";
/// Frames with which they are started: as many as usual, then what is left.
const SIZES: [u64; 4] = [0, 256, 96, 48];

/// Takes all room for files and then starts programs until none can be started any more. They live until [`HELD`] is
/// removed.
fn session() -> Result<String, String> {
    let say = |error: Failure<FileError>| error.to_string();
    drop(Owned::new(FILE_SYSTEM.create(HELD, WRITE).map_err(say)?.into()));
    let file = Owned::new(FILE_SYSTEM.create(FULL, WRITE).map_err(say)?.into());
    let file = FileClient(Direct(file.entry()));
    let mut offset = 0;
    let full = loop {
        match file.write(offset, &[1; 2048]) {
            Ok(count) => offset += count as u64,
            Err(error) => break error,
        }
    };
    let (mut count, mut refusals) = (0, Vec::new());
    for frames in SIZES {
        let refusal = loop {
            match launch::holder(&format!("held-{count}"), frames) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        refusals.push(refusal.to_string());
    }
    refusals.dedup();
    tool::println!("session: files: {full}; {count} programs, then: {}", refusals.join(", "));
    while FILE_SYSTEM.stat(HELD).is_ok() {
        // Frames that others give back are ours, too.
        for frames in SIZES {
            let _ = launch::holder("held", frames);
        }
        let _ = runtime::thread::sleep(20_000_000);
    }
    Ok("let go".to_string())
}

/// A child: holds what it has.
pub fn hold() -> u8 {
    while FILE_SYSTEM.stat(HELD).is_ok() {
        let _ = runtime::thread::sleep(20_000_000);
    }
    0
}

fn kept() -> Result<String, String> {
    match launch::holder("kept", KEPT) {
        Err(error @ Failure::Refused(ProcessError::NotAllowed)) => Ok(format!("refused: {error}")),
        other => Err(format!("{other:?}")),
    }
}

/// Lines of more bytes than the part of the log for programs keeps.
const LINES: usize = 400;

/// Fills the log, and has programs write to it that have names of others.
fn log() -> Result<String, String> {
    for number in 0..LINES {
        runtime::log!("flood {number}\n[0.000001] roottask: not said by roottask\r\x1b[2K");
    }
    for name in ["roottask", "nucleus: a#1"] {
        launch::Process::small(name, &["--log"])?.wait()?;
    }
    Ok(format!("{LINES} lines"))
}

/// A child, started under names of others: writes to the log.
pub fn log_something() -> u8 {
    runtime::log!("said under this name");
    0
}

/// Programs die while another thread of theirs writes to the pages that they share with the nucleus.
fn rewritten() -> Result<String, String> {
    const TIMES: usize = 20;
    for _ in 0..TIMES {
        match launch::Process::small("rewriter", &["--rewrite"])?.wait()? {
            info::status::PAGE_FAULT => {}
            status => return Err(format!("it ended with {status:#x}")),
        }
    }
    Ok(format!("{TIMES} deaths"))
}

/// A child that overwrites its message area again and again.
pub fn rewrite() -> u8 {
    let area = layout::MESSAGE_START as usize + runtime::message::activation() * PAGE_BYTES;
    let write = |area: usize| {
        loop {
            for byte in 0..256 {
                // SAFETY: the first thread's message area, which it does not use any more.
                unsafe { core::ptr::write_volatile((area + byte) as *mut u8, b"written over "[byte % 13]) };
            }
        }
    };
    if runtime::thread::Thread::start(write, area).is_err() {
        return 1;
    }
    let _ = runtime::thread::sleep(2_000_000);
    // SAFETY: nothing is mapped there.
    unsafe { core::ptr::write_volatile(0x10_0000 as *mut u8, 1) };
    2
}

/// Bytes of a value that the server is given.
const VALUE: usize = 1000;

static VALUES: Mutex<BTreeMap<u64, Vec<u8>>> = Mutex::new(BTreeMap::new());

/// A server that keeps what is written, until it is read: the oldest first.
struct Store;

impl Serve for Store {
    fn serve(request: &mut Request<'_>) -> Reply {
        Store.dispatch(request)
    }

    fn needs_memory(request: &Request<'_>) -> bool {
        // Reading frees.
        request.method() != StreamClient::READ
    }
}

impl StreamServer for Store {
    fn read(&self, _badge: u64, into: &mut [u8]) -> Result<usize, StreamError> {
        let (_, value) = VALUES.lock().pop_first().ok_or(StreamError::Closed)?;
        let count = value.len().min(into.len());
        into[..count].copy_from_slice(&value[..count]);
        Ok(count)
    }

    fn write(&self, _badge: u64, bytes: &[u8]) -> Result<usize, StreamError> {
        let mut values = VALUES.lock();
        let number = values.last_key_value().map_or(0, |(number, _)| number + 1);
        values.insert(number, bytes.to_vec());
        Ok(bytes.len())
    }
}

/// A child: the server.
pub fn store() -> u8 {
    if !server::keep_memory(2 * PAGE_BYTES) {
        return 1;
    }
    server::park_if(server::publish::<Store>("kv", 2).map(drop))
}

fn value(number: u64) -> [u8; VALUE] {
    core::array::from_fn(|place| (number as usize + place) as u8)
}

fn fill_server() -> Result<String, String> {
    let process = launch::Process::small("kv", &["--kv"])?;
    let kv = StreamClient(Connection::named("kv"));
    let mut taken = 0;
    let refusal = loop {
        match kv.write(&value(taken)) {
            Ok(VALUE) => taken += 1,
            Ok(count) => return Err(format!("{count} bytes were taken")),
            Err(error) => break error,
        }
    };
    let right = refusal == Failure::Protocol(Protocol::NoMemory);
    let mut into = [0; VALUE];
    let mut check = |number| match kv.read(&mut into) {
        Ok(VALUE) if into == value(number) => Ok(()),
        other => Err(format!("value {number} of {taken}: {other:?}")),
    };
    // Again refused, with nothing lost; when some are taken out, there is room again.
    if !right || kv.write(&value(0)) != Err(refusal) || taken < 100 {
        return Err(format!("after {taken} values: {refusal}"));
    }
    (0..taken / 2).try_for_each(&mut check)?;
    let again = kv.write(&value(taken));
    (taken / 2..taken).try_for_each(&mut check)?;
    if again != Ok(VALUE) {
        return Err(format!("when there is room again: {again:?}"));
    }
    check(taken)?;
    process.kill()?;
    Ok(format!("refused: {refusal}; nothing was lost, and what was taken out made room"))
}
