//! Making a domain for a program: each step has its undoing, so that a spawn that fails leaves nothing.

use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};

use abi::layout::{self, MAIN_STACK_TOP, STARTUP_PAGE};
use abi::{Error, PAGE_BYTES, info, rights};
use alloc::string::String;
use alloc::vec::Vec;
use idl::{Delegate, Failure};
use loader::Program;
use loader::startup::{self, Contents, MAX_COMPARTMENTS, Startup};
use protocols::listing::{self, Record};
use protocols::parent::{ParentClient, ParentError};
use protocols::process::{KEPT, ProcessError};
use protocols::sigma0::{Sigma0Client, Sigma0Error};
use runtime::arch::MACHINE;
use runtime::connection::Direct;
use runtime::entry::{Entry, Owned};
use runtime::label::Labels;
use runtime::op::{self, Schedule};
use runtime::server::Service;
use runtime::sync::{Mutex, Once};
use runtime::{message, table};

use crate::file::{Source, unreadable};
use crate::labels::{failed, log_for_caller};
use crate::window;

/// Frames that a program's account may have if the description names no other number: 4 MiB.
const USUAL_FRAMES: u64 = 1024;
/// Numbers of threads that a program, and what it makes, may have.
const THREADS: u64 = 128;
/// Of the numbers of threads that we may have, those that not all programs but one get: for ourselves and that one.
const OWN_THREADS: u64 = 64;
/// Frames of ours that no program gets: for [`FEW`] processes and what starting one takes for a moment. One more of so many is for
/// further processes.
const OWN_FRAMES: u64 = 128;
const FRAMES_OF_OWN: u64 = 128;
/// Processes that there can be in any case, and those for which there is room in a frame of ours.
const FEW: usize = 64;
const OF_A_FRAME: u64 = 3;
/// Frames kept for one command of the shell: enough to list, end and remove.
const KEPT_FRAMES: u64 = 320;
/// Of these the account itself takes some.
const KEPT_FOR_ACCOUNT: u64 = 2;

/// The service behind the portal `PARENT` of programs.
pub static PARENT: Service = Service::new();

static DEATH: Once<Option<Entry>> = Once::new();

/// The semaphore that is raised when a program's domain dies.
pub fn death() -> Entry {
    DEATH.get_or_make(|| op::semaphore_new(Entry::ACCOUNT, 0).ok()).unwrap_or(Entry::OWN)
}

/// The account of all programs but one, and of that one.
static PROGRAMS: AtomicUsize = AtomicUsize::new(0);
static KEPT_ACCOUNT: AtomicUsize = AtomicUsize::new(0);
/// See [`most`].
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Divides our account, once, when we have all that we need from the start.
pub fn divide_account() -> Result<(), Error> {
    let own = domain_record(op::domain_number(Entry::DOMAIN)? + 1).ok_or(Error::AtEnd)?;
    let left = (own.limit - own.charged).saturating_sub(OWN_FRAMES + KEPT_FRAMES);
    let more = left / FRAMES_OF_OWN;
    MOST.store(FEW + (more * OF_A_FRAME) as usize, Ordering::Relaxed);
    KEPT_ACCOUNT.store(op::account_new(Entry::ACCOUNT, KEPT_FRAMES)?.0, Ordering::Relaxed);
    let threads = match runtime::program::number("THREADS") {
        Some(threads) if threads > 0 => threads.saturating_sub(OWN_THREADS).max(1),
        // As many as there are.
        _ => 0,
    };
    PROGRAMS.store(op::account_new_with(Entry::ACCOUNT, left - more, threads)?.0, Ordering::Relaxed);
    Ok(())
}

/// Processes there can be: as many as our account has room for in our table, and one more if it is the one for which there is a part
/// of the account.
pub fn most(is_kept: bool) -> usize {
    MOST.load(Ordering::Relaxed) + usize::from(is_kept)
}

/// The head of the program that is loaded: one at a time is, and the stack has no room for it.
static HEAD: Mutex<[u8; loader::program::HEAD_BYTES]> = Mutex::new([0; loader::program::HEAD_BYTES]);

