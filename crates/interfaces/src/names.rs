//! The name service: from a name to a call entry.

use interface::{codes, interface};

/// Bytes of the longest name.
pub const MAX_NAME: usize = 64;

codes! {
    /// Why the name service refused.
    pub enum NamesError {
        1 NotFound "no service of this name"
        2 BadName "not a valid service name"
        3 Full "too many names"
        4 Taken "the name belongs to somebody else"
        5 Gone "the service died"
    }
}

/// The name service.
#[interface]
pub trait Names {
    /// Registers a service of the caller's under a name; the same caller may replace it.
    fn register(&self, name: &str, service: Delegate) -> Result<(), NamesError>;
    /// A call entry to the service, with badge 0.
    fn open(&self, name: &str) -> Result<Delegated, NamesError>;
    /// Names from a position on (0 at first), as [`crate::listing::Listing`] reads them. Gives bytes
    /// and the next position, 0 after the last.
    fn list(&self, position: u64, into: &mut [u8]) -> Result<(usize, u64), NamesError>;
    /// Takes a name of the caller's back.
    fn unregister(&self, name: &str) -> Result<(), NamesError>;
}
