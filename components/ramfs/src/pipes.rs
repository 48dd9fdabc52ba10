//! Pipes: bounded buffers between two programs.
//!
//! A pipe belongs to a session, and a session to an account: when that is gone, so are they. Badges are never used
//! again, and only whoever was given an end has one: numbers of pipes mean something in their own session only.
//!
//! Buffers lie in our heap, which has room for [`MAX_PIPES`]: tickets of `sigma0`, with which their owners could pay
//! for them, are fewer than the programs that may have pipes. Programs get [`GUEST_PIPES`] of them together and
//! [`SESSION_PIPES`] for a session; the others are kept for components.
//!
//! A call that waits keeps an activation, and file calls need activations too: one may wait at each end of a pipe, and
//! [`MAX_WAITING`] in all, of which programs' pipes get [`GUEST_WAITING`]. The others come back as interrupted.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use abi::NEVER;
use abi::rights::Kind;
use interface::{Delegate, Delegated, Reply, Request};
use interfaces::pipes::{PipeEndServer, PipeError, PipeSessionServer, PipesServer};
use interfaces::stream::StreamError;
use runtime::entry::{Entry, Owned};
use runtime::op;
use runtime::sync::{Condvar, Mutex, MutexGuard};

/// Bytes in a pipe.
const CAPACITY: usize = 16 * 1024;
/// Pipes at the same time: their buffers fit our account beside all else.
const MAX_PIPES: usize = 40;
/// Those of whoever found us by our name.
const GUEST_PIPES: usize = 24;
/// Those of one session of such.
const SESSION_PIPES: usize = 8;
/// Sessions at the same time.
const MAX_SESSIONS: usize = 40;
/// Those of whoever found us by our name.
const GUEST_SESSIONS: usize = 24;
/// Calls that may wait at the same time.
pub const MAX_WAITING: usize = 16;
/// Those in pipes of whoever found us by our name.
const GUEST_WAITING: usize = 8;
/// Nanoseconds between two looks for owners that are gone, while there are pipes.
const LOOK: u64 = 1_000_000_000;

/// In a badge: a session. What stands below is its number.
const SESSION: u64 = 1 << 62;
/// In a badge: ends of pipes.
const END: u64 = 1 << 63;

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
    /// A call waits here.
    waits: bool,
}

struct Pipe {
    number: u64,
    session: u64,
    is_guest: bool,
    bytes: VecDeque<u8>,
    reader: End,
    writer: End,
}

struct Table {
    sessions: Vec<Session>,
    pipes: Vec<Pipe>,
    /// The last number of a pipe, session or entry.
    last: u64,
    waiting: usize,
    guests_waiting: usize,
}

static TABLE: Mutex<Table> =
    Mutex::new(Table { sessions: Vec::new(), pipes: Vec::new(), last: 0, waiting: 0, guests_waiting: 0 });
/// Something changed in some pipe.
static CHANGED: Condvar = Condvar::new();
/// Raised when there is a pipe again.
static FIRST: AtomicUsize = AtomicUsize::new(0);

impl Table {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// A pipe of this session.
    fn pipe(&mut self, session: u64, number: u64) -> Result<&mut Pipe, PipeError> {
        let mut pipes = self.pipes.iter_mut();
        pipes.find(|pipe| pipe.session == session && pipe.number == number).ok_or(PipeError::NoSuchPipe)
    }

    /// An entry that reads one pipe and writes another of this session.
    fn end(&mut self, session: u64, ends: [(u64, Side); 2], service: Entry) -> Result<Delegate, PipeError> {
        for (number, side) in ends.into_iter().filter(|(number, _)| *number != 0) {
            if side(self.pipe(session, number)?).is_closed {
                return Err(PipeError::NoSuchPipe);
            }
        }
        let badge = END | self.next();
        for (number, side) in ends {
            if let Ok(pipe) = self.pipe(session, number) {
                *side(pipe) = End { badge, ..End::default() };
            }
        }
        CHANGED.notify_all();
        Ok(Delegate::mint(service.0, badge))
    }

    /// An end is closed; the pipe goes with the second.
    fn closed(&mut self) {
        self.pipes.retain(|pipe| !(pipe.reader.is_closed && pipe.writer.is_closed));
        CHANGED.notify_all();
    }

    /// The pipe at which this badge has that end.
    fn at(&mut self, badge: u64, side: Side) -> Option<&mut Pipe> {
        self.pipes.iter_mut().find_map(|pipe| (side(pipe).badge == badge).then_some(pipe))
    }

    /// Whose owners are gone goes.
    fn sweep(&mut self) {
        let Self { sessions, pipes, .. } = self;
        sessions.retain(|session| is_account(&session.account));
        pipes.retain(|pipe| sessions.iter().any(|session| session.badge == pipe.session));
        CHANGED.notify_all();
    }
}

const CLOSED: End = End { badge: 0, is_closed: true, waits: false };

/// Which end of a pipe.
type Side = fn(&mut Pipe) -> &mut End;
const READS: Side = |pipe| &mut pipe.reader;
const WRITES: Side = |pipe| &mut pipe.writer;

fn is_account(owned: &Owned) -> bool {
    owned.entry().is(Kind::Account, 0)
}

