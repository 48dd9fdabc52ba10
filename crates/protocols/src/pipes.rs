//! Pipes: bounded buffers between two programs.
//!
//! A client that makes pipes opens a `PipeSession`, to which they belong. A user of a pipe is given a `PipeEnd`: a call entry
//! that reads one pipe, writes another, or both. One entry is enough for a program in the middle of a pipeline.
//!
//! No client can hand a call entry on: `PipeEnd::give` has the end put into the table of a program that its owner loaded.

use idl::{codes, interface};

use crate::stream::StreamError;

codes! {
    /// Why a pipe refused.
    pub enum PipeError {
        1 NoSuchPipe "no such pipe"
        2 NotAllowed "not an account"
        3 Full "all pipes are taken: end a program (ps, kill)"
        4 HasCompartment "the pipe is in another compartment"
        5 Flow "a tainted program makes no pipes, and closes none"
        6 NoMemory "no memory is left for pipes: end a program (ps, kill)"
        7 NotADomain "not a domain that takes the ends of a pipe"
        8 NoSession "the session is closed"
        9 NotACompartment "not a compartment"
        10 TooMany "the program has as many pipes as one may have"
        11 TooManySessions "as many programs use pipes as can: end one (ps, kill)"
        12 NotEmpty "there is something in the pipe already"
        13 NoRoom "the domain has no room for the end of a pipe"
    }
}

/// The way to pipes.
#[interface]
pub trait Pipes {
    /// Opens a session: a call entry of `PipeSession`. It goes with the account, which its owner made or lives on, and with this instance of the server. Some sessions and pipes are kept for
    /// components that the system description gives a portal to this service.
    fn open(&self, account: Delegate) -> Result<Delegated, PipeError>;
}

/// Pipes of one owner. Their numbers mean nothing elsewhere. A pipe goes when both ends are closed, and with the session.
#[interface]
pub trait PipeSession {
    /// A new pipe's number, never 0.
    fn create(&self) -> Result<u64, PipeError>;
    /// A call entry of `PipeEnd` that reads one pipe and writes another; 0 = none. A pipe has one reader and one writer:
    /// an entry that was given before does nothing there any more.
    #[stateful]
    fn end(&self, reads: u64, writes: u64) -> Result<Delegated, PipeError>;
    /// Nobody reads any more: writers, also waiting ones, get an error.
    #[stateful]
    fn close_read(&self, pipe: u64) -> Result<(), PipeError>;
    /// Nobody writes any more: the remaining bytes can be read, then comes the end.
    #[stateful]
    fn close_write(&self, pipe: u64) -> Result<(), PipeError>;
    /// Sets the compartment of the pipe's content (8 · handle + level). Once, before anything is in it: else `HasCompartment`.
    #[stateful]
    fn set_compartment(&self, pipe: u64, compartment: u64) -> Result<(), PipeError>;
}

/// Reads and writes pipes. The first two methods are those of [`crate::stream::Stream`]; whole pages go by window.
#[interface]
pub trait PipeEnd {
    /// Waits until there is something and reads at most what fits; 0 is the end.
    #[of(Stream)]
    fn read(&self, #[window] into: &mut [u8]) -> Result<usize, StreamError>;
    /// Writes; gives how many bytes were taken, at least one.
    #[of(Stream)]
    fn write(&self, #[window] bytes: &[u8]) -> Result<usize, StreamError>;
    /// The domain gets an entry that is as good as this one at a free index of its table.
    fn give(&self, domain: Delegate, index: u64) -> Result<(), StreamError>;
}
