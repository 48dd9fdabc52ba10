//! From a command to what a program is told: streams, arguments, environment.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::PAGE_BYTES;
use abi::layout::FIRST_FREE;
use abi::rights::{COPY, WRITE};
use interface::{Delegate, Failure};
use interfaces::file::TRUNCATE;
use interfaces::process::{KEPT, ProcessClient, ProcessError};
use loader::startup::{self, Contents, ENTRY};
use runtime::child::Child;
use runtime::connection::{Connection, Given};
use runtime::entry::Owned;
use runtime::pipes;
use runtime::stream::{FILE_SYSTEM, Stream};
use shellparse::{Command, RedirectionKind};

use crate::names::{ALLOW, NAMES, PIN};
use crate::session::Session;
use crate::terminal::{self, say};

/// The program server.
pub static PROC: ProcessClient<Connection<Given>> = ProcessClient(Connection::new(Given("proc")));

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
    let pipe = |_| ENTRY.to_string();
    // Others than the shell read the terminal by an entry that it has made for them.
    let input = input.map_or_else(|| if session.interactive { ENTRY } else { "null" }.to_string(), pipe);
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
    /// It may end components, as the shell may.
    pub allowed: bool,
    /// The pipes that it reads and writes; 0 = none.
    pub pipes: (u64, u64),
    /// It runs in the foreground, and a person is there.
    pub interactive: bool,
}

impl Launch<'_> {
    /// Whether a person sees what it writes, and what it reads does not come from there: `less` reads keys, too.
    fn needs_terminal(&self) -> bool {
        let [input, output, _] = &self.streams.names;
        self.interactive && output == "console" && (input != ENTRY || self.pipes.0 != 0)
    }

    /// What it has besides its streams.
    fn portals(&self) -> impl Iterator<Item = (&str, u16)> {
        let proc = self.allowed.then_some(("proc", PORTAL));
        proc.into_iter().chain(self.needs_terminal().then_some(("terminal", TERMINAL)))
    }
}

/// Where a program that is allowed to has its entry to `proc`: behind its streams.
const PORTAL: u16 = FIRST_FREE as u16 + 3;
/// Where a program has the terminal that writes to it, and reads something else.
const TERMINAL: u16 = FIRST_FREE as u16 + 4;

/// What prefixes say of a program.
#[derive(Clone, Copy, Default)]
pub struct Prefixes {
    /// On which CPUs it is to run; 0 = all.
    pub cpus: u64,
    /// It may end components.
    pub allowed: bool,
}

/// What the prefixes in front say, and the program and its arguments. `Err` = why they say nothing.
pub fn prefixes(words: &[String]) -> Result<(Prefixes, &[String]), String> {
    let (mut prefixes, mut rest) = (Prefixes::default(), words);
    loop {
        rest = match rest {
            [prefix, set, rest @ ..] if prefix == PIN && prefixes.cpus == 0 && !rest.is_empty() => {
                prefixes.cpus = cpuset::parse(set).map_err(|error| alloc::format!("{PIN}: {set}: {error}"))?;
                rest
            }
            [prefix, ..] if prefix == PIN && prefixes.cpus == 0 => {
                return Err(alloc::format!("{PIN}: usage: pin CPUS PROGRAM [ARGUMENT...]; CPUS as in 0,2-3"));
            }
            [prefix, rest @ ..] if prefix == ALLOW && !rest.is_empty() => {
                prefixes.allowed = true;
                rest
            }
            [prefix] if prefix == ALLOW => return Err(alloc::format!("{ALLOW}: usage: allow PROGRAM [ARGUMENT...]")),
            [own, ..] if rest.len() < words.len() && NAMES.contains(&own.as_str()) => {
                let prefix = &words[0];
                return Err(alloc::format!("{prefix}: {own} is a command of the shell: it runs where the shell does"));
            }
            _ => return Ok((prefixes, rest)),
        };
    }
}

/// Has made in the program's table what it is to have there: ends of pipes, the terminal as its input, our own entry to
/// `proc`. Lets it run.
fn equip(child: &Child, launch: &Launch<'_>) -> Result<(), Failure<ProcessError>> {
    // What is redirected needs no end.
    let [input, output, _] = &launch.streams.names;
    let reads = if input == ENTRY { launch.pipes.0 } else { 0 };
    let writes = if output == ENTRY { launch.pipes.1 } else { 0 };
    let terminal = input == ENTRY && reads == 0;
    if !launch.allowed && !terminal && !launch.needs_terminal() && reads | writes == 0 {
        return Ok(());
    }
    let domain = child.domain()?;
    if terminal {
        terminal::give(domain.entry(), FIRST_FREE);
    }
    if launch.needs_terminal() {
        terminal::give(domain.entry(), TERMINAL.into());
    }
    if launch.allowed {
        PROC.give(Delegate::entry(domain.entry().0, COPY | WRITE), PORTAL.into())?;
    }
    pipes::give(domain.entry(), reads, writes).map_err(|_| Failure::Refused(ProcessError::BadLaunch))?;
    child.start()
}

/// Starts a program.
pub fn spawn(session: &Session, launch: &Launch<'_>) -> Result<Child, Failure<ProcessError>> {
    let Some(command) = launch.words.first() else { return Err(Failure::Refused(ProcessError::NotFound)) };
    let name = command.rsplit('/').next().unwrap_or(command);
    let [input, output, error] = &launch.streams.names;
    let contents = Contents { schedule: 0, name, streams: [input, output, error] };
    // The path and the call's own words must fit the same message.
    let mut page = alloc::vec![0; PAGE_BYTES - 512];
    let arguments = launch.words.iter().map(String::as_str);
    let environment = launch.environment.iter().map(String::as_str);
    let used = startup::write(&mut page, &contents, arguments, environment, launch.portals())
        .map_err(|_| Failure::Refused(ProcessError::BadLaunch))?;
    let spawn = |path: &str| match PROC.spawn(path, &page[..used], 0, launch.cpus) {
        // Others hold all that there is for programs: a person must be able to look, end them and remove files.
        Err(Failure::Refused(ProcessError::NoMemory | ProcessError::TooMany)) if launch.may_use_kept => {
            PROC.spawn(path, &page[..used], KEPT, launch.cpus)
        }
        other => other,
    };
    let spawn = |path: &str| {
        let child = Child::from(spawn(path)?);
        match equip(&child, launch) {
            Ok(()) => Ok(child),
            Err(error) => {
                let _ = child.end();
                Err(error)
            }
        }
    };
    if command.contains('/') {
        return spawn(&session.absolute(command));
    }
    let path = session.variable("PATH").unwrap_or_default();
    for directory in path.split(':').filter(|directory| !directory.is_empty()) {
        match spawn(&session.absolute(&alloc::format!("{directory}/{command}"))) {
            Err(Failure::Refused(ProcessError::NotFound)) => {}
            outcome => return outcome,
        }
    }
    Err(Failure::Refused(ProcessError::NotFound))
}
