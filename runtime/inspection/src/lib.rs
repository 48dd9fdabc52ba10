//! The nucleus's records of the machine, through `proc`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use runtime::Entry;
use runtime::abi::info::{self, Record};
use runtime::connection::{Connection, Direct, Given};
use runtime::idl::Failure;
use runtime::protocols::parent::{ParentClient, ParentError, State};
use runtime::protocols::process::{OWN, ProcessClient, ProcessError};

/// The program server.
pub static PROC: ProcessClient<Connection<Given>> = ProcessClient(Connection::new(Given("proc")));

/// Why it was not reported.
pub type Refusal = Failure<ProcessError>;

/// Bytes of the largest record.
const MAX_BYTES: usize = 256;

/// All records of a kind.
fn records<R: Record>() -> Result<Vec<R>, Refusal> {
    let mut all = Vec::new();
    each(|record| all.push(record)).map(|()| all)
}

/// Each record of a kind, one after the other. It takes no memory.
pub fn each<R: Record>(take: impl FnMut(R)) -> Result<(), Refusal> {
    each_of(R::WHAT, take)
}

/// The same of records that are about us: our domain and those that it made, its threads, and entries by which we can be called.
pub fn each_own<R: Record>(take: impl FnMut(R)) -> Result<(), Refusal> {
    each_of(R::WHAT | OWN, take)
}

/// All of these.
pub fn own<R: Record>() -> Result<Vec<R>, Refusal> {
    let mut all = Vec::new();
    each_own(|record| all.push(record)).map(|()| all)
}

fn each_of<R: Record>(what: u64, mut take: impl FnMut(R)) -> Result<(), Refusal> {
    let mut position = 0;
    let mut buffer = [0; MAX_BYTES];
    let buffer = &mut buffer[..size_of::<R>()];
    loop {
        let (count, next) = PROC.inspect(what, position, buffer)?;
        let Some(record) = R::read(&buffer[..count.min(buffer.len())]) else { return Ok(()) };
        take(record);
        if next == 0 {
            return Ok(());
        }
        position = next;
    }
}

fn name(bytes: &[u8; 16]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).to_string()
}

/// All domains, oldest first.
pub fn domains() -> Result<Vec<(String, info::Domain)>, Refusal> {
    let mut domains: Vec<info::Domain> = records()?;
    domains.sort_by_key(|domain| domain.number);
    Ok(domains.into_iter().map(|domain| (name(&domain.name), domain)).collect())
}

/// The number of the living domain that a name means. Of a scheduler and the one that stands by it is the
/// older one: the one that schedules, since who stood by takes the seat and a new one stands by.
pub fn only(domains: &[(String, info::Domain)], name: &str) -> Result<u64, &'static str> {
    let alive = |(_, domain): &&(String, info::Domain)| domain.state == 0;
    let mut named = domains.iter().filter(alive).filter(|(other, _)| other == name).map(|(_, domain)| domain);
    let first = named.next().ok_or("no such domain")?;
    let root = domains.iter().find(|(other, _)| other == "roottask").map(|(_, domain)| domain.number);
    match named.all(|other| other.parent == first.parent && Some(first.parent) == root) {
        true => Ok(first.number),
        false => Err("several domains have this name; give a number"),
    }
}

/// Numbers of the components' domains, each with how often the component was started again.
pub fn restarts() -> Result<Vec<(u64, u64)>, Failure<ParentError>> {
    let parent = ParentClient(Direct(Entry::PARENT));
    let mut all = Vec::new();
    loop {
        let after = all.last().map_or(0, |(domain, _)| *domain);
        match parent.restarts(after)? {
            (domain, restarts) if domain > after => all.push((domain, restarts)),
            _ => return Ok(all),
        }
    }
}

/// The state of the component with this name.
pub fn state(component: &str) -> Result<State, Failure<ParentError>> {
    ParentClient(Direct(Entry::PARENT)).state(component)
}

/// All call entries: whom each domain can call.
pub fn portals() -> Result<Vec<info::Portal>, Refusal> {
    let mut portals: Vec<info::Portal> = records()?;
    // Those that report nothing only say how far it went.
    portals.retain(|portal| portal.index != 0);
    Ok(portals)
}

/// All shapes of portals, by number.
pub fn shapes() -> Result<Vec<info::Shape>, Refusal> {
    records()
}

