//! Where streams lead, and how a program learns of them.
//!
//! An end of a pipe is open as long as somebody holds it: the shell, while a command may still use it, and with a program until
//! that has ended.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use core::sync::atomic::{AtomicBool, Ordering};

use abi::layout::FIRST_FREE;
use abi::rights::{COPY, WRITE};
use idl::{Delegate, Failure};
use loader::startup::ENTRY;
use protocols::console::ConsoleError;
use protocols::file::{FileError, TRUNCATE};
use protocols::pipes::{PipeEndClient, PipeError};
use protocols::stream::StreamError;
use runtime::connection::Direct;
use runtime::entry::{Entry, Owned};
use runtime::pipes::{self, PIPES};
use runtime::stream::FILE_SYSTEM;
use runtime::{label, thread};
use shelleval::world::Opening;

use crate::terminal::{self, CONSOLE};
use crate::{interrupt, threads};

/// No file of that name exists, but scripts write what they do not want there.
const NULL: &str = "/dev/null";
/// Bytes that are copied at once.
const BLOCK: usize = 4096;

/// Where a stream leads.
#[derive(Clone)]
pub enum Stream {
    /// The terminal, to read: its receiver has an entry made by the console.
    Terminal,
    /// The terminal, to write.
    Console,
    /// Nowhere.
    Null,
    /// A file, to read from its beginning.
    Input(Arc<str>),
    /// A file, to write at its end.
    Output(Arc<str>),
    /// An end of a pipe.
    Pipe(Arc<End>),
}

/// An end of a pipe.
pub struct End {
    /// Whether the pipe's content belongs to a compartment: both ends know.
    is_secret: Arc<AtomicBool>,
    pipe: u64,
    entry: Owned,
    is_read: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = if self.is_read { PIPES.close_read(self.pipe) } else { PIPES.close_write(self.pipe) };
    }
}

