//! `sandbox [-t] PROGRAM [ARGUMENT…]`: runs a program whose portals all lead here, and counts its calls.
//!
//! This is the program of the appendix of "The Pebble Component-Based Operating System" ("Implementing a Transparent Sandbox by Portal
//! Interposition"). Before the program runs, stubs take the places of its portals (`stubs`). A call of a stub arrives here, and is made
//! again through the portal that we have. If that brings a new portal, the program gets a stub in its place, in the same answer.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod stubs;

use alloc::string::ToString;

use interface::Failure;
use loader::startup::{self, Contents, ENTRY};
use runtime::abi::layout::{self, FIRST_FREE};
use runtime::abi::{Error, PAGE_BYTES, window};
use runtime::child::Child;
use runtime::interfaces::process::ProcessError;
use runtime::program::{environment, startup as told, variable};
use runtime::{Entry, op, server};
use tool::inspect::PROC;
use tool::table::{Side, Table};
use tool::{Arguments, eprintln, files};

runtime::entry!(main);

const HELP: &str = "\
usage: sandbox [-t] PROGRAM [ARGUMENT...]

Runs a program whose portals all lead to sandbox, which makes each call in its
place. At the end, says on standard error output which portals there were, by
which call each was made, and how often each was called.

  -t  say each call when it is made
";

/// Calls of the program that can be under way at once: each may wait, and bring a window. Our thread has one slot.
const ACTIVATIONS: usize = window::SLOTS - 1;
/// Pages of stack that a call takes: two messages are put together beside the one that came.
const STACK_PAGES: u64 = runtime::arch::DEEP_STACK_PAGES + 2;
/// Portals that are shown at the end.
const SHOWN: usize = 100;
/// Bytes of heap kept for calls: a stub each.
const KEPT_BYTES: usize = 16 * 1024;

/// Portals that `proc` makes for programs, unless others are to stand there.
const OWN: [(&str, u16); 2] = [("names", layout::NAMES as u16), ("parent", layout::PARENT as u16)];

/// Its streams, if they are portals.
const STREAMS: [&str; 3] = ["input", "output", "errors"];

/// Why the program could not be run.
type Cause = Failure<ProcessError>;

fn main() -> u8 {
    let arguments = Arguments::new("sandbox", HELP);
    // Words behind the program's name are arguments of the program.
    let (traced, words) = match arguments.words() {
        ["-t", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let Some(program) = words.first() else { return arguments.wrong("a program is missing") };
    if program.starts_with('-') {
        return arguments.wrong(&alloc::format!("unknown option {program}"));
    }
    stubs::trace(traced);
    match run(program, words) {
        Ok(status) => {
            report();
            u8::try_from(status).unwrap_or_else(|_| arguments.fail(program, tool::inspect::status(status)))
        }
        Err(cause) => arguments.fail(program, cause),
    }
}

/// Runs the program to its end; gives its status.
fn run(program: &str, words: &[&'static str]) -> Result<u64, Cause> {
    server::prepared_activations(ACTIVATIONS, STACK_PAGES).map_err(Failure::Transport)?;
    server::keep_memory(KEPT_BYTES);
    let child = load(program, words)?;
    let outcome = equip(&child).and_then(|()| child.start());
    if let Err(cause) = outcome {
        let _ = child.end();
        return Err(cause);
    }
    child.wait()
}

/// Portals of the program that it is told of: those that we were told of, and those that every program has.
fn portals() -> impl Iterator<Item = (&'static str, u16)> {
    let given = told().into_iter().flat_map(|told| told.portals());
    let is_own = |index: u16| OWN.iter().any(|(_, own)| *own == index);
    OWN.into_iter().chain(given.filter(move |(_, index)| !is_own(*index)))
}

/// Loads the program, from where a shell would. It does not run yet.
fn load(program: &str, words: &[&'static str]) -> Result<Child, Cause> {
    let streams = told().map_or(["null"; 3], |told| told.streams);
    let contents = Contents { schedule: 0, name: files::last(program), streams };
    let mut page = alloc::vec![0; PAGE_BYTES - 512];
    let used = startup::write(&mut page, &contents, words.iter().copied(), environment(), portals())
        .map_err(|_| Failure::Refused(ProcessError::BadLaunch))?;
    let spawn = |path: &str| PROC.spawn(path, &page[..used], 0, 0).map(Child::from);
    if program.contains('/') {
        return spawn(&files::absolute(program));
    }
    for directory in variable("PATH").unwrap_or("/bin").split(':').filter(|directory| !directory.is_empty()) {
        match spawn(&files::join(directory, program)) {
            Err(Failure::Refused(ProcessError::NotFound)) => {}
            outcome => return outcome,
        }
    }
    Err(Failure::Refused(ProcessError::NotFound))
}

/// Puts stubs in the places of the program's portals.
fn equip(child: &Child) -> Result<(), Cause> {
    let domain = child.domain()?;
    stubs::watch(op::domain_number(domain.entry()).map_err(Failure::Transport)?);
    let stub = |index: usize, name: &str| match stubs::put(domain.entry(), Entry(index), name) {
        // Its server is dead, so there is none for us either.
        Err(Error::Empty | Error::Revoked) => Ok(()),
        outcome => outcome.map_err(Failure::Transport),
    };
    let streams = told().map_or(["null"; 3], |told| told.streams);
    for ((index, name), _) in (FIRST_FREE..).zip(STREAMS).zip(streams).filter(|(_, stream)| *stream == ENTRY) {
        stub(index, name)?;
    }
    portals().try_for_each(|(name, index)| stub(index.into(), name))
}

/// Says what was called, and how often.
fn report() {
    let (mut count, mut all, mut rest) = (0, 0, 0);
    let mut table = Table::new(&[("PORTAL", Side::Right), ("CALLS", Side::Right), ("MADE BY", Side::Left)]);
    stubs::each(|number, calls, origin| {
        count += 1;
        all += calls;
        if number < SHOWN {
            table.row([number.to_string(), calls.to_string(), origin.to_string()]);
        } else {
            rest += calls;
        }
    });
    eprintln!("sandbox: {all} calls through {count} portals");
    table.lines().iter().for_each(|line| eprintln!("{line}"));
    if count > SHOWN {
        eprintln!("and {} more, called {rest} times", count - SHOWN);
    }
}
