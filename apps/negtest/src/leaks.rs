//! Ways to tell a secret to somebody who may not have it. The owner of a compartment starts us: for each way we start a program that is in
//! the compartment, and tries to tell; and then one that is not, and tries to hear. With labels switched off each of them succeeds.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use idl::{Delegate, Failure};
use loader::startup::Contents;
use protocols::file::{FileClient, FileError, TRUNCATE, WRITE};
use protocols::listing::Listing;
use protocols::names::NamesClient;
use protocols::net::NetClient;
use protocols::parent::{ParentClient, ParentError};
use protocols::pipes::{PipeEndClient, PipeError};
use protocols::process::ProcessError;
use protocols::sigma0::{Sigma0Client, Sigma0Error};
use protocols::stream::StreamError;
use runtime::abi::info::{self, Record};
use runtime::abi::layout::{FIRST_FREE, FREE_START, PROGRAM_START};
use runtime::abi::level::{ONE, STAR, THREE, ZERO};
use runtime::abi::rights::{self, MAP_READ, MAP_WRITE};
use runtime::abi::{NEVER, PAGE_BYTES};
use runtime::child::Child;
use runtime::connection::{Connection, Direct, Name};
use runtime::entry::Owned;
use runtime::op::Schedule;
use runtime::pipes::{self, PIPES};
use runtime::port::{self, Options, Port, Size};
use runtime::server::{self, ServeWord};
use runtime::stream::FILE_SYSTEM;
use runtime::{Entry, label, message, op, program, table, thread};
use tool::inspect::{self, PROC};
use tool::println;

use crate::case::{Case, text};
use crate::launch;

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("leaks", "leaks a secret in each way to a program outside its compartment", all),
    Case::tried(
        "leak-errors",
        "asks servers for what compartments forbid, as owner, in the compartment and outside",
        errors,
    ),
];

/// A way to tell something.
struct Channel {
    name: &'static str,
    /// Status of a program in the compartment.
    report: fn() -> bool,
    /// Status of one outside. `None`: it hears the secret if the other could tell it.
    hear: Option<fn() -> bool>,
    /// The sender must still run while the listener listens.
    stays: bool,
}

impl Channel {
    const fn new(name: &'static str, report: fn() -> bool, hear: fn() -> bool) -> Self {
        Self { name, report, hear: Some(hear), stays: false }
    }

    /// Refused to the program that tries to tell.
    const fn tried(name: &'static str, report: fn() -> bool) -> Self {
        Self { name, report, hear: None, stays: false }
    }

    const fn staying(name: &'static str, report: fn() -> bool, hear: fn() -> bool) -> Self {
        Self { name, report, hear: Some(hear), stays: true }
    }
}

const CHANNELS: &[Channel] = &[
    Channel::new("file", || create("/tmp/told"), || is_there("/tmp/told")),
    Channel::new("content", || write(SHARED), || size(SHARED) != 0),
    Channel::new("folder", || FILE_SYSTEM.make_directory("/tmp/made").is_ok(), || is_there("/tmp/made")),
    Channel::new("removal", || FILE_SYSTEM.remove(SHARED).is_ok(), || !is_there(SHARED)),
    Channel::new("rename", || FILE_SYSTEM.rename(SHARED, "/tmp/told").is_ok(), || !is_there(SHARED)),
    Channel::new("read", || create(&inside("read")), || FILE_SYSTEM.open(&inside("read"), 0).is_ok()),
    Channel::new("stat", || create(&inside("stat")), || differs("stat", |path| FILE_SYSTEM.stat(path).map(drop))),
    Channel::new(
        "list",
        || create(&inside("list")),
        || FILE_SYSTEM.read_directory(&directory(), 0, &mut [0; 256]).is_ok_and(|(bytes, _)| bytes > 0),
    ),
    Channel::new("size", || create(&inside("size")), || size_in_list() != 0),
    Channel::new(
        "program",
        || FILE_SYSTEM.make_directory(&inside("program")).is_ok(),
        || differs("program", |path| spawn(path, &[], &[]).map(drop)),
    ),
    Channel::new("label", || true, || FILE_SYSTEM.set_compartment(KEPT, 0).is_ok()),
    Channel::staying("service", publish, || NamesClient(Direct(Entry::NAMES)).open("leaked").is_ok()),
    Channel::staying("process", stay, || is_listed("leak-process")),
    Channel::staying("domain", stay, || {
        inspect::domains().is_ok_and(|all| all.iter().any(|(name, _)| name == "leak-domain"))
    }),
    Channel::staying("compartments", stay, || {
        let is_reported = |number| PROC.compartments(number, &mut [0; 64]).is_ok_and(|bytes| bytes != 0);
        // The listener's own number is above the sender's.
        op::domain_number(Entry::DOMAIN).is_ok_and(|own| is_reported(own - 1))
    }),
    Channel::staying("thread", stay, || others_threads() > before()),
    Channel::staying("portal", stay, || others_portals() > before()),
    Channel::staying("cpu", spin, is_seen_to_run),
    Channel::new("counter", make_domains, || domains_made() >= before() + MADE),
    Channel::staying("deputy", draw_from_other, has_paid),
    Channel::new("log", say, || is_in_log("leak-log")),
    Channel::new("death", die, || is_in_log("leak-death")),
    Channel::new(
        "child",
        || start(&["--leak-child"], &[]).and_then(|child| child.wait()).is_ok(),
        || is_there("/tmp/told"),
    ),
    Channel::new(
        "joined",
        || create(&inside("joined")),
        || {
            let compartment = FILE_SYSTEM.compartment(&directory()).unwrap_or(0);
            start(&["--nothing"], &[("diary", compartment)]).is_ok()
        },
    ),
    Channel::tried("network", || NetClient(Connection::<Name<'_>>::named("net")).interfaces(0, &mut [0; 64]).is_ok()),
    Channel::tried("session", || PIPES.create().is_ok()),
    Channel::tried("notify", || {
        let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).unwrap_or(Entry::OWN));
        start(&["--nothing"], &own()).is_ok_and(|child| child.notify(semaphore.entry()).is_ok())
    }),
];

