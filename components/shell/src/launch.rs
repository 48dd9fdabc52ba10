//! From a command to what a program is given: streams, arguments, environment.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::layout::FIRST_FREE;
use abi::{PAGE_BYTES, level};
use idl::Failure;
use loader::startup::{self, Contents};
use protocols::file::FileError;
use protocols::process::{KEPT, ProcessClient, ProcessError};
use runtime::child::{Child, not_written};
use runtime::connection::{Connection, Given};
use runtime::label;
use runtime::stream::FILE_SYSTEM;
use shelleval::State;
use shelleval::world::NotStarted;

use crate::names::{OWN, PIN, RUN, TAINT, WITH};
use crate::stream::Stream;
use crate::{compartments, files, terminal};

/// The program server.
pub static PROC: ProcessClient<Connection<Given>> = ProcessClient(Connection::new(Given("proc")));

/// All that a program is given.
pub struct Launch<'a> {
    /// Name and arguments.
    pub words: &'a [String],
    /// Streams.
    pub streams: &'a [Stream; 3],
    /// The meaning of the prefixes.
    pub prefixes: Prefixes,
    /// It may have the part that is kept for a command in the foreground.
    pub may_use_kept: bool,
    /// It runs in the foreground, and a person is there.
    pub interactive: bool,
}

impl Launch<'_> {
    /// Whether a person sees what it writes, and what it reads does not come from there: `less` reads keys, too.
    fn needs_terminal(&self) -> bool {
        let [input, output, _] = self.streams;
        self.interactive && matches!(output, Stream::Console) && !matches!(input, Stream::Terminal)
    }

    /// The entries that it has besides its streams.
    fn portals(&self) -> impl Iterator<Item = (&str, u16)> {
        self.needs_terminal().then_some(("terminal", TERMINAL)).into_iter()
    }
}

/// Where a program has the terminal that writes to it, and reads something else: behind its streams.
const TERMINAL: u16 = FIRST_FREE as u16 + 3;

/// Whether a program with these streams has the terminal, if it runs in the foreground and a person is there.
pub fn has_terminal(streams: &[Stream; 3]) -> bool {
    matches!(streams[0], Stream::Terminal) || matches!(streams[1], Stream::Console)
}

/// The effect of prefixes on a program.
#[derive(Clone, Default)]
pub struct Prefixes {
    /// On which CPUs it is to run; 0 = all.
    pub cpus: u64,
    /// Its compartments: names, and 8 · handle + level.
    pub compartments: Vec<(String, u64)>,
}

impl Prefixes {
    /// Adds the compartments that the system description gives to the program at this path. The prefixes that were typed take precedence.
    fn with_those_of(&self, path: &str) -> Result<Self, String> {
        let mut all = self.clone();
        for (name, entry) in compartments::of_program(path)? {
            if all.compartments.iter().all(|(_, other)| other >> 3 != entry >> 3) {
                all.compartments.push((name, entry));
            }
        }
        Ok(all)
    }

    /// The level at which the program gets a compartment: the prefix that was typed last counts.
    fn level(&self, handle: u64) -> Option<u64> {
        self.compartments.iter().rev().find(|(_, entry)| entry >> 3 == handle).map(|(_, entry)| entry & 7)
    }

    /// Whether the program may look into a directory that has this compartment.
    fn may_enter(&self, directory: u64) -> bool {
        let at = self.level(directory >> 3);
        !label::is_secret(directory) || matches!(at, Some(level::STAR | level::THREE))
    }

    /// Whether the program may change what has this compartment, and observe it.
    fn may_write(&self, file: u64) -> bool {
        let handle = file >> 3;
        // A compartment at level 0 keeps it from files until it gives that up, as `ps` does before it writes.
        let keeps_out =
            |(_, entry): &(String, u64)| self.level(entry >> 3) == Some(level::THREE) && entry >> 3 != handle;
        let is_protected = file & 7 == level::ZERO && self.level(handle) != Some(level::STAR);
        !is_protected && self.may_enter(file) && !self.compartments.iter().any(keeps_out)
    }

    /// The compartment of what it writes: handles that taint it.
    fn taints(&self) -> impl Iterator<Item = u64> {
        self.compartments.iter().filter(|(_, entry)| label::is_secret(*entry)).map(|(_, entry)| entry >> 3)
    }
}

/// Whether a command runs in the shell.
fn is_own(name: &str) -> bool {
    name == PIN || OWN.contains(&name) || shelleval::NAMES.contains(&name)
}

