//! Entries of portal tables, and the nodes of the derivation trees that connect copies with their original
//! ([`structures::derivation`]). Mappings of memory have the same nodes.

use super::domain::{SLOW_LABELS, VERSION_BITS};
use super::{Account, Domain, OPEN, Port, Semaphore, Thread};
use crate::pointer::{Link, Ref};
use abi::layout::ENTRY_BYTES;
use abi::rights::Kind;
use core::cell::Cell;
use flow::Label;
use structures::derivation::Derived;

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

impl Derived for Ref<Node> {
    fn previous(&self) -> &Cell<Link<Node>> {
        &self.previous
    }
    fn next(&self) -> &Cell<Link<Node>> {
        &self.next
    }
    fn depth(&self) -> &Cell<u16> {
        &self.depth
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
    /// Calls and services: the entry address. Ports: first and count. Labels: the label.
    pub word0: Cell<u64>,
    /// Calls: the badge. Labels: see [`Ref::verdict_on`].
    pub word1: Cell<u64>,
    /// Calls: the versions of the labels of caller and callee for which the flow is allowed, 0 = there are none, and the mark of a ceiling.
    pub versions: Cell<u64>,
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
impl OfKind for Port {
    const KIND: Kind = Kind::Port;
}
impl OfKind for Semaphore {
    const KIND: Kind = Kind::Semaphore;
}

/// In the flags of a call entry, above those of its service: the ceiling of its calls.
pub const CEILING_SHIFT: u32 = 8;
/// In the flags of services and calls: the number of their shape.
pub const SHAPE_SHIFT: u32 = 16;
/// The same: the number of their label among those of their domain's portals, 0 = {3}.
pub const LABEL_SHIFT: u32 = 24;
/// In the versions of a call entry with a ceiling: so they are nobody's, and its calls take the slow path. No domain is slow for this reason.
pub const CEILING_MARK: u64 = 1 << 63;

impl Ref<Entry> {
    /// Calls: whether the flow is allowed as the labels of caller and callee are now. If not, that is to be judged.
    pub fn allows(self, caller: Ref<Domain>, callee: Ref<Domain>) -> bool {
        self.versions.get() & !CEILING_MARK == versions(caller, callee)
            && (caller.slow() | callee.slow()) & SLOW_LABELS == 0
    }
    /// Calls: the flow is allowed as the labels of caller and callee are now.
    pub fn allow(self, caller: Ref<Domain>, callee: Ref<Domain>) {
        self.versions.set(self.versions.get() & CEILING_MARK | versions(caller, callee));
    }
    /// Calls: the priority that a call has at least; 0 = its caller's.
    pub fn ceiling(self) -> u8 {
        (self.node.flags.get() >> CEILING_SHIFT) as u8
    }
    /// Services and calls: the number of their shape; 0 = the one with a control word.
    pub fn shape(self) -> usize {
        (self.node.flags.get() >> SHAPE_SHIFT) as u8 as usize
    }
    /// Services and calls: the number of their label; 0 = {3}.
    pub fn label_number(self) -> u8 {
        (self.node.flags.get() >> LABEL_SHIFT) as u8
    }
    /// The label of calls by this entry, which leads to a domain.
    pub fn portal_label(self) -> Label {
        let labels = self.callee().and_then(|callee| callee.labelled()?.of_portals.get());
        labels.map_or(OPEN, |labels| labels.of(self.label_number()))
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
    /// Of a label: that.
    pub fn label(self) -> Option<Label> {
        self.is_of(Kind::Label).then(|| Label::from_word(self.word0.get()))
    }
    /// Of a label: what was found out last, if it was about this domain, as its labels are now.
    pub fn verdict_on(self, domain: Ref<Domain>) -> Option<u64> {
        let (known, of) = (self.word1.get(), self.versions.get());
        (of == domain.version() as u64 && known >> 2 == domain.number).then_some(known & 3)
    }
    /// Remembers that, in two bits, until the label changes: then the version is nobody's, 0.
    pub fn note_verdict(self, domain: Ref<Domain>, verdict: u64) -> u64 {
        self.word1.set(domain.number << 2 | verdict);
        self.versions.set(domain.version() as u64);
        verdict
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

fn versions(caller: Ref<Domain>, callee: Ref<Domain>) -> u64 {
    caller.version() as u64 | (callee.version() as u64) << VERSION_BITS
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