/// A file that all may write.
const SHARED: &str = "/tmp/shared";
/// One of the compartment, where all may make files.
const KEPT: &str = "/tmp/kept";
/// Frames that the account of another pays for, as a power of two.
const ORDER: u64 = 6;
/// Domains that are made to be counted.
const MADE: usize = 32;
/// How often CPUs are looked at.
const LOOKS: usize = 20;
/// How long one that stays is given to start, in nanoseconds.
const PATIENCE: u64 = 100_000_000;

fn all() -> Result<String, String> {
    let own = own();
    let (name, entry) = own.iter().find(|(_, entry)| entry & 7 == STAR).ok_or("use: with COMPARTMENT negtest leaks")?;
    let directory = format!("/compartments/{name}");
    let tainted = [(*name, entry & !7 | THREE)];
    let mut heard = Vec::new();
    for channel in CHANNELS {
        drop(Owned::new(FILE_SYSTEM.create(SHARED, 0).map_err(text)?.into()));
        drop(Owned::new(FILE_SYSTEM.create(KEPT, 0).map_err(text)?.into()));
        FILE_SYSTEM.set_compartment(KEPT, tainted[0].1).map_err(text)?;
        let before = match channel.name {
            "portal" => others_portals(),
            "counter" => domains_made(),
            _ => others_threads(),
        };
        // Of the owner, who lets both ends use it: one sends an entry to the other.
        let port = match channel.name {
            "deputy" => Some(Port::new(Entry::ACCOUNT, Size { bytes: 8, messages: 1 }, None, None, 0).map_err(text)?),
            _ => None,
        };
        let end = |right| port.as_ref().map(|port| (port.entry(), right));
        let numbers = [before.to_string(), own_number().to_string()];
        let words = |what| [what, channel.name, &directory, &numbers[0], &numbers[1]];
        let sender = start_with(&words("--leak-send"), &tainted, end(rights::USE)).map_err(text)?;
        let reported = if channel.stays {
            thread::sleep(PATIENCE).map_err(text)?;
            true
        } else {
            sender.wait().map_err(text)? == 0
        };
        let is_heard = match channel.hear {
            None => reported,
            Some(_) => {
                let hearer = start_with(&words("--leak-hear"), &[], end(rights::WRITE)).map_err(text)?;
                hearer.wait().map_err(text)? == 0
            }
        };
        if channel.stays {
            sender.end().map_err(text)?;
        }
        if is_heard {
            heard.push(channel.name);
        }
        for path in [SHARED, "/tmp/told", "/tmp/made", KEPT, &format!("{directory}/{}", channel.name)] {
            let _ = FILE_SYSTEM.remove(path);
        }
    }
    Ok(format!(
        "of {} ways these were heard: {}",
        CHANNELS.len(),
        if heard.is_empty() { "none".into() } else { heard.join(" ") }
    ))
}

