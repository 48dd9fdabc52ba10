//! From a command to what a program is told: streams, arguments, environment.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::PAGE_BYTES;
use interface::Failure;
use interfaces::file::TRUNCATE;
use interfaces::process::{KEPT, ProcessClient, ProcessError};
use loader::startup::{self, Contents};
use runtime::connection::Direct;
use runtime::entry::Owned;
use runtime::program;
use runtime::stream::{FILE_SYSTEM, Stream};
use shellparse::{Command, RedirectionKind};

use crate::PROC;
use crate::builtins;
use crate::session::Session;
use crate::terminal::{self, say};

/// Where a command's streams lead, as the startup page says it.
pub struct Streams {
    names: [String; 3],
    /// Standard output was redirected to a file.
    pub redirected_output: bool,
}

impl Streams {
    /// Writes what a built-in command says to its standard output.
    pub fn write(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.names[1] == "console" {
            terminal::write(text.as_bytes());
        } else if let Err(error) = Stream::new(&self.names[1]).write_all(text.as_bytes()) {
            say!("shell: output: {error}");
        }
    }
}

/// A command with its words expanded and its redirections done.
pub struct Prepared {
    /// Name and arguments; empty if there were only redirections and assignments.
    pub words: Vec<String>,
    /// Streams.
    pub streams: Streams,
}

/// Expands a command, opens what it is redirected to, and does its assignments. `Err` = status; it was said why.
pub fn prepare(
    session: &mut Session,
    command: &Command,
    input: Option<u64>,
    output: Option<u64>,
) -> Result<Prepared, u64> {
    let pipe = |number: u64| alloc::format!("pipe:{number}");
    let input = input.map_or_else(|| if session.interactive { "console" } else { "null" }.to_string(), pipe);
    let output = output.map_or_else(|| "console".to_string(), pipe);
    let mut streams = Streams { names: [input, output, "console".to_string()], redirected_output: false };
    for redirection in &command.redirections {
        let Some(file) = redirection.file.expand(session.status, &|name| session.variable(name)) else {
            say!("shell: a redirection without a file name");
            return Err(1);
        };
        let path = session.absolute(&file);
        open(&path, redirection.kind).map_err(|error| {
            say!("shell: {file}: {error}");
            1u64
        })?;
        let (stream, prefix) = match redirection.kind {
            RedirectionKind::Input => (0, "file:"),
            RedirectionKind::Output => (1, "file:"),
            RedirectionKind::Append => (1, "append:"),
            RedirectionKind::Error => (2, "file:"),
            RedirectionKind::ErrorAppend => (2, "append:"),
        };
        streams.redirected_output |= stream == 1;
        streams.names[stream] = alloc::format!("{prefix}{path}");
    }
    let expand = |word: &shellparse::Word| word.expand(session.status, &|name| session.variable(name));
    let mut words: Vec<String> = command.words.iter().filter_map(expand).collect();
    let assignments = command.words.iter().take_while(|word| is_assignment(word)).count();
    if assignments == command.words.len() {
        for word in words.drain(..) {
            if let Some((name, value)) = word.split_once('=') {
                session.set(name, value, false);
            }
        }
        session.status = 0;
    }
    Ok(Prepared { words, streams })
}

/// Is it of the form `NAME=…`, not quoted before the `=`?
fn is_assignment(word: &shellparse::Word) -> bool {
    match word.parts.first() {
        Some(shellparse::Part::Literal(text)) => {
            text.split_once('=').is_some_and(|(name, _)| shellparse::tokens::is_name(name))
        }
        _ => false,
    }
}

fn open(path: &str, kind: RedirectionKind) -> Result<(), Failure<interfaces::file::FileError>> {
    let file = match kind {
        RedirectionKind::Input => FILE_SYSTEM.open(path, 0),
        RedirectionKind::Output | RedirectionKind::Error => FILE_SYSTEM.create(path, TRUNCATE),
        RedirectionKind::Append | RedirectionKind::ErrorAppend => FILE_SYSTEM.create(path, 0),
    }?;
    drop(Owned::new(file.into()));
    Ok(())
}

/// All that a program is told.
pub struct Launch<'a> {
    /// Name and arguments.
    pub words: &'a [String],
    /// Streams.
    pub streams: &'a Streams,
    /// `NAME=value`.
    pub environment: &'a [String],
    /// A bit for each CPU on which it may run; 0 = all.
    pub cpus: u64,
    /// It may have the part that is kept for a command in the foreground.
    pub may_use_kept: bool,
}

/// The prefix that says on which CPUs a program may run.
pub const PIN: &str = "pin";

/// On which CPUs the words say that a program is to run (0 = all), and the program and its arguments. `Err` = why they
/// say nothing.
pub fn pinned(words: &[String]) -> Result<(u64, &[String]), String> {
    match words {
        [prefix, set, rest @ ..] if prefix == PIN && !rest.is_empty() => match rest.first() {
            Some(own) if builtins::NAMES.contains(&own.as_str()) => {
                Err(alloc::format!("{own} is a command of the shell: it runs where the shell does"))
            }
            _ => cpuset::parse(set).map(|cpus| (cpus, rest)).map_err(|error| alloc::format!("{set}: {error}")),
        },
        [prefix, ..] if prefix == PIN => Err("usage: pin CPUS PROGRAM [ARGUMENT...]; CPUS as in 0,2-3".to_string()),
        _ => Ok((0, words)),
    }
}

/// Starts a program; gives the number of its process.
pub fn spawn(session: &Session, launch: &Launch<'_>) -> Result<u64, Failure<ProcessError>> {
    let Some(command) = launch.words.first() else { return Err(Failure::Refused(ProcessError::NotFound)) };
    let name = command.rsplit('/').next().unwrap_or(command);
    let [input, output, error] = &launch.streams.names;
    let contents = Contents { table_entries: 0, schedule: 0, name, streams: [input, output, error] };
    // The path and the call's own words must fit the same message.
    let mut page = alloc::vec![0; PAGE_BYTES - 512];
    let arguments = launch.words.iter().map(String::as_str);
    let environment = launch.environment.iter().map(String::as_str);
    let used = startup::write(&mut page, &contents, arguments, environment, [])
        .map_err(|_| Failure::Refused(ProcessError::BadLaunch))?;
    let spawn = |path: &str| match PROC.spawn(path, &page[..used], 0, launch.cpus) {
        // Others hold all that there is for programs: a person must be able to look, end them and remove files.
        Err(Failure::Refused(ProcessError::NoMemory | ProcessError::TooMany)) if launch.may_use_kept => {
            match program::portal("proc") {
                Some(proc) => ProcessClient(Direct(proc)).spawn(path, &page[..used], KEPT, launch.cpus),
                None => Err(Failure::Refused(ProcessError::NoMemory)),
            }
        }
        other => other,
    };
    if command.contains('/') {
        return spawn(&session.absolute(command));
    }
    let path = session.variable("PATH").unwrap_or_default();
    for directory in path.split(':').filter(|directory| !directory.is_empty()) {
        match spawn(&session.absolute(&alloc::format!("{directory}/{command}"))) {
            Err(Failure::Refused(ProcessError::NotFound)) => {}
            other => return other,
        }
    }
    Err(Failure::Refused(ProcessError::NotFound))
}
