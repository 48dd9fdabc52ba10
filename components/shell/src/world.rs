//! Cairn as the interpreter's world.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::NEVER;
use abi::info::{self, status};
use idl::Failure;
use protocols::file::{FileError, Kind};
use protocols::process::ProcessError;
use runtime::child::Child;
use runtime::entry::Owned;
use runtime::stream::FILE_SYSTEM;
use runtime::{Entry, op, server, thread};
use shelleval::world::{NotStarted, Opening, Stat, Streams, Work};
use shelleval::{Shell, State, World};

use crate::jobs::{self, Running};
use crate::launch::{self, Launch};
use crate::names::OWN;
use crate::stream::{self, Stream};
use crate::terminal::say;
use crate::threads::{self, Working};
use crate::{commands, compartments, complete, files, interrupt, terminal};

/// How long a wait for several programs rests that has no semaphore, in nanoseconds.
const PAUSE: u64 = 20_000_000;
/// Status of what was killed.
const KILLED: u64 = 137;
/// Status of what died of an exception or a page fault.
const DIED: u64 = 139;
/// Status of a program whose output nobody reads.
const CLOSED: u64 = 141;

/// The system, for one line or job.
#[derive(Clone)]
pub struct Cairn {
    running: Running,
    /// A person is at the console, and this is not in the background.
    interactive: bool,
    background: bool,
    history: Arc<[String]>,
}

impl Cairn {
    /// For what runs in the foreground.
    pub fn new(running: Running, interactive: bool, history: Arc<[String]>) -> Self {
        Self { running, interactive, background: false, history }
    }
}

/// A program that runs. Its ends of pipes are closed when it has ended.
pub struct Program {
    child: Arc<Child>,
    name: String,
    streams: [Stream; 3],
}

type Ended = Result<u64, Failure<ProcessError>>;

impl World for Cairn {
    type Stream = Stream;
    type Child = Program;
    type Thread = Working;

    fn stopped(&self) -> bool {
        self.running.is_stopped() || self.interactive && interrupt::interrupted()
    }

    fn room(&self) -> bool {
        !server::is_memory_short()
    }

    fn clock(&self) -> u64 {
        op::clock()
    }

    fn open(&self, state: &State, path: &str, opening: Opening, program: &[String]) -> Result<Stream, String> {
        Stream::open(path, opening, || launch::may_write(state, program, path))
    }

    fn shared(&self, stream: Stream) -> Result<Stream, String> {
        stream.shared()
    }

    fn null(&self) -> Stream {
        Stream::Null
    }

    fn pipe(&self) -> Result<(Stream, Stream), String> {
        stream::pipe()
    }

    fn read(&self, stream: &Stream, into: &mut [u8]) -> Result<usize, String> {
        stream.read(into)
    }

    fn write(&self, stream: &Stream, bytes: &[u8]) -> Result<(), String> {
        stream.write(bytes)
    }

    fn stat(&self, path: &str) -> Option<Stat> {
        let stat = FILE_SYSTEM.stat(path).ok()?;
        let is_directory = stat.kind == Kind::Directory;
        Some(Stat { is_directory, is_file: !is_directory, size: stat.size })
    }

    fn names(&self, path: &str) -> Vec<String> {
        // They become arguments of programs that may not know them.
        if !compartments::is_public(path) {
            return Vec::new();
        }
        complete::names(path).into_iter().map(|(name, _)| name).collect()
    }

    fn script(&self, path: &str) -> Result<String, String> {
        // We would do for it what only the owner may.
        if !compartments::is_public(path) {
            return Err(FileError::Flow.to_string());
        }
        if !files::is_text(path) && self.stat(path).is_some_and(|stat| stat.size > 0) {
            return Err("not a text".to_string());
        }
        files::text(path)
    }

    fn absolute(&self, directory: &str, path: &str) -> String {
        filetree::normalize(directory, path)
    }

    fn spawn(&self, state: &State, words: &[String], streams: &Streams<Self>) -> Result<Program, NotStarted> {
        let all = words.len();
        let prefixed = launch::prefixes(words);
        let (prefixes, words) =
            prefixed.map_err(|cause| NotStarted::Misunderstood(alloc::format!("{}: {cause}", words[0])))?;
        let launch = Launch { words, streams, prefixes, may_use_kept: !self.background, interactive: self.interactive };
        let child = launch::spawn(state, &launch).map_err(|cause| match cause {
            NotStarted::NotAProgram(path) if words.len() < all => {
                NotStarted::Other(alloc::format!("{path}: a script: it runs where the shell does"))
            }
            NotStarted::NotAProgram(path) if !compartments::is_of_system(&path) => NotStarted::Other(alloc::format!(
                "{path}: a script: `sh {path}` runs it, with all that the shell may do"
            )),
            cause => cause,
        });
        let child = Arc::new(child?);
        self.running.add(&child);
        let name = words.first().cloned().unwrap_or_default();
        Ok(Program { child, name, streams: streams.clone() })
    }

