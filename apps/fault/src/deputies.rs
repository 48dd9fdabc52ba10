//! Crimes of those who have a server do to others what they may not do themselves.

use alloc::format;
use alloc::string::{String, ToString};

use interface::{Delegate, Failure};
use interfaces::process::{ChildClient, Force, KEPT, ProcessClient, ProcessError};
use loader::startup::{self, Contents};
use runtime::abi::layout::FIRST_FREE;
use runtime::abi::rights::{ALL as ALL_RIGHTS, COPY, READ};
use runtime::abi::{Error, PAGE_BYTES, info::status};
use runtime::connection::{Connection, Direct, Name};
use runtime::entry::Owned;
use runtime::{Entry, op};
use tool::inspect;

use crate::Crime;

/// All of them.
pub const ALL: &[Crime] = &[
    Crime::tried("end-others", "has components, other programs and the machine ended", others),
    Crime::tried("right-for-itself", "has the right to end others given to itself", right),
    Crime::tried("kept-part", "asks for the memory that is kept for a command of the shell", kept),
    Crime::tried("child-entries", "hands over what is no semaphore, and no domain", entries),
    Crime::tried("child-late", "changes a program that runs, and asks for an end twice", late),
];

type Refused<T> = Result<T, Failure<ProcessError>>;

/// As everybody finds it.
fn proc() -> ProcessClient<Connection<Name<'static>>> {
    ProcessClient(Connection::named("proc"))
}

fn expect<T>(what: &str, is: Refused<T>, right: ProcessError) -> Result<(), String> {
    match is {
        Err(error) if error == Failure::Refused(right) => Ok(()),
        Err(error) => Err(format!("{what}: {error}")),
        Ok(_) => Err(format!("{what}: that must not be")),
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// A program that sleeps, and does not run before it is let, if it waits for an entry.
fn child(input: &str, frames: u64) -> Refused<Owned> {
    let contents = Contents { table_entries: 0, schedule: 0, name: "sleep", streams: [input, "null", "null"] };
    let mut page = [0; PAGE_BYTES / 8];
    let used = startup::write(&mut page, &contents, ["sleep", "1000"], [], [])
        .map_err(|_| Failure::Refused(ProcessError::BadLaunch))?;
    proc().spawn("/bin/sleep", &page[..used], frames, 0).map(|child| Owned::new(child.into()))
}

/// Ends it, and expects that it was not ended before.
fn end(child: ChildClient<Direct>) -> Result<(), String> {
    expect("its end", child.ended(), ProcessError::Runs)?;
    child.kill().map_err(text)?;
    match child.wait() {
        Ok(status::KILLED) => Ok(()),
        other => Err(format!("it ends with {other:?}")),
    }
}

fn others() -> Result<String, String> {
    let victim = child("null", 256).map_err(text)?;
    for (name, domain) in inspect::domains().map_err(text)?.iter().filter(|(_, domain)| domain.state == 0) {
        for force in [Force::Gentle, Force::Forced] {
            expect(name, proc().kill_domain(domain.number, force), ProcessError::NotAllowed)?;
        }
    }
    expect("the machine", proc().stop_machine(0), ProcessError::NotAllowed)?;
    end(ChildClient(Direct(victim.entry())))?;
    Ok(format!("refused: {}", ProcessError::NotAllowed))
}

fn right() -> Result<String, String> {
    let own = Delegate::entry(Entry::DOMAIN.0, ALL_RIGHTS);
    expect("its own table", proc().give(own, FIRST_FREE as u64), ProcessError::NotAllowed)?;
    let held = child("entry", 256).map_err(text)?;
    let held = ChildClient(Direct(held.entry()));
    let domain = Owned::new(held.domain().map_err(text)?.into());
    let given = proc().give(Delegate::entry(domain.entry().0, COPY), FIRST_FREE as u64);
    expect("a child's table", given, ProcessError::NotAllowed)?;
    end(held)?;
    Ok(format!("refused: {}", ProcessError::NotAllowed))
}

fn kept() -> Result<String, String> {
    expect("the kept part", child("null", KEPT), ProcessError::NotAllowed)?;
    Ok(format!("refused: {}", ProcessError::NotAllowed))
}

/// What is handed over is looked at where it arrives: its kind, and its rights.
fn entries() -> Result<String, String> {
    let victim = child("null", 256).map_err(text)?;
    let client = ChildClient(Direct(victim.entry()));
    let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    let wrong = [
        Delegate::entry(Entry::ACCOUNT.0, ALL_RIGHTS),
        Delegate::entry(Entry::DOMAIN.0, ALL_RIGHTS),
        Delegate::entry(semaphore.entry().0, COPY | READ),
    ];
    for entry in wrong {
        expect("its end is told", client.notify(entry), ProcessError::NotASemaphore)?;
    }
    let refused = client.notify(Delegate::entry(semaphore.entry().0, ALL_RIGHTS));
    refused.map_err(|error| format!("a semaphore: {error}"))?;
    end(client)?;
    // It was told, once.
    op::p(semaphore.entry(), op::clock() + 1_000_000_000).map_err(|error| format!("nobody tells: {error}"))?;
    if op::p(semaphore.entry(), op::clock()) != Err(Error::Timeout) {
        return Err("told twice".to_string());
    }
    Ok(format!("refused: {}", ProcessError::NotASemaphore))
}

fn late() -> Result<String, String> {
    let runs = child("null", 256).map_err(text)?;
    let runs = ChildClient(Direct(runs.entry()));
    expect("its domain", runs.domain(), ProcessError::NotAllowed)?;
    expect("its start", runs.start(), ProcessError::NotAllowed)?;
    end(ChildClient(runs.0))?;
    expect("a second wait", runs.wait(), ProcessError::NoSuchProcess)?;
    expect("a second look", runs.ended(), ProcessError::NoSuchProcess)?;
    expect("a second end", runs.kill(), ProcessError::NoSuchProcess)?;
    let held = child("entry", 256).map_err(text)?;
    let held = ChildClient(Direct(held.entry()));
    let domain = Owned::new(held.domain().map_err(text)?.into());
    // Only to put entries there: not to look, to change or to kill.
    if op::domain_kill(domain.entry(), 0) != Err(Error::NoRight) {
        return Err("ended by its domain: that must not be".to_string());
    }
    held.start().map_err(text)?;
    expect("a second start", held.start(), ProcessError::NotAllowed)?;
    end(held)?;
    Ok(format!("refused: {}, then: {}", ProcessError::NotAllowed, ProcessError::NoSuchProcess))
}
