//! Negative tests against pipes and files: a program that takes much of `ramfs`, or reaches for the pipes of others.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use idl::{Delegate, Failure};
use loader::startup::{self, Contents};
use protocols::file::{FileClient, FileError, WRITE};
use protocols::pipes::{PipeEndClient, PipeError, PipeSessionClient, PipesClient};
use protocols::process::Force;
use protocols::stream::StreamError;
use runtime::abi::layout::FIRST_FREE;
use runtime::abi::rights::{self, Kind};
use runtime::child::Child;
use runtime::connection::{Connection, Name};
use runtime::entry::Owned;
use runtime::pipes::{self, PIPES};
use runtime::stream::{FILE_SYSTEM, Stream};
use runtime::thread::{self, Thread};
use runtime::{Direct, Entry, op};
use tool::inspect::{self, PROC};

use crate::case::Case;
use crate::launch;

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("pipe-hoard", "all pipes that programs can have, filled, and none closed", hoard),
    Case::tried("pipe-waits", "all waits in pipes that programs can have, until it ends", waits),
    Case::tried("pipe-others", "pipes of others, and ends that were not given", others),
    Case::tried("pipe-own", "an end of a pipe that the server makes in the program's own table", own),
    Case::tried("pipe-owner", "a program that waits in a pipe whose owner ends", owner),
    Case::tried("file-opens", "a file opened and closed 100,000 times: all balances stay", opens),
    Case::tried("file-full", "files of others filled until there is no room, and the file server killed then", full),
];

/// Bytes in a pipe.
const CAPACITY: usize = 16 * 1024;
/// Pipes that are read again.
const READ_AGAIN: usize = 8;

static SERVICE: Connection<Name<'static>> = Connection::named("pipes");

/// A session, and what it goes with.
struct Session {
    pipes: PipeSessionClient<Direct>,
    _entry: Owned,
    _account: Owned,
}

impl Session {
    fn open() -> Result<Self, Failure<PipeError>> {
        let account = Owned::new(op::account_new(Entry::ACCOUNT, 1).map_err(Failure::Transport)?);
        let opened = PipesClient(&SERVICE).open(Delegate::entry(account.entry().0, rights::ALL))?;
        let entry = Owned::new(opened.into());
        Ok(Self { pipes: PipeSessionClient(Direct(entry.entry())), _entry: entry, _account: account })
    }

    fn end(&self, reads: u64, writes: u64) -> Result<Owned, String> {
        self.pipes.end(reads, writes).map(|end| Owned::new(end.into())).map_err(text)
    }
}

fn text<E: core::fmt::Display>(error: E) -> String {
    error.to_string()
}

/// Refused with this, and nothing else.
fn refused<T: core::fmt::Debug, E: idl::Code + PartialEq + core::fmt::Debug>(
    what: &str,
    outcome: Result<T, Failure<E>>,
    right: E,
) -> Result<(), String> {
    match outcome {
        Err(Failure::Refused(error)) if error == right => Ok(()),
        other => Err(format!("{what}: {other:?} instead of {right:?}")),
    }
}

