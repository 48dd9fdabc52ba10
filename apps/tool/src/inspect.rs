//! What the nucleus tells about the machine, through `proc`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use runtime::Entry;
use runtime::abi::info;
use runtime::connection::{Connection, Direct, Name};
use runtime::interface::Failure;
use runtime::interfaces::parent::{ParentClient, ParentError};
use runtime::interfaces::process::{ProcessClient, ProcessError};

/// The program server.
pub static PROC: ProcessClient<Connection<Name<'static>>> = ProcessClient(Connection::named("proc"));

/// Why it was not told.
pub type Refusal = Failure<ProcessError>;

/// Words of the largest record.
const MAX_WORDS: usize = 32;

/// All records of a kind: each is words.
fn records(what: u64, words: usize) -> Result<Vec<[u64; MAX_WORDS]>, Refusal> {
    let mut all = Vec::new();
    let mut position = 0;
    loop {
        let mut bytes = [0; MAX_WORDS * 8];
        let (count, next) = PROC.inspect(what, position, &mut bytes[..words * 8])?;
        if count < words * 8 {
            return Ok(all);
        }
        let mut record = [0; MAX_WORDS];
        for (word, bytes) in record.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        all.push(record);
        if next == 0 {
            return Ok(all);
        }
        position = next;
    }
}

fn name(words: [u64; 2]) -> String {
    let bytes = words.map(u64::to_le_bytes).concat();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).to_string()
}

/// All domains, oldest first.
pub fn domains() -> Result<Vec<(String, info::Domain)>, Refusal> {
    let records = records(info::DOMAIN, size_of::<info::Domain>() / 8)?;
    let mut domains: Vec<_> = records
        .into_iter()
        .map(|words| {
            let [number, parent, name0, name1, state, status, charged, limit, threads, activations, ..] = words;
            let [crossings, pages, pair, table] = [words[10], words[11], words[12], words[13]];
            let name_bytes = [name0, name1].map(u64::to_le_bytes);
            let mut bytes = [0; 16];
            bytes.copy_from_slice(name_bytes.as_flattened());
            let record = info::Domain {
                number,
                parent,
                name: bytes,
                state,
                status,
                charged,
                limit,
                threads,
                activations,
                crossings,
                pages,
                pair,
                table,
            };
            (name([name0, name1]), record)
        })
        .collect();
    domains.sort_by_key(|(_, domain)| domain.number);
    Ok(domains)
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

/// All call entries: whom each domain can call.
pub fn portals() -> Result<Vec<info::Portal>, Refusal> {
    let records = records(info::PORTAL, size_of::<info::Portal>() / 8)?;
    let portals = records.into_iter().map(|words| {
        let [from, index, to, service, badge, ..] = words;
        info::Portal { from, index, to, service, badge }
    });
    Ok(portals.filter(|portal| portal.index != 0).collect())
}

/// All threads, by number.
pub fn threads() -> Result<Vec<info::Thread>, Refusal> {
    let records = records(info::THREAD, size_of::<info::Thread>() / 8)?;
    let mut threads: Vec<_> = records
        .into_iter()
        .map(|words| {
            let [number, home, now, state, priority, depth, used, ..] = words;
            info::Thread { number, home, now, state, priority, depth, used }
        })
        .collect();
    threads.sort_by_key(|thread| thread.number);
    Ok(threads)
}

/// Where every frame is.
pub fn frames() -> Result<info::Frames, Refusal> {
    let records = records(info::FRAMES, size_of::<info::Frames>() / 8)?;
    let [total, charged, free, boot] = match records.first() {
        Some(words) => [words[0], words[1], words[2], words[3]],
        None => [0; 4],
    };
    Ok(info::Frames { total, charged, free, boot })
}

/// The nucleus's counters, each with its name.
pub fn counters() -> Result<Vec<(&'static str, u64)>, Refusal> {
    const NAMES: [&str; 15] = [
        "uptime",
        "faults",
        "interrupts",
        "dispatches",
        "deaths",
        "splits",
        "standby",
        "domains",
        "restarts",
        "root writes",
        "invalidations",
        "longest stretch without interrupts",
        "caused by",
        "dispatches refused, something new",
        "dispatches refused, cannot run",
    ];
    const { assert!(size_of::<info::Counters>() == NAMES.len() * 8) };
    let records = records(info::COUNTERS, NAMES.len())?;
    Ok(records.first().map_or_else(Vec::new, |words| NAMES.into_iter().zip(*words).collect()))
}

/// The kernel log from a position on, piece by piece; gives the position after it.
pub fn log(mut position: u64, mut take: impl FnMut(&[u8])) -> Result<u64, Refusal> {
    let mut bytes = [0; 1024];
    loop {
        let (count, next) = PROC.inspect(info::LOG, position, &mut bytes)?;
        if count == 0 {
            return Ok(next.max(position));
        }
        take(&bytes[..count]);
        position = next;
    }
}

/// What a status word of a dead domain means, for people.
pub fn status(status: u64) -> String {
    const EXCEPTIONS: [&str; 22] = [
        "division error",
        "single step",
        "non-maskable interrupt",
        "breakpoint",
        "overflow",
        "bound range exceeded",
        "undefined instruction",
        "floating point not available",
        "double fault",
        "coprocessor overrun",
        "invalid task state",
        "segment not present",
        "stack fault (address not canonical)",
        "privileged instruction or address not canonical",
        "page fault",
        "reserved exception",
        "floating-point error",
        "unaligned access",
        "machine check",
        "vector floating-point error",
        "virtualisation exception",
        "control protection",
    ];
    match status {
        0..=255 => alloc::format!("exit {status}"),
        info::status::KILLED..info::status::EXCEPTION => match status - info::status::KILLED {
            0 => "killed".into(),
            value => alloc::format!("killed ({value})"),
        },
        info::status::EXCEPTION..info::status::PAGE_FAULT => {
            let vector = status - info::status::EXCEPTION;
            match EXCEPTIONS.get(vector as usize) {
                Some(text) => alloc::format!("exception: {text}"),
                None => alloc::format!("exception {vector}"),
            }
        }
        info::status::PAGE_FAULT => "page fault: nothing is mapped there, or not with that right".into(),
        info::status::NO_CALLER => "returned without a caller".into(),
        other => alloc::format!("cause {other:#x}"),
    }
}
