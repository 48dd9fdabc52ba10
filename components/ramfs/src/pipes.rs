//! Pipes: bounded buffers between two programs.
//!
//! A pipe belongs to a session, and a session to an account: when that is gone, so are they. Badges are never used
//! again, and only a domain that was given an end has one: numbers of pipes mean something in their own session only.
//!
//! Buffers lie in our heap: how many there can be follows from our account ([`PIPES`]). Programs get three of five together, and a
//! session of theirs one of five; the others are kept for components. There can be as many sessions.
//!
//! A pipe's content has a compartment, which its session names before anything is in it. A writer must be allowed to change what has that
//! label, a reader to observe it.
//!
//! A call that waits keeps an activation, and file calls need activations too. So one may wait at each end of a pipe, and how many wait
//! in all follows from our account, too ([`WAITS`]). Those at programs' pipes are at most three of five. The others are refused.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use abi::NEVER;
use abi::rights::Kind;
use idl::{Delegate, Delegated, Input, Output, Reply, Request};
use protocols::pipes::{PipeEndServer, PipeError, PipeSessionClient, PipeSessionServer, PipesClient, PipesServer};
use protocols::stream::StreamError;
use runtime::entry::{Entry, Owned};
use runtime::label::is_compartment;
use runtime::sync::{Mutex, MutexGuard, Received, WaitSlot};
use runtime::{log_refused, op};

use crate::files::COMPARTMENTS;

/// Bytes in a pipe.
const CAPACITY: usize = 16 * 1024;
/// Pipes at the same time whose buffers fit the smallest account, of so many frames, beside all else.
const FEWEST: usize = 40;
const FRAMES_OF_FEWEST: u64 = 288;
/// Frames that a further one takes, with its buffer and its place in our tables.
const FRAMES_OF_A_PIPE: u64 = 5;
/// Calls that wait at the same time in the smallest account.
const FEWEST_WAITS: usize = 16;
/// Frames that a further one takes.
const FRAMES_OF_A_WAIT: u64 = 5;
/// Nanoseconds between two looks for owners that are gone, while there are pipes.
const LOOK: u64 = 1_000_000_000;

/// In a badge: a session. The bits below are its number.
const SESSION: u64 = 1 << 62;
/// In a badge: ends of pipes. Below stand a number, and the places of the pipes that it writes and reads.
const END: u64 = 1 << 63;
/// Bits of a place, in badges and in numbers of pipes.
const PLACE_BITS: u32 = 9;
const MOST_PIPES: usize = 1 << PLACE_BITS;

struct Session {
    badge: u64,
    account: Owned,
    is_guest: bool,
}

/// One end of a pipe.
#[derive(Default)]
struct End {
    /// Of the entry that may use it; 0 = none yet.
    badge: u64,
    is_closed: bool,
    /// The call that waits here.
    waits: WaitSlot,
}

struct Pipe {
    number: u64,
    session: u64,
    /// Of what is in it; 0 = none.
    compartment: u64,
    is_guest: bool,
    bytes: VecDeque<u8>,
    reader: End,
    writer: End,
}

struct Table {
    sessions: Vec<Session>,
    pipes: [Option<Box<Pipe>>; MOST_PIPES],
    /// The last number of a pipe, session or entry.
    last: u64,
}

static TABLE: Mutex<Table> = Mutex::new(Table { sessions: Vec::new(), pipes: [const { None }; MOST_PIPES], last: 0 });
/// Calls that wait, and those in pipes of clients that found us by our name, in units of [`ONE_GUEST`]. There are more only while the table
/// is locked.
static WAITING: AtomicUsize = AtomicUsize::new(0);
const ONE_GUEST: usize = 1 << 16;
/// Pipes at the same time, and sessions.
static PIPES: Limit = Limit(AtomicUsize::new(FEWEST));
static WAITS: Limit = Limit(AtomicUsize::new(FEWEST_WAITS));
/// Raised when there is a pipe again.
static FIRST: AtomicUsize = AtomicUsize::new(0);

