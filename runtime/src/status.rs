//! The answers of the nucleus.

use abi::Error;

/// A status word as a result: the usual case is one compare.
#[inline(always)]
pub fn check(status: u64) -> Result<(), Error> {
    #[cold]
    fn error(status: u64) -> Error {
        Error::from_status(status).err().unwrap_or(Error::Unknown)
    }
    if status == 0 { Ok(()) } else { Err(error(status)) }
}
