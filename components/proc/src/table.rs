//! The processes, and what happens when one ends.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use abi::NEVER;
use abi::rights::{Kind, WRITE};
use loader::startup::{ENTRY, Startup};
use protocols::listing::{Record, Writer};
use protocols::parent::{MAX_PROGRAM_SERVICES, ParentError};
use protocols::process::{KEPT, ProcessError};
use runtime::entry::Owned;
use runtime::label::{self, May};
use runtime::sync::{Condvar, Mutex, MutexGuard};
use runtime::{log_refused, op};

use crate::child::{self, Child, Limits, death};
use crate::file::Source;
use crate::labels::{self, CALLERS};

/// Ended processes that nobody waits for; of more, those that ended first are forgotten.
const MAX_ENDED: usize = 32;
/// Bytes of a name that are kept for lists.
const MAX_NAME: usize = 128;
/// Calls that may wait for an end at the same time: one for so many frames of our account, but at least and at most so many.
const FRAMES_OF_A_WAIT: u64 = 512;
const FEWEST_WAITS: usize = 16;
const MOST_WAITS: usize = 96;

enum State {
    /// Being made.
    Starting,
    /// There; its thread may be still to come.
    Running(Child),
    /// Its status, and how many had ended when it did, itself included.
    Ended(u64, u64),
}

struct Process {
    number: u64,
    name: String,
    /// By which it is judged; none = {1}.
    label: Option<Owned>,
    /// With which it started: 8 · handle + level each.
    compartments: Vec<u64>,
    /// Published services, by name; nothing while one is being published.
    services: Vec<(String, Option<Owned>)>,
    /// Raised when it ends; kept until its status is asked for.
    awaited: Option<Owned>,
    /// Calls that wait for its end.
    waiting: usize,
    state: State,
}

impl Process {
    /// Whether the caller may observe or change it.
    fn caller_may(&self) -> May {
        self.label.as_ref().map_or_else(|| CALLERS.caller_may(0), |label| label::may(label.entry()))
    }

    /// Its turn among those that ended, if it may be forgotten: nobody waits for it or, if this `asks` the nucleus, who was to be
    /// notified of its end is gone.
    fn forgettable(&self, asks: bool) -> Option<u64> {
        let is_awaited = || self.awaited.as_ref().is_some_and(|it| !asks || it.entry().is(Kind::Semaphore, WRITE));
        match self.state {
            State::Ended(_, turn) if self.waiting == 0 && !is_awaited() => Some(turn),
            _ => None,
        }
    }
}

struct Table {
    processes: Vec<Process>,
    last: u64,
    /// How many have ended.
    ended: u64,
    /// Calls that wait for an end.
    waiting: usize,
}

static TABLE: Mutex<Table> = Mutex::new(Table { processes: Vec::new(), last: 0, ended: 0, waiting: 0 });
static ENDED: Condvar = Condvar::new();
/// Calls that may wait for an end at the same time.
static MOST: AtomicUsize = AtomicUsize::new(FEWEST_WAITS);
/// Held while a domain is made.
static SPAWNING: Mutex<()> = Mutex::new(());

/// Sets how many calls may wait, by our account; gives that.
pub fn set_most_waits() -> usize {
    let frames = runtime::program::number("FRAMES").unwrap_or(0);
    let most = ((frames / FRAMES_OF_A_WAIT) as usize).clamp(FEWEST_WAITS, MOST_WAITS);
    MOST.store(most, Ordering::Relaxed);
    most
}

impl Table {
    fn find(&mut self, number: u64) -> Option<usize> {
        self.processes.iter().position(|process| process.number == number)
    }

    /// The process that runs in the domain of this number.
    fn in_domain(&self, number: u64) -> Option<usize> {
        let runs_there = |process: &Process| matches!(&process.state, State::Running(child) if child.number == number);
        self.processes.iter().position(runs_there)
    }

