//! The pipes that this program makes: see [`protocols::pipes`].

use abi::{Error, layout, rights};
use idl::{Delegate, Failure, Protocol};
use protocols::pipes::{PipeEndClient, PipeError, PipeSessionClient, PipesClient};
use protocols::stream::StreamError;

use crate::connection::{Connection, Direct, Given, Source};
use crate::entry::Owned;
use crate::sync::Once;
use crate::{Entry, op};

/// Our session, opened again when its server died.
pub static PIPES: PipeSessionClient<Connection<Own>> =
    PipeSessionClient(Connection::new(Own(Connection::new(Given("pipes")))));

/// Opens a session of our own.
#[derive(Debug)]
pub struct Own(Connection<Given>);

impl Source for Own {
    fn open(&self) -> Result<Entry, Error> {
        /// An account that goes with us: the account of a component stays when it dies.
        static ACCOUNT: Once<Result<Entry, Error>> = Once::new();
        let account = ACCOUNT.get_or_make(|| op::account_new(Entry::ACCOUNT, 0)).as_ref().map_err(|error| *error)?;
        match PipesClient(self.0.once()).open(Delegate::entry(account.0, rights::COPY | rights::READ)) {
            Ok(delegated) => Ok(delegated.into()),
            Err(Failure::Transport(error)) => Err(error),
            // Of a server that dies just now the entry cannot be delivered.
            Err(Failure::Protocol(Protocol::NotDelivered)) => Err(Error::Revoked),
            Err(Failure::Refused(PipeError::Flow)) => Err(Error::Flow),
            Err(Failure::Refused(PipeError::NoMemory | PipeError::TooManySessions)) => Err(Error::Full),
            Err(_) => Err(Error::Unknown),
        }
    }
    fn service(&self) -> &str {
        self.0.source().service()
    }
}

/// An entry that reads one of our pipes and writes another; 0 = none.
pub fn end(reads: u64, writes: u64) -> Result<Owned, Failure<PipeError>> {
    PIPES.end(reads, writes).map(|entry| Owned::new(entry.into()))
}

/// Has a program that was loaded, and does not run yet, read this pipe and write that one (0 = none) as its streams. The loader
/// closes its ends (`close_read`, `close_write` of the pipes) when it has ended: nobody else does, and a reader would wait for ever.
pub fn give(domain: Entry, reads: u64, writes: u64) -> Result<(), Failure<PipeError>> {
    for (stream, (reads, writes)) in
        [(reads, 0), (0, writes)].into_iter().enumerate().filter(|(_, ends)| *ends != (0, 0))
    {
        let end = end(reads, writes)?;
        let domain = Delegate::entry(domain.0, rights::COPY | rights::WRITE);
        let given = PipeEndClient(Direct(end.entry())).give(domain, (layout::FIRST_FREE + stream) as u64);
        given.map_err(|error| {
            error.map(|error| match error {
                StreamError::Flow => PipeError::Flow,
                StreamError::NoRoom => PipeError::NoRoom,
                _ => PipeError::NotADomain,
            })
        })?;
    }
    Ok(())
}
