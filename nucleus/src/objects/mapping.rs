//! Mappings: which domain has which frame where, and from whom.

use super::{Activation, Domain, Node};
use crate::pointer::{Link, Ref};
use core::cell::Cell;

/// See the module.
#[repr(C)]
pub struct Mapping {
    /// Its place in the tree of its frame. It comes first: a pointer to it is one to the mapping.
    pub node: Node,
    /// Where it is.
    pub domain: Cell<Ref<Domain>>,
    /// At which page; and in the bits that are no address, how far its windows were taken back: see `memory::lend`.
    pub place: Cell<u64>,
    /// In the list of the domain's.
    pub next: Cell<Link<Mapping>>,
    /// See `next`.
    pub previous: Cell<Link<Mapping>>,
    /// Whose cursor stands here.
    pub visitor: Cell<Link<Activation>>,
}

const _: () = assert!(size_of::<Mapping>() == 64);
