//! This program again, in another domain.

use alloc::string::{String, ToString};

use interface::Failure;
use interfaces::process::ProcessError;
use loader::startup::{self, Contents};
use runtime::abi::PAGE_BYTES;
use tool::inspect::PROC;

fn spawn(name: &str, arguments: &[&str], table_entries: u32, frames: u64) -> Result<u64, Failure<ProcessError>> {
    let contents = Contents { table_entries, schedule: 0, name, streams: ["null", "console", "console"] };
    let mut page = [0; PAGE_BYTES / 8];
    let words = core::iter::once("fault").chain(arguments.iter().copied());
    let used =
        startup::write(&mut page, &contents, words, [], []).map_err(|_| Failure::Refused(ProcessError::BadLaunch))?;
    PROC.spawn("/bin/fault", &page[..used], frames, 0)
}

/// Starts one that holds what it has, with so many frames; it outlives us.
pub fn holder(name: &str, frames: u64) -> Result<u64, Failure<ProcessError>> {
    spawn(name, &["--hold"], 0, frames)
}

/// A process. It is ended when this goes.
pub struct Process(Option<u64>);

impl Process {
    /// Starts `/bin/fault` under a name, with arguments and entries for its table.
    pub fn start(name: &str, arguments: &[&str], table_entries: u32) -> Result<Self, String> {
        Self::start_with(name, arguments, table_entries, 0)
    }

    /// The same with an account of so many frames (0 = as usual).
    pub fn start_with(name: &str, arguments: &[&str], table_entries: u32, frames: u64) -> Result<Self, String> {
        Ok(Self(Some(spawn(name, arguments, table_entries, frames).map_err(|error| error.to_string())?)))
    }

    /// As [`Process::start`], with a small account.
    pub fn small(name: &str, arguments: &[&str]) -> Result<Self, String> {
        Ok(Self(Some(spawn(name, arguments, 0, 256).map_err(|error| error.to_string())?)))
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.0.unwrap_or(0)
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Result<u64, String> {
        PROC.wait(self.0.take().unwrap_or(0)).map_err(|error| error.to_string())
    }

    /// Ends it.
    pub fn kill(self) -> Result<u64, String> {
        PROC.kill(self.number()).map_err(|error| error.to_string())?;
        self.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            let _ = PROC.kill(number);
            let _ = PROC.wait(number);
        }
    }
}
