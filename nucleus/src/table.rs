//! Portal tables: entries, and the derivation tree that connects copies with their original.
//!
//! The tree is a list in preorder with depths: the descendants of a node are the nodes that follow it
//! and are deeper. Revocation removes the next node until it is not deeper, one step at a time, so it
//! can stop between any two steps and go on later. Mappings of memory use the same list (`mapping`).

use crate::account::Account;
use crate::arch::entry;
use crate::cpu;
use crate::domain::Domain;
use crate::pointer::{Link, Ref};
use crate::semaphore::Semaphore;
use crate::thread::Thread;
use abi::layout::{ENTRY_BYTES, FIRST_FREE};
use abi::rights::{self, Kind};
use abi::{Error, MAX_DERIVATION};
use core::cell::Cell;
use core::sync::atomic::{Ordering, fence};

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

const _: () = assert!(size_of::<Entry>() == ENTRY_BYTES);

/// A type of objects that entries of one kind stand for.
pub trait OfKind {
    /// The kind.
    const KIND: Kind;
}

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

/// What to put into an entry.
pub struct Content {
    kind: Kind,
    rights: u8,
    object: usize,
    word0: u64,
    word1: u64,
    flags: u32,
    pairs: u64,
}

/// Places of a table that one step of the search for a free one looks at.
pub const PLACES_LOOKED_AT: usize = 32;

impl Content {
    /// An original of an object, with all rights.
    #[inline(always)]
    pub fn original<T: OfKind>(object: Ref<T>) -> Self {
        Self { object: object.address(), ..Self::plain(T::KIND, 0) }
    }
    /// An entry point of a domain: its address, and flags.
    #[inline(always)]
    pub fn service(domain: Ref<Domain>, address: u64, flags: u32) -> Self {
        Self { object: domain.address(), flags, ..Self::plain(Kind::Service, address) }
    }
    /// An original of a kind that stands for no object.
    #[inline(always)]
    pub fn plain(kind: Kind, word0: u64) -> Self {
        Self { kind, rights: rights::ALL, object: 0, word0, word1: 0, flags: 0, pairs: 0 }
    }
    /// What stands in `source`, with the rights that `mask` leaves.
    #[inline(always)]
    pub fn copy(source: Ref<Entry>, mask: u8) -> Self {
        Self {
            kind: source.kind(),
            rights: source.node.rights.get() & mask,
            object: source.object.get(),
            word0: source.word0.get(),
            word1: source.word1.get(),
            flags: source.node.flags.get(),
            pairs: 0,
        }
    }
    /// Calls from `domain` to a service of `callee`, with at least the priority `ceiling`.
    #[inline(always)]
    pub fn call(service: Ref<Entry>, callee: Ref<Domain>, badge: u64, ceiling: u8, domain: Ref<Domain>) -> Self {
        Self {
            kind: Kind::Call,
            rights: rights::USE,
            object: callee.address(),
            word0: service.word0.get(),
            word1: badge,
            flags: service.node.flags.get() | (ceiling as u32) << CEILING_SHIFT,
            pairs: domain.pair as u64 | (callee.pair as u64) << 32,
        }
    }
}

