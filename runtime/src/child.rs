//! Programs that we load: nobody else can wait for them or end them.

use idl::{Delegate, Delegated, Failure};
use loader::StartupError;
use protocols::process::{ChildClient, ProcessError};

use crate::connection::Direct;
use crate::entry::{Entry, Owned};
use crate::thread;

/// How long a wait rests that found no room, in nanoseconds.
const PAUSE: u64 = 20_000_000;

/// The refusal of a program whose startup data cannot be written.
pub const fn not_written(error: StartupError) -> ProcessError {
    match error {
        StartupError::BadText => ProcessError::ZeroByte,
        _ => ProcessError::TooLong,
    }
}

/// A program that we loaded. If this goes, it goes on, and nobody knows how it ends.
#[derive(Debug)]
pub struct Child(Owned);

/// The result of `spawn`.
impl From<Delegated> for Child {
    fn from(delegated: Delegated) -> Self {
        Self(Owned::new(delegated.into()))
    }
}

impl Child {
    fn client(&self) -> ChildClient<Direct> {
        ChildClient(Direct(self.0.entry()))
    }

    /// Lets it run, if it waits for what is still to be made in its table.
    pub fn start(&self) -> Result<(), Failure<ProcessError>> {
        self.client().start()
    }

    /// Its domain, for servers that are to make entries in its table.
    pub fn domain(&self) -> Result<Owned, Failure<ProcessError>> {
        self.client().domain().map(|domain| Owned::new(domain.into()))
    }

    /// Waits until it ends, and gives its status (`abi::info::status`). Once.
    pub fn wait(&self) -> Result<u64, Failure<ProcessError>> {
        loop {
            match self.client().wait() {
                // As many wait as can.
                Err(Failure::Refused(ProcessError::TooManyWaits)) => {
                    thread::sleep(PAUSE).map_err(Failure::Transport)?
                }
                outcome => return outcome,
            }
        }
    }

    /// The same; it ends when we do.
    pub fn wait_or_end(&self) -> Result<u64, Failure<ProcessError>> {
        loop {
            match self.client().wait_or_end() {
                Err(Failure::Refused(ProcessError::TooManyWaits)) => {
                    thread::sleep(PAUSE).map_err(Failure::Transport)?
                }
                outcome => return outcome,
            }
        }
    }

    /// Its status if it has ended. Once.
    pub fn ended(&self) -> Result<Option<u64>, Failure<ProcessError>> {
        match self.client().ended() {
            Err(Failure::Refused(ProcessError::Runs)) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Ends it.
    pub fn kill(&self) -> Result<(), Failure<ProcessError>> {
        self.client().kill()
    }

    /// Ends it, and gives its status.
    pub fn end(self) -> Result<u64, Failure<ProcessError>> {
        self.kill()?;
        self.wait()
    }

    /// V on this semaphore when it ends.
    pub fn notify(&self, semaphore: Entry) -> Result<(), Failure<ProcessError>> {
        self.client().notify(Delegate::entry(semaphore.0, abi::rights::COPY | abi::rights::WRITE))
    }
}