/// Accounts that the description gives to programs, in frames.
static ACCOUNTS: Mutex<Vec<(String, u64)>> = Mutex::new(Vec::new());

/// Asks for them, before anybody can call.
pub fn read_accounts() -> Result<(), Failure<ParentError>> {
    let note = |record: Record<'_>| {
        ACCOUNTS.lock().push((String::from_utf8_lossy(record.name).into_owned(), record.value));
    };
    listing::each(|position, into| ParentClient(Direct(Entry::PARENT)).programs(position, into), note)
}

/// How many frames the program at this path gets of so many that are asked for, 0 = as many as it may have.
pub fn frames(path: &str, asked: u64) -> Result<u64, ProcessError> {
    let accounts = ACCOUNTS.lock();
    let given = path.strip_prefix("/bin/").and_then(|name| accounts.iter().find(|(known, _)| known == name));
    let most = given.map_or(USUAL_FRAMES, |(_, frames)| *frames);
    match asked {
        0 => Ok(most),
        KEPT => Ok(KEPT),
        asked if asked > most => Err(ProcessError::TooMuch),
        asked => Ok(asked),
    }
}

/// An account for a program with such limits.
fn account(limits: &Limits) -> Result<Entry, ProcessError> {
    let (from, frames) = match limits.frames {
        KEPT => (&KEPT_ACCOUNT, KEPT_FRAMES - KEPT_FOR_ACCOUNT),
        frames => (&PROGRAMS, frames),
    };
    let label = limits.labels.as_ref().map_or(Entry::OWN, |labels| labels.send.entry());
    let account = op::account_new_labelled(Entry(from.load(Ordering::Relaxed)), frames, THREADS, label);
    account.map_err(|error| match error {
        Error::OtherExhausted => ProcessError::NoMemory,
        error => nucleus(error),
    })
}

/// Priority and slice of a program's first thread; its threads may not be above it.
const SCHEDULE: Schedule = Schedule { priority: 16, slice: 10_000 };

const PAGE: u64 = PAGE_BYTES as u64;

/// The limits of a program.
pub struct Limits {
    /// Frames of its account, or [`KEPT`].
    pub frames: u64,
    /// A bit for each CPU on which its threads may run; 0 = all.
    pub cpus: u64,
    /// None: S = {1} and R = {2}.
    pub labels: Option<Labels>,
}

/// The domain of a program, and whether it was ever given away. Its index of our table is free when no call gives it
/// away any more.
pub struct Domain(Entry, Cell<bool>);

/// By activation: the index of a domain that its last call gave away. That goes out after the call has let go of everything: until
/// the next call begins there, it must not stand for anything else.
static GIVEN: [AtomicUsize; layout::MAX_ACTIVATIONS] = [const { AtomicUsize::new(0) }; layout::MAX_ACTIVATIONS];
/// Indices of domains that are gone, which some call may still give away; 0 = none. There are never more than activations.
static RETIRED: Mutex<[usize; layout::MAX_ACTIVATIONS]> = Mutex::new([0; layout::MAX_ACTIVATIONS]);

/// A call begins: entries that this activation gave away before have arrived.
pub fn begin_call() {
    GIVEN[message::activation()].store(0, Ordering::Relaxed);
}

impl Domain {
    /// The handle.
    pub const fn entry(&self) -> Entry {
        self.0
    }
    /// Gives it to the caller, with the rights to copy and to write.
    pub fn give(&self) -> Delegate {
        self.1.set(true);
        GIVEN[message::activation()].store(self.0.0, Ordering::Relaxed);
        Delegate::entry(self.0.0, rights::COPY | rights::WRITE)
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let _ = op::entry_remove(Entry::OWN, self.0);
        if !self.1.get() {
            return table::free(self.0);
        }
        let mut retired = RETIRED.lock();
        let is_given = |index: usize| GIVEN.iter().any(|given| given.load(Ordering::Relaxed) == index);
        for place in retired.iter_mut().filter(|place| **place != 0 && !is_given(**place)) {
            table::free(Entry(core::mem::take(place)));
        }
        match retired.iter_mut().find(|place| **place == 0).filter(|_| is_given(self.0.0)) {
            Some(place) => *place = self.0.0,
            None => table::free(self.0),
        }
    }
}

