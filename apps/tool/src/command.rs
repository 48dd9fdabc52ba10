//! Other programs: started, waited for, and read from.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use loader::startup::{self, Contents, ENTRY, StartupError};
use runtime::abi::info::status;
use runtime::abi::layout::FIRST_FREE;
use runtime::abi::{Error, PAGE_BYTES, rights};
pub use runtime::child::Child;
use runtime::child::not_written;
use runtime::connection::Direct;
use runtime::idl::{Delegate, Failure};
use runtime::pipes::{self, PIPES};
use runtime::protocols::console::ConsoleClient;
use runtime::protocols::pipes::PipeEndClient;
use runtime::protocols::process::ProcessError;
use runtime::stream::Stream;
use runtime::sync::Mutex;
use runtime::{Entry, program, thread};

use crate::files;
use crate::inspect::PROC;

/// Where programs are looked for if no variable `PATH` says so.
const USUAL_PATH: &str = "/bin";

/// Bytes of a launch that is short.
const SHORT: usize = 512;

/// A program to start. Unless set, environment, directory and streams are ours.
///
/// ```ignore
/// let status = Command::new(&["sort", "-r", "/etc/motd"]).run()?;
/// let (lines, status) = Command::new(&["ls", "/bin"]).output()?;
/// ```
#[derive(Clone, Debug)]
pub struct Command<'a> {
    words: &'a [&'a str],
    /// Not set: our own.
    environment: Option<Vec<&'a str>>,
    streams: [&'a str; 3],
    portals: Vec<(&'a str, u16)>,
    frames: u64,
}

/// Why a program was not started.
#[derive(Debug)]
pub enum Unstarted {
    /// `proc` refused it.
    Process(Failure<ProcessError>),
    /// One of our streams, or a pipe, could not be handed to it.
    Stream(String),
}

impl fmt::Display for Unstarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(cause) => cause.fmt(f),
            Self::Stream(cause) => write!(f, "a stream cannot be given to it: {cause}"),
        }
    }
}

impl core::error::Error for Unstarted {}

impl From<Failure<ProcessError>> for Unstarted {
    fn from(cause: Failure<ProcessError>) -> Self {
        Self::Process(cause)
    }
}

