//! `sandbox [-ts] [-o NAME,…] [-r PATH,…] [-w PATH,…] PROGRAM [ARGUMENT…]`: runs a program whose portals all lead here, counts its calls, and refuses what is not on a list.
//!
//! This is the program of the appendix of "The Pebble Component-Based Operating System" ("Implementing a Transparent Sandbox by Portal
//! Interposition"). Before the program runs, stubs take the places of its portals (`stubs`). A call of a stub arrives here, and is made
//! again through the portal that we have. If that brings a new portal, the program gets a stub in its place, in the same answer.
//!
//! | module | what |
//! |---|---|
//! | [`stubs`] | calls, counted and passed on |
//! | [`list`] | which calls are refused to a confined program |
//! | [`mod@streams`] | files that are streams of a confined program |
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod list;
mod streams;
mod stubs;

use alloc::string::ToString;
use alloc::vec::Vec;

use idl::Failure;
use loader::startup::ENTRY;
use runtime::abi::layout::{self, FIRST_FREE};
use runtime::abi::{Error, window};
use runtime::child::Child;
use runtime::connection::Direct;
use runtime::entry::Owned;
use runtime::program::startup as reported;
use runtime::protocols::names::{NamesClient, NamesError, is_name};
use runtime::protocols::process::ProcessError;
use runtime::{Entry, op, server};
use tool::command::{self, Command};
use tool::table::{Side, Table};
use tool::{Arguments, eprintln, files};

use list::Paths;

runtime::entry!(main);

const HELP: &str = "\
usage: sandbox [-t] [-s] [-o NAME[,NAME...]]... [-r PATH[,PATH...]]...
               [-w PATH[,PATH...]]... PROGRAM [ARGUMENT...]

Runs a program whose portals all lead to sandbox, which makes each call in its
place. At the end, says on standard error output which portals there were, by
which call each was made, and how often each was called.

  -t               say each call when it is made
  -s, --strict     the status is 125 if the program was refused something
  -o, --only NAME  confine the program: it reaches the services of these names
                   and no others, and at the end it is said what it was refused
  -r, --read PATH  confine the program: it may read the files at and below these
                   paths, and do nothing else with files; other services
                   only with -o
  -w, --write PATH the same, but what is at and below these paths it may also
                   change, make, move and remove; directories above must exist

A confined program keeps its streams, its memory and the kernel log. The name
service opens and lists only names on the list, its parent publishes only
those, and it starts no programs. --only '' allows no service at all. The
network is net. Files are the service ramfs: without --read and --write all of
them, to read and to write, programs in /bin as well. A single file is best
handed over as a stream. The status is that of the program, but with --strict.

Confinement is about what the program reaches, not about what becomes known:
it can say what it reads to each service on the list.

  sandbox --only '' wc < /etc/motd             its streams, and nothing else
  sandbox --read /etc wc /etc/motd             these files, and nothing else
  sandbox -s -r /etc -w /tmp sort -o /tmp/x /etc/motd     and some to write
  sandbox -t -o net wget http://localhost/     the network; each call is said
";

/// Calls of the program that can be under way at once: each may wait, and bring a window. Our threads have a slot each.
const ACTIVATIONS: usize = window::SLOTS - 2;
/// Pages of stack that a call takes: two messages are put together beside the one that came.
const STACK_PAGES: u64 = runtime::arch::DEEP_STACK_PAGES + 2;
/// Portals that are shown at the end: those that are left.
const SHOWN: usize = 100;
/// Bytes of heap kept for calls: a stub each, and what was refused.
const KEPT_BYTES: usize = 24 * 1024;

/// Portals that `proc` makes for programs, unless others are to stand there.
const OWN: [(&str, u16); 2] = [("names", layout::NAMES as u16), ("parent", layout::PARENT as u16)];

/// Its streams, if they are portals.
const STREAMS: [&str; 3] = ["input", "output", "errors"];

/// The shell's name for the entry to the terminal that it gives a program whose input is not the terminal. Lists do not forbid it.
const TERMINAL: &str = "terminal";

/// Status of a strict sandbox that refused something.
const REFUSED: u8 = 125;

/// Why the program could not be run.
type Cause = Failure<ProcessError>;

fn main() -> u8 {
    let arguments = Arguments::new("sandbox", HELP);
    // Words after the program's name are arguments of the program.
    let (mut words, mut traced, mut strict) = (arguments.words(), false, false);
    let (mut list, mut paths) = (None, None::<Paths>);
    let split = |text: &'static str| text.split(',').filter(|part| !part.is_empty());
    loop {
        words = match words {
            ["-t", rest @ ..] => {
                traced = true;
                rest
            }
            ["-s" | "--strict", rest @ ..] => {
                strict = true;
                rest
            }
            ["-o" | "--only", names, rest @ ..] => {
                list.get_or_insert_with(Vec::new).extend(split(names));
                rest
            }
            ["-r" | "--read", below, rest @ ..] => {
                paths.get_or_insert_default().read.extend(split(below).map(files::absolute));
                rest
            }
            ["-w" | "--write", below, rest @ ..] => {
                paths.get_or_insert_default().write.extend(split(below).map(files::absolute));
                rest
            }
            ["-w" | "--write"] => return arguments.wrong("--write needs paths"),
            ["-r" | "--read"] => return arguments.wrong("--read needs paths"),
            ["-o" | "--only"] => return arguments.wrong("--only needs names of services"),
            _ => break,
        };
    }
    let Some(program) = words.first() else { return arguments.wrong("a program is missing") };
    if program.starts_with('-') {
        return arguments.wrong(&alloc::format!("unknown option {program}"));
    }
    if let Some(name) = list.iter().flatten().find(|name| !is_name(name)) {
        return arguments.wrong(&alloc::format!("{name} is not a name of a service"));
    }
    list.iter().flatten().filter(|name| is_unknown(name)).for_each(|name| {
        eprintln!("sandbox: there is no service {name} now");
    });
    if paths.is_some() {
        list.get_or_insert_with(Vec::new).push(list::FILES);
    }
    if let Some(mut names) = list {
        // A program opens the terminal by name for its streams. That lets it write, and nothing else.
        names.extend(streams().into_iter().filter(|stream| is_service(stream)));
        list::confine(names, paths);
    }
    stubs::trace(traced);
    match run(words) {
        Ok(status) => {
            report();
            if strict && list::has_refused() {
                return REFUSED;
            }
            if status > u8::MAX.into() {
                eprintln!("sandbox: {program}: {}", tool::inspect::status(status));
            }
            command::exit_status(status)
        }
        Err(cause) => arguments.fail(program, cause),
    }
}

