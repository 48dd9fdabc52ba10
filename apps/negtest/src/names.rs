//! Negative tests of programs that claim somebody else's name, or every name there is.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use idl::{Delegate, Failure};
use protocols::listing::Listing;
use protocols::names::{FEWEST_OF_PROGRAMS, MOST_OF_PROGRAMS, NamesClient, NamesError};
use protocols::parent::{MAX_PROGRAM_SERVICES, ParentClient, ParentError};
use protocols::process::Force;
use protocols::random::RandomClient;
use runtime::connection::{Connection, Direct, Name};
use runtime::entry::Owned;
use runtime::server::{self, ServeWord};
use runtime::{Entry, op, thread};
use tool::inspect::{self, PROC};

use crate::callees;
use crate::case::{Case, expect, text};
use crate::launch::Process;

/// All of them. They need a system with `randomd`.
pub const ALL: &[Case] = &[
    Case::tried("name-table", "writes the table of names with the badge that an open by name gives", table),
    Case::tried("name-component", "publishes under the names of components", component),
    Case::tried("name-restarting", "publishes under a component's name while that is started again", restarting),
    Case::tried("name-program", "publishes under the name of another program", program),
    Case::tried("name-hoard", "takes as many names as it can, alone and with others", hoard),
    Case::tried("name-private", "opens and lists what only portals of the description lead to", private),
    Case::tried("name-opens", "opens one name 4,000 times and keeps all of it", opens),
    Case::tried("name-again", "opens a name again and again, whatever happens to the name service", again),
    Case::tried("name-others", "asks for what only the parent of programs may", others),
];

/// Names of components, of the default system and others.
const COMPONENTS: [&str; 14] = [
    "sigma0", "roottask", "sched", "names", "console", "ramfs", "pipes", "bus", "nic", "entropy", "time", "random",
    "net", "proc",
];
/// Those of them that only portals of the description lead to.
const PRIVATE: [&str; 3] = ["bus", "nic", "entropy"];
/// So many programs that take all the names they can take all that programs may have, on any machine.
const HOARDERS: RangeInclusive<usize> =
    FEWEST_OF_PROGRAMS / MAX_PROGRAM_SERVICES..=MOST_OF_PROGRAMS / MAX_PROGRAM_SERVICES;
const MILLISECOND: u64 = 1_000_000;

/// A service that answers with what it has.
struct Impostor;

impl ServeWord for Impostor {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        IMPOSTOR
    }
}

const IMPOSTOR: u64 = 666;

fn service() -> Result<Owned, String> {
    server::word_service::<Impostor>().map(Owned::new).map_err(text)
}

fn give(service: &Owned) -> Delegate {
    Delegate::entry(service.entry().0, server::SERVICE_RIGHTS)
}

/// Publishes; the refusal, if it is one.
fn publish(name: &str, service: &Owned) -> Result<(), Failure<ParentError>> {
    ParentClient(Direct(Entry::PARENT)).publish(name, give(service))
}

const TAKEN: Result<(), Failure<ParentError>> = Err(Failure::Refused(ParentError::Taken));
const TOO_MANY: Result<(), Failure<ParentError>> = Err(Failure::Refused(ParentError::TooMany));

/// The services that a client uses are still the same.
fn all_is_well() -> Result<(), String> {
    RandomClient(Connection::named("random")).sources().map_err(|error| format!("random: {error}"))?;
    inspect::frames().map_err(|error| format!("proc: {error}"))?;
    let mut bytes = [0; 1];
    let files = protocols::file::FileSystemClient(Connection::named("ramfs"));
    files.read_directory("/", 0, &mut bytes).map_err(|error| format!("ramfs: {error}")).map(drop)
}

