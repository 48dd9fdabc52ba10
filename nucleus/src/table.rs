//! Portal tables: entries, and the derivation tree that connects copies with their original.
//!
//! The tree is a list in preorder with depths: the descendants of a node are the nodes that follow it
//! and are deeper. Revocation removes the next node until it is not deeper, one step at a time, so it
//! can stop between any two steps and go on later. Mappings of memory use the same list (`mapping`).

use crate::arch::entry;
use crate::cpu;
use crate::domain::Domain;
use crate::pointer::{Link, Ref};
use abi::layout::{ENTRY_BYTES, FIRST_FREE};
use abi::rights::{self, Kind};
use abi::{Error, MAX_DERIVATION};
use core::sync::atomic::{Ordering, fence};

/// A node of a derivation tree.
#[repr(C)]
pub struct Node {
    previous: Link<Node>,
    next: Link<Node>,
    depth: u16,
    /// A [`Kind`] as number.
    pub kind: u8,
    /// `abi::rights`.
    pub rights: u8,
    /// Flags of the kind.
    pub flags: u32,
}

impl Ref<Node> {
    /// Puts this node right below `parent`.
    pub fn derive_from(mut self, mut parent: Ref<Node>) -> Result<(), Error> {
        if parent.depth as usize + 1 >= MAX_DERIVATION {
            return Err(Error::TooDeep);
        }
        (self.previous, self.next, self.depth) = (Some(parent), parent.next, parent.depth + 1);
        if let Some(mut next) = parent.next {
            next.previous = Some(self);
        }
        parent.next = Some(self);
        Ok(())
    }
    /// Makes this node an original.
    pub fn root(mut self) {
        (self.previous, self.next, self.depth) = (None, None, 0);
    }
    /// A node derived from this one, if there is any.
    pub fn descendant(self) -> Link<Node> {
        self.next.filter(|next| next.depth > self.depth)
    }
    /// The node after this one, if it is derived from `ancestor`.
    pub fn after(self, ancestor: Ref<Node>) -> Link<Node> {
        self.next.filter(|next| next.depth > ancestor.depth)
    }
    /// Whether nothing was derived to make this.
    pub fn is_original(self) -> bool {
        self.depth == 0
    }
    /// Takes this node, which has no descendants, out of its tree.
    pub fn unlink(mut self) {
        if let Some(mut next) = self.next {
            next.previous = self.previous;
        }
        if let Some(mut previous) = self.previous {
            previous.next = self.next;
        }
        (self.previous, self.next) = (None, None);
    }
}

/// A place in a portal table.
#[repr(C, align(64))]
pub struct Entry {
    /// Where the system call jumps.
    pub code: usize,
    /// What it acts on: an object, or for operations the function.
    pub object: usize,
    /// Its place in the derivation tree, kind and rights.
    pub node: Node,
    /// Calls and services: the entry address. Ports: first and count.
    pub word0: u64,
    /// Calls: the badge.
    pub word1: u64,
    /// Calls: label-pair ids of caller and callee (high half) for which the flow is allowed, or the mark of a ceiling.
    pub pairs: u64,
}

const _: () = assert!(size_of::<Entry>() == ENTRY_BYTES);

/// What to put into an entry.
pub struct Content {
    /// Its kind.
    pub kind: Kind,
    /// Its rights.
    pub rights: u8,
    /// The object.
    pub object: usize,
    /// See [`Entry`].
    pub word0: u64,
    /// See [`Entry`].
    pub word1: u64,
    /// See [`Node`].
    pub flags: u32,
    /// See [`Entry`].
    pub pairs: u64,
}

/// Places of a table that one step of the search for a free one looks at.
pub const PLACES_LOOKED_AT: usize = 32;

impl Content {
    /// An original of `kind` with all rights.
    pub fn original(kind: Kind, object: usize) -> Self {
        Self { kind, rights: rights::ALL, object, word0: 0, word1: 0, flags: 0, pairs: 0 }
    }
}