/// A program's domain, account and first thread. They go when this does.
pub struct Child {
    /// The domain.
    pub domain: Domain,
    /// Its number in the nucleus's lists.
    pub number: u64,
    /// None before it runs.
    thread: Option<Owned>,
    /// Where it begins.
    start: u64,
    ticket: Option<u64>,
    account: Owned,
}

impl Drop for Child {
    fn drop(&mut self) {
        // In this order: the ticket that draws memory for the domain, the domain, and then its resources (fields).
        if let Some(ticket) = self.ticket {
            let _ = sigma0().forget(ticket);
        }
        self.thread = None;
    }
}

fn sigma0() -> Sigma0Client<Direct> {
    Sigma0Client(Direct(Entry::SIGMA0))
}

/// Of what the program's own account pays for, and of our table.
fn nucleus(error: Error) -> ProcessError {
    match error {
        Error::TableFull | Error::NoDomains => ProcessError::TooMany,
        Error::AccountThreads | Error::NoThreads => ProcessError::TooManyThreads,
        Error::OtherExhausted => ProcessError::TooSmall,
        Error::AccountExhausted | Error::NoFrames => ProcessError::NoMemory,
        error => failed("the nucleus", error),
    }
}

fn cpus(error: Error) -> ProcessError {
    match error {
        Error::NotThere => ProcessError::NoCpu,
        error => nucleus(error),
    }
}

fn memory(error: Failure<Sigma0Error>) -> ProcessError {
    match error {
        Failure::Refused(Sigma0Error::Full | Sigma0Error::AllGiven) => ProcessError::TooMany,
        Failure::Refused(Sigma0Error::AccountExhausted) => ProcessError::TooSmall,
        Failure::Refused(Sigma0Error::NoFrames) => ProcessError::NoMemory,
        error => failed("sigma0", error),
    }
}

impl Child {
    /// Makes the domain of the program in `source`, all but its thread. `process` is the badge with which it calls us.
    pub fn new(source: &Source<'_>, launch: &Startup<'_>, limits: &Limits, process: u64) -> Result<Self, ProcessError> {
        let mut head = HEAD.lock();
        let length = source.read(0, &mut head[..])?;
        let program = Program::parse(&head[..length], source.bytes(), MACHINE).map_err(|error| {
            log_for_caller!("{}: {error}", source.path());
            ProcessError::NotAProgram
        })?;
        let account = Owned::new(account(limits)?);
        let domain = op::domain_new(account.entry(), 0, launch.name).map_err(nucleus)?;
        let domain = Domain(domain, Cell::new(false));
        if let Some(labels) = &limits.labels {
            op::domain_set_labels(domain.entry(), labels.send.entry(), labels.receive.entry(), false)
                .map_err(nucleus)?;
        }
        let number = op::domain_number(domain.entry()).map_err(nucleus)?;
        let mut child = Self { domain, number, thread: None, start: program.entry, ticket: None, account };
        child.equip(process, program.end(), launch)?;
        if limits.cpus != 0 {
            op::domain_set_cpus(child.domain.entry(), limits.cpus).map_err(cpus)?;
        }
        child.load(source, &program)?;
        child.report(launch)?;
        Ok(child)
    }