    /// Refuses a caller who may not change a process, and learn of it: a wait forgets it.
    fn judge(&mut self, number: u64) -> Result<(), ProcessError> {
        let index = self.find(number).ok_or(ProcessError::NoSuchProcess)?;
        if self.processes[index].caller_may().both() {
            return Ok(());
        }
        log_refused!("a program that it does not hold");
        Err(ProcessError::Flow)
    }

    /// The status of a process that has ended; `forget` it.
    fn ended(&mut self, number: u64, forget: bool) -> Result<u64, ProcessError> {
        let index = self.find(number).ok_or(ProcessError::NoSuchProcess)?;
        let State::Ended(status, _) = self.processes[index].state else { return Err(ProcessError::Runs) };
        if forget {
            self.processes.remove(index);
        }
        Ok(status)
    }

    /// The services of a process. A call may come from one that is dead already: it has none.
    fn services(&mut self, number: u64) -> Option<&mut Vec<(String, Option<Owned>)>> {
        let process = self.processes.iter_mut().find(|process| process.number == number)?;
        matches!(process.state, State::Running(_)).then_some(&mut process.services)
    }

    /// A number for a new process, of which there can be so many.
    /// Statuses that nobody asked for are forgotten only for others of the same kind: those of tainted programs say nothing to others.
    fn reserve(&mut self, launch: &Startup<'_>, most: usize, is_labelled: bool) -> Result<u64, ProcessError> {
        let is_full = self.processes.len() >= most;
        let alike = || self.processes.iter().filter(|process| process.label.is_some() == is_labelled);
        let ended = || alike().filter_map(|process| Some((process.forgettable(is_full)?, process.number)));
        if (is_full || ended().count() > MAX_ENDED)
            && let Some((_, first)) = ended().min()
        {
            self.processes.retain(|process| process.number != first);
        }
        if self.processes.len() >= most {
            return Err(ProcessError::TooMany);
        }
        // Of a longer name the rest is not listed.
        let listed = &launch.name[..launch.name.floor_char_boundary(MAX_NAME)];
        let mut name = String::new();
        let reserved = self.processes.try_reserve(1).and_then(|()| name.try_reserve_exact(listed.len()));
        reserved.map_err(|_| ProcessError::NoMemory)?;
        name.push_str(listed);
        self.last += 1;
        self.processes.push(Process {
            number: self.last,
            name,
            label: None,
            compartments: Vec::new(),
            services: Vec::new(),
            awaited: None,
            waiting: 0,
            state: State::Starting,
        });
        Ok(self.last)
    }
}

/// Loads a program and lets it run, if nothing is still to be made in its table; gives its number.
pub fn spawn(path: &str, launch: &[u8], mut limits: Limits) -> Result<u64, ProcessError> {
    let launch = Startup::read(launch).map_err(|_| ProcessError::BadLaunch)?;
    limits.labels = labels::of_launch(&launch)?;
    let compartments: Vec<u64> = launch.compartments().map(|(_, entry)| entry).collect();
    let label = limits.labels.as_ref().map(|_| labels::judged(compartments.iter().copied())).transpose();
    let label = label.map_err(labels::refused)?;
    let source = Source::open(path, limits.labels.as_ref())?;
    let _spawning = SPAWNING.lock();
    let number = TABLE.lock().reserve(&launch, child::most(limits.frames == KEPT), label.is_some())?;
    let made = Child::new(&source, &launch, &limits, number);
    let mut table = TABLE.lock();
    let Some(index) = table.find(number) else { return Err(ProcessError::NoSuchProcess) };
    let waits = launch.streams.contains(&ENTRY) || launch.portals().next().is_some();
    let ready = made.and_then(|mut child| if waits { Ok(child) } else { child.start().map(|()| child) });
    match ready {
        Ok(child) => {
            table.processes[index].label = label;
            table.processes[index].compartments = compartments;
            table.processes[index].state = State::Running(child);
            Ok(number)
        }
        Err(error) => {
            table.processes.remove(index);
            Err(error)
        }
    }
}

