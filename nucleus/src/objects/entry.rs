//! Entries of portal tables, and the nodes of derivation trees, which connect copies with their original
//! ([`structures::derivation`]). Mappings of memory use the same nodes.

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
    /// Rights: see `abi::rights`.
    pub rights: Cell<u8>,
    /// Flags, by kind: see [`CEILING_SHIFT`], [`SHAPE_SHIFT`], [`LABEL_SHIFT`].
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

/// A slot of a portal table.
#[repr(C, align(64))]
pub struct Entry {
    /// Code address to which a system call jumps.
    pub code: Cell<usize>,
    /// Address of its object; operations: of the function.
    pub object: Cell<usize>,
    /// Node in the derivation tree, with kind and rights.
    pub node: Node,
    /// Calls and services: the entry address. I/O ports: first and count. Interrupts: the line. Shapes: the number. Labels:
    /// the label.
    pub word0: Cell<u64>,
    /// Calls: the badge. Labels: see [`Ref::verdict_on`].
    pub word1: Cell<u64>,
    /// Entries whose use is judged: the label versions of caller and callee (for an object, twice the caller's) for which
    /// the flow is allowed; 0 = none. Calls: also [`CEILING_MARK`]. Labels: the domain's version in the cached verdict.
    pub versions: Cell<u64>,
}

/// A type of object that entries of one kind refer to.
pub trait OfKind {
    /// Kind of these entries.
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

/// Position of the ceiling in the flags of a call entry, above the flags of its service.
pub const CEILING_SHIFT: u32 = 8;
/// Position of the shape's number in the flags of services and calls.
pub const SHAPE_SHIFT: u32 = 16;
/// Position of the label's number among those of the domain's portals, in the flags of services and calls; 0 = {3}.
pub const LABEL_SHIFT: u32 = 24;
/// Set in the versions of a call entry with a ceiling. They then match no domains, so its calls take the slow path. No
/// `SLOW_*` reason uses this bit.
pub const CEILING_MARK: u64 = 1 << 63;

impl Ref<Entry> {
    /// Whether the cached verdict allows the flow with the present labels of caller and callee. If not, it must be judged.
    pub fn allows(self, caller: Ref<Domain>, callee: Ref<Domain>) -> bool {
        self.versions.get() & !CEILING_MARK == versions(caller, callee)
            && (caller.slow() | callee.slow()) & SLOW_LABELS == 0
    }
    /// Caches the verdict that the flow is allowed with the present labels of caller and callee.
    pub fn allow(self, caller: Ref<Domain>, callee: Ref<Domain>) {
        self.versions.set(self.versions.get() & CEILING_MARK | versions(caller, callee));
    }
    /// Calls: the least priority of a call; 0 = that of its caller.
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
    /// The label of the portal, if this is a call entry; else {3}.
    pub fn portal_label(self) -> Label {
        let labels = self.callee().and_then(|callee| callee.labelled()?.of_portals.get());
        labels.map_or(OPEN, |labels| labels.of(self.label_number()))
    }
    /// The node in this entry.
    pub fn node_reference(self) -> Ref<Node> {
        // SAFETY: a field of a live object, so it is not null and lives as long.
        unsafe { Ref::new(&raw mut (*self.pointer()).node) }
    }
    /// The entry that contains this node, which must be that of an entry.
    pub fn of_node(node: Ref<Node>) -> Self {
        // SAFETY: derivation trees link nodes of entries only with each other, so this node is a field of an entry.
        unsafe { Ref::new((node.address() - core::mem::offset_of!(Entry, node)) as *mut Entry) }
    }
    /// The kind.
    pub fn kind(self) -> Kind {
        Kind::from_number(self.node.kind.get()).unwrap_or(Kind::Empty)
    }
    /// The object that it refers to, if its kind is that of `T`.
    #[inline(always)]
    pub fn object<T: OfKind>(self) -> Link<T> {
        // SAFETY: an entry of this kind is filled with the address of a `T`, and emptied before the `T` is freed.
        self.is_of(T::KIND).then(|| unsafe { Ref::new(self.object.get() as *mut T) })
    }
    /// Services: the domain of the entry point.
    #[inline(always)]
    pub fn server(self) -> Link<Domain> {
        // SAFETY: services are filled with the address of their domain, and emptied before the domain is freed.
        self.is_of(Kind::Service).then(|| unsafe { Ref::new(self.object.get() as *mut Domain) })
    }
    /// Calls: the domain that it leads to.
    #[inline(always)]
    pub fn callee(self) -> Link<Domain> {
        // SAFETY: calls are filled with the address of their domain, and emptied before the domain is freed.
        self.is_of(Kind::Call).then(|| unsafe { Ref::new(self.object.get() as *mut Domain) })
    }
    /// Labels: the label.
    pub fn label(self) -> Option<Label> {
        self.is_of(Kind::Label).then(|| Label::from_word(self.word0.get()))
    }
    /// Labels: the cached verdict, if it is about this domain with its present labels.
    pub fn verdict_on(self, domain: Ref<Domain>) -> Option<u64> {
        let (known, of) = (self.word1.get(), self.versions.get());
        (of == domain.version() as u64 && known >> 2 == domain.number).then_some(known & 3)
    }
    /// Labels: caches a verdict of two bits. A change of the label sets the version to 0, which no domain has.
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
    /// Whether it can be filled.
    pub fn is_vacant(self) -> bool {
        matches!(self.kind(), Kind::Empty | Kind::Revoked)
    }
}

fn versions(caller: Ref<Domain>, callee: Ref<Domain>) -> u64 {
    caller.version() as u64 | (callee.version() as u64) << VERSION_BITS
}

/// Code addresses in the entry of an operation.
#[derive(Clone, Copy)]
pub struct Operation {
    /// Code address to which the system call jumps.
    pub code: *const (),
    /// Function that this code calls; null if none.
    pub function: *const (),
}

// SAFETY: addresses of code, which no CPU writes.
unsafe impl Sync for Operation {}