/// A compartment, and the level in it that `NAME:LEVEL` says: without a level it is owned.
fn level_of(word: &str) -> Result<(&str, u64), String> {
    let Some((name, level)) = word.split_once(':') else { return Ok((word, level::STAR)) };
    let level = match level {
        "*" => level::STAR,
        "0" => level::ZERO,
        "1" => level::ONE,
        "3" => level::THREE,
        other => {
            return Err(alloc::format!(
                "{other}: a level is * (owns it), 0 (may change what it protects), 1 (may become tainted) or 3 (tainted)"
            ));
        }
    };
    Ok((name, level))
}

/// Whether the program that these words start may write what is at a path, or is made there. The shell itself writes for words that start no
/// program, for scripts and for several commands: in every compartment, but not what a compartment protects.
pub fn may_write(state: &State, words: &[String], path: &str) -> Result<bool, Failure<FileError>> {
    let file = FILE_SYSTEM.compartment(path)?;
    let may_others = file & 7 != level::ZERO;
    let Ok((prefixes, command)) = prefixes(words) else { return Ok(may_others) };
    let Some(name) = command.first() else { return Ok(may_others) };
    let Some(program) = paths(state, name).into_iter().find(|path| FILE_SYSTEM.stat(path).is_ok()) else {
        return Ok(may_others);
    };
    if command.len() == words.len() && files::is_text(&program) {
        return Ok(may_others);
    }
    let Ok(prefixes) = prefixes.with_those_of(&program) else { return Ok(false) };
    let mut above = path;
    while let Some((directory, _)) = above.rsplit_once('/').filter(|(directory, _)| !directory.is_empty()) {
        if !prefixes.may_enter(FILE_SYSTEM.compartment(directory)?) {
            return Ok(false);
        }
        above = directory;
    }
    Ok(prefixes.may_write(file))
}

/// Where a command is looked for.
fn paths(state: &State, command: &str) -> Vec<String> {
    if command.contains('/') {
        return Vec::from([filetree::normalize(&state.directory, command)]);
    }
    let path = state.variable("PATH").unwrap_or_default();
    let directories = path.split(':').filter(|directory| !directory.is_empty());
    let at = |directory| filetree::normalize(&state.directory, &alloc::format!("{directory}/{command}"));
    directories.map(at).collect()
}

/// Reads the prefixes in front; gives them, and the program and its arguments. `Err` = why they are not understood.
pub fn prefixes(words: &[String]) -> Result<(Prefixes, &[String]), String> {
    let (mut prefixes, mut rest) = (Prefixes::default(), words);
    loop {
        rest = match rest {
            [prefix, set, rest @ ..] if prefix == PIN && prefixes.cpus == 0 && !rest.is_empty() => {
                prefixes.cpus = cpuset::parse(set).map_err(|error| alloc::format!("{set}: {error}"))?;
                rest
            }
            [prefix, ..] if prefix == PIN && prefixes.cpus == 0 => {
                return Err("usage: pin CPUS PROGRAM [ARGUMENT...]; CPUS as in 0,2-3".to_string());
            }
            [prefix, option, _, _, ..] if prefix == RUN && option == TAINT => {
                let mut words = &rest[1..];
                while let [option, name, program @ ..] = words
                    && option == TAINT
                {
                    prefixes.compartments.push(compartments::at(name, level::THREE)?);
                    words = program;
                }
                words
            }
            [prefix, ..] if prefix == RUN => {
                return Err("usage: run --taint COMPARTMENT [--taint ...] PROGRAM [ARGUMENT...]".to_string());
            }
            [prefix, name, rest @ ..] if prefix == WITH && !rest.is_empty() => {
                let (name, level) = level_of(name)?;
                prefixes.compartments.push(compartments::at(name, level)?);
                rest
            }
            [prefix, ..] if prefix == WITH => {
                return Err("usage: with COMPARTMENT[:LEVEL] PROGRAM [ARGUMENT...]; LEVEL is *, 0, 1 or 3".to_string());
            }
            [own, ..] if rest.len() < words.len() && is_own(own) => {
                return Err(alloc::format!("{own} is a command of the shell: it runs where the shell does"));
            }
            _ => return Ok((prefixes, rest)),
        };
    }
}