/// See [`Table::judge`].
pub fn judge(number: u64) -> Result<(), ProcessError> {
    TABLE.lock().judge(number)
}

/// Keeps a name for a process that is going to publish a service under it, as long as the process lives.
pub fn reserve_name(number: u64, name: &str) -> Result<(), ParentError> {
    let mut table = TABLE.lock();
    let mut others = table.processes.iter().filter(|process| process.number != number);
    if others.any(|process| process.services.iter().any(|(known, _)| known == name)) {
        return Err(ParentError::InUse);
    }
    let services = table.services(number).ok_or(ParentError::Gone)?;
    if services.iter().all(|(known, _)| known != name) {
        if services.len() >= MAX_PROGRAM_SERVICES {
            return Err(ParentError::TooMany);
        }
        services.push((name.to_string(), None));
    }
    Ok(())
}

/// Keeps the service that was published under a name, or lets the name go if none was. The service of a process that
/// died meanwhile goes.
pub fn keep(number: u64, name: &str, service: Option<Owned>) {
    let mut table = TABLE.lock();
    let Some(services) = table.services(number) else { return };
    let Some(place) = services.iter().position(|(known, _)| known == name) else { return };
    match service {
        Some(service) => services[place].1 = Some(service),
        None if services[place].1.is_none() => drop(services.swap_remove(place)),
        None => {}
    }
}

/// Does something to a program that has not run yet.
pub fn prepare<R>(number: u64, work: impl FnOnce(&mut Child) -> Result<R, ProcessError>) -> Result<R, ProcessError> {
    let mut table = TABLE.lock();
    let index = table.find(number).ok_or(ProcessError::NoSuchProcess)?;
    match &mut table.processes[index].state {
        State::Running(child) if child.is_new() => work(child),
        State::Ended(..) => Err(ProcessError::HasEnded),
        State::Running(_) | State::Starting => Err(ProcessError::Runs),
    }
}

/// Raises this semaphore when the process ends, at once if it has ended.
pub fn notify(number: u64, semaphore: Owned) -> Result<(), ProcessError> {
    if !semaphore.entry().is(Kind::Semaphore, WRITE) {
        return Err(ProcessError::NotASemaphore);
    }
    let mut table = TABLE.lock();
    let index = table.find(number).ok_or(ProcessError::NoSuchProcess)?;
    let process = &mut table.processes[index];
    if matches!(process.state, State::Ended(..)) {
        let _ = op::v(semaphore.entry());
    }
    process.awaited = Some(semaphore);
    Ok(())
}

/// Waits for the end of a process, until some process has ended. `TooManyWaits` if there is no room to wait; `Cancelled` if nobody
/// waits any more: a call whose caller is gone goes on on another thread.
fn wait_for_an_end(
    mut table: MutexGuard<'static, Table>,
    number: u64,
) -> Result<MutexGuard<'static, Table>, ProcessError> {
    if table.waiting >= MOST.load(Ordering::Relaxed) {
        return Err(ProcessError::TooManyWaits);
    }
    let caller = op::thread_id();
    let index = table.find(number).ok_or(ProcessError::NoSuchProcess)?;
    table.waiting += 1;
    table.processes[index].waiting += 1;
    let mut table = ENDED.wait(table);
    table.waiting -= 1;
    // Another call may have had its status.
    if let Some(index) = table.find(number) {
        table.processes[index].waiting -= 1;
    }
    if op::thread_id() == caller { Ok(table) } else { Err(ProcessError::Cancelled) }
}

/// Waits for the end of a process; gives its status and forgets it. The caller is judged each time: its labels may change meanwhile.
pub fn wait(number: u64) -> Result<u64, ProcessError> {
    let mut table = TABLE.lock();
    loop {
        table.judge(number)?;
        match table.ended(number, true) {
            Err(ProcessError::Runs) => {}
            ended => return ended,
        }
        table = wait_for_an_end(table, number)?;
    }
}