fn hoard() -> Result<String, String> {
    let (mut ends, mut made, mut of_session) = (Vec::new(), 0, 0);
    loop {
        let session = Session::open().map_err(text)?;
        let before = made;
        let refusal = loop {
            let pipe = match session.pipes.create() {
                Ok(pipe) => pipe,
                Err(refusal) => break refusal,
            };
            let end = session.end(pipe, pipe)?;
            // As much as there is room for: one byte more would wait.
            let mut left = CAPACITY;
            while left > 0 {
                left -= Stream::entry(end.entry()).write(&[made as u8; 4000][..left.min(4000)]).map_err(text)?;
            }
            made += 1;
            if ends.len() < READ_AGAIN {
                ends.push(end);
            }
        };
        core::mem::forget(session);
        if before == 0 {
            of_session = made;
        }
        // The last session has fewer than the others: all are taken.
        let is_last = made - before < of_session;
        refused("one more", Err::<(), _>(refusal), if is_last { PipeError::Full } else { PipeError::TooMany })?;
        if is_last {
            break;
        }
    }
    // Then all sessions.
    let refusal = loop {
        match Session::open() {
            Ok(session) => core::mem::forget(session),
            Err(error) => break error,
        }
    };
    refused("one more session", Err::<(), _>(refusal), PipeError::TooManySessions)?;
    // Files need no pipes, and what is in the pipes is there.
    FILE_SYSTEM.stat("/bin/./../bin").map_err(text)?;
    for (pipe, end) in ends.iter().enumerate() {
        let mut bytes = [0; 4000];
        let count = Stream::entry(end.entry()).read(&mut bytes).map_err(text)?;
        if count == 0 || bytes[..count].iter().any(|byte| *byte != pipe as u8) {
            return Err(format!("pipe {pipe} has other bytes"));
        }
    }
    // The others have theirs meanwhile.
    let _ = thread::sleep(4_000_000_000);
    Ok(format!("refused after {made}: {}; {of_session} of each session: {}", PipeError::Full, PipeError::TooMany))
}

static READS: AtomicUsize = AtomicUsize::new(0);
/// Reads that were refused for another at the same end, and for too many.
static AWAITED: AtomicUsize = AtomicUsize::new(0);
static TOO_MANY: AtomicUsize = AtomicUsize::new(0);

/// Reads from an end in which nothing comes.
fn read(end: usize) {
    READS.fetch_add(1, Ordering::Relaxed);
    let refused = match PipeEndClient(Direct(Entry(end))).read(&mut [0; 8]) {
        Err(Failure::Refused(StreamError::Awaited)) => &AWAITED,
        Err(Failure::Refused(StreamError::TooManyWaits)) => &TOO_MANY,
        _ => return,
    };
    refused.fetch_add(1, Ordering::Relaxed);
}

fn waits() -> Result<String, String> {
    let mut session = Session::open().map_err(text)?;
    let mut kept = Vec::new();
    let refusals = || [&AWAITED, &TOO_MANY].map(|count| count.load(Ordering::Relaxed));
    // Starts a read; gives the refusals so far when it was refused or waits.
    let start = |end: &Owned| {
        let reads = READS.load(Ordering::Relaxed);
        Thread::start(read, end.entry().0).map(core::mem::forget).map_err(|error| error.to_string())?;
        let limit = op::clock() + 5_000_000_000;
        while READS.load(Ordering::Relaxed) == reads {
            if op::clock() > limit {
                return Err("a thread does not run".to_string());
            }
            let _ = thread::sleep(20_000_000);
        }
        let _ = thread::sleep(60_000_000);
        Ok(refusals())
    };
    // Two in one pipe, then one in each of as many others as it takes.
    let mut end = session.end(session.pipes.create().map_err(text)?, 0)?;
    let outcomes = (start(&end)?, start(&end)?);
    if outcomes != ([0, 0], [1, 0]) {
        return Err(format!("of two in one pipe were refused: {outcomes:?}"));
    }
    for waiting in 1.. {
        core::mem::forget(end);
        let pipe = session.pipes.create().or_else(|full| {
            refused("one more", Err::<(), _>(full), PipeError::TooMany)?;
            kept.push(core::mem::replace(&mut session, Session::open().map_err(text)?));
            session.pipes.create().map_err(text)
        })?;
        end = session.end(pipe, 0)?;
        let outcome = start(&end)?;
        if outcome == [1, 1] {
            FILE_SYSTEM.stat("/bin").map_err(text)?;
            core::mem::forget((session, kept, end));
            return Ok(format!(
                "{waiting} wait; a second in one pipe: {}; one more: {}",
                idl::Code::text(StreamError::Awaited),
                idl::Code::text(StreamError::TooManyWaits)
            ));
        }
        if outcome != [1, 0] {
            return Err(format!("{outcome:?} were refused while {waiting} waited"));
        }
    }
    Err("no wait is one too many".into())
}

