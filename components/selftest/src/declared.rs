//! A component in a compartment of the system description: notes, in files or in the log, what it may do there.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::level;
use idl::Failure;
use protocols::file::{FileClient, FileError, TRUNCATE, WRITE};
use protocols::parent::{ParentClient, ParentError};
use protocols::process::ProcessClient;
use runtime::connection::{Connection, Direct};
use runtime::entry::Owned;
use runtime::stream::FILE_SYSTEM;
use runtime::{Entry, op, program, server, thread};

use crate::restarts::Fragile;

/// The compartment's directory, where `keeper` leaves something for the others.
const INSIDE: &str = "/compartments/diary";
const KEPT: &str = "/compartments/diary/kept";
/// How often, and how many nanoseconds apart, it is looked for.
const TRIES: u64 = 200;
const PAUSE: u64 = 20_000_000;

fn answer(outcome: Result<(), Failure<FileError>>) -> String {
    match outcome {
        Ok(()) => "ok".to_string(),
        Err(Failure::Refused(error)) => format!("{error:?}"),
        Err(error) => error.to_string(),
    }
}

fn write(path: &str, text: &str) -> Result<(), Failure<FileError>> {
    let file = Owned::new(FILE_SYSTEM.create(path, WRITE | TRUNCATE)?.into());
    FileClient(Direct(file.entry())).write(0, text.as_bytes()).map(drop)
}

fn read() -> Result<(), Failure<FileError>> {
    for _ in 0..TRIES {
        match FILE_SYSTEM.open(KEPT, 0) {
            // Not yet.
            Err(Failure::Refused(FileError::NotFound)) => drop(thread::sleep(PAUSE)),
            other => return other.map(|file| drop(Owned::new(file.into()))),
        }
    }
    Err(Failure::Refused(FileError::NotFound))
}

/// Publishes its own name twice.
fn publish() -> String {
    let publish = || match server::publish::<Fragile>(program::name(), 1) {
        Ok(_) => "ok".to_string(),
        Err(Failure::Refused(error)) => format!("{error:?}"),
        Err(error) => error.to_string(),
    };
    format!("{}, then {}", publish(), publish())
}

/// Asks for a shape of a specification that is none, with its name in it.
fn shape() -> String {
    match server::shape(&format!("{}?", program::name())) {
        Ok(_) => "ok".to_string(),
        Err(Failure::Refused(error)) => format!("{error:?}"),
        Err(error) => error.to_string(),
    }
}

/// Its levels in the compartment of the files, as the nucleus knows them: S and R.
fn levels() -> Option<[i64; 2]> {
    let (_, entry) = program::startup()?.compartments().next()?;
    op::label_levels(entry >> 3).ok().map(|levels| levels.map(|level| level as i64 - 1))
}

/// Asks `proc` for the compartments of the first domains: the different answers.
fn others() -> String {
    const FIRST: u64 = 9;
    let proc = ProcessClient(Connection::named("proc"));
    let answer = |number| match proc.compartments(number, &mut [0; 64]) {
        Ok(_) => "reported".to_string(),
        Err(Failure::Refused(error)) => format!("{error:?}"),
        Err(error) => error.to_string(),
    };
    let mut answers: Vec<String> = (1..=FIRST).map(answer).collect();
    answers.dedup();
    answers.join(", ")
}

/// Notes all of it.
pub fn run() -> u8 {
    let name = program::name();
    let before = levels();
    let reported: Vec<_> = program::startup()
        .map(|reported| reported.compartments().map(|(name, entry)| (name.to_string(), entry)).collect())
        .unwrap_or_default();
    let published = publish();
    let declared = match ParentClient(Direct(Entry::PARENT)).compartments(0, &mut [0; 64]) {
        Err(Failure::Refused(ParentError::NotTrusted)) => "NotTrusted",
        _ => "something else",
    };
    let of_one = ParentClient(Direct(Entry::PARENT)).compartments_of(1, &mut [0; 64]);
    let declared = if of_one == Err(Failure::Refused(ParentError::NotTrusted)) { declared } else { "something else" };
    let mut first = if name == "keeper" { answer(write(KEPT, "kept\n")) } else { answer(read()) };
    // With a clearance it must taint itself before it may look.
    if name == "cleared" {
        let raised = reported.first().map(|(_, entry)| op::label_send(entry >> 3, level::THREE));
        first = format!("{first}, raised {raised:?} {}", answer(read()));
    }
    let inside = answer(write(&format!("{INSIDE}/{name}"), ""));
    let outside = answer(write(&format!("/tmp/{name}"), ""));
    let log = op::log(0, 0);
    let text = format!(
        "{name}: gets {:?}, levels {before:?}, then {:?}; publishes: {published}; asks for all: {declared}; kept: {first}; inside: {inside}; \
         outside: {outside}; log: {log:?}; shape: {}; others: {}\n",
        reported.iter().map(|(name, entry)| (name, (entry & 7) as i64 - 1)).collect::<Vec<_>>(),
        levels(),
        shape(),
        others()
    );
    let places = [format!("{INSIDE}/{name}"), format!("/tmp/{name}")];
    if places.iter().filter(|path| write(path, &text).is_ok()).count() == 0 {
        runtime::log!("{}", text.trim_end());
    }
    // Components that end are started again.
    server::park()
}