/// Waits until something changes.
fn wait(
    mut table: MutexGuard<'static, Table>,
    badge: u64,
    side: Side,
) -> Result<MutexGuard<'static, Table>, StreamError> {
    let (waiting, guests) = (table.waiting, table.guests_waiting);
    let pipe = table.at(badge, side).ok_or(StreamError::Failed)?;
    let is_guest = pipe.is_guest;
    if side(pipe).waits || waiting >= MAX_WAITING || is_guest && guests >= GUEST_WAITING {
        return Err(StreamError::Interrupted);
    }
    side(pipe).waits = true;
    table.waiting += 1;
    table.guests_waiting += usize::from(is_guest);
    let mut table = CHANGED.wait(table);
    table.waiting -= 1;
    table.guests_waiting -= usize::from(is_guest);
    if let Some(pipe) = table.at(badge, side) {
        side(pipe).waits = false;
    }
    Ok(table)
}

/// Before anybody calls.
pub fn prepare() -> Result<(), abi::Error> {
    FIRST.store(op::semaphore_new(Entry::ACCOUNT, 0)?.0, Ordering::Relaxed);
    Ok(())
}

fn first() -> Entry {
    Entry(FIRST.load(Ordering::Relaxed))
}

/// Looks for owners that are gone, for ever.
pub fn watch() -> ! {
    loop {
        let is_any = !TABLE.lock().pipes.is_empty();
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

/// Whether a call may allocate: to open a session, or to create a pipe, the first method of either.
pub fn needs_memory(request: &Request<'_>) -> bool {
    request.badge & END == 0 && request.words[0] & 0xffff == 1
}

impl PipesServer for Pipes {
    fn open(&self, badge: u64, account: Delegated) -> Result<Delegate, PipeError> {
        let account = Owned::new(account.into());
        if !is_account(&account) {
            return Err(PipeError::NotAllowed);
        }
        // Portals of the system description have a badge.
        let is_guest = badge == 0;
        let mut table = TABLE.lock();
        table.sweep();
        let guests = table.sessions.iter().filter(|session| session.is_guest).count();
        if table.sessions.len() >= MAX_SESSIONS || is_guest && guests >= GUEST_SESSIONS {
            return Err(PipeError::Full);
        }
        table.sessions.try_reserve(1).map_err(|_| PipeError::Full)?;
        let badge = SESSION | table.next();
        table.sessions.push(Session { badge, account, is_guest });
        Ok(Delegate::mint(self.service.0, badge))
    }
}

impl PipeSessionServer for Pipes {
    fn create(&self, session: u64) -> Result<u64, PipeError> {
        let mut table = TABLE.lock();
        table.sweep();
        let mut sessions = table.sessions.iter();
        let is_guest = sessions.find(|known| known.badge == session).ok_or(PipeError::NoSuchPipe)?.is_guest;
        let guests = || table.pipes.iter().filter(|pipe| pipe.is_guest);
        let own = guests().filter(|pipe| pipe.session == session).count();
        if table.pipes.len() >= MAX_PIPES || is_guest && (guests().count() >= GUEST_PIPES || own >= SESSION_PIPES) {
            return Err(PipeError::Full);
        }
        let mut bytes = VecDeque::new();
        bytes.try_reserve_exact(CAPACITY).map_err(|_| PipeError::Full)?;
        table.pipes.try_reserve(1).map_err(|_| PipeError::Full)?;
        let number = table.next();
        let [reader, writer] = Default::default();
        table.pipes.push(Pipe { number, session, is_guest, bytes, reader, writer });
        if table.pipes.len() == 1 {
            let _ = op::v(first());
        }
        Ok(number)
    }

    fn end(&self, session: u64, reads: u64, writes: u64) -> Result<Delegate, PipeError> {
        TABLE.lock().end(session, [(reads, READS), (writes, WRITES)], self.service)
    }

    fn close_read(&self, session: u64, pipe: u64) -> Result<(), PipeError> {
        let mut table = TABLE.lock();
        table.pipe(session, pipe)?.reader = CLOSED;
        table.closed();
        Ok(())
    }

    fn close_write(&self, session: u64, pipe: u64) -> Result<(), PipeError> {
        let mut table = TABLE.lock();
        table.pipe(session, pipe)?.writer = CLOSED;
        table.closed();
        Ok(())
    }
}

impl PipeEndServer for Pipes {
    fn read(&self, badge: u64, into: &mut [u8]) -> Result<usize, StreamError> {
        let mut table = TABLE.lock();
        loop {
            let pipe = table.at(badge, READS).ok_or(StreamError::NotReadable)?;
            if !pipe.bytes.is_empty() || pipe.writer.is_closed || into.is_empty() {
                let count = pipe.bytes.len().min(into.len());
                for (place, byte) in into.iter_mut().zip(pipe.bytes.drain(..count)) {
                    *place = byte;
                }
                CHANGED.notify_all();
                return Ok(count);
            }
            table = wait(table, badge, READS)?;
        }
    }

    fn write(&self, badge: u64, bytes: &[u8]) -> Result<usize, StreamError> {
        let mut table = TABLE.lock();
        loop {
            let pipe = table.at(badge, WRITES).ok_or(StreamError::NotWritable)?;
            if pipe.reader.is_closed {
                return Err(StreamError::Closed);
            }
            let room = CAPACITY - pipe.bytes.len();
            if room > 0 || bytes.is_empty() {
                let count = room.min(bytes.len());
                pipe.bytes.extend(&bytes[..count]);
                CHANGED.notify_all();
                return Ok(count);
            }
            table = wait(table, badge, WRITES)?;
        }
    }

    fn give(&self, badge: u64, domain: Delegated, index: u64) -> Result<(), StreamError> {
        let domain = Owned::new(domain.into());
        // What is not a domain in which entries may be put, or not an index of one, is refused by the nucleus.
        op::portal_new(domain.entry(), self.service, badge, Entry(index as usize), 0)
            .map(drop)
            .map_err(|_| StreamError::NotADomain)
    }
}