/// Whether nobody has this name.
fn is_unknown(name: &str) -> bool {
    let opened = NamesClient(Direct(Entry::NAMES)).open(name).map(|entry| drop(Owned::new(entry.into())));
    opened == Err(Failure::Refused(NamesError::NotFound))
}

/// Runs the program to its end; gives its status.
fn run(words: &[&'static str]) -> Result<u64, Cause> {
    server::prepared_activations(ACTIVATIONS, STACK_PAGES).map_err(Failure::Transport)?;
    server::keep_memory(KEPT_BYTES);
    stubs::keep_room().map_err(Failure::Transport)?;
    let child = load(words)?;
    let outcome = equip(&child).and_then(|()| child.start());
    if let Err(cause) = outcome {
        let _ = child.end();
        return Err(cause);
    }
    // It does not outlive us: nobody would serve its portals, and nobody see it.
    child.wait_or_end()
}

/// Descriptions of our streams, which the program gets, too.
fn streams() -> [&'static str; 3] {
    reported().map_or(["null"; 3], |reported| reported.streams)
}

/// Whether a stream of this description is a service that is opened by its name.
fn is_service(stream: &str) -> bool {
    !matches!(stream, "" | "null" | "log" | ENTRY) && !streams::is_file(stream)
}

/// Portals that the program finds in its startup page: those in ours that are on the list, if there is one, and those that
/// every program has.
fn portals() -> impl Iterator<Item = (&'static str, u16)> {
    let given = reported().into_iter().flat_map(|reported| reported.portals());
    let given = given.filter(|(name, _)| *name == TERMINAL || list::allows(name.as_bytes()));
    let is_own = |index: u16| OWN.iter().any(|(_, own)| *own == index);
    OWN.into_iter().chain(given.filter(move |(_, index)| !is_own(*index)))
}

/// Loads the program, from where a shell would. It does not run yet.
fn load(words: &[&'static str]) -> Result<Child, Cause> {
    // To open a file it would need all files, and it would write where we write.
    let streams = streams().map(|stream| if streams::is_file(stream) { ENTRY } else { stream });
    Command::new(words).streams(streams).portals(portals().collect()).load()
}

/// Puts stubs in the places of the program's portals.
fn equip(child: &Child) -> Result<(), Cause> {
    let domain = child.domain()?;
    stubs::watch(op::domain_number(domain.entry()).map_err(Failure::Transport)?);
    let stub = |target: Entry, index: usize, name: &str| match stubs::put(domain.entry(), target, Entry(index), name) {
        // Its server is dead, so there is none for us either.
        Err(Error::Empty | Error::Revoked) => Ok(()),
        outcome => outcome.map_err(Failure::Transport),
    };
    for (number, (name, stream)) in STREAMS.into_iter().zip(streams()).enumerate() {
        let index = FIRST_FREE + number;
        if streams::is_file(stream) {
            stub(streams::entry(number).map_err(Failure::Transport)?, index, name)?;
        } else if stream == ENTRY {
            stub(Entry(index), index, name)?;
        }
    }
    portals().try_for_each(|(name, index)| stub(Entry(index.into()), index.into(), name))
}

/// Says what was called, and how often.
fn report() {
    let (mut count, mut all, mut shown, mut rest) = (0, 0, 0, 0);
    let mut table = Table::new(&[("PORTAL", Side::Right), ("CALLS", Side::Right), ("MADE BY", Side::Left)]);
    let (gone, of_these) = stubs::each(|number, calls, origin| {
        count += 1;
        all += calls;
        if shown < SHOWN {
            shown += 1;
            table.row([number.to_string(), calls.to_string(), origin.to_string()]);
        } else {
            rest += calls;
        }
    });
    (count, all, rest) = (count + gone, all + of_these, rest + of_these);
    eprintln!("sandbox: {all} calls through {count} portals");
    table.lines().iter().for_each(|line| eprintln!("{line}"));
    if count > shown {
        eprintln!("and {} more, called {rest} times", count - shown);
    }
    if list::is_there() {
        report_refusals();
    }
}

/// Says what was refused, and how often.
fn report_refusals() {
    let (mut count, mut all) = (0, 0);
    let mut table = Table::new(&[("TIMES", Side::Right), ("REFUSED", Side::Left)]);
    let more = list::each(|what, times| {
        count += 1;
        all += times;
        table.row([times.to_string(), what.to_string()]);
    });
    if count == 0 {
        return eprintln!("sandbox: nothing was refused");
    }
    let all = all + more;
    eprintln!("sandbox: {all} {} refused", if all == 1 { "call was" } else { "calls were" });
    table.lines().iter().for_each(|line| eprintln!("{line}"));
    if more > 0 {
        eprintln!("and others, {more} times");
    }
}