/// The place that stands so many places above the lowest bit.
const fn place_in(number: u64, places: u32) -> usize {
    (number >> (places * PLACE_BITS)) as usize % (1 << PLACE_BITS)
}

impl Table {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// All pipes.
    fn all(&self) -> impl Iterator<Item = &Pipe> {
        self.pipes.iter().flatten().map(|pipe| &**pipe)
    }

    /// A pipe of this session.
    fn pipe(&mut self, session: u64, number: u64) -> Result<&mut Pipe, PipeError> {
        let pipe = self.pipes[place_in(number, 0)].as_deref_mut();
        pipe.filter(|pipe| pipe.session == session && pipe.number == number).ok_or(PipeError::NoSuchPipe)
    }

    /// An entry that reads one pipe and writes another of this session.
    fn end(&mut self, session: u64, ends: [(u64, Side); 2], service: Entry) -> Result<Delegate, PipeError> {
        for (number, side) in ends.into_iter().filter(|(number, _)| *number != 0) {
            if side.of(self.pipe(session, number)?).is_closed {
                return Err(PipeError::NoSuchPipe);
            }
        }
        let places = ends.map(|(number, side)| (place_in(number, 0) as u64) << (side as u32 * PLACE_BITS));
        let badge = END | self.next() << (2 * PLACE_BITS) | places[0] | places[1];
        for (number, side) in ends {
            if let Ok(pipe) = self.pipe(session, number) {
                *side.of(pipe) = End { badge, ..End::default() };
            }
        }
        Ok(Delegate::mint(service.0, badge))
    }

    /// Closes an end of a pipe of this session; the pipe goes with the second.
    fn close(&mut self, session: u64, number: u64, side: Side) -> Result<(), PipeError> {
        let pipe = self.pipe(session, number)?;
        *side.of(pipe) = End { is_closed: true, ..End::default() };
        drop(side.other().of(pipe).waits.take());
        let is_gone = pipe.reader.is_closed && pipe.writer.is_closed;
        if is_gone {
            self.pipes[place_in(number, 0)] = None;
        }
        Ok(())
    }

    /// The pipe at which this badge has that end.
    fn at(&mut self, badge: u64, side: Side) -> Option<&mut Pipe> {
        let pipe = self.pipes[side.place(badge)].as_deref_mut()?;
        (side.of(pipe).badge == badge).then_some(pipe)
    }

    /// Removes the sessions whose owners are gone.
    fn sweep(&mut self) {
        let Self { sessions, pipes, .. } = self;
        sessions.retain(|session| is_account(&session.account));
        for pipe in pipes {
            pipe.take_if(|pipe| !sessions.iter().any(|session| session.badge == pipe.session));
        }
    }
}

/// Which end of a pipe.
#[derive(Clone, Copy)]
enum Side {
    Reads,
    Writes,
}

impl Side {
    /// That end.
    const fn of(self, pipe: &mut Pipe) -> &mut End {
        match self {
            Self::Reads => &mut pipe.reader,
            Self::Writes => &mut pipe.writer,
        }
    }
    /// The place of the pipe that a badge has there.
    const fn place(self, badge: u64) -> usize {
        place_in(badge, self as u32)
    }
    /// Of an entry that does not have that end, or has it no longer.
    const fn refusal(self) -> StreamError {
        match self {
            Self::Reads => StreamError::NotReadable,
            Self::Writes => StreamError::NotWritable,
        }
    }
    const fn other(self) -> Self {
        match self {
            Self::Reads => Self::Writes,
            Self::Writes => Self::Reads,
        }
    }
}

fn is_account(owned: &Owned) -> bool {
    owned.entry().is(Kind::Account, 0)
}

