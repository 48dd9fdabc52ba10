//! Negative tests of programs started by `sandbox --only pipes,random` that want more than these two services (`confined-again`: by
//! `--only ramfs`; `confined-files`: by `--read /etc`; `confined-changes`: by `--read /etc --write /tmp`).

use alloc::format;
use alloc::string::String;

use idl::{Delegate, Failure, Transport};
use protocols::file::{FileClient, FileError, FileSystemClient, WRITE};
use protocols::listing::Listing;
use protocols::names::{MAX_NAME, NamesClient, NamesError};
use protocols::parent::{ParentClient, ParentError};
use protocols::pipes::PipeEndClient;
use protocols::process::Force;
use protocols::random::RandomClient;
use protocols::stream::StreamError;
use runtime::abi::layout::{self, FIRST_FREE};
use runtime::abi::rights::{ALL as ALL_RIGHTS, Kind};
use runtime::abi::{Control, Error};
use runtime::connection::{Connection, Direct};
use runtime::entry::Owned;
use runtime::idl::{Again, Answer};
use runtime::pipes::PIPES;
use runtime::server::{self, ServeWord};
use runtime::{Entry, op, pipes, table, thread};

use crate::case::{Case, expect, text};

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried(
        "confined-names",
        "asks the name service of a sandbox for what is not on its list, in every form",
        names,
    ),
    Case::tried("confined-parent", "asks its parent for what a confined program may not", parent),
    Case::tried("confined-table", "looks in its table for portals that lead beside the list, and makes some", table),
    Case::tried("confined-domain", "has a service on the list put portals into domains that it makes", domain),
    Case::tried(
        "confined-again",
        "asks a name service that is killed and started again for what is not on the list",
        again,
    ),
    Case::tried(
        "confined-files",
        "asks for files that it may not read, in every form, and to change those that it may",
        files,
    ),
    Case::tried(
        "confined-changes",
        "changes files beside those that it may change, and moves files in and out",
        changes,
    ),
    Case::tried("confined-hoard", "opens a file until its sandbox has no room, and lets go of it", hoard),
];

/// On the list; and the terminal, if that is a stream.
const LISTED: [&str; 3] = ["pipes", "random", "console"];
/// Names that are not, among them forms of those that are.
const OTHERS: [&str; 16] = [
    "ramfs",
    "proc",
    "net",
    "time",
    "names",
    "sigma0",
    "roottask",
    "bus",
    "nobody",
    "",
    "Random",
    "random ",
    " random",
    "random\0",
    "random,ramfs",
    "rando",
];
/// `Names::open`.
const OPEN: u64 = NamesClient::OPEN;
/// Indices of the table that are looked at: more than it has.
const LOOKED_AT: usize = 4096;

/// A listed service still answers.
fn listed() -> Result<(), String> {
    RandomClient(Connection::named("random")).sources().map_err(|error| format!("random: {error}")).map(drop)
}

/// Opens by a message that says it has a name of `length` bytes, and has these; the words that come back. An entry is let go.
fn open(word0: u64, length: usize, bytes: &[u8]) -> Result<(u64, bool), Error> {
    runtime::message::prepare_receive()?;
    let mut answer = Answer { words: [word0 | (length as u64) << 16, 0, 0, 0, 0], control: Control(0) };
    Direct(Entry::NAMES).call_bytes(&mut answer, Again::Harmful, &[bytes], &mut [])?;
    let came = answer.control.delegated();
    if came != 0 {
        drop(Owned::new(Entry(came)));
    }
    Ok((answer.words[0], came != 0))
}

fn names() -> Result<String, String> {
    let names = NamesClient(Direct(Entry::NAMES));
    let confined = Err(Failure::Refused(NamesError::Confined));
    let long = "r".repeat(MAX_NAME + 1);
    for name in OTHERS.into_iter().chain([long.as_str()]) {
        expect(name, names.open(name).map(drop), confined)?;
    }
    for name in LISTED {
        names.open(name).map(|entry| drop(Owned::new(entry.into()))).map_err(|error| format!("{name}: {error}"))?;
    }
    // Messages that no generated client sends: with lengths that do not fit, unused bits of word 0 set, or bytes that are no text.
    for (word0, length, bytes) in [
        (OPEN, 3, &b"netrandom"[..]),
        (OPEN, 6, b"randomnet"),
        (OPEN, 0, b"net"),
        (OPEN, 9, b"net"),
        (OPEN, 0xffff, b"random"),
        (OPEN, 3, b"\xff\xfe\xfd"),
        (OPEN | 6 << 32, 3, b"netrandom"),
        (OPEN | 3 << 32, 6, b"randomnet"),
        (OPEN | 3 << 48, 0, b"net"),
        (OPEN | 0xffff << 48, 3, b"net"),
    ] {
        let (word, came) = open(word0, length, bytes).map_err(text)?;
        let name = String::from_utf8_lossy(bytes);
        if came || word == 0 {
            return Err(format!("{name} as {length} bytes, word {word0:#x}: opened"));
        }
    }
    let mut list = [0; 4096];
    let (bytes, next) = names.list(0, &mut list).map_err(text)?;
    let shown = Listing(&list[..bytes]).filter(|record| !LISTED.iter().any(|name| name.as_bytes() == record.name));
    expect("names beside the list", (shown.count(), next), (0, 0))?;
    expect("names on the list", Listing(&list[..bytes]).any(|record| record.name == b"random"), true)?;
    let service = service()?;
    let give = Delegate::entry(service.entry().0, server::SERVICE_RIGHTS);
    expect("register", names.register("random", give), Err(Failure::Refused(NamesError::Confined)))?;
    expect("unregister", names.unregister("random"), Err(Failure::Refused(NamesError::Confined)))?;
    listed()?;
    Ok(format!("refused: {}", NamesError::Confined))
}

