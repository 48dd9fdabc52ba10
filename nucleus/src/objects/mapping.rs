//! Mappings: each says at which page a domain has a frame, and from which mapping it was derived.

use super::{Activation, Domain, Node};
use crate::pointer::{Link, Ref};
use core::cell::Cell;

/// See the module.
#[repr(C)]
pub struct Mapping {
    /// Node in the derivation tree of its frame. It comes first, so a pointer to it is a pointer to the mapping.
    pub node: Node,
    /// Domain in whose space it is.
    pub domain: Cell<Ref<Domain>>,
    /// Address of its page. The bits below that hold the progress of revoking the page from windows: see `memory::lend`.
    pub place: Cell<u64>,
    /// Next in the domain's list of mappings.
    pub next: Cell<Link<Mapping>>,
    /// See `next`.
    pub previous: Cell<Link<Mapping>>,
    /// Activation whose cursor is here.
    pub visitor: Cell<Link<Activation>>,
}

const _: () = assert!(size_of::<Mapping>() == 64);