    fn wait(&self, children: Vec<Program>) -> Vec<u64> {
        let had_terminal = children.iter().any(|program| launch::has_terminal(&program.streams));
        let mut statuses = alloc::vec![0; children.len()];
        each_end(children, |place, program, ended| {
            self.running.remove(&program.child);
            statuses[place] = self.report(ended, &program.name);
        });
        // Another part of the pipeline may be a program that reads keys.
        if had_terminal && self.interactive && self.running.is_idle() {
            terminal::take_back();
        }
        statuses
    }

    fn start(&self, work: Work) -> Result<Working, String> {
        threads::start(work)
    }

    fn join(&self, thread: Working) -> u64 {
        thread.join()
    }

    fn background(&self, shell: &Shell, title: &str, work: Box<dyn FnOnce(Self) -> u64 + Send>) -> Result<(), String> {
        let history = self.history.clone();
        let number = jobs::start(shell, title.to_string(), move |running| {
            work(Self { running, interactive: false, background: true, history })
        })?;
        if self.interactive {
            say!("[{number}]");
        }
        Ok(())
    }

    fn has_command(&self, name: &str) -> bool {
        OWN.contains(&name)
    }

    fn command(&self, state: &mut State, words: &[String], streams: &Streams<Self>) -> u64 {
        let done = commands::run(state, words, &self.history);
        if self.interactive && !self.running.is_stopped() {
            // `fg` and `wait` had Ctrl-C end a job.
            jobs::set_foreground(Some(self.running.clone()));
        }
        match streams[1].write(done.text.as_bytes()) {
            Ok(()) => done.status,
            Err(error) => {
                say!("shell: output: {error}");
                1
            }
        }
    }
}

impl Cairn {
    /// Reports what a program died of, if it did not end by itself; gives its status.
    fn report(&self, ended: Ended, name: &str) -> u64 {
        let ended = match ended {
            Ok(status) => status,
            Err(error) => {
                say!("shell: {name}: {error}");
                return 1;
            }
        };
        match ended {
            CLOSED => CLOSED,
            0..=255 => ended,
            status::KILLED.. if ended < status::EXCEPTION => {
                if !(self.interactive && interrupt::interrupted()) {
                    say!("shell: {name}: killed");
                }
                KILLED
            }
            _ => {
                say!("shell: {name}: died: {}", cause(ended));
                if let Some(place) = place(ended, name) {
                    say!("shell: {name}: {place}");
                }
                DIED
            }
        }
    }
}

/// Waits for the end of all, and does something at each, with its place among them.
fn each_end(programs: Vec<Program>, mut work: impl FnMut(usize, &Program, Ended)) {
    let mut programs: Vec<(usize, Program)> = programs.into_iter().enumerate().collect();
    let semaphore = match &programs[..] {
        [] => return,
        [(place, one)] => return work(*place, one, one.child.wait()),
        _ => op::semaphore_new(Entry::ACCOUNT, 0).map(Owned::new).ok(),
    };
    let notify = |semaphore: &Owned| programs.iter().all(|(_, one)| one.child.notify(semaphore.entry()).is_ok());
    let semaphore = semaphore.filter(notify);
    while !programs.is_empty() {
        // Without a semaphore they are asked again and again.
        let _ = match &semaphore {
            Some(semaphore) => op::p(semaphore.entry(), NEVER),
            None => thread::sleep(PAUSE),
        };
        programs.retain(|(place, program)| match program.child.ended().transpose() {
            None => true,
            Some(ended) => {
                work(*place, program, ended);
                false
            }
        });
    }
}

/// Where a program was when it died so, if the log still has that.
fn place(ended: u64, name: &str) -> Option<String> {
    let name = name.rsplit('/').next().unwrap_or(name);
    let start = alloc::format!(" {name} died, status {ended:#x}: ");
    let (mut place, mut rest) = (None, Vec::new());
    // Line by line: the shell's heap would else be as large as the log from then on.
    inspection::log(info::LOG_PROGRAMS, 0, |bytes| {
        rest.extend_from_slice(bytes);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&rest[..end]);
            if let Some((_, why)) = line.split_once(&start) {
                // The error code of the processor and of the upcall says nothing to users.
                place = why.split(", code ").next().map(ToString::to_string);
            }
            rest.drain(..=end);
        }
    })
    .ok()?;
    place
}

/// The meaning of a status word, for people.
fn cause(ended: u64) -> String {
    match ended {
        0..=255 => alloc::format!("exit {ended}"),
        status::EXCEPTION..status::PAGE_FAULT => {
            let vector = ended - status::EXCEPTION;
            match runtime::arch::exception(vector) {
                Some(text) => text.into(),
                None => alloc::format!("exception {vector}"),
            }
        }
        status::PAGE_FAULT => "page fault: nothing is mapped there, or not with that right".into(),
        status::STACK_OVERFLOW => "stack overflow".into(),
        status::NO_ROOM => "its account has no room for a page that it needs: give it a larger one (`account`)".into(),
        ended if (status::KILLED..status::EXCEPTION).contains(&ended) => "killed".into(),
        ended => alloc::format!("cause {ended:#x}"),
    }
}