impl<'a> Command<'a> {
    /// A program, by its path, or by a name that is looked for in the directories of `PATH`; and its arguments.
    pub fn new(words: &'a [&'a str]) -> Self {
        let streams = program::startup().map_or(["null"; 3], |reported| reported.streams);
        Self { words, environment: None, streams, portals: Vec::new(), frames: 0 }
    }

    /// With these variables (`NAME=VALUE`) and no others.
    #[must_use]
    pub fn environment(self, variables: impl IntoIterator<Item = &'a str>) -> Self {
        Self { environment: Some(variables.into_iter().collect()), ..self }
    }

    /// With these streams (input, output, errors): `null`, `log`, `console`, `file:PATH`, `append:PATH` (from `/` on), or [`ENTRY`]. Files to write are made when
    /// it is started, and `file:` makes them empty.
    #[must_use]
    pub fn streams(self, streams: [&'a str; 3]) -> Self {
        Self { streams, ..self }
    }

    /// With this input, described in the same way.
    #[must_use]
    pub fn input(self, input: &'a str) -> Self {
        let [_, output, errors] = self.streams;
        Self { streams: [input, output, errors], ..self }
    }

    /// With these portals, by name and index.
    #[must_use]
    pub fn portals(self, portals: Vec<(&'a str, u16)>) -> Self {
        Self { portals, ..self }
    }

    /// With an account of so many frames of 4 KiB. Without this it has what the system description allows.
    #[must_use]
    pub fn frames(self, frames: u64) -> Self {
        Self { frames, ..self }
    }

    /// Loads it. It runs at once, unless a stream is [`ENTRY`] or a portal is named: then the loader puts these into its table, and
    /// calls [`Child::start`].
    pub fn load(&self) -> Result<Child, Failure<ProcessError>> {
        let program = *self.words.first().unwrap_or(&"");
        // Our own buffered output goes out before the program writes.
        runtime::stream::flush_all();
        // Most launches are short, and a page that is cleared for nothing takes its time.
        let (mut short, mut long) = ([0; SHORT], Vec::new());
        let launch = match self.launch(&mut short) {
            Ok(used) => &short[..used],
            Err(_) => {
                // The path and the call's own words must fit the same message.
                long.resize(PAGE_BYTES - 512, 0);
                let used = self.launch(&mut long).map_err(|error| Failure::Refused(not_written(error)))?;
                &long[..used]
            }
        };
        let spawn = |path: &str| PROC.spawn(path, launch, self.frames, 0).map(Child::from);
        if program.contains('/') {
            return spawn(&files::absolute(program));
        }
        let path = self.variables().find_map(|variable| variable.strip_prefix("PATH="));
        for directory in path.unwrap_or(USUAL_PATH).split(':').filter(|directory| !directory.is_empty()) {
            match spawn(&files::absolute(&files::join(directory, program))) {
                Err(Failure::Refused(ProcessError::NotFound)) => {}
                outcome => return outcome,
            }
        }
        Err(Failure::Refused(ProcessError::NotFound))
    }

    /// Writes its startup data; gives how many bytes.
    fn launch(&self, page: &mut [u8]) -> Result<usize, StartupError> {
        let [input, output, errors] = self.streams;
        let [output, errors] = [output, errors].map(made);
        let name = files::last(self.words.first().unwrap_or(&""));
        let contents = Contents { schedule: 0, name, streams: [input, &output, &errors], compartments: &[] };
        let (words, portals) = (self.words.iter().copied(), self.portals.iter().copied());
        startup::write(page, &contents, words, self.variables(), portals)
    }

    fn variables(&self) -> impl Iterator<Item = &'a str> {
        let ours = self.environment.is_none().then(program::environment);
        self.environment
            .iter()
            .flatten()
            .copied()
            .chain(ours.into_iter().flatten().map(|variable| -> &'a str { variable }))
    }

    /// Loads it, hands it those of our streams that it has, and lets it run.
    pub fn spawn(&self) -> Result<Child, Unstarted> {
        self.start(|domain| self.hand_on(domain, &[0, 1, 2]))
    }

    /// Runs it to its end, and gives its status (`abi::info::status`). It ends when we do.
    pub fn run(&self) -> Result<u64, Unstarted> {
        Ok(self.spawn()?.wait_or_end()?)
    }

    /// Runs it to its end, and gives what it wrote to its standard output, and its status.
    pub fn output(&self) -> Result<(Vec<u8>, u64), Unstarted> {
        let mut command = self.clone();
        command.streams[1] = ENTRY;
        let pipe = PIPES.create().map_err(stream)?;
        let outcome = command.read_from(pipe);
        let _ = PIPES.close_read(pipe);
        let _ = PIPES.close_write(pipe);
        outcome
    }

    fn read_from(&self, pipe: u64) -> Result<(Vec<u8>, u64), Unstarted> {
        let end = pipes::end(pipe, 0).map_err(stream)?;
        let child = self.start(|domain| {
            pipes::give(domain, 0, pipe).map_err(|error| error.to_string())?;
            self.hand_on(domain, &[0, 2])
        })?;
        let status: Mutex<Result<u64, Failure<ProcessError>>> = Mutex::new(Err(Failure::Transport(Error::Cancelled)));
        let child = Arc::new((child, status));
        // The end of the pipe shows the reader that the program has ended.
        let waiter = thread::spawn({
            let child = child.clone();
            move || {
                *child.1.lock() = child.0.wait_or_end();
                let _ = PIPES.close_write(pipe);
            }
        });
        let Ok(waiter) = waiter else {
            let _ = child.0.kill();
            return Err(Unstarted::Stream(String::from("no thread can wait for it")));
        };
        let mut text = Vec::new();
        let taken = take_all(&Stream::entry(end.entry()), &mut text);
        if taken.is_err() {
            let _ = child.0.kill();
        }
        waiter.join();
        taken?;
        let status = *child.1.lock();
        Ok((text, status?))
    }

    /// Loads it, has its table equipped, and lets it run. It is ended if that fails.
    fn start(&self, equip: impl FnOnce(Entry) -> Result<(), String>) -> Result<Child, Unstarted> {
        self.make_files()?;
        let child = self.load()?;
        if self.streams.iter().all(|stream| *stream != ENTRY) && self.portals.is_empty() {
            return Ok(child);
        }
        let equipped = child.domain().map_err(Unstarted::from);
        let equipped = equipped.and_then(|domain| equip(domain.entry()).map_err(Unstarted::Stream));
        if let Err(cause) = equipped.and_then(|()| Ok(child.start()?)) {
            let _ = child.end();
            return Err(cause);
        }
        Ok(child)
    }

    /// Makes the files that it is to write, and looks for the one that it is to read.
    fn make_files(&self) -> Result<(), Unstarted> {
        for (number, description) in self.streams.iter().enumerate() {
            let outcome = match description.split_once(':') {
                Some(("file", path)) if number == 0 => files::stat(path).map(drop),
                Some(("file", path)) => files::File::create(path, 0).map(drop),
                Some(("append", path)) => files::File::create_or_keep(path).map(drop),
                _ => Ok(()),
            };
            outcome.map_err(|cause| Unstarted::Stream(alloc::format!("{description}: {cause}")))?;
        }
        Ok(())
    }

    /// Hands on those of these streams of ours that are entries.
    fn hand_on(&self, domain: Entry, streams: &[usize]) -> Result<(), String> {
        for stream in streams.iter().filter(|stream| self.streams[**stream] == ENTRY) {
            let index = FIRST_FREE + stream;
            let domain = Delegate::entry(domain.0, rights::COPY | rights::WRITE);
            // The entry is the terminal or an end of a pipe. Only its server knows which.
            match ConsoleClient(Direct(Entry(index))).give(domain, index as u64) {
                Err(Failure::Protocol(_)) => {
                    let given = PipeEndClient(Direct(Entry(index))).give(domain, index as u64);
                    given.map_err(|error| error.to_string())?;
                }
                outcome => outcome.map_err(|error| error.to_string())?,
            }
        }
        Ok(())
    }
}

/// The status of a program as a shell has it: 137 if it was killed, 139 if it died.
pub fn exit_status(status: u64) -> u8 {
    const KILLED: u8 = 137;
    const DIED: u8 = 139;
    let of_death = if (status::KILLED..status::EXCEPTION).contains(&status) { KILLED } else { DIED };
    u8::try_from(status).unwrap_or(of_death)
}

/// An output whose file has been made: programs that are started by this one do not make it empty once more.
fn made(output: &str) -> Cow<'_, str> {
    output.strip_prefix("file:").map_or(output.into(), |path| alloc::format!("append:{path}").into())
}

fn stream(error: impl fmt::Display) -> Unstarted {
    Unstarted::Stream(error.to_string())
}

/// Reads a stream to its end.
fn take_all(input: &Stream<'_>, text: &mut Vec<u8>) -> Result<(), Unstarted> {
    let mut buffer = [0; 1024];
    loop {
        let count = input.read(&mut buffer).map_err(stream)?;
        if count == 0 {
            return Ok(());
        }
        text.try_reserve(count).map_err(stream)?;
        text.extend_from_slice(&buffer[..count]);
    }
}
