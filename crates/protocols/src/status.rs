//! The running system as data.

use idl::{codes, interface};

codes! {
    /// Why there is no data.
    pub enum StatusError {
        1 Gone "this status was displaced by newer ones"
        2 NotReported "the nucleus reports nothing"
        3 NoMemory "status has no memory left: give it a larger `account` in the system description"
    }
}

/// The running system as JSON (the book says what stands in it): a text is taken once and read in pieces, so that
/// all of it is of the same moment, and readers do not disturb each other.
#[interface]
pub trait Status {
    /// Takes a status: its number and its bytes. One that was begun within the last second is given to all: it
    /// costs much, and frequent requests get no more of it.
    #[repeatable]
    fn take(&self) -> Result<(u64, u64), StatusError>;
    /// Bytes of a status from an offset on; gives how many, 0 at the end.
    #[repeatable]
    fn read(&self, number: u64, offset: u64, into: &mut [u8]) -> Result<usize, StatusError>;
}