fn table() -> Result<String, String> {
    let service = service()?;
    let ours = NamesClient(Direct(Entry::NAMES));
    let opened = Owned::new(ours.open("names").map_err(text)?.into());
    let refused = Err(Failure::Refused(NamesError::NotAllowed));
    for names in [ours, NamesClient(Direct(opened.entry()))] {
        for name in COMPONENTS.into_iter().chain(["nobody"]) {
            expect(name, names.register(name, give(&service)), refused)?;
            expect(name, names.unregister(name), refused)?;
            expect(name, names.expect(name), refused)?;
        }
    }
    all_is_well()?;
    // The shapes of portals, too, are for everybody as they are. Others are made for components.
    let shape = |specification| ours.shape(specification).map(|shape| drop(Owned::new(shape.into())));
    expect("a known shape", shape("npciii>i"), Ok(()))?;
    expect("another shape", shape("npt>ttt"), Err(Failure::Refused(NamesError::NoShape)))?;
    expect("no shape", shape("nonsense"), Err(Failure::Refused(NamesError::NoShape)))?;
    Ok(format!("refused: {}", NamesError::NotAllowed))
}

fn opens() -> Result<String, String> {
    const OPENS: usize = 4000;
    let names = NamesClient(Direct(Entry::NAMES));
    let open = |_| names.open("ramfs").map(|entry| Owned::new(entry.into()));
    let opened: Vec<Owned> = (0..OPENS).map(open).collect::<Result<_, _>>().map_err(text)?;
    let last = opened.last().ok_or("nothing")?.entry();
    protocols::file::FileSystemClient(Direct(last)).read_directory("/", 0, &mut [0; 64]).map_err(text)?;
    all_is_well()?;
    Ok(format!("{} entries of its own table", opened.len()))
}

fn again() -> Result<String, String> {
    let (mut opens, end) = (0, op::clock() + 800 * MILLISECOND);
    while op::clock() < end {
        let files = protocols::file::FileSystemClient(Connection::named("ramfs"));
        files.read_directory("/", 0, &mut [0; 64]).map_err(|error| format!("open {opens}: {error}"))?;
        opens += 1;
        thread::sleep(MILLISECOND / 2).map_err(text)?;
    }
    Ok(format!("{opens} times, each served"))
}

fn component() -> Result<String, String> {
    let service = service()?;
    for name in COMPONENTS {
        expect(name, publish(name, &service), TAKEN)?;
    }
    all_is_well()?;
    Ok(format!("refused: {}", ParentError::Taken))
}

fn restarting() -> Result<String, String> {
    const KILLS: usize = 20;
    let service = service()?;
    for _ in 0..KILLS {
        // It may be just being started: then that is the instant to try.
        if let Ok(victim) = inspect::only(&inspect::domains().map_err(text)?, "randomd") {
            PROC.kill_domain(victim, Force::Gentle).map_err(text)?;
        }
        for _ in 0..10 {
            expect("random", publish("random", &service), TAKEN)?;
            thread::sleep(MILLISECOND / 5).map_err(text)?;
        }
    }
    all_is_well()?;
    Ok(format!("killed it {KILLS} times; refused each time: {}", ParentError::Taken))
}

fn program() -> Result<String, String> {
    let service = service()?;
    server::activations(1).map_err(text)?;
    let (victim, _) = callees::victim()?;
    expect("while it lives", publish(callees::NAME, &service), Err(Failure::Refused(ParentError::InUse)))?;
    victim.kill()?;
    publish(callees::NAME, &service).map_err(|error| format!("when it is dead: {error}"))?;
    let found = Owned::new(NamesClient(Direct(Entry::NAMES)).open(callees::NAME).map_err(text)?.into());
    expect("the call", callees::ask(found.entry(), 0, 0), Ok(IMPOSTOR))?;
    Ok(format!("refused while it lives: {}; free when it is dead", ParentError::InUse))
}

/// Publishes as many names as one program can.
fn take(service: &Owned, own: &str) -> Result<(), String> {
    for number in 0..MAX_PROGRAM_SERVICES {
        publish(&hoarded(own, number), service).map_err(|error| format!("name {number}: {error}"))?;
    }
    expect("one more", publish(&hoarded(own, MAX_PROGRAM_SERVICES), service), TOO_MANY)?;
    // A new service under an old name is no new name.
    publish(&hoarded(own, 0), service).map_err(|error| format!("the first again: {error}"))
}

