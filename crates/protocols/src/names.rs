//! The name service: from a name to a call entry.

use idl::{TORN_PORTAL, WINDOW_PORTAL, WORDS_PORTAL, codes, interface};

/// The badge of `roottask`, whose portal it makes itself. No call entry that somebody gets by a name has it.
pub const ROOTTASK: u64 = u64::MAX;
/// The badge of components, whose portals `roottask` makes.
pub const COMPONENT: u64 = 1;
/// The badge of all others: `open` mints it, too.
pub const PROGRAM: u64 = 0;
/// Specifications of portals of which everybody may have the shape: those of the interfaces of this system.
pub const SPECIFICATIONS: [&str; 5] = ["npciii>i", "npcwii>i", TORN_PORTAL, WORDS_PORTAL, WINDOW_PORTAL];
/// Names that all programs can have together, on the smallest machine and on the largest. `roottask` counts them: components have
/// theirs besides. The account of the name service has room for all.
pub const FEWEST_OF_PROGRAMS: usize = 32;
/// The same.
pub const MOST_OF_PROGRAMS: usize = 512;
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
        3 Full "there are as many shapes of portals as there can be: end a component that made some"
        4 Gone "the service is not there at present"
        5 NotAllowed "only roottask gives and takes names: publish through your parent"
        6 BadSpecification "no portals are made of this specification: dmesg says why"
        7 NoShape "there is no shape of this specification, and none is made for programs"
        8 Confined "not on the list of what this program may reach"
        9 NoMemory "the name service has no memory left: give it a larger `account` in the system description"
        10 Flow "a tainted component gets only the shapes that everybody knows"
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
    /// Names in no particular order, from a position on (0 at first), as [`crate::listing::Listing`] reads them. Gives bytes
    /// and the next position, 0 after the last.
    #[repeatable]
    fn list(&self, position: u64, into: &mut [u8]) -> Result<(usize, u64), NamesError>;
    /// Takes a name back. Only for [`ROOTTASK`].
    #[repeatable]
    fn unregister(&self, name: &str) -> Result<(), NamesError>;
    /// The shape of a specification of portals, to make services with. It is made if there is none: for components, and for
    /// programs if it is one of [`SPECIFICATIONS`].
    #[repeatable]
    fn shape(&self, specification: &str) -> Result<Delegated, NamesError>;
    /// Somebody has this name, and registers a service under it sooner or later: until then a client that opens it is notified
    /// [`NamesError::Gone`], not that there is none. Only for [`ROOTTASK`].
    #[repeatable]
    fn expect(&self, name: &str) -> Result<(), NamesError>;
}
