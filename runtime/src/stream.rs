//! The standard streams.
//!
//! The startup page names them: `null`, `log` (the kernel log), `file:PATH`, `append:PATH`, `entry` (a call entry that stands in our
//! table, as to an end of a pipe), or the name of a server that speaks `Stream` (`console`). They are opened when first used. A file is read
//! from its beginning and written at its end: several programs may write one. The creator of a program makes its files. Output is
//! collected and written by lines. A program whose output nobody reads any more ends.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::FIRST_FREE;
use idl::{Failure, Protocol};
use loader::startup::ENTRY;
use protocols::file::{FileClient, FileError, FileSystemClient, WRITE};
use protocols::pipes::PipeEndClient;
use protocols::stream::{StreamClient, StreamError};

use crate::connection::{Connection, Direct, Name, Source};
use crate::hooks::{self, Hooks};
use crate::sync::Mutex;
use crate::{Entry, log, startup, thread};

/// The name of the server that has files and pipes.
pub const FILES: &str = "ramfs";

/// Bytes of output that are collected.
const BUFFER: usize = 1024;

/// The file tree of the system.
pub static FILE_SYSTEM: FileSystemClient<Connection<Name<'static>>> = FileSystemClient(Connection::named(FILES));

/// A file that is opened by its path, and again when its server died.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    /// Absolute path.
    pub path: &'a str,
    /// Flags of `FileSystem::open`.
    pub flags: u64,
}

impl Source for Path<'_> {
    fn open(&self) -> Result<Entry, abi::Error> {
        // The opener of a file insists on it.
        match FileSystemClient(FILE_SYSTEM.0.once()).open(self.path, self.flags) {
            Ok(delegated) => Ok(delegated.into()),
            Err(Failure::Transport(error)) => Err(error),
            // Of a server that dies just now the entry cannot be delivered.
            Err(Failure::Protocol(Protocol::NotDelivered)) => Err(abi::Error::Revoked),
            Err(Failure::Refused(FileError::Flow)) => Err(abi::Error::Flow),
            Err(Failure::Refused(FileError::Confined)) => Err(abi::Error::Confined),
            Err(Failure::Refused(FileError::NotFound)) => Err(abi::Error::Removed),
            Err(_) => Err(abi::Error::Unknown),
        }
    }
    fn service(&self) -> &str {
        FILES
    }
}

/// An open stream.
#[derive(Debug)]
pub enum Stream<'a> {
    /// Nothing comes, everything vanishes.
    Null,
    /// The kernel log.
    Log,
    /// An entry made by our creator: an end of a pipe, or another stream, which refuses windows.
    Entry(PipeEndClient<Direct>),
    /// A server.
    Server(StreamClient<Connection<Name<'a>>>),
    /// A file that is read, and how far it was.
    Input(FileClient<Connection<Path<'a>>>, AtomicU64),
    /// The end of a file.
    Output(FileClient<Connection<Path<'a>>>),
}

impl<'a> Stream<'a> {
    /// The stream of this description; nothing is opened yet.
    pub fn new(description: &'a str) -> Self {
        match description.split_once(':') {
            Some(("file" | "append", path)) => Self::Output(FileClient(Connection::new(Path { path, flags: WRITE }))),
            _ => match description {
                "" | "log" => Self::Log,
                "null" => Self::Null,
                name => Self::Server(StreamClient(Connection::new(Name(name)))),
            },
        }
    }

    /// That of a call entry, as to an end of a pipe.
    pub const fn entry(entry: Entry) -> Self {
        Self::Entry(PipeEndClient(Direct(entry)))
    }

    /// As [`Stream::new`], for reading.
    pub fn input(description: &'a str) -> Self {
        match description.split_once(':') {
            Some(("file", path)) => {
                Self::Input(FileClient(Connection::new(Path { path, flags: 0 })), AtomicU64::new(0))
            }
            _ => Self::new(description),
        }
    }

    /// Waits until there is something and reads at most what fits; 0 is the end.
    pub fn read(&self, into: &mut [u8]) -> Result<usize, Failure<StreamError>> {
        match self {
            Self::Null | Self::Log => Ok(0),
            Self::Entry(entry) => entry.read(into),
            Self::Server(server) => server.read(into),
            Self::Input(file, offset) => {
                let count = file.read(offset.load(Ordering::Relaxed), into).map_err(of_file)?;
                offset.fetch_add(count as u64, Ordering::Relaxed);
                Ok(count)
            }
            Self::Output(_) => Err(Failure::Refused(StreamError::NotReadable)),
        }
    }

    /// Writes; gives how many bytes were taken.
    pub fn write(&self, bytes: &[u8]) -> Result<usize, Failure<StreamError>> {
        let part = &bytes[..bytes.len().min(abi::MESSAGE_BYTES)];
        match self {
            Self::Null => Ok(part.len()),
            Self::Log => {
                log::bytes(part);
                Ok(part.len())
            }
            // As much as goes at once, which may be whole pages.
            Self::Entry(entry) => entry.write(bytes),
            Self::Server(server) => server.write(part),
            Self::Output(file) => file.append(bytes).map_err(of_file),
            Self::Input(..) => Err(Failure::Refused(StreamError::NotWritable)),
        }
    }

    /// Writes all of it.
    pub fn write_all(&self, mut bytes: &[u8]) -> Result<(), Failure<StreamError>> {
        while !bytes.is_empty() {
            match self.write(bytes)? {
                0 => return Err(Failure::Refused(StreamError::NotTaken)),
                count => bytes = bytes.get(count..).unwrap_or_default(),
            }
        }
        Ok(())
    }
}

fn of_file(failure: Failure<FileError>) -> Failure<StreamError> {
    failure.map(|error| match error {
        FileError::ReadOnly => StreamError::NotWritable,
        FileError::NoSpace => StreamError::NoSpace,
        FileError::Flow => StreamError::Flow,
        FileError::TooLarge => StreamError::TooLarge,
        FileError::Stale | FileError::NotFound => StreamError::Removed,
        FileError::Confined => StreamError::Confined,
        _ => StreamError::Failed,
    })
}

/// One of the two output streams.
pub struct Output {
    number: usize,
    stream: Option<Stream<'static>>,
    buffer: [u8; BUFFER],
    used: usize,
}

impl Output {
    const fn new(number: usize) -> Self {
        Self { number, stream: None, buffer: [0; BUFFER], used: 0 }
    }

    /// Writes out what was collected.
    pub fn flush(&mut self) -> Result<(), Failure<StreamError>> {
        let bytes = &self.buffer[..self.used.min(BUFFER)];
        self.used = 0;
        if bytes.is_empty() {
            return Ok(());
        }
        stream(&mut self.stream, self.number).write_all(bytes)
    }

    /// Collects bytes; writes whole lines out.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure<StreamError>> {
        if self.used == 0 {
            enable();
        }
        if bytes.len() > BUFFER - self.used {
            self.flush()?;
        }
        match self.buffer.get_mut(self.used..self.used + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.used += bytes.len();
                Ok(())
            }
            None => stream(&mut self.stream, self.number).write_all(bytes),
        }
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write(text.as_bytes()).map_err(|failure| {
            end_if_closed(failure);
            fmt::Error
        })
    }
}