fn hoarded(own: &str, number: usize) -> String {
    format!("hoard-{own}-{number}")
}

/// Is one of those that take all.
pub fn hoarder(own: &str) -> u8 {
    match service().and_then(|service| take(&service, own).map(|()| service)) {
        Ok(_service) => server::park(),
        Err(cause) if cause.ends_with(idl::Code::text(ParentError::Full)) => 1,
        Err(_) => 2,
    }
}

/// Waits until a program has its last name, or was refused one.
fn has_all(hoarder: &Process, own: &str) -> Result<bool, String> {
    let (deadline, name) = (op::clock() + 5000 * MILLISECOND, hoarded(own, MAX_PROGRAM_SERVICES - 1));
    while Connection::new(Name(&name)).entry().is_err() {
        match hoarder.ended() {
            Some(1) => return Ok(false),
            Some(status) => return Err(format!("a hoarder ended with {status:#x}")),
            None if op::clock() > deadline => return Err(format!("nobody publishes {name}")),
            None => thread::sleep(MILLISECOND).map_err(text)?,
        }
    }
    Ok(true)
}

fn hoard() -> Result<String, String> {
    let service = service()?;
    // Those of an earlier time are not asked for again: they must make room by themselves.
    take(&service, &op::clock().to_string())?;
    // Another program is served all the same.
    callees::victim()?.0.kill()?;
    let mut hoarders = Vec::new();
    loop {
        let own = hoarders.len().to_string();
        let hoarder = Process::start_with("hoarder", &["--hoard", &own], 256)?;
        if !has_all(&hoarder, &own)? {
            break;
        }
        hoarders.push(hoarder);
    }
    // We are one, too.
    if !HOARDERS.contains(&(hoarders.len() + 1)) {
        return Err(format!("{} programs took all names", hoarders.len() + 1));
    }
    // Components have their names all the same.
    let victim = inspect::only(&inspect::domains().map_err(text)?, "names")?;
    PROC.kill_domain(victim, Force::Gentle).map_err(text)?;
    all_is_well()?;
    let taken = (hoarders.len() + 1) * MAX_PROGRAM_SERVICES;
    hoarders.into_iter().try_for_each(|hoarder| hoarder.kill().map(drop))?;
    callees::victim()?.0.kill()?;
    Ok(format!(
        "refused after {MAX_PROGRAM_SERVICES}: {}; after {taken} of all: {}",
        ParentError::TooMany,
        ParentError::Full
    ))
}

fn private() -> Result<String, String> {
    let service = service()?;
    let names = NamesClient(Direct(Entry::NAMES));
    let mut list = [0; 4096];
    let (bytes, _) = names.list(0, &mut list).map_err(text)?;
    for name in PRIVATE {
        expect(name, names.open(name).map(drop), Err(Failure::Refused(NamesError::NotFound)))?;
        expect(name, Listing(&list[..bytes]).any(|record| record.name == name.as_bytes()), false)?;
        expect(name, publish(name, &service), TAKEN)?;
    }
    expect("names that are listed", Listing(&list[..bytes]).any(|record| record.name == b"random"), true)?;
    all_is_well()?;
    Ok(format!("refused: {}", NamesError::NotFound))
}

fn others() -> Result<String, String> {
    let parent = ParentClient(Direct(Entry::PARENT));
    let service = service()?;
    let refused = Err(Failure::Refused(ParentError::NotForPrograms));
    expect("for a program", parent.publish_for_program("negtest-other", give(&service)), refused)?;
    let domain = Delegate::entry(Entry::DOMAIN.0, runtime::abi::rights::ALL);
    expect("a portal for a domain", parent.equip(domain), refused)?;
    let own = Connection::new(Name("negtest-other")).entry().map(drop);
    expect("its name", own, Err(runtime::abi::Error::Empty))?;
    Ok(format!("refused: {}", ParentError::NotForPrograms))
}