fn others() -> Result<String, String> {
    let session = Session::open().map_err(text)?;
    let mine = session.pipes.create().map_err(text)?;
    let other = Session::open().map_err(text)?;
    let theirs = other.pipes.create().map_err(text)?;
    // The right number, and those near by.
    let numbers = (mine.saturating_sub(100)..mine + 100).chain([theirs, u64::MAX]);
    for number in numbers.filter(|number| *number != mine) {
        if number != 0 {
            refused("to read another's", session.pipes.end(number, 0), PipeError::NoSuchPipe)?;
            refused("to write another's", session.pipes.end(0, number), PipeError::NoSuchPipe)?;
        }
        refused("to close another's", session.pipes.close_read(number), PipeError::NoSuchPipe)?;
        refused("to close another's", session.pipes.close_write(number), PipeError::NoSuchPipe)?;
    }
    drop(other.end(theirs, theirs)?);
    // An entry that is not an account.
    let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(|error| error.text())?);
    let given = |owned: &Owned, rights| Delegate::entry(owned.entry().0, rights);
    refused("a semaphore", PipesClient(&SERVICE).open(given(&semaphore, rights::ALL)), PipeError::NotAllowed)?;
    // Ends do what they were given for, until another has it.
    let (reads, writes) = (session.end(mine, 0)?, session.end(0, mine)?);
    let end = |owned: &Owned| PipeEndClient(Direct(owned.entry()));
    refused("to read what writes", end(&writes).read(&mut [0; 8]), StreamError::NotReadable)?;
    refused("to write what reads", end(&reads).write(b"x"), StreamError::NotWritable)?;
    refused("to give to no domain", end(&reads).give(given(&semaphore, rights::ALL), 60), StreamError::NotADomain)?;
    let domain = Delegate::entry(Entry::DOMAIN.0, rights::READ);
    refused("to give without the right", end(&reads).give(domain, 60), StreamError::NotADomain)?;
    // A domain whose account has nothing left for its table.
    let account = Owned::new(op::account_new(Entry::ACCOUNT, 100).map_err(|error| error.text())?);
    let poor = Owned::new(op::domain_new(account.entry(), 0, "poor").map_err(|error| error.text())?);
    while op::account_move(account.entry(), Entry::ACCOUNT, 1).is_ok() {}
    refused("to give without room", end(&reads).give(given(&poor, rights::ALL), 4_000), StreamError::NoRoom)?;
    let successor = session.end(0, mine)?;
    refused("to write when another does", end(&writes).write(b"x"), StreamError::NotWritable)?;
    end(&successor).write(b"x").map_err(text)?;
    session.pipes.close_write(mine).map_err(text)?;
    let outcomes = (end(&reads).read(&mut [0; 8]), end(&reads).read(&mut [0; 8]));
    if outcomes != (Ok(1), Ok(0)) {
        return Err(format!("a byte and the end: {outcomes:?}"));
    }
    Ok(format!("refused: {}", idl::Code::text(PipeError::NoSuchPipe)))
}

/// Outside a sandbox the server makes the entry. A sandbox must know of all portals, and refuses.
fn own() -> Result<String, String> {
    const PLACE: Entry = Entry(FIRST_FREE + 200);
    let session = Session::open().map_err(text)?;
    let end = session.end(session.pipes.create().map_err(text)?, 0)?;
    let domain = Delegate::entry(Entry::DOMAIN.0, rights::ALL);
    let given = PipeEndClient(Direct(end.entry())).give(domain, PLACE.0 as u64);
    match (given, PLACE.is(Kind::Call, 0)) {
        (Ok(()), true) => Ok("made".into()),
        (Err(error), false) => Ok(format!("refused: {error}")),
        (outcome, _) => Err(format!("{outcome:?}, and that is not what stands there")),
    }
}