/// A service that answers with nothing.
struct Nobody;

impl ServeWord for Nobody {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        0
    }
}

fn service() -> Result<Owned, String> {
    server::word_service::<Nobody>().map(Owned::new).map_err(text)
}

fn parent() -> Result<String, String> {
    let parent = ParentClient(Direct(Entry::PARENT));
    let service = service()?;
    let give = || Delegate::entry(service.entry().0, server::SERVICE_RIGHTS);
    let own = || Delegate::entry(Entry::DOMAIN.0, ALL_RIGHTS);
    let refused = Failure::Refused(ParentError::Confined);
    expect("publish", parent.publish("negtest-confined", give()), Err(refused))?;
    expect("publish for another", parent.publish_for_program("negtest-confined", give()), Err(refused))?;
    expect("a portal to names", parent.equip(own()), Err(refused))?;
    expect("a vault", parent.vault().map(drop), Err(refused))?;
    expect("an end", parent.kill(1, Force::Forced), Err(refused))?;
    expect("restarts", parent.restarts(0), Err(refused))?;
    expect("a state", parent.state("ramfs"), Err(refused))?;
    expect("accounts", parent.programs(0, &mut [0; 64]), Err(refused))?;
    // A name of the list is passed on, and refused by whom it does not belong to.
    expect("a listed name", parent.publish("random", give()), Err(Failure::Refused(ParentError::Taken)))?;
    listed()?;
    Ok(format!("refused: {}", ParentError::Confined))
}

fn table() -> Result<String, String> {
    // Faults, memory, and what leads to the sandbox: streams are entries if they are files or pipes.
    let known = |index: usize| {
        layout::PAGE_FAULT.contains(&index)
            || [layout::PARENT, layout::SIGMA0, layout::NAMES].contains(&index)
            || (FIRST_FREE..FIRST_FREE + 3).contains(&index)
    };
    let kind = |index: usize| op::entry_info(Entry::OWN, Entry(index)).ok().map(|(kind, _)| kind);
    let leads = |index: &usize| matches!(kind(*index), Some(Kind::Call | Kind::Service));
    if let Some(index) = (layout::PAGE_FAULT[0]..LOOKED_AT).filter(leads).find(|index| !known(*index)) {
        return Err(format!("a portal at {index}"));
    }
    // A portal's badge says which one it is to the sandbox. Nobody makes another badge of a call entry.
    let free = table::allocate().map_err(text)?;
    for badge in 0..8 {
        let forged = op::portal_new(Entry::OWN, Entry::NAMES, badge, free, 0);
        expect("a badge", forged.map(drop), Err(Error::WrongKind))?;
    }
    // Nor is it passed on in the table.
    for rights in [0, ALL_RIGHTS] {
        let copied = op::entry_copy(Entry::OWN, Entry::NAMES, Entry::OWN, free, rights);
        expect("a copy", copied.map(drop), Err(Error::WrongKind))?;
    }
    table::free(free);
    listed()?;
    Ok(format!("no other portals; refused: {}", Error::WrongKind))
}

fn domain() -> Result<String, String> {
    let pipe = PIPES.create().map_err(text)?;
    let end = pipes::end(pipe, pipe).map_err(text)?;
    let account = Owned::new(op::account_new(Entry::ACCOUNT, 64).map_err(text)?);
    let made = Owned::new(op::domain_new(account.entry(), 0, "made").map_err(text)?);
    for (what, domain) in [("its own", Entry::DOMAIN), ("one that it made", made.entry())] {
        let given = PipeEndClient(Direct(end.entry())).give(Delegate::entry(domain.0, ALL_RIGHTS), 200);
        expect(what, given, Err(Failure::Refused(StreamError::NotADomain)))?;
    }
    listed()?;
    Ok(format!("refused: {}", StreamError::NotADomain))
}