/// A program whose output nobody reads any more ends.
fn end_if_closed(failure: Failure<StreamError>) {
    if failure == Failure::Refused(StreamError::Closed) {
        startup::end(startup::STATUS_OF_CLOSED);
    }
}

/// The stream, opened by its description if it is not.
fn stream<'p>(place: &'p mut Option<Stream<'static>>, number: usize) -> &'p Stream<'static> {
    place.get_or_insert_with(|| {
        enable();
        let description = startup::startup().map_or("log", |startup| startup.streams[number]);
        match number {
            _ if description == ENTRY => Stream::entry(Entry(FIRST_FREE + number)),
            0 => Stream::input(description),
            _ => Stream::new(description),
        }
    })
}

/// Standard output.
pub static STDOUT: Mutex<Output> = Mutex::new(Output::new(1));
/// Standard error output.
pub static STDERR: Mutex<Output> = Mutex::new(Output::new(2));
static STDIN: Mutex<Option<Stream<'static>>> = Mutex::new(None);

/// How long an interrupted program waits for its end, in nanoseconds.
const UNTIL_KILLED: u64 = 200_000_000;

/// Reads from standard input: waits until there is something; 0 is the end. The text that standard output has
/// collected is written first. At Ctrl-C the shell kills us, unless we are in the background: it gets the time to, and we do
/// not say before that we were interrupted.
pub fn read(into: &mut [u8]) -> Result<usize, Failure<StreamError>> {
    let _ = STDOUT.lock().flush();
    let outcome = stream(&mut STDIN.lock(), 0).read(into);
    if outcome == Err(Failure::Refused(StreamError::Interrupted)) {
        let _ = thread::sleep(UNTIL_KILLED);
    }
    outcome
}

/// Writes bytes to standard output.
pub fn write(bytes: &[u8]) -> Result<(), Failure<StreamError>> {
    STDOUT.lock().write(bytes)
}

/// From now on the program's end writes out what was printed, and panics go to standard error output.
pub(crate) fn enable() {
    static ALL: Hooks = Hooks { flush: flush_all, report: |text| try_print(&STDERR, text) };
    hooks::set(&ALL);
}

/// Writes out what both outputs have collected, unless they are in use.
pub fn flush_all() {
    for output in [&STDOUT, &STDERR] {
        if let Some(mut output) = output.try_lock() {
            let _ = output.flush();
        }
    }
}

/// Prints; for the macros.
#[doc(hidden)]
pub fn print(output: &Mutex<Output>, text: fmt::Arguments<'_>) {
    let mut output = output.lock();
    if let Err(failure) = finish(&mut output, text) {
        end_if_closed(failure);
    }
}

/// Prints if that needs no waiting, and if it is not for the kernel log, to which one writes without streams.
fn try_print(output: &Mutex<Output>, text: fmt::Arguments<'_>) -> bool {
    let Some(mut output) = output.try_lock() else { return false };
    let Output { number, stream: place, .. } = &mut *output;
    if matches!(stream(place, *number), Stream::Log) {
        return false;
    }
    finish(&mut output, text).is_ok()
}

fn finish(output: &mut Output, text: fmt::Arguments<'_>) -> Result<(), Failure<StreamError>> {
    // Output that cannot be written is lost; there is nowhere else to report it.
    let _ = fmt::Write::write_fmt(output, text);
    if output.buffer[..output.used.min(BUFFER)].contains(&b'\n') {
        return output.flush();
    }
    Ok(())
}

/// Prints to standard output.
#[macro_export]
macro_rules! print {
    ($($argument:tt)*) => { $crate::stream::print(&$crate::stream::STDOUT, ::core::format_args!($($argument)*)) };
}

/// Prints a line to standard output.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($format:literal $($argument:tt)*) => { $crate::print!("{}\n", ::core::format_args!($format $($argument)*)) };
}

/// Prints a line to standard error output.
#[macro_export]
macro_rules! eprintln {
    ($($argument:tt)*) => {
        $crate::stream::print(
            &$crate::stream::STDERR,
            ::core::format_args!("{}\n", ::core::format_args!($($argument)*)),
        )
    };
}