fn opens() -> Result<String, String> {
    const OPENS: usize = 100_000;
    let open = || FILE_SYSTEM.open("/etc/motd", 0).map(|file| drop(Owned::new(file.into()))).map_err(text);
    // The first open takes memory that stays: a connection, a page of the heap.
    open()?;
    let charged = || -> Result<Vec<(u64, u64)>, String> {
        let domains = inspect::domains().map_err(text)?;
        Ok(domains.iter().map(|(_, domain)| (domain.number, domain.charged)).collect())
    };
    charged()?;
    let before = charged()?;
    (0..OPENS).try_for_each(|_| open())?;
    let after = charged()?;
    if before == after {
        Ok(format!("{OPENS} opens and closes, and no domain is charged more or less"))
    } else {
        Err(format!("charged before: {before:?}, and after: {after:?}"))
    }
}

/// The name of what waits.
const LEFT_BEHIND: &str = "left-behind";

/// A child: makes a pipe, starts a program that reads it, and ends.
pub fn start_reader() -> u8 {
    let start = || {
        let pipe = PIPES.create().map_err(text)?;
        let contents =
            Contents { schedule: 0, name: LEFT_BEHIND, streams: [startup::ENTRY, "null", "null"], compartments: &[] };
        let mut page = [0; 256];
        let used = startup::write(&mut page, &contents, ["cat"], [], []).map_err(text)?;
        let child = Child::from(PROC.spawn("/bin/cat", &page[..used], 0, 0).map_err(text)?);
        pipes::give(child.domain().map_err(text)?.entry(), pipe, 0).map_err(text)?;
        child.start().map_err(text)
    };
    let started: Result<(), String> = start();
    let _ = thread::sleep(100_000_000);
    u8::from(started.is_err())
}

fn owner() -> Result<String, String> {
    let waits = || {
        let domains = inspect::domains().map_err(text)?;
        Ok::<_, String>(domains.iter().any(|(name, domain)| name == LEFT_BEHIND && domain.state == 0))
    };
    if launch::Process::small("owner", &["--start-reader"])?.wait()? != 0 || !waits()? {
        return Err("no program waits".to_string());
    }
    let start = op::clock();
    while waits()? {
        if op::clock() > start + 5_000_000_000 {
            return Err("it waits for ever".to_string());
        }
        let _ = thread::sleep(50_000_000);
    }
    Ok("the waiter at its pipe ended, too".to_string())
}

/// A file of the boot archive, one of a program that is gone, and directories between which names are moved.
const ARCHIVED: &str = "/bin/false";
const LEFT: &str = "/tmp/left";
const DIRECTORIES: [&str; 2] = ["/tmp/one", "/tmp/two"];
/// Names that are moved: more than a page of a directory holds.
const NAMES: usize = 60;

/// Frames of the page tables in which the server sees all pages of files: 992 in two tables, and what is kept for each.
const TABLES: u64 = 4;

/// A child: leaves a file.
pub fn leave() -> u8 {
    u8::from(FILE_SYSTEM.create(LEFT, WRITE).is_err())
}

fn moved(directory: usize, name: usize) -> String {
    format!("{}/{name:0>100}", DIRECTORIES[directory])
}

fn open(path: &str) -> Result<Owned, String> {
    FILE_SYSTEM.open(path, WRITE).map(|file| Owned::new(file.into())).map_err(text)
}

/// Frames that the file server has: written pages are not among them.
fn frames_of_server() -> Result<(u64, u64), String> {
    let domains = inspect::domains().map_err(text)?;
    let alive = domains.into_iter().find(|(name, domain)| name == "ramfs" && domain.state == 0);
    alive.map(|(_, domain)| (domain.number, domain.charged)).ok_or_else(|| "no file server".to_string())
}

const PART: &str = "/tmp/part";
const PART_BYTES: usize = 100;

