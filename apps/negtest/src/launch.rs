//! This program again, in another domain.

use alloc::string::{String, ToString};

use idl::Failure;
use loader::startup::{self, Contents};
use protocols::process::ProcessError;
use runtime::abi::PAGE_BYTES;
use runtime::child::Child;
use tool::inspect::PROC;

/// Where this program is.
pub const PATH: &str = "/bin/negtest";

/// Starts this program of so many frames, under a name, with arguments.
pub fn spawn(name: &str, arguments: &[&str], frames: u64) -> Result<Child, Failure<ProcessError>> {
    let contents = Contents { schedule: 0, name, streams: ["null", "console", "console"], compartments: &[] };
    spawn_with(PATH, &contents, arguments, frames)
}

/// Starts a program of so many frames with this argument.
pub fn spawn_with(
    path: &str,
    contents: &Contents<'_>,
    arguments: &[&str],
    frames: u64,
) -> Result<Child, Failure<ProcessError>> {
    let mut page = [0; PAGE_BYTES / 4];
    let words = core::iter::once("negtest").chain(arguments.iter().copied());
    let used =
        startup::write(&mut page, contents, words, [], []).map_err(|_| Failure::Refused(ProcessError::TooLong))?;
    PROC.spawn(path, &page[..used], frames, 0).map(Child::from)
}

/// Starts one that holds what it has, with so many frames; it outlives us.
pub fn holder(name: &str, frames: u64) -> Result<Child, Failure<ProcessError>> {
    spawn(name, &["--hold"], frames)
}

/// A process. It is ended when this goes.
pub struct Process(Option<Child>);

impl Process {
    /// Starts `/bin/negtest` under a name, with arguments.
    pub fn start(name: &str, arguments: &[&str]) -> Result<Self, String> {
        Self::start_with(name, arguments, 0)
    }

    /// The same with an account of so many frames (0 = as usual).
    pub fn start_with(name: &str, arguments: &[&str], frames: u64) -> Result<Self, String> {
        Ok(Self(Some(spawn(name, arguments, frames).map_err(|error| error.to_string())?)))
    }

    /// As [`Process::start`], with a small account.
    pub fn small(name: &str, arguments: &[&str]) -> Result<Self, String> {
        Self::start_with(name, arguments, 256)
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Result<u64, String> {
        let child = self.0.take().ok_or("nobody")?;
        child.wait().map_err(|error| error.to_string())
    }

    /// Its status if it has ended. Once.
    pub fn ended(&self) -> Option<u64> {
        self.0.as_ref().and_then(|child| child.ended().ok().flatten())
    }

    /// Has its end begin.
    pub fn begin_end(&self) {
        let _ = self.0.as_ref().map(Child::kill);
    }

    /// Ends it.
    pub fn kill(mut self) -> Result<u64, String> {
        let child = self.0.take().ok_or("nobody")?;
        child.end().map_err(|error| error.to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.take().map(Child::end);
    }
}
