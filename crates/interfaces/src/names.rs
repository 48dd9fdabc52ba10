//! The name service: from a name to a call entry.

use interface::{codes, interface};

/// The badge of `roottask`, whose portal it makes itself. No call entry that somebody gets by a name has it.
pub const ROOTTASK: u64 = u64::MAX;
/// Names there can be: those of components and those of programs.
pub const MAX_NAMES: usize = 64;
/// Bytes of the longest name.
pub const MAX_NAME: usize = 64;

/// Whether a service may be called so.
pub fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

codes! {
    /// Why the name service refused.
    pub enum NamesError {
        1 NotFound "no service of this name"
        2 BadName "not a valid service name"
        3 Full "too many names"
        4 Gone "the service died"
        5 NotAllowed "only roottask gives and takes names: publish through your parent"
    }
}

/// The name service. Its table is written by [`ROOTTASK`] alone.
#[interface]
pub trait Names {
    /// Registers a service under a name, or replaces it. Only for [`ROOTTASK`].
    #[repeatable]
    fn register(&self, name: &str, service: Delegate) -> Result<(), NamesError>;
    /// A call entry to the service, with badge 0.
    #[repeatable]
    fn open(&self, name: &str) -> Result<Delegated, NamesError>;
    /// Names from a position on (0 at first), as [`crate::listing::Listing`] reads them. Gives bytes
    /// and the next position, 0 after the last.
    #[repeatable]
    fn list(&self, position: u64, into: &mut [u8]) -> Result<(usize, u64), NamesError>;
    /// Takes a name back. Only for [`ROOTTASK`].
    #[repeatable]
    fn unregister(&self, name: &str) -> Result<(), NamesError>;
}