/// Has made in the program's table what it is to have there: ends of pipes, the terminal. Lets it run.
fn equip(child: &Child, launch: &Launch<'_>) -> Result<(), Refusal> {
    if !launch.needs_terminal() && !launch.streams.iter().any(Stream::is_given) {
        return Ok(());
    }
    let domain = child.domain()?;
    if launch.needs_terminal() {
        terminal::give(domain.entry(), TERMINAL.into());
    }
    for (number, stream) in launch.streams.iter().enumerate() {
        for handle in launch.prefixes.taints() {
            stream.taint(handle).map_err(|error| Refusal::of_stream(number, error))?;
        }
    }
    for (number, stream) in launch.streams.iter().enumerate() {
        stream.give(domain.entry(), number).map_err(|error| Refusal::of_stream(number, error))?;
    }
    Ok(child.start()?)
}

/// Why a program was not started.
enum Refusal {
    OfProc(Failure<ProcessError>),
    /// Of one of its three streams.
    OfStream(String),
}

impl Refusal {
    fn of_stream(number: usize, error: impl core::fmt::Display) -> Self {
        Self::OfStream(alloc::format!("{}: {error}", ["input", "output", "errors"][number]))
    }
}

impl From<Failure<ProcessError>> for Refusal {
    fn from(failure: Failure<ProcessError>) -> Self {
        Self::OfProc(failure)
    }
}

/// Starts a program.
pub fn spawn(state: &State, launch: &Launch<'_>) -> Result<Child, NotStarted> {
    let Some(command) = launch.words.first() else { return Err(NotStarted::NotFound(String::new())) };
    let name = command.rsplit('/').next().unwrap_or(command);
    let [input, output, error] = launch.streams.each_ref().map(Stream::description);
    let environment = state.environment();
    let at = |path: &str| {
        let prefixes = launch.prefixes.with_those_of(path);
        let prefixes = prefixes.map_err(|cause| NotStarted::Other(alloc::format!("{command}: {cause}")))?;
        let launch = &Launch { prefixes, ..*launch };
        let compartments = &launch.prefixes.compartments;
        let compartments: Vec<_> = compartments.iter().map(|(name, entry)| (name.as_str(), *entry)).collect();
        let contents = Contents { schedule: 0, name, streams: [&input, &output, &error], compartments: &compartments };
        // The path and the call's own words must fit the same message.
        let mut page = alloc::vec![0; PAGE_BYTES - 512];
        let arguments = launch.words.iter().map(String::as_str);
        let used =
            startup::write(&mut page, &contents, arguments, environment.iter().map(String::as_str), launch.portals())
                .map_err(|error| NotStarted::Other(alloc::format!("{command}: {}", not_written(error))))?;
        start(path, &page[..used], launch).map_err(|error| not_started(path, launch, error))
    };
    for path in paths(state, command) {
        match at(&path) {
            Err(NotStarted::NotFound(_)) => {}
            outcome => return outcome,
        }
    }
    Err(NotStarted::NotFound(command.clone()))
}

fn start(path: &str, page: &[u8], launch: &Launch<'_>) -> Result<Child, Refusal> {
    let cpus = launch.prefixes.cpus;
    let child = Child::from(match PROC.spawn(path, page, 0, cpus) {
        // Others hold all that there is for programs: a person must be able to look, end them and remove files.
        Err(
            cause @ Failure::Refused(ProcessError::NoMemory | ProcessError::TooMany | ProcessError::TooManyThreads),
        ) if launch.may_use_kept => match PROC.spawn(path, page, KEPT, cpus) {
            // Another command has that part: the message says what is missing for programs.
            Err(Failure::Refused(ProcessError::NoMemory)) => Err(cause),
            kept => kept,
        },
        other => other,
    }?);
    match equip(&child, launch) {
        Ok(()) => Ok(child),
        Err(error) => {
            let _ = child.end();
            Err(error)
        }
    }
}

fn not_started(path: &str, launch: &Launch<'_>, refusal: Refusal) -> NotStarted {
    let name = launch.words.first().map_or(path, String::as_str);
    let error = match refusal {
        Refusal::OfProc(error) => error,
        Refusal::OfStream(cause) => return NotStarted::Other(alloc::format!("{name}: {cause}")),
    };
    match error {
        Failure::Refused(ProcessError::NotFound) => NotStarted::NotFound(name.to_string()),
        Failure::Refused(ProcessError::NotAProgram | ProcessError::NotExecutable) if files::is_text(path) => {
            NotStarted::NotAProgram(path.to_string())
        }
        error => NotStarted::Other(alloc::format!("{name}: {error}")),
    }
}