/// In the flags of a call entry, above those of its service: the ceiling of its calls.
pub const CEILING_SHIFT: u32 = 8;
/// In the pairs of a call entry with a ceiling: so they are nobody's, and its calls take the slow path.
const CEILING_MARK: u64 = 1 << 31;

impl Ref<Entry> {
    /// Calls: label-pair ids of caller and callee (high half) for which the flow is allowed.
    pub fn allowed_pairs(self) -> u64 {
        self.pairs & !CEILING_MARK
    }
    /// Calls: the priority that a call has at least; 0 = its caller's.
    pub fn ceiling(self) -> u8 {
        (self.node.flags >> CEILING_SHIFT) as u8
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
        Kind::from_number(self.node.kind).unwrap_or(Kind::Empty)
    }
    /// The object as `T`.
    ///
    /// # Safety
    /// The entry's kind is the one of `T`.
    pub unsafe fn object_as<T>(self) -> Ref<T> {
        // SAFETY: entries are emptied before their object goes.
        unsafe { Ref::new(self.object as *mut T) }
    }
    /// Whether something can be put here.
    pub fn is_vacant(self) -> bool {
        matches!(self.kind(), Kind::Empty | Kind::Revoked)
    }
    /// Fills a vacant entry, below `parent` or as an original.
    pub fn fill(mut self, content: Content, parent: Link<Entry>) -> Result<(), Error> {
        let node = self.node_reference();
        match parent {
            Some(parent) => node.derive_from(parent.node_reference())?,
            None => node.root(),
        }
        self.object = content.object;
        let mark = if content.flags >> CEILING_SHIFT != 0 { CEILING_MARK } else { 0 };
        (self.word0, self.word1, self.pairs) = (content.word0, content.word1, content.pairs | mark);
        (self.node.kind, self.node.rights, self.node.flags) = (content.kind as u8, content.rights, content.flags);
        // Release: another CPU that finds the code finds the rest.
        fence(Ordering::Release);
        self.code = match content.kind {
            Kind::Call => entry::entry_call as *const () as usize,
            Kind::Semaphore => entry::entry_semaphore as *const () as usize,
            _ => entry::entry_wrong_kind as *const () as usize,
        };
        Ok(())
    }
    /// Empties an entry without descendants; `kind` is `Empty` or `Revoked`. Nobody is on a short way through it
    /// afterwards.
    pub fn vacate(mut self, kind: Kind) {
        self.node_reference().unlink();
        self.shut(kind);
        self.object = 0;
        (self.node.kind, self.node.rights) = (kind as u8, 0);
    }
    /// Nobody gets through the entry any more, or is on a short way through it: it refuses as one of `kind` does, which is
    /// `Empty` or `Revoked`. What stands there stays.
    pub fn shut(mut self, kind: Kind) {
        let code = if kind == Kind::Revoked { entry::entry_revoked } else { entry::entry_empty };
        self.code = code as *const () as usize;
        let address = self.address();
        let has_it = |domain: Ref<Domain>| (domain.table..=domain.table + domain.limit).contains(&address);
        cpu::hold_up_where(|other| other.domain_there().is_some_and(has_it));
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
        self.limit / ENTRY_BYTES + 1
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
        if entry.node.kind == kind as u8 {
            if entry.node.rights & rights == rights { Ok(entry) } else { Err(Error::NoRight) }
        } else {
            Err(match entry.kind() {
                Kind::Empty => Error::Empty,
                Kind::Revoked => Error::Revoked,
                _ => Error::WrongKind,
            })
        }
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
    pub fn find_vacancy(mut self) -> Option<(Ref<Entry>, usize)> {
        for _ in 0..PLACES_LOOKED_AT {
            let index = self.free_hint as usize;
            let entry = self.place(index).ok().filter(|_| index >= FIRST_FREE);
            self.free_hint = if entry.is_some() { index as u16 + 1 } else { FIRST_FREE as u16 };
            if let Some(entry) = entry.filter(|entry| entry.node.kind == Kind::Empty as u8) {
                return Some((entry, index));
            }
        }
        None
    }
}
