//! The interpreter's needs of the system. `path`s are absolute.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::state::{Shell, State};

/// Work for a thread of its own; gives its status.
pub type Work = Box<dyn FnOnce() -> u64 + Send>;

/// Standard input, output and error output.
pub type Streams<W> = [<W as World>::Stream; 3];

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// For reading.
    Read,
    /// For writing, emptied first.
    Write,
    /// For writing at its end.
    Append,
}

/// The metadata of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// It is a directory.
    pub is_directory: bool,
    /// It is a plain file.
    pub is_file: bool,
    /// Bytes.
    pub size: u64,
}

/// Why a program does not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotStarted {
    /// There is none of this name.
    NotFound(String),
    /// At this path stands a file that is no program: a script, maybe.
    NotAProgram(String),
    /// The words before its name are not understood: the message.
    Misunderstood(String),
    /// Something else: the message, with the name.
    Other(String),
}

/// The system that scripts run on. A clone is the same system, for another thread.
pub trait World: Clone + Send + Sized + 'static {
    /// Where a stream leads. When the last clone of an end of a pipe goes, that end is closed.
    type Stream: Clone + Send + 'static;
    /// A running program. It holds its streams until it has ended.
    type Child;
    /// A running thread.
    type Thread;

    /// Whether the person wants all of this to stop.
    fn stopped(&self) -> bool;
    /// Whether there is memory.
    fn room(&self) -> bool;
    /// Nanoseconds of a clock that only goes on.
    fn clock(&self) -> u64;

    /// Opens a file, for the program that these words start (see [`spawn`](Self::spawn)), or without words for other commands.
    fn open(&self, state: &State, path: &str, opening: Opening, program: &[String]) -> Result<Self::Stream, String>;
    /// The same stream, made so that several commands, one after the other or at once, read or write it without losing their place.
    fn shared(&self, stream: Self::Stream) -> Result<Self::Stream, String>;
    /// A stream from which nothing comes.
    fn null(&self) -> Self::Stream;
    /// A pipe: where it is read, and where it is written.
    fn pipe(&self) -> Result<(Self::Stream, Self::Stream), String>;
    /// Waits until there is something and reads at most what fits; 0 is the end.
    fn read(&self, stream: &Self::Stream, into: &mut [u8]) -> Result<usize, String>;
    /// Writes all of it.
    fn write(&self, stream: &Self::Stream, bytes: &[u8]) -> Result<(), String>;

    /// The metadata of the path.
    fn stat(&self, path: &str) -> Option<Stat>;
    /// Names in a directory, without `.` and `..`; none if it is none.
    fn names(&self, path: &str) -> Vec<String>;
    /// A script.
    fn script(&self, path: &str) -> Result<String, String>;
    /// The absolute path that a path means in a directory.
    fn absolute(&self, directory: &str, path: &str) -> String;

    /// Starts a program: `words` are its name and its arguments, not empty.
    fn spawn(&self, state: &State, words: &[String], streams: &Streams<Self>) -> Result<Self::Child, NotStarted>;
    /// Waits for the end of all; gives their statuses, and says what they died of.
    fn wait(&self, children: Vec<Self::Child>) -> Vec<u64>;
    /// Starts a thread.
    fn start(&self, work: Work) -> Result<Self::Thread, String>;
    /// Waits for its end; gives its status.
    fn join(&self, thread: Self::Thread) -> u64;
    /// Starts a job of this shell in the background, with a world of its own.
    fn background(&self, shell: &Shell, title: &str, work: Box<dyn FnOnce(Self) -> u64 + Send>) -> Result<(), String>;

    /// Whether the world has a command of this name that is no program.
    fn has_command(&self, name: &str) -> bool;
    /// Runs it; gives its status.
    fn command(&self, state: &mut State, words: &[String], streams: &Streams<Self>) -> u64;
}