/// Waits until something changes, or until bytes were put into `room`.
fn wait<'a>(
    mut table: MutexGuard<'a, Table>,
    badge: u64,
    side: Side,
    room: &mut [u8],
) -> Result<Received<'a, Table>, StreamError> {
    let waiting = WAITING.load(Ordering::Relaxed);
    let pipe = table.at(badge, side).ok_or(side.refusal())?;
    let is_full = waiting % ONE_GUEST >= WAITS.all() || pipe.is_guest && waiting / ONE_GUEST >= WAITS.of_guests();
    if side.of(pipe).waits.is_taken() {
        return Err(StreamError::Awaited);
    }
    if is_full {
        return Err(StreamError::TooManyWaits);
    }
    let ours = if pipe.is_guest { 1 + ONE_GUEST } else { 1 };
    WAITING.fetch_add(ours, Ordering::Relaxed);
    let received = WaitSlot::receive(table, room, |table| table.at(badge, side).map(|pipe| &mut side.of(pipe).waits));
    WAITING.fetch_sub(ours, Ordering::Relaxed);
    Ok(received)
}

/// Takes the first `count` bytes of a pipe, which has so many.
fn take(bytes: &mut VecDeque<u8>, into: &mut Output<'_>, count: usize) {
    let (first, second) = bytes.as_slices();
    if first.len() == count && second.is_empty() {
        into.copy_from(0, first);
        bytes.clear();
    } else {
        take_some(bytes, into, count);
    }
}

#[inline(never)]
fn take_some(bytes: &mut VecDeque<u8>, into: &mut Output<'_>, count: usize) {
    let (first, second) = bytes.as_slices();
    let from_first = first.len().min(count);
    into.copy_from(0, &first[..from_first]);
    into.copy_from(from_first, &second[..count - from_first]);
    bytes.drain(..count);
}

/// Puts `count` of the bytes that a client writes, from byte `at` on, into a pipe, which has room for them.
fn put(bytes: &mut VecDeque<u8>, from: &Input<'_>, at: usize, count: usize) {
    match from {
        Input::Message(from) => bytes.extend(&from[at..at + count]),
        Input::Window(_) => put_page(bytes, from, at, count),
    }
}

#[inline(never)]
fn put_page(bytes: &mut VecDeque<u8>, from: &Input<'_>, at: usize, count: usize) {
    let before = bytes.len();
    bytes.resize(before + count, 0);
    let (first, second) = bytes.as_mut_slices();
    let (to_first, to_second) = match before.checked_sub(first.len()) {
        None => (&mut first[before..], second),
        Some(before) => (&mut [][..], &mut second[before..]),
    };
    from.copy_to(at, to_first);
    from.copy_to(at + to_first.len(), to_second);
}

/// How many there may be, by our account.
struct Limit(AtomicUsize);