/// Each refusal, with its error.
fn errors() -> Result<String, String> {
    let own = own();
    let (name, entry) =
        own.iter().find(|(_, entry)| entry & 7 == STAR).ok_or("use: with COMPARTMENT negtest leak-errors")?;
    let handle = entry >> 3;
    let [secret, foreign] = [handle, handle ^ 1].map(label::secret);
    drop(Owned::new(FILE_SYSTEM.create(KEPT, 0).map_err(text)?.into()));
    let no_level = handle << 3 | ONE;
    for (path, to, right) in [
        (KEPT, no_level, Err(FileError::NotACompartment)),
        (KEPT, foreign, Err(FileError::NotOwner)),
        ("/tmp", secret, Err(FileError::NotEmpty)),
        ("/tmp/none", secret, Err(FileError::NotFound)),
        (KEPT, secret, Ok(())),
    ] {
        check(path, FILE_SYSTEM.set_compartment(path, to), right)?;
    }
    let pipe = PIPES.create().map_err(text)?;
    let (has_one, none) = (Err(PipeError::HasCompartment), Err(PipeError::NotACompartment));
    for (to, right) in [(no_level, none), (secret, Ok(())), (secret, Ok(())), (0, has_one)] {
        check("a pipe", PIPES.set_compartment(pipe, to), right)?;
    }
    let _ = (PIPES.close_read(pipe), PIPES.close_write(pipe));
    for (compartments, error) in [
        (&[("", secret); 9][..], ProcessError::TooManyCompartments),
        (&[("", handle << 3 | 7)], ProcessError::NotALevel),
        (&[("", foreign)], ProcessError::Flow),
        (&[("", foreign & !7)], ProcessError::Flow),
    ] {
        check("a program", start(&["--nothing"], compartments).map(drop), Err(error))?;
    }
    for (what, compartments) in [
        ("--leak-outside", &[][..]),
        ("--leak-inside", &[(*name, secret)]),
        ("--leak-privileged", &[(*name, handle << 3 | ZERO)]),
        ("--leak-cleared", &[(*name, handle << 3 | ONE)]),
    ] {
        let part = start(&[what], compartments).map_err(text)?;
        if part.wait().map_err(text)? != 0 {
            return Err(what.to_string());
        }
    }
    FILE_SYSTEM.remove(KEPT).map_err(text)?;
    Ok("each refusal has its error".to_string())
}

/// Of a program that is not in the compartment.
pub fn outside() -> Result<(), String> {
    for (what, outcome) in [
        ("to open", FILE_SYSTEM.open(KEPT, 0).map(drop)),
        ("to empty", FILE_SYSTEM.create(KEPT, TRUNCATE).map(drop)),
        ("to look", FILE_SYSTEM.stat(KEPT).map(drop)),
        ("to remove", FILE_SYSTEM.remove(KEPT)),
        ("to move", FILE_SYSTEM.rename(KEPT, "/tmp/moved")),
        ("to change a program", FILE_SYSTEM.open(launch::PATH, WRITE).map(drop)),
    ] {
        check(what, outcome, Err(FileError::Flow))?;
    }
    check("to declassify", FILE_SYSTEM.set_compartment(KEPT, 0), Err(FileError::NotOwner))
}

/// Of a program that is in the compartment.
pub fn inside_only() -> Result<(), String> {
    check("to look", FILE_SYSTEM.stat(KEPT).map(drop), Ok(()))?;
    check("to make a file", FILE_SYSTEM.create("/tmp/told", 0).map(drop), Err(FileError::Flow))?;
    check("to move", FILE_SYSTEM.rename(KEPT, "/tmp/moved"), Err(FileError::Flow))?;
    check("to start an untainted program", start(&["--nothing"], &[]).map(drop), Err(ProcessError::Flow))?;
    let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    let child = start(&["--nothing"], &own()).map_err(text)?;
    check("to be notified of an end", child.notify(semaphore.entry()), Err(ProcessError::Flow))?;
    let service = Owned::new(server::word_service::<Nothing>().map_err(text)?);
    let delegate = Delegate::entry(service.entry().0, server::SERVICE_RIGHTS);
    let published = ParentClient(Direct(Entry::PARENT)).publish("leaked", delegate);
    check("to publish", published, Err(ParentError::Flow))
}