/// The same; a process whose caller is gone is ended.
pub fn wait_or_end(number: u64) -> Result<u64, ProcessError> {
    let caller = op::thread_id();
    let outcome = wait(number);
    if op::thread_id() != caller {
        let _ = kill(number);
    }
    outcome
}

/// The status of a process that has ended, which is forgotten.
pub fn ended(number: u64) -> Result<u64, ProcessError> {
    TABLE.lock().ended(number, true)
}

/// Ends a process.
pub fn kill(number: u64) -> Result<(), ProcessError> {
    let mut table = TABLE.lock();
    let index = table.find(number).ok_or(ProcessError::NoSuchProcess)?;
    end(&table.processes[index].state)
}

/// Ends the process whose domain has this number; false if there is none. Its resources are back then, unless too many wait.
pub fn kill_domain(number: u64) -> Result<bool, ProcessError> {
    let mut table = TABLE.lock();
    let Some(index) = table.in_domain(number) else { return Ok(false) };
    let process = &table.processes[index];
    end(&process.state)?;
    let process = process.number;
    while table.ended(process, false) == Err(ProcessError::Runs) {
        match wait_for_an_end(table, process) {
            Ok(again) => table = again,
            Err(_) => break,
        }
    }
    Ok(true)
}

/// The compartments of the process whose domain has this number.
pub fn compartments(number: u64) -> Result<Vec<u64>, ProcessError> {
    let table = TABLE.lock();
    let index = table.in_domain(number).ok_or(ProcessError::NoSuchDomain)?;
    Ok(table.processes[index].compartments.clone())
}

fn end(state: &State) -> Result<(), ProcessError> {
    match state {
        State::Running(child) => match op::domain_kill(child.domain.entry(), 0) {
            // The domain has just died.
            Ok(()) | Err(abi::Error::PeerDied | abi::Error::Revoked) => Ok(()),
            Err(error) => Err(labels::failed("the nucleus", error)),
        },
        // It has ended, and its domain is removed. Nobody can name a program that is being loaded: it has no entry and no domain yet.
        State::Starting | State::Ended(..) => Ok(()),
    }
}

/// Writes processes, from a position on.
pub fn list(position: u64, into: &mut [u8]) -> (usize, u64) {
    let table = TABLE.lock();
    let mut writer = Writer::new(into);
    let is_made = |process: &&Process| process.label.is_some() || !matches!(process.state, State::Starting);
    for process in table.processes.iter().filter(|process| process.number > position).filter(is_made) {
        let tag = u8::from(matches!(process.state, State::Ended(..)));
        let record = Record { tag, value: process.number, name: process.name.as_bytes() };
        if !writer.push(record) {
            return (writer.used(), process.number - 1);
        }
    }
    (writer.used(), 0)
}

/// Buries the dead, for ever.
pub fn reap() -> abi::Error {
    loop {
        match op::p(death(), NEVER) {
            Ok(()) => while bury() {},
            Err(abi::Error::Timeout | abi::Error::Cancelled) => {}
            Err(error) => return error,
        }
    }
}

/// Takes away what is left of a process that ended, and wakes who waits for it; false if none has ended. One at a time: a list
/// of all would be as long as many happen to end at once.
fn bury() -> bool {
    let mut table = TABLE.lock();
    let ended = |(domain, status)| table.in_domain(domain).map(|index| (index, status));
    let Some((index, status)) = child::ended().find_map(ended) else { return false };
    let process = &mut table.processes[index];
    let number = process.number;
    let state = core::mem::replace(&mut process.state, State::Starting);
    let services = core::mem::take(&mut process.services);
    drop(table);
    // The domain and its account go before anybody learns of the end.
    drop((state, services));
    let mut table = TABLE.lock();
    table.ended += 1;
    let turn = table.ended;
    if let Some(index) = table.find(number) {
        let process = &mut table.processes[index];
        process.state = State::Ended(status, turn);
        if let Some(semaphore) = &process.awaited {
            // The program that handed it over may be gone.
            let _ = op::v(semaphore.entry());
        }
    }
    drop(table);
    ENDED.notify_all();
    true
}
