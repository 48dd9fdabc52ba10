//! Bytes in and out, in order: the protocol of a program's standard streams.

use idl::{codes, interface};

codes! {
    /// Why a stream refused.
    pub enum StreamError {
        1 Closed "nobody reads from the other end"
        2 Interrupted "the wait was interrupted"
        3 NotReadable "this stream cannot be read"
        4 NotWritable "this stream cannot be written"
        5 Failed "the device behind the stream failed"
        6 NotAllowed "this entry of the stream may not do it"
        7 NotASemaphore "not a semaphore that may be raised"
        8 NotADomain "not a domain that takes an entry at this index"
        9 NoSpace "no room for files is left: df shows how much there is, rm makes some"
        10 Flow "its compartment forbids it: `explain` says why"
        11 TooManyWaits "too many calls wait there: end one (ps, kill)"
        12 Awaited "another call waits at this end of the pipe"
        13 TooLarge "the file would be too large"
        14 Removed "the file was removed"
        15 Confined "not on the list of what this program may do with files"
        16 NoRoom "the domain has no room for one more entry"
        17 NotTaken "the other side takes no bytes"
    }
}

impl StreamError {
    /// Why the nucleus makes no entry of a stream in the domain of a program.
    pub const fn of_entry(error: abi::Error) -> Self {
        match error {
            abi::Error::AccountExhausted
            | abi::Error::OtherExhausted
            | abi::Error::NoFrames
            | abi::Error::TableFull => Self::NoRoom,
            abi::Error::Flow => Self::Flow,
            _ => Self::NotADomain,
        }
    }
}

/// A stream of bytes.
#[interface]
pub trait Stream {
    /// Waits until there is something and reads at most what fits; 0 is the end.
    #[repeatable]
    fn read(&self, into: &mut [u8]) -> Result<usize, StreamError>;
    /// Writes; gives how many bytes were taken, at least one.
    #[repeatable]
    fn write(&self, bytes: &[u8]) -> Result<usize, StreamError>;
}