/// Of a program that has the compartment at level 0.
pub fn privileged() -> Result<(), String> {
    check("to open", FILE_SYSTEM.open(KEPT, 0).map(drop), Err(FileError::Flow))?;
    check("to make a file", FILE_SYSTEM.create("/tmp/told", 0).map(drop), Err(FileError::Flow))?;
    for (level, right) in
        [(STAR, Err(ProcessError::Flow)), (ZERO, Err(ProcessError::Flow)), (ONE, Err(ProcessError::Flow))]
    {
        let own: Vec<_> = own().iter().map(|(name, entry)| (*name, entry & !7 | level)).collect();
        check("to start one with the compartment", start(&["--nothing"], &own).map(drop), right)?;
    }
    check("to start one without", start(&["--nothing"], &[]).map(drop), Ok(()))
}

/// Of a program that becomes tainted after it handed over an account of its own, and made a pipe.
pub fn cleared() -> Result<(), String> {
    let sigma0 = Sigma0Client(Direct(Entry::SIGMA0));
    let account = Owned::new(op::account_new(Entry::ACCOUNT, 20).map_err(text)?);
    let entry = || Delegate::entry(account.entry().0, rights::ALL);
    let ticket = sigma0.manage_account(entry()).map_err(text)?;
    let draw_for = |address| sigma0.draw_for(ticket, address, 0, MAP_READ | MAP_WRITE);
    check("to draw for another account", draw_for(FREE_START), Ok(()))?;
    let pipe = PIPES.create().map_err(text)?;
    let [reads, writes] = [(pipe, 0), (0, pipe)].map(|(reads, writes)| pipes::end(reads, writes));
    let (reads, writes) = (reads.map_err(text)?, writes.map_err(text)?);
    let [reader, writer] = [&reads, &writes].map(|end| PipeEndClient(Direct(end.entry())));
    check("to write to a pipe", writer.write(b"before").map(drop), Ok(()))?;
    let [(_, own)] = own()[..] else { return Err("one compartment".to_string()) };
    op::label_send(own >> 3, THREE).map_err(text)?;
    check("to draw for another account", draw_for(FREE_START + PAGE_BYTES as u64), Err(Sigma0Error::Flow))?;
    check("to hand over an account", sigma0.manage_account(entry()).map(drop), Err(Sigma0Error::Flow))?;
    let domain = sigma0.manage_domain(ticket, PROGRAM_START, Delegate::entry(Entry::DOMAIN.0, rights::ALL));
    check("to hand over a domain", domain, Err(Sigma0Error::Flow))?;
    let own = sigma0.draw(FREE_START + 2 * PAGE_BYTES as u64, 0, MAP_READ | MAP_WRITE);
    check("to draw for itself", own, Ok(()))?;
    check("to write to a pipe", writer.write(b"after").map(drop), Err(StreamError::Flow))?;
    let room = table::allocate().map_err(text)?;
    let ours = Delegate::entry(Entry::DOMAIN.0, rights::COPY | rights::WRITE);
    check("to hand an end of a pipe on", writer.give(ours, room.0 as u64), Err(StreamError::Flow))?;
    check("to make a pipe", PIPES.create().map(drop), Err(PipeError::Flow))?;
    let mut bytes = [0; 16];
    let count = reader.read(&mut bytes).map_err(text)?;
    if bytes[..count] != *b"before" {
        return Err("the pipe has something else".to_string());
    }
    check("to let go", sigma0.forget(ticket), Ok(()))
}

/// Says what is wrong; gives the status.
pub fn reported(outcome: Result<(), String>) -> u8 {
    if let Err(cause) = &outcome {
        println!("leak-errors: {cause}");
    }
    u8::from(outcome.is_err())
}

#[inline(never)]
fn check<E: Display + PartialEq>(what: &str, is: Result<(), Failure<E>>, right: Result<(), E>) -> Result<(), String> {
    match is {
        is if is == right.map_err(Failure::Refused) => Ok(()),
        Ok(()) => Err(format!("{what}: not refused")),
        Err(error) => Err(format!("{what}: {error}")),
    }
}

/// Runs one side of a channel; gives the status.
pub fn part(what: &str, name: &str) -> u8 {
    let Some(channel) = CHANNELS.iter().find(|channel| channel.name == name) else { return 2 };
    let done = match what {
        "--leak-send" => (channel.report)(),
        _ => channel.hear.is_some_and(|hear| hear()),
    };
    u8::from(!done)
}

/// The part of an untainted child of the sender.
pub fn child() -> u8 {
    u8::from(!create("/tmp/told"))
}

