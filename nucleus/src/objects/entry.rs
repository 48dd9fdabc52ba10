//! Entries of portal tables, and the derivation tree that connects copies with their original.
//!
//! The tree is a list in preorder with depths: the descendants of a node are the nodes that follow it
//! and are deeper. Revocation removes the next node until it is not deeper, one step at a time, so it
//! can stop between any two steps and go on later. Mappings of memory use the same list.

use super::{Account, Domain, Semaphore, Thread};
use crate::pointer::{Link, Ref};
use abi::layout::ENTRY_BYTES;
use abi::rights::Kind;
use abi::{Error, MAX_DERIVATION};
use core::cell::Cell;

/// A node of a derivation tree.
#[repr(C)]
pub struct Node {
    previous: Cell<Link<Node>>,
    next: Cell<Link<Node>>,
    depth: Cell<u16>,
    /// A [`Kind`] as number.
    pub kind: Cell<u8>,
    /// `abi::rights`.
    pub rights: Cell<u8>,
    /// Flags of the kind.
    pub flags: Cell<u32>,
}

impl Ref<Node> {
    /// Puts this node right below `parent`.
    pub fn derive_from(self, parent: Ref<Node>) -> Result<(), Error> {
        if parent.depth.get() as usize + 1 >= MAX_DERIVATION {
            return Err(Error::TooDeep);
        }
        self.previous.set(Some(parent));
        self.next.set(parent.next.get());
        self.depth.set(parent.depth.get() + 1);
        if let Some(next) = parent.next.get() {
            next.previous.set(Some(self));
        }
        parent.next.set(Some(self));
        Ok(())
    }
    /// Makes this node an original.
    pub fn root(self) {
        self.previous.set(None);
        self.next.set(None);
        self.depth.set(0);
    }
    /// A node derived from this one, if there is any.
    pub fn descendant(self) -> Link<Node> {
        self.next.get().filter(|next| next.depth.get() > self.depth.get())
    }
    /// The node after this one, if it is derived from `ancestor`.
    pub fn after(self, ancestor: Ref<Node>) -> Link<Node> {
        self.next.get().filter(|next| next.depth.get() > ancestor.depth.get())
    }
    /// Whether nothing was derived to make this.
    pub fn is_original(self) -> bool {
        self.depth.get() == 0
    }
    /// Takes this node, which has no descendants, out of its tree.
    pub fn unlink(self) {
        if let Some(next) = self.next.get() {
            next.previous.set(self.previous.get());
        }
        if let Some(previous) = self.previous.get() {
            previous.next.set(self.next.get());
        }
        self.previous.set(None);
        self.next.set(None);
    }
}

/// A place in a portal table.
#[repr(C, align(64))]
pub struct Entry {
    /// Where the system call jumps.
    pub code: Cell<usize>,
    /// What it acts on: an object, or for operations the function.
    pub object: Cell<usize>,
    /// Its place in the derivation tree, kind and rights.
    pub node: Node,
    /// Calls and services: the entry address. Ports: first and count.
    pub word0: Cell<u64>,
    /// Calls: the badge.
    pub word1: Cell<u64>,
    /// Calls: label-pair ids of caller and callee (high half) for which the flow is allowed, or the mark of a ceiling.
    pub pairs: Cell<u64>,
}

/// A type of objects that entries of one kind stand for.
pub trait OfKind {
    /// The kind.
    const KIND: Kind;
}
const _: () = assert!(size_of::<Entry>() == ENTRY_BYTES);

impl OfKind for Domain {
    const KIND: Kind = Kind::Domain;
}
impl OfKind for Thread {
    const KIND: Kind = Kind::Thread;
}
impl OfKind for Account {
    const KIND: Kind = Kind::Account;
}
impl OfKind for Semaphore {
    const KIND: Kind = Kind::Semaphore;
}

/// In the flags of a call entry, above those of its service: the ceiling of its calls.
pub const CEILING_SHIFT: u32 = 8;
/// In the pairs of a call entry with a ceiling: so they are nobody's, and its calls take the slow path.
pub const CEILING_MARK: u64 = 1 << 31;

impl Ref<Entry> {
    /// Calls: label-pair ids of caller and callee (high half) for which the flow is allowed.
    pub fn allowed_pairs(self) -> u64 {
        self.pairs.get() & !CEILING_MARK
    }
    /// Calls: the priority that a call has at least; 0 = its caller's.
    pub fn ceiling(self) -> u8 {
        (self.node.flags.get() >> CEILING_SHIFT) as u8
    }
    /// The node inside.
    pub fn node_reference(self) -> Ref<Node> {
        // SAFETY: a field of a live object.
        unsafe { Ref::new(&raw mut (*self.pointer()).node) }
    }
    /// The entry round a node that is one of an entry.
    pub fn of_node(node: Ref<Node>) -> Self {
        // SAFETY: by contract of the tree: nodes of entries are only linked with each other.
        unsafe { Ref::new((node.address() - core::mem::offset_of!(Entry, node)) as *mut Entry) }
    }
    /// Its kind.
    pub fn kind(self) -> Kind {
        Kind::from_number(self.node.kind.get()).unwrap_or(Kind::Empty)
    }
    /// The object that it stands for, if that is a `T`.
    #[inline(always)]
    pub fn object<T: OfKind>(self) -> Link<T> {
        // SAFETY: an entry of the kind is filled with the address of a `T`, and emptied before that goes.
        self.is_of(T::KIND).then(|| unsafe { Ref::new(self.object.get() as *mut T) })
    }
    /// Of a service: the domain whose entry point it is.
    #[inline(always)]
    pub fn server(self) -> Link<Domain> {
        // SAFETY: services are filled with the address of their domain, and emptied before that goes.
        self.is_of(Kind::Service).then(|| unsafe { Ref::new(self.object.get() as *mut Domain) })
    }
    /// Of a call: the domain that it leads to.
    #[inline(always)]
    pub fn callee(self) -> Link<Domain> {
        // SAFETY: calls are filled with the address of the domain, and emptied before that goes.
        self.is_of(Kind::Call).then(|| unsafe { Ref::new(self.object.get() as *mut Domain) })
    }
    /// Whether it is of this kind.
    #[inline(always)]
    pub fn is_of(self, kind: Kind) -> bool {
        self.node.kind.get() == kind as u8
    }
    /// Whether something can be put here.
    pub fn is_vacant(self) -> bool {
        matches!(self.kind(), Kind::Empty | Kind::Revoked)
    }
}

/// How an operation is entered: what an entry for it holds.
#[derive(Clone, Copy)]
pub struct Operation {
    /// Where the system call jumps.
    pub code: *const (),
    /// The function that this calls.
    pub function: *const (),
}

// SAFETY: addresses of code, which is only read.
unsafe impl Sync for Operation {}