impl End {
    fn set_compartment(&self, compartment: u64) -> Result<(), Failure<PipeError>> {
        PIPES.set_compartment(self.pipe, compartment)?;
        self.is_secret.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// A new pipe: where it is read, and where it is written.
pub fn pipe() -> Result<(Stream, Stream), String> {
    let text = |error: Failure<PipeError>| error.to_string();
    let pipe = PIPES.create().map_err(text)?;
    let secret = Arc::new(AtomicBool::new(false));
    let end = |is_read: bool| {
        let ends = if is_read { (pipe, 0) } else { (0, pipe) };
        let is_secret = secret.clone();
        pipes::end(ends.0, ends.1).map(|entry| Stream::Pipe(Arc::new(End { is_secret, pipe, entry, is_read })))
    };
    let both = end(true).and_then(|reads| end(false).map(|writes| (reads, writes)));
    both.map_err(|error| {
        let _ = (PIPES.close_read(pipe), PIPES.close_write(pipe));
        text(error)
    })
}

impl Stream {
    /// Opens a file. The shell may write every file: it makes or empties one only if the command may write it.
    pub fn open(
        path: &str,
        opening: Opening,
        may_write: impl FnOnce() -> Result<bool, Failure<FileError>>,
    ) -> Result<Self, String> {
        if path == NULL {
            return Ok(Self::Null);
        }
        if opening != Opening::Read && !may_write().map_err(|error| error.to_string())? {
            return Err(FileError::Flow.to_string());
        }
        let file = match opening {
            Opening::Read => FILE_SYSTEM.open(path, 0),
            Opening::Write => FILE_SYSTEM.create(path, TRUNCATE),
            Opening::Append => FILE_SYSTEM.create(path, 0),
        };
        drop(Owned::new(file.map_err(|error| error.to_string())?.into()));
        Ok(match opening {
            Opening::Read => Self::Input(path.into()),
            Opening::Write | Opening::Append => Self::Output(path.into()),
        })
    }

    /// Each program that opens a file by its name reads it from the beginning. Several readers of one file get a pipe, into which a thread copies it.
    pub fn shared(self) -> Result<Self, String> {
        match self {
            Self::Input(path) => {
                let (reads, writes) = pipe()?;
                let compartment = FILE_SYSTEM.compartment(&path).map_err(|error| error.to_string())?;
                if let Stream::Pipe(end) = &writes
                    && label::is_secret(compartment)
                {
                    end.set_compartment(compartment).map_err(|error| error.to_string())?;
                }
                threads::start(move || copy(&path, &writes)).map(drop)?;
                Ok(reads)
            }
            stream => Ok(stream),
        }
    }

    /// Its description in the startup page.
    pub fn description(&self) -> String {
        match self {
            Self::Terminal | Self::Pipe(_) => ENTRY.to_string(),
            Self::Console => "console".to_string(),
            Self::Null => "null".to_string(),
            Self::Input(path) => alloc::format!("file:{path}"),
            Self::Output(path) => alloc::format!("append:{path}"),
        }
    }

    /// Has it made in the table of a program that does not run yet, as its stream of this number, if that needs to be.
    pub fn give(&self, domain: Entry, number: usize) -> Result<(), Failure<StreamError>> {
        match self {
            Self::Terminal => terminal::give(domain, FIRST_FREE + number),
            Self::Pipe(end) => {
                let domain = Delegate::entry(domain.0, COPY | WRITE);
                PipeEndClient(Direct(end.entry.entry())).give(domain, (FIRST_FREE + number) as u64)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Marks the pipe's content as part of the compartment, because a tainted program writes it.
    pub fn taint(&self, handle: u64) -> Result<(), Failure<PipeError>> {
        match self {
            Self::Pipe(end) if !end.is_read => end.set_compartment(label::secret(handle)),
            _ => Ok(()),
        }
    }

    /// Whether it needs to be.
    pub fn is_given(&self) -> bool {
        matches!(self, Self::Terminal | Self::Pipe(_))
    }

    /// Waits until there is something and reads at most what fits; 0 is the end.
    pub fn read(&self, into: &mut [u8]) -> Result<usize, String> {
        match self {
            Self::Terminal => read_terminal(into),
            // Content that we read flows to every program that we start.
            Self::Pipe(end) if end.is_secret.load(Ordering::Relaxed) => Err(StreamError::Flow.to_string()),
            Self::Pipe(end) => {
                runtime::stream::Stream::entry(end.entry.entry()).read(into).map_err(|error| error.to_string())
            }
            Self::Null => Ok(0),
            // The language has such streams shared first.
            _ => Err("not a stream that the shell can read".to_string()),
        }
    }

    /// Writes all of it.
    pub fn write(&self, bytes: &[u8]) -> Result<(), String> {
        let written = match self {
            Self::Console | Self::Terminal => {
                terminal::write(bytes);
                Ok(())
            }
            Self::Pipe(end) => runtime::stream::Stream::entry(end.entry.entry()).write_all(bytes),
            stream => runtime::stream::Stream::new(&stream.description()).write_all(bytes),
        };
        written.map_err(|error| error.to_string())
    }
}

/// A read ends as interrupted at Ctrl-C, of which we learn a little later, and when the terminal changes hands.
fn read_terminal(into: &mut [u8]) -> Result<usize, String> {
    loop {
        match CONSOLE.read(into) {
            Err(Failure::Refused(ConsoleError::Interrupted)) => {}
            outcome => return outcome.map_err(|error| error.to_string()),
        }
        for _ in 0..20 {
            if interrupt::interrupted() {
                return Err(ConsoleError::Interrupted.to_string());
            }
            let _ = thread::sleep(10_000_000);
        }
    }
}

/// Copies a file into a stream, until somebody reads no more.
fn copy(path: &str, to: &Stream) -> u64 {
    let description = alloc::format!("file:{path}");
    let file = runtime::stream::Stream::input(&description);
    let mut block = vec![0; BLOCK];
    while let Ok(count @ 1..) = file.read(&mut block) {
        if to.write(&block[..count]).is_err() {
            return 1;
        }
    }
    0
}