/// Waits for a piece of standard input that is shorter than a page: the content of the pipe may become a secret meanwhile.
pub fn sip() -> u8 {
    match runtime::stream::Stream::entry(Entry(FIRST_FREE)).read(&mut [0; 16]) {
        Err(Failure::Refused(StreamError::Flow)) => println!("leak-sip: Flow"),
        other => println!("leak-sip: {other:?}: that must not be"),
    }
    0
}

fn start(words: &[&str], compartments: &[(&str, u64)]) -> Result<Child, Failure<ProcessError>> {
    spawn(launch::PATH, words, compartments)
}

/// The same. If there is a port, it has that with this right where its standard input would be.
fn start_with(words: &[&str], compartments: &[(&str, u64)], port: Option<(Entry, u8)>) -> Result<Child, String> {
    let Some((port, right)) = port else { return start(words, compartments).map_err(text) };
    let child = spawn_as(launch::PATH, words, compartments, "entry").map_err(text)?;
    let domain = child.domain().map_err(text)?;
    op::entry_copy(Entry::OWN, port, domain.entry(), Entry(FIRST_FREE), right).map_err(text)?;
    child.start().map_err(text)?;
    Ok(child)
}

fn spawn(path: &str, words: &[&str], compartments: &[(&str, u64)]) -> Result<Child, Failure<ProcessError>> {
    spawn_as(path, words, compartments, "null")
}

/// Starts a program. A sender has the name of its channel.
fn spawn_as(
    path: &str,
    words: &[&str],
    compartments: &[(&str, u64)],
    input: &str,
) -> Result<Child, Failure<ProcessError>> {
    let name = match words {
        ["--leak-send", way, ..] => format!("leak-{way}"),
        _ => String::new(),
    };
    let contents = Contents { schedule: 0, name: &name, streams: [input, "console", "console"], compartments };
    launch::spawn_with(path, &contents, words, 512)
}

fn argument(place: usize) -> &'static str {
    program::arguments().nth(place).unwrap_or("")
}

/// Our compartments.
pub fn own() -> Vec<(&'static str, u64)> {
    program::startup().map_or_else(Vec::new, |reported| reported.compartments().collect())
}

/// The directory of the compartment.
fn directory() -> String {
    argument(3).to_string()
}

fn inside(name: &str) -> String {
    format!("{}/{name}", argument(3))
}

/// How many of them there were before the one that tells.
fn before() -> usize {
    argument(4).parse().unwrap_or(usize::MAX)
}

fn create(path: &str) -> bool {
    FILE_SYSTEM.create(path, 0).map(|file| drop(Owned::new(file.into()))).is_ok()
}

fn is_there(path: &str) -> bool {
    FILE_SYSTEM.stat(path).is_ok()
}

fn size(path: &str) -> u64 {
    FILE_SYSTEM.stat(path).map_or(0, |stat| stat.size)
}

fn write(path: &str) -> bool {
    let file = FILE_SYSTEM.open(path, WRITE).or_else(|_| FILE_SYSTEM.open(path, 0));
    file.is_ok_and(|file| FileClient(Direct(Owned::new(file.into()).entry())).write(0, b"told").is_ok())
}

/// Whether what comes of something that is there is another thing than what comes of something that is not.
fn differs<E: PartialEq>(name: &str, ask: impl Fn(&str) -> Result<(), E>) -> bool {
    ask(&inside(name)) != ask(&inside("nothing"))
}

/// How many names the directory of the compartment has, as the one above lists it.
fn size_in_list() -> u64 {
    let mut bytes = [0; 1024];
    let reported = FILE_SYSTEM.read_directory("/compartments", 0, &mut bytes).map_or(0, |(reported, _)| reported);
    let own = directory();
    let name = own.rsplit('/').next().unwrap_or("");
    Listing(&bytes[..reported]).find(|record| record.name == name.as_bytes()).map_or(0, |record| record.value)
}

struct Nothing;

impl ServeWord for Nothing {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        0
    }
}

fn publish() -> bool {
    let Ok(service) = server::word_service::<Nothing>().map(Owned::new) else { return false };
    let published = ParentClient(Direct(Entry::PARENT))
        .publish("leaked", Delegate::entry(service.entry().0, server::SERVICE_RIGHTS))
        .is_ok();
    // A name goes with its program.
    published && stay()
}

/// Is there until it is ended.
fn stay() -> bool {
    let _ = op::semaphore_new(Entry::ACCOUNT, 0).map(|semaphore| op::p(semaphore, NEVER));
    false
}

