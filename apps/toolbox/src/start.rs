//! Starts a program with another environment, in our place: it has our streams, and does not outlive us.

use alloc::format;
use alloc::string::{String, ToString};

use interface::{Delegate, Failure};
use loader::startup::{self, Contents, ENTRY};
use runtime::abi::layout::FIRST_FREE;
use runtime::abi::{PAGE_BYTES, info, rights};
use runtime::child::Child;
use runtime::connection::Direct;
use runtime::interfaces::console::ConsoleClient;
use runtime::interfaces::pipes::PipeEndClient;
use runtime::interfaces::process::ProcessError;
use runtime::{Entry, program};
use text::call::Unstarted;
use text::which::DEFAULT_PATH;
use tool::inspect::{self, PROC};
use tool::{eprintln, files};

/// Statuses as the shell says them.
const KILLED: u8 = 137;
const DIED: u8 = 139;

type Cause = Failure<ProcessError>;

/// Runs it to its end; gives its status.
pub fn run(words: &[&str], environment: &[String]) -> Result<u8, Unstarted> {
    let unstarted = |cause: Cause| match cause {
        Failure::Refused(ProcessError::NotFound) => Unstarted::NotFound(cause.to_string()),
        cause => Unstarted::Failed(cause.to_string()),
    };
    let child = load(words, environment).map_err(unstarted)?;
    if let Err(cause) = equip(&child) {
        let _ = child.end();
        return Err(Unstarted::Failed(cause));
    }
    let status = child.wait_or_end().map_err(unstarted)?;
    Ok(u8::try_from(status).unwrap_or_else(|_| {
        eprintln!("env: {}: {}", words.first().unwrap_or(&""), inspect::status(status));
        if (info::status::KILLED..info::status::EXCEPTION).contains(&status) { KILLED } else { DIED }
    }))
}

/// Loads the program, from where a shell would. It does not run yet if it gets a stream from us.
fn load(words: &[&str], environment: &[String]) -> Result<Child, Cause> {
    let program = *words.first().unwrap_or(&"");
    let streams = program::startup().map_or(["null"; 3], |told| told.streams);
    let contents = Contents { schedule: 0, name: files::last(program), streams };
    // The path and the call's own words must fit the same message.
    let mut page = alloc::vec![0; PAGE_BYTES - 512];
    let variables = environment.iter().map(String::as_str);
    let used = startup::write(&mut page, &contents, words.iter().copied(), variables, [])
        .map_err(|_| Failure::Refused(ProcessError::BadLaunch))?;
    let spawn = |path: &str| PROC.spawn(path, &page[..used], 0, 0).map(Child::from);
    if program.contains('/') {
        return spawn(&files::absolute(program));
    }
    let path = environment.iter().find_map(|variable| variable.strip_prefix("PATH="));
    for directory in path.unwrap_or(DEFAULT_PATH).split(':').filter(|directory| !directory.is_empty()) {
        match spawn(&files::absolute(&files::join(directory, program))) {
            Err(Failure::Refused(ProcessError::NotFound)) => {}
            outcome => return outcome,
        }
    }
    Err(Failure::Refused(ProcessError::NotFound))
}

/// Hands on our streams that are entries, and lets it run. `Err` = why not, as text.
fn equip(child: &Child) -> Result<(), String> {
    let streams = program::startup().map_or(["null"; 3], |told| told.streams);
    let mut entries = (FIRST_FREE..).zip(streams).filter(|(_, stream)| *stream == ENTRY).peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    let domain = child.domain().map_err(|error| error.to_string())?;
    for (index, _) in entries {
        let domain = Delegate::entry(domain.entry().0, rights::COPY | rights::WRITE);
        // What it is, it knows itself: the terminal, or an end of a pipe.
        let as_terminal = ConsoleClient(Direct(Entry(index))).give(domain, index as u64);
        if matches!(as_terminal, Err(Failure::Protocol(_))) {
            let as_pipe = PipeEndClient(Direct(Entry(index))).give(domain, index as u64);
            as_pipe.map_err(|error| format!("a stream cannot be handed on: {error}"))?;
        } else {
            as_terminal.map_err(|error| format!("the terminal cannot be handed on: {error}"))?;
        }
    }
    child.start().map_err(|error| error.to_string())
}