/// In the flags of a call entry, above those of its service: the ceiling of its calls.
const CEILING_SHIFT: u32 = 8;
/// In the pairs of a call entry with a ceiling: so they are nobody's, and its calls take the slow path.
const CEILING_MARK: u64 = 1 << 31;

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
    #[inline(always)]
    fn is_of(self, kind: Kind) -> bool {
        self.node.kind.get() == kind as u8
    }
    /// Whether something can be put here.
    pub fn is_vacant(self) -> bool {
        matches!(self.kind(), Kind::Empty | Kind::Revoked)
    }
    /// Fills a vacant entry, below `parent` or as an original.
    pub fn fill(self, content: Content, parent: Link<Entry>) -> Result<(), Error> {
        let node = self.node_reference();
        match parent {
            Some(parent) => node.derive_from(parent.node_reference())?,
            None => node.root(),
        }
        self.object.set(content.object);
        let mark = if content.flags >> CEILING_SHIFT != 0 { CEILING_MARK } else { 0 };
        self.word0.set(content.word0);
        self.word1.set(content.word1);
        self.pairs.set(content.pairs | mark);
        self.node.kind.set(content.kind as u8);
        self.node.rights.set(content.rights);
        self.node.flags.set(content.flags);
        // Release: another CPU that finds the code finds the rest.
        fence(Ordering::Release);
        self.code.set(match content.kind {
            Kind::Call => entry::entry_call as *const () as usize,
            Kind::Semaphore => entry::entry_semaphore as *const () as usize,
            _ => entry::entry_wrong_kind as *const () as usize,
        });
        Ok(())
    }
    /// Empties an entry without descendants; `kind` is `Empty` or `Revoked`. Nobody is on a short way through it
    /// afterwards.
    pub fn vacate(self, kind: Kind) {
        self.node_reference().unlink();
        self.shut(kind);
        self.object.set(0);
        self.node.kind.set(kind as u8);
        self.node.rights.set(0);
    }
    /// Nobody gets through the entry any more, or is on a short way through it: it refuses as one of `kind` does, which is
    /// `Empty` or `Revoked`. What stands there stays.
    pub fn shut(self, kind: Kind) {
        let held = self.held();
        let code = if kind == Kind::Revoked { entry::entry_revoked } else { entry::entry_empty };
        self.code.set(code as *const () as usize);
        let address = self.address();
        let has_it = |domain: Ref<Domain>| (domain.table..=domain.table + domain.limit.get()).contains(&address);
        cpu::hold_up_where(held, |other| other.domain_there().is_some_and(has_it));
    }
    /// Revokes one entry derived from this one; false if there was none.
    pub fn revoke_one(self) -> bool {
        match self.node_reference().descendant() {
            Some(node) => {
                Self::of_node(node).vacate(Kind::Revoked);
                true
            }
            None => false,
        }
    }
}

impl Ref<Domain> {
    /// Entries of the table.
    pub fn table_entries(self) -> usize {
        self.limit.get() / ENTRY_BYTES + 1
    }
    /// The entry at `index`, whatever stands there.
    pub fn place(self, index: usize) -> Result<Ref<Entry>, Error> {
        if index >= self.table_entries() {
            return Err(Error::BadIndex);
        }
        // SAFETY: within the table, which lives as long as the domain.
        Ok(unsafe { Ref::new((self.table + index * ENTRY_BYTES) as *mut Entry) })
    }
    /// The entry at `index`, which must be of `kind` and have `rights`.
    pub fn entry(self, index: usize, kind: Kind, rights: u8) -> Result<Ref<Entry>, Error> {
        let entry = self.place(index)?;
        if entry.is_of(kind) {
            if entry.node.rights.get() & rights == rights { Ok(entry) } else { Err(Error::NoRight) }
        } else {
            Err(match entry.kind() {
                Kind::Empty => Error::Empty,
                Kind::Revoked => Error::Revoked,
                _ => Error::WrongKind,
            })
        }
    }
    /// The object that the entry at `index` stands for, which must be a `T`, and the entry have `rights`.
    #[inline(always)]
    pub fn object<T: OfKind>(self, index: usize, rights: u8) -> Result<Ref<T>, Error> {
        self.entry(index, T::KIND, rights)?.object().ok_or(Error::WrongKind)
    }
    /// The entry to fill at `index`.
    pub fn vacancy(self, index: usize) -> Result<(Ref<Entry>, usize), Error> {
        let entry = self.place(index)?;
        if index < abi::layout::PAGE_FAULT[0] || !entry.is_vacant() {
            return Err(Error::Occupied);
        }
        Ok((entry, index))
    }
    /// A free entry among the next places behind the one where the last search ended.
    pub fn find_vacancy(self) -> Option<(Ref<Entry>, usize)> {
        for _ in 0..PLACES_LOOKED_AT {
            let index = self.free_hint.get() as usize;
            let entry = self.place(index).ok().filter(|_| index >= FIRST_FREE);
            self.free_hint.set(if entry.is_some() { index as u16 + 1 } else { FIRST_FREE as u16 });
            if let Some(entry) = entry.filter(|entry| entry.node.kind.get() == Kind::Empty as u8) {
                return Some((entry, index));
            }
        }
        None
    }
}