    /// Portals and entries that every program has. In the places of parent and name service, the loader may put others.
    fn equip(&mut self, process: u64, heap: u64, launch: &Startup<'_>) -> Result<(), ProcessError> {
        let (domain, account) = (self.domain.entry(), self.account.entry());
        let ticket = sigma0().manage_account(Delegate::entry(account.0, rights::ALL)).map_err(memory)?;
        self.ticket = Some(ticket);
        sigma0().manage_domain(ticket, heap, Delegate::entry(domain.0, rights::ALL)).map_err(memory)?;
        let own_account = rights::COPY | rights::READ | rights::WRITE;
        op::entry_copy(Entry::OWN, account, domain, Entry::ACCOUNT, own_account).map_err(nucleus)?;
        op::entry_copy(Entry::OWN, domain, domain, Entry::DOMAIN, rights::ALL).map_err(nucleus)?;
        let is_left = |place: usize| launch.portals().any(|(_, index)| usize::from(index) == place);
        if !is_left(layout::PARENT) {
            op::portal_new(domain, PARENT.entry(), process, Entry::PARENT, 0).map_err(nucleus)?;
        }
        if !is_left(layout::NAMES) {
            let all = Delegate::entry(domain.0, rights::ALL);
            let equipped = ParentClient(Direct(Entry::PARENT)).equip(all);
            equipped.map_err(|error| failed("no portal to the name service", error))?;
        }
        op::domain_set_max_priority(domain, SCHEDULE.priority.into()).map_err(nucleus)?;
        op::domain_set_death_semaphore(domain, death()).map_err(nucleus)
    }

    fn load(&self, source: &Source<'_>, program: &Program) -> Result<(), ProcessError> {
        for segment in program.segments() {
            let mut first = 0;
            while first < segment.pages {
                let at = segment.address + first * PAGE;
                // As many at once as lie in one aligned block.
                let order = (segment.pages - first).ilog2().min(at.trailing_zeros() - PAGE.trailing_zeros());
                let order = order.min(window::MAX_ORDER);
                self.pages(at, order, segment.rights, |block| {
                    for (page, bytes) in (first..).zip(block) {
                        let Some(contents) = segment.contents(page) else { continue };
                        let length = (contents.file.end - contents.file.start) as usize;
                        let place = &mut bytes[contents.at..contents.at + length];
                        if source.read(contents.file.start, place)? != length {
                            return Err(unreadable(source.path(), "it became shorter while it was read"));
                        }
                    }
                    Ok(())
                })?;
                first += 1 << order;
            }
        }
        Ok(())
    }

    /// The startup page.
    fn report(&self, launch: &Startup<'_>) -> Result<(), ProcessError> {
        self.pages(STARTUP_PAGE, 0, rights::MAP_READ, |block| {
            let mut compartments = [("", 0); MAX_COMPARTMENTS];
            let count = launch.compartments().zip(&mut compartments).map(|(one, place)| *place = one).count();
            let contents = Contents {
                schedule: SCHEDULE.word(),
                name: launch.name,
                streams: launch.streams,
                compartments: &compartments[..count],
            };
            startup::write(&mut block[0], &contents, launch.arguments(), launch.environment(), launch.portals())
                .map(drop)
                .map_err(|_| ProcessError::TooLong)
        })
    }

    /// Draws 2^order pages for the child, has them filled, and gives them to it.
    fn pages(
        &self,
        address: u64,
        order: u32,
        rights: u64,
        fill: impl FnOnce(&mut [[u8; PAGE_BYTES]]) -> Result<(), ProcessError>,
    ) -> Result<(), ProcessError> {
        let ticket = self.ticket.ok_or(ProcessError::Runs)?;
        let draw =
            |at| sigma0().draw_for(ticket, at, order.into(), rights::MAP_READ | rights::MAP_WRITE).map_err(memory);
        window::with_pages(order, draw, fill, nucleus, self.domain.entry(), address, rights)
    }

    /// Whether it has not run yet.
    pub fn is_new(&self) -> bool {
        self.thread.is_none()
    }

    /// Lets it run.
    pub fn start(&mut self) -> Result<(), ProcessError> {
        let thread = window::start_thread(self.domain.entry(), self.start, MAIN_STACK_TOP, STARTUP_PAGE, SCHEDULE);
        self.thread = Some(Owned::new(thread.map_err(nucleus)?));
        Ok(())
    }
}

/// The domains that we made and that are dead: number and status each.
pub fn ended() -> impl Iterator<Item = (u64, u64)> {
    op::ended_domains(Entry::SPECIAL).map_while(Result::ok).map(|domain| (domain.number, domain.status))
}

/// The record of the first domain with a number below this (0: of the newest).
fn domain_record(below: u64) -> Option<info::Domain> {
    op::record(Entry::SPECIAL, below).ok().map(|(domain, _)| domain)
}