fn again() -> Result<String, String> {
    let (mut asked, end) = (0, op::clock() + 800_000_000);
    while op::clock() < end {
        let refused = NamesClient(Direct(Entry::NAMES)).open("proc").map(drop);
        expect(&format!("after {asked}"), refused, Err(Failure::Refused(NamesError::Confined)))?;
        // Found by its name again, and only when the name service is there.
        FileSystemClient(Connection::named("ramfs")).read_directory("/", 0, &mut [0; 64]).map_err(text)?;
        asked += 1;
        thread::sleep(500_000).map_err(text)?;
    }
    Ok(format!("{asked} times, each refused: {}", NamesError::Confined))
}

/// Paths that are not below `/etc`, or lead there by a way that could lead elsewhere.
const ELSEWHERE: [&str; 14] = [
    "",
    "/",
    "/bin/ls",
    "bin/ls",
    "etc/motd",
    "//etc/motd",
    "/etc/../bin/ls",
    "/etc/x/../../bin/ls",
    "/etc/..",
    "/etc/../etc/motd",
    "/etcetera",
    "/ETC/motd",
    "/bin/../etc/motd",
    "/etc\0/motd",
];

const ETC: [&str; 3] = ["/etc", "/etc/motd", "/etc/new"];

/// A path is refused for each change of it; for a move from and to `other`, too.
fn changes_nothing(files: &FileSystemClient<impl Transport>, path: &str, other: &str) -> Result<(), String> {
    let confined = Err(Failure::Refused(FileError::Confined));
    for flags in [WRITE, u64::MAX, 1 << 63] {
        expect(path, files.open(path, flags).map(drop), confined)?;
    }
    expect(path, files.create(path, 0).map(drop), confined)?;
    expect(path, files.make_directory(path), confined)?;
    expect(path, files.remove(path), confined)?;
    expect(path, files.rename(path, other), confined)?;
    expect(path, files.rename(other, path), confined)
}

/// Holds as many portals as there can be. When it lets go of them there is room again.
fn hoard() -> Result<String, String> {
    const MOST: usize = 5_000;
    let files = FileSystemClient(Connection::named("ramfs"));
    let open = || files.open("/etc/motd", 0).map(|entry| Owned::new(entry.into()));
    let mut held = alloc::vec::Vec::new();
    while let Ok(entry) = open() {
        held.push(entry);
        if held.len() == MOST {
            return Err(format!("{MOST}, and no end"));
        }
    }
    let most = held.len();
    // A sweep that the sandbox has begun finishes while we still hold everything.
    thread::sleep(1_000_000_000).map_err(|error| format!("sleep: {error}"))?;
    drop(held);
    let is_open = (0..100).any(|_| thread::sleep(10_000_000).is_ok() && open().is_ok());
    if is_open {
        Ok(format!("refused after {most}, and open again"))
    } else {
        Err(format!("refused for ever after {most}"))
    }
}

fn changes() -> Result<String, String> {
    let files = FileSystemClient(Connection::named("ramfs"));
    let lead_out = ["/tmp/../etc/motd", "/tmp/..", "/tmpo", "/tmp/x/../../bin/ls", "/tm"];
    for path in ELSEWHERE.into_iter().chain(ETC).chain(lead_out) {
        changes_nothing(&files, path, "/tmp/x")?;
    }
    // These changes are allowed.
    let may = |what: &str, outcome: Result<(), Failure<FileError>>| expect(what, outcome, Ok(()));
    may("make", files.create("/tmp/x", 0).map(drop))?;
    may("make a directory", files.make_directory("/tmp/d"))?;
    may("move", files.rename("/tmp/x", "/tmp//d/./y"))?;
    may("write", files.open("/tmp/d/y", WRITE).map(drop))?;
    may("read", files.open("/etc/motd", 0).map(drop))?;
    may("remove", files.remove("/tmp/d/y"))?;
    may("remove a directory", files.remove("/tmp/d"))?;
    Ok(format!("each refused: {}", FileError::Confined))
}

fn files() -> Result<String, String> {
    let files = FileSystemClient(Connection::named("ramfs"));
    let confined = Err(Failure::Refused(FileError::Confined));
    for path in ELSEWHERE {
        expect(path, files.open(path, 0).map(drop), confined)?;
        expect(path, files.stat(path).map(drop), confined)?;
        expect(path, files.read_directory(path, 0, &mut [0; 64]).map(drop), confined)?;
    }
    for path in ELSEWHERE.into_iter().chain(ETC) {
        changes_nothing(&files, path, "/etc/motd")?;
    }
    let entry = files.open("/etc//./motd", 0).map_err(|error| format!("what it may read: {error}"))?;
    let file = FileClient(Direct(entry.into()));
    let read_only = Failure::Refused(FileError::ReadOnly);
    expect("write", file.write(0, b"x"), Err(read_only))?;
    expect("append", file.append(b"x").map(drop), Err(read_only))?;
    expect("truncate", file.truncate(0), Err(read_only))?;
    let mut first = [0; 8];
    expect("read", file.read(0, &mut first), Ok(first.len()))?;
    Ok(format!("each refused: {}", FileError::Confined))
}