/// The code of a shape.
pub fn code(shape: &info::Shape) -> Result<Vec<u8>, Refusal> {
    let (mut code, mut bytes) = (Vec::new(), [0; size_of::<info::Code>()]);
    while (code.len() as u64) < shape.length {
        let position = info::Code::position(shape.number, code.len() as u64);
        match PROC.inspect(info::CODE, position, &mut bytes)? {
            (0, _) => break,
            (count, _) => code.extend_from_slice(&bytes[..count]),
        }
    }
    code.truncate(shape.length as usize);
    Ok(code)
}

/// All threads, by number.
pub fn threads() -> Result<Vec<info::Thread>, Refusal> {
    let mut threads: Vec<info::Thread> = records()?;
    threads.sort_by_key(|thread| thread.number);
    Ok(threads)
}

/// All CPUs that the machine has, by number.
pub fn cpus() -> Result<Vec<info::Cpu>, Refusal> {
    let mut cpus: Vec<info::Cpu> = records()?;
    cpus.sort_by_key(|cpu| cpu.number);
    Ok(cpus)
}

/// Formats sets of CPUs for people.
pub struct CpuSets {
    /// A bit for each CPU that runs.
    online: u64,
}

impl CpuSets {
    /// Those of this machine. Values that the nucleus does not report come from the threads.
    pub fn new(threads: &[info::Thread]) -> Self {
        let reported = cpus().unwrap_or_default();
        let online = match status_json::cpus::online(&reported) {
            0 => threads.iter().fold(0, |set, thread| set | thread.cpus),
            online => online,
        };
        Self { online }
    }

    /// `all`, or which of the CPUs that run.
    pub fn text(&self, set: u64) -> String {
        match set & self.online {
            all if all == self.online => "all".into(),
            some => cpuset::CpuSet(some).to_string(),
        }
    }
}

/// Where every frame is.
pub fn frames() -> Result<info::Frames, Refusal> {
    Ok(records()?.into_iter().next().unwrap_or(info::Frames { total: 0, charged: 0, free: 0, boot: 0 }))
}

/// The nucleus's counters, each with its name.
pub fn counters() -> Result<Vec<(&'static str, u64)>, Refusal> {
    let reported = records::<info::Counters>()?;
    let named = |reported: &info::Counters| {
        vec![
            ("uptime", reported.uptime),
            ("faults", reported.faults),
            ("interrupts", reported.interrupts),
            ("dispatches", reported.dispatches),
            ("deaths", reported.deaths),
            ("splits", reported.splits),
            ("standby", reported.standby),
            ("domains", reported.domains),
            ("restarts", reported.restarts),
            ("root writes", reported.root_writes),
            ("invalidations", reported.invalidations),
            ("longest non-preemptible section", reported.longest),
            ("caused by", reported.longest_by),
            ("dispatches refused, something new", reported.again),
            ("dispatches refused, cannot run", reported.not_runnable),
        ]
    };
    Ok(reported.first().map_or_else(Vec::new, named))
}

/// A part of the kernel log (`info::LOG` and so on) from a position on, piece by piece; gives the position
/// after it.
pub fn log(part: u64, mut position: u64, mut take: impl FnMut(&[u8])) -> Result<u64, Refusal> {
    let mut bytes = [0; 1024];
    loop {
        let (count, next) = PROC.inspect(part, position, &mut bytes)?;
        if count == 0 {
            return Ok(next.max(position));
        }
        take(&bytes[..count]);
        position = next;
    }
}

/// The meaning of a dead domain's status word, for people.
pub fn status(status: u64) -> String {
    match status {
        0..=255 => alloc::format!("exit {status}"),
        info::status::KILLED..info::status::EXCEPTION => match status - info::status::KILLED {
            0 => "killed".into(),
            value => alloc::format!("killed ({value})"),
        },
        info::status::EXCEPTION..info::status::PAGE_FAULT => {
            let vector = status - info::status::EXCEPTION;
            match runtime::arch::exception(vector) {
                Some(text) => alloc::format!("exception: {text}"),
                None => alloc::format!("exception {vector}"),
            }
        }
        info::status::PAGE_FAULT => "page fault: nothing is mapped there, or not with that right".into(),
        info::status::STACK_OVERFLOW => "stack overflow".into(),
        info::status::NO_ROOM => {
            "its account has no room for a page that it needs: give it a larger one (`account`)".into()
        }
        other => alloc::format!("cause {other:#x}"),
    }
}