impl Limit {
    fn all(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
    /// Those of clients that found us by our name.
    fn of_guests(&self) -> usize {
        self.all() * 3 / 5
    }
    /// Those of one session of such a client.
    fn of_session(&self) -> usize {
        self.all() / 5
    }
}

/// Before anybody calls. Gives how many calls may wait: `most` at most.
pub fn prepare(most: usize) -> Result<usize, abi::Error> {
    let frames = runtime::program::number("FRAMES").unwrap_or(0).saturating_sub(FRAMES_OF_FEWEST);
    // A third at most is for waits.
    let further = (frames / 3 / FRAMES_OF_A_WAIT).min((most - FEWEST_WAITS) as u64);
    let pipes = FEWEST + ((frames - further * FRAMES_OF_A_WAIT) / FRAMES_OF_A_PIPE) as usize;
    PIPES.0.store(pipes.min(MOST_PIPES), Ordering::Relaxed);
    WAITS.0.store(FEWEST_WAITS + further as usize, Ordering::Relaxed);
    FIRST.store(op::semaphore_new(Entry::ACCOUNT, 0)?.0, Ordering::Relaxed);
    Ok(WAITS.all())
}

fn first() -> Entry {
    Entry(FIRST.load(Ordering::Relaxed))
}

/// Looks for owners that are gone, for ever.
pub fn watch() -> ! {
    loop {
        let is_any = TABLE.lock().all().next().is_some();
        let until = if is_any { op::clock() + LOOK } else { NEVER };
        let _ = op::p(first(), until);
        TABLE.lock().sweep();
    }
}

/// All three interfaces; the badge says which.
pub struct Pipes {
    /// Our service.
    pub service: Entry,
}

impl Pipes {
    /// Serves a call.
    pub fn answer(&self, request: &mut Request<'_>) -> Reply {
        match request.badge {
            badge if badge & END != 0 => PipeEndServer::dispatch(self, request),
            badge if badge & SESSION != 0 => PipeSessionServer::dispatch(self, request),
            _ => PipesServer::dispatch(self, request),
        }
    }
}

/// Whether a call may allocate: to open a session, or to create a pipe.
pub fn needs_memory(request: &Request<'_>) -> bool {
    matches!(request.method(), PipesClient::OPEN | PipeSessionClient::CREATE)
}

/// Refuses a tainted caller: the other end of a session's pipes sees its orders, and pipes are few.
fn judge() -> Result<(), PipeError> {
    if COMPARTMENTS.caller_may(0).both() {
        return Ok(());
    }
    log_refused!("pipes of its own");
    Err(PipeError::Flow)
}

impl PipesServer for Pipes {
    fn open(&self, badge: u64, account: Delegated) -> Result<Delegate, PipeError> {
        let account = Owned::new(account.into());
        judge()?;
        if !is_account(&account) {
            return Err(PipeError::NotAllowed);
        }
        // Portals of the system description have a badge.
        let is_guest = badge == 0;
        let mut table = TABLE.lock();
        table.sweep();
        let guests = table.sessions.iter().filter(|session| session.is_guest).count();
        if table.sessions.len() >= PIPES.all() || is_guest && guests >= PIPES.of_guests() {
            return Err(PipeError::TooManySessions);
        }
        table.sessions.try_reserve(1).map_err(|_| PipeError::NoMemory)?;
        let badge = SESSION | table.next();
        table.sessions.push(Session { badge, account, is_guest });
        Ok(Delegate::mint(self.service.0, badge))
    }
}

impl PipeSessionServer for Pipes {
    fn create(&self, session: u64) -> Result<u64, PipeError> {
        judge()?;
        let mut table = TABLE.lock();
        table.sweep();
        let mut sessions = table.sessions.iter();
        let is_guest = sessions.find(|known| known.badge == session).ok_or(PipeError::NoSession)?.is_guest;
        let guests = || table.all().filter(|pipe| pipe.is_guest);
        let own = guests().filter(|pipe| pipe.session == session).count();
        if is_guest && own >= PIPES.of_session() {
            return Err(PipeError::TooMany);
        }
        if is_guest && guests().count() >= PIPES.of_guests() {
            return Err(PipeError::Full);
        }
        let is_first = table.all().next().is_none();
        let place = table.pipes.iter().take(PIPES.all()).position(Option::is_none).ok_or(PipeError::Full)?;
        let mut bytes = VecDeque::new();
        bytes.try_reserve_exact(CAPACITY).map_err(|_| PipeError::NoMemory)?;
        let number = table.next() << PLACE_BITS | place as u64;
        let [reader, writer] = Default::default();
        table.pipes[place] = Some(Box::new(Pipe { number, session, compartment: 0, is_guest, bytes, reader, writer }));
        if is_first {
            let _ = op::v(first());
        }
        Ok(number)
    }

    fn end(&self, session: u64, reads: u64, writes: u64) -> Result<Delegate, PipeError> {
        judge()?;
        TABLE.lock().end(session, [(reads, Side::Reads), (writes, Side::Writes)], self.service)
    }