fn full() -> Result<String, String> {
    launch::Process::small("leaver", &["--leave"])?.wait()?;
    for directory in DIRECTORIES {
        FILE_SYSTEM.make_directory(directory).map_err(text)?;
    }
    for name in 0..NAMES {
        drop(Owned::new(FILE_SYSTEM.create(&moved(0, name), 0).map_err(text)?.into()));
    }
    // A file with room in its last page, but not for all that is appended below.
    let held = Owned::new(FILE_SYSTEM.create(PART, 0).map_err(text)?.into());
    let part = FileClient(Direct(held.entry()));
    part.append(&[7; PART_BYTES]).map_err(text)?;
    let archived = open(ARCHIVED)?;
    let file = FileClient(Direct(archived.entry()));
    let size = file.stat().map_err(text)?.size;
    let mut original = alloc::vec![0; size as usize];
    let mut done = 0;
    while done < original.len() {
        let end = original.len().min(done + 4000);
        done += file.read(done as u64, &mut original[done..end]).map_err(text)?;
    }
    let (number, before) = frames_of_server()?;
    let mut offset = 0;
    let refusal = loop {
        match file.write(offset, &[7; 2048]) {
            Ok(count) => offset += count as u64,
            Err(error) => break Err::<(), _>(error),
        }
    };
    refused("a file of the boot archive", refusal, FileError::NoSpace)?;
    refused("a record that fits in part", part.append(&[7; 4000]), FileError::NoSpace)?;
    if part.stat().map_err(text)?.size != PART_BYTES as u64 {
        return Err("a part of a refused record stays".to_string());
    }
    let left = open(LEFT)?;
    refused(
        "the file of a program that is gone",
        FileClient(Direct(left.entry())).append(&[7; 4000]),
        FileError::NoSpace,
    )?;
    let mut grown = 0;
    let refusal = loop {
        match FILE_SYSTEM.rename(&moved(0, grown), &moved(1, grown)) {
            Ok(()) if grown + 1 == NAMES => return Err("all names were moved".to_string()),
            Ok(()) => grown += 1,
            Err(error) => break Err::<(), _>(error),
        }
    };
    refused("a directory that grows", refusal, FileError::NoSpace)?;
    let (used, limit) = FILE_SYSTEM.room().map_err(text)?;
    let filled = frames_of_server()?;
    if used != limit || filled.0 != number || filled.1 > before + TABLES {
        return Err(format!("{used} of {limit} pages, {filled:?} frames, before {before}"));
    }
    // It comes back, with all that there is, and no more of its own.
    PROC.kill_domain(number, Force::Gentle).map_err(text)?;
    if FILE_SYSTEM.room().map_err(text)? != (used, limit) {
        return Err("other pages".to_string());
    }
    for name in 0..NAMES {
        FILE_SYSTEM.stat(&moved(usize::from(name < grown), name)).map_err(|error| format!("name {name}: {error}"))?;
    }
    let (successor, again) = frames_of_server()?;
    if successor == number || again > before + TABLES {
        return Err(format!("{again} frames after {before}"));
    }
    // All comes back, and the program is one again.
    let archived = open(ARCHIVED)?;
    let file = FileClient(Direct(archived.entry()));
    let mut bytes = [0; 16];
    if file.read(offset - 16, &mut bytes) != Ok(16) || bytes != [7; 16] {
        return Err("other bytes".to_string());
    }
    file.truncate(0).map_err(text)?;
    for (place, piece) in original.chunks(2000).enumerate() {
        file.write(place as u64 * 2000, piece).map_err(text)?;
    }
    for name in 0..NAMES {
        FILE_SYSTEM.remove(&moved(usize::from(name < grown), name)).map_err(text)?;
    }
    DIRECTORIES.into_iter().chain([LEFT, PART]).try_for_each(|path| FILE_SYSTEM.remove(path)).map_err(text)?;
    Ok(format!("refused: {}; nothing is lost when the file server is killed", idl::Code::text(FileError::NoSpace)))
}