/// Whether `proc` lists a program of this name.
fn is_listed(name: &str) -> bool {
    let (mut position, mut bytes) = (0, [0; 1024]);
    while let Ok((reported, next)) = PROC.list(position, &mut bytes) {
        if Listing(&bytes[..reported]).any(|record| record.name == name.as_bytes()) {
            return true;
        }
        if next == 0 {
            break;
        }
        position = next;
    }
    false
}

fn own_number() -> u64 {
    op::domain_number(Entry::DOMAIN).unwrap_or(0)
}

/// Whether a domain is neither ours nor our creator's.
fn is_other(domain: u64) -> bool {
    domain != own_number() && argument(5).parse() != Ok(domain)
}

fn others_threads() -> usize {
    count(|thread: &info::Thread| is_other(thread.home))
}

fn others_portals() -> usize {
    count(|portal: &info::Portal| portal.index != 0 && is_other(portal.from))
}

fn count<R: Record>(counts: impl Fn(&R) -> bool) -> usize {
    let mut found = 0;
    let _ = inspect::each(|record| found += usize::from(counts(&record)));
    found
}

/// Runs until it is ended, on another CPU than the listener. The hint for such loops would take the emulator long.
fn spin() -> bool {
    run_on(1);
    for round in 0_u64.. {
        core::hint::black_box(round);
    }
    false
}

/// Has the running thread stay on a CPU, if there is one of this number.
fn run_on(cpu: u64) {
    let _ = op::thread_schedule_on(Entry::OWN, Schedule { priority: 16, slice: 10_000 }, 1 << cpu);
}

/// Whether a CPU is said to run a thread of the sender, or one that no list shows.
fn is_seen_to_run() -> bool {
    run_on(0);
    let threads = || inspect::threads().unwrap_or_default();
    // Our own number is above the sender's.
    let is_sender = |thread: &info::Thread| thread.home + 1 == own_number();
    (0..LOOKS).any(|_| {
        let before = threads();
        let cpus = inspect::cpus().unwrap_or_default();
        let after = threads();
        let is_shown = |number: u64| {
            let mut known = before.iter().chain(&after).filter(|thread| thread.number == number).peekable();
            known.peek().is_none() || known.any(is_sender)
        };
        cpus.iter().any(|cpu| cpu.thread != 0 && is_shown(cpu.thread))
    })
}

/// Makes domains, which are gone at once.
fn make_domains() -> bool {
    let make = || {
        let account = Owned::new(op::account_new(Entry::ACCOUNT, 20)?);
        op::domain_new(account.entry(), 0, "made").map(Owned::new)
    };
    (0..MADE).all(|_| make().is_ok())
}

/// How many domains the nucleus says that it made.
fn domains_made() -> usize {
    let counters = inspect::counters().unwrap_or_default();
    counters.iter().find(|(name, _)| *name == "domains").map_or(0, |(_, count)| *count as usize)
}

/// Has `sigma0` draw from the account that an accomplice sends.
fn draw_from_other() -> bool {
    let sigma0 = Sigma0Client(Direct(Entry::SIGMA0));
    let _ = message::prepare_receive();
    let received = port::receive(Entry(FIRST_FREE), NEVER, None, |received, _| received.entry);
    let Ok(Some(account)) = received else { return false };
    let ticket = sigma0.manage_account(Delegate::entry(account.0, rights::COPY | rights::WRITE));
    let drawn = ticket.and_then(|ticket| sigma0.draw_for(ticket, FREE_START, ORDER, MAP_READ | MAP_WRITE));
    drawn.is_ok() && stay()
}

/// Sends our account, and looks whether it pays for what we did not draw.
fn has_paid() -> bool {
    let charged = || {
        let domains = inspect::domains().unwrap_or_default();
        domains.iter().find(|(_, domain)| domain.number == own_number()).map_or(0, |(_, domain)| domain.charged)
    };
    let before = charged();
    let sent = port::send(Entry(FIRST_FREE), &[], &Options { along: Some(Entry::ACCOUNT), ..Options::default() });
    let _ = thread::sleep(PATIENCE);
    sent.is_ok() && charged() >= before + (1 << ORDER)
}

fn is_in_log(word: &str) -> bool {
    let mut all = Vec::new();
    let _ = inspect::log(info::LOG_PROGRAMS, 0, |bytes| all.extend_from_slice(bytes));
    String::from_utf8_lossy(&all).contains(word)
}

fn say() -> bool {
    runtime::log!("told");
    true
}

fn die() -> bool {
    // SAFETY: nothing is there: we die of it.
    unsafe { core::ptr::read_volatile(8 as *const u8) };
    false
}