    fn set_compartment(&self, session: u64, pipe: u64, compartment: u64) -> Result<(), PipeError> {
        judge()?;
        let mut table = TABLE.lock();
        let pipe = table.pipe(session, pipe)?;
        if pipe.compartment != compartment {
            if compartment != 0 && !is_compartment(compartment) {
                return Err(PipeError::NotACompartment);
            }
            if pipe.compartment != 0 {
                return Err(PipeError::HasCompartment);
            }
            if !pipe.bytes.is_empty() {
                return Err(PipeError::NotEmpty);
            }
            pipe.compartment = compartment;
            // Calls that wait are judged again.
            let woken = (pipe.reader.waits.take(), pipe.writer.waits.take());
            drop(table);
            drop(woken);
        }
        Ok(())
    }

    fn close_read(&self, session: u64, pipe: u64) -> Result<(), PipeError> {
        judge()?;
        TABLE.lock().close(session, pipe, Side::Reads)
    }

    fn close_write(&self, session: u64, pipe: u64) -> Result<(), PipeError> {
        judge()?;
        TABLE.lock().close(session, pipe, Side::Writes)
    }
}

impl PipeEndServer for Pipes {
    fn read(&self, badge: u64, mut into: Output<'_>) -> Result<usize, StreamError> {
        let mut table = TABLE.lock();
        loop {
            let pipe = table.at(badge, Side::Reads).ok_or(Side::Reads.refusal())?;
            if !COMPARTMENTS.caller_may(pipe.compartment).observe {
                log_refused!("a pipe to read");
                return Err(StreamError::Flow);
            }
            if !pipe.bytes.is_empty() || pipe.writer.is_closed || into.is_empty() {
                let count = pipe.bytes.len().min(into.len());
                take(&mut pipe.bytes, &mut into, count);
                let woken = pipe.writer.waits.take();
                drop(table);
                drop(woken);
                return Ok(count);
            }
            // A window is seen on the CPU of the reader only, so nobody else puts bytes there.
            let room = match &mut into {
                Output::Message(room) => &mut **room,
                Output::Window(_) => &mut [],
            };
            match wait(table, badge, Side::Reads, room)? {
                Received::Bytes(count) => return Ok(count),
                Received::Nothing(unchanged) => table = unchanged,
            }
        }
    }

    fn write(&self, badge: u64, bytes: Input<'_>) -> Result<usize, StreamError> {
        let mut table = TABLE.lock();
        loop {
            let pipe = table.at(badge, Side::Writes).ok_or(Side::Writes.refusal())?;
            if !COMPARTMENTS.caller_may(pipe.compartment).change {
                log_refused!("a pipe to write to");
                return Err(StreamError::Flow);
            }
            if pipe.reader.is_closed {
                return Err(StreamError::Closed);
            }
            // A reader that waits found the pipe empty. It gets the first bytes at once, unless they come in a window: then it looks again.
            let (given, woken) = match &bytes {
                Input::Message(bytes) => pipe.reader.waits.give(bytes),
                Input::Window(_) => (0, pipe.reader.waits.take()),
            };
            let kept = (bytes.len() - given).min(CAPACITY - pipe.bytes.len());
            if kept > 0 {
                put(&mut pipe.bytes, &bytes, given, kept);
            }
            if given + kept > 0 || bytes.is_empty() {
                drop(table);
                drop(woken);
                return Ok(given + kept);
            }
            table = match wait(table, badge, Side::Writes, &mut [])? {
                Received::Nothing(changed) => changed,
                // There is no room for any.
                Received::Bytes(_) => TABLE.lock(),
            };
        }
    }

    fn give(&self, badge: u64, domain: Delegated, index: u64) -> Result<(), StreamError> {
        let domain = Owned::new(domain.into());
        // We may put an entry into every domain, a tainted caller may not.
        if !COMPARTMENTS.caller_may(0).both() {
            log_refused!("an end of a pipe for a program");
            return Err(StreamError::Flow);
        }
        // The nucleus refuses anything that is not a domain in which entries may be put, or not an index of one.
        op::portal_new(domain.entry(), self.service, badge, Entry(index as usize), 0)
            .map(drop)
            .map_err(StreamError::of_entry)
    }
}
