//! Pipes: bounded buffers between two programs, named by number.

use interface::{codes, interface};

codes! {
    /// Why a pipe refused.
    pub enum PipeError {
        1 NoSuchPipe "no such pipe"
        2 Closed "nobody reads from the other end"
        3 Full "too many pipes"
        4 Interrupted "the wait was interrupted"
    }
}

/// Pipes. A pipe goes when both ends are closed, and with the instance of the server that made it.
#[interface]
pub trait Pipes {
    /// A new pipe's number.
    fn create(&self) -> Result<u64, PipeError>;
    /// Waits until there is something and reads at most what fits; 0 = the writing end is closed.
    #[stateful]
    fn read(&self, pipe: u64, into: &mut [u8]) -> Result<usize, PipeError>;
    /// Waits until there is room; gives how many bytes were taken, at least one.
    #[stateful]
    fn write(&self, pipe: u64, bytes: &[u8]) -> Result<usize, PipeError>;
    /// Nobody reads any more.
    #[stateful]
    fn close_read(&self, pipe: u64) -> Result<(), PipeError>;
    /// Nobody writes any more.
    #[stateful]
    fn close_write(&self, pipe: u64) -> Result<(), PipeError>;
}
