//! Where labels are kept: each content once.
//!
//! A label is a default and the entries that differ from it. These stand in a tree: up to [`LEAF`] entries are a leaf, more are
//! divided by two bits of what stands for their handles. So the same entries always make the same tree, and since a node is looked up before it
//! is made, the same tree is the same node: labels are compared by identity, and labels that differ somewhere share the rest.
//! Nodes never change. Each knows its lowest and its highest level, so that most of a tree need not be looked at.

use crate::level::Levels;
use crate::{Bounds, Level};

/// Entries of a leaf. A node takes 512 bytes with them.
pub const LEAF: usize = 60;
/// Parts of what is more.
pub(crate) const PARTS: usize = 4;
/// Nodes that nobody refers to any more which are freed with each that becomes one.
const TIDIED: usize = 16;

/// A node of a [`Memory`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Id(core::num::NonZeroU32);

impl Id {
    /// `None` for 0.
    pub const fn new(number: u32) -> Option<Self> {
        match core::num::NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0.get()
    }

    fn from_word(word: u64) -> Option<Self> {
        Self::new(word as u32)
    }
}

/// Some entries, and what is known of them.
#[derive(Clone, Debug)]
pub struct Node {
    hash: u64,
    /// The next one with such a hash, or that is to be freed.
    next: Option<Id>,
    /// Labels and nodes that refer to it.
    uses: u32,
    /// Nodes that it takes, itself included, as if it shared none.
    nodes: u32,
    /// Entries. If they fit a leaf this is one.
    count: u32,
    /// Of these.
    levels: Levels,
    /// Of a leaf: its entries, sorted by handle. Else its parts.
    words: [u64; LEAF],
}

impl Node {
    /// One in which nothing stands yet.
    pub const EMPTY: Self =
        Self { hash: 0, next: None, uses: 0, nodes: 0, count: 0, levels: Levels::of(Level::Star), words: [0; LEAF] };

    pub(crate) fn is_leaf(&self) -> bool {
        self.count as usize <= LEAF
    }

    /// Entries of a leaf.
    pub(crate) fn entries(&self) -> &[u64] {
        &self.words[..self.count as usize]
    }

    /// Parts of one that is no leaf.
    pub(crate) fn parts(&self) -> [Option<Id>; PARTS] {
        core::array::from_fn(|part| Id::from_word(self.words[part]))
    }

    pub(crate) fn levels(&self) -> Levels {
        self.levels
    }

    /// What stands there.
    fn content(&self) -> &[u64] {
        if self.is_leaf() { self.entries() } else { &self.words[..PARTS] }
    }
}

/// Where nodes are, and a table of lists in which they are found by their hashes.
pub trait Memory {
    /// One that was allocated.
    fn node(&self, id: Id) -> &Node;
    /// The same, to be written.
    fn node_mut(&mut self, id: Id) -> &mut Node;
    /// One that nobody has, whatever stands in it.
    fn allocate(&mut self) -> Option<Id>;
    /// Gives one back.
    fn free(&mut self, id: Id);
    /// The first of the list of those with such a hash.
    fn first(&self, hash: u64) -> Option<Id>;
    /// Another one is the first.
    fn set_first(&mut self, hash: u64, first: Option<Id>);
}

/// There is no room for another node, or there are more handles that are alike than a label has room for. What was begun is given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exhausted;

/// A level for each handle. Equal ones of the same pool are the same. Whoever has one lets go of it with [`Pool::release`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Label {
    /// The level of all handles that have no entry.
    pub default: Level,
    pub(crate) root: Option<Id>,
}

impl Label {
    /// The same level for all handles. It takes no memory.
    pub const fn of(default: Level) -> Self {
        Self { default, root: None }
    }
}

/// All labels that there are.
pub struct Pool<M> {
    memory: M,
    /// Of the hashes: who does not know it cannot choose labels of which the nodes are found slowly. It is odd.
    seed: u64,
    /// First of the nodes that nobody refers to any more.
    going: Option<Id>,
    /// Nodes that were looked at, for those who count.
    looked_at: core::cell::Cell<u64>,
}

impl<M: Memory> Pool<M> {
    /// Without labels, in memory without nodes. Where somebody may try to have labels found slowly the seed is a secret.
    pub const fn new(memory: M, seed: u64) -> Self {
        Self { memory, seed: seed | 1, going: None, looked_at: core::cell::Cell::new(0) }
    }

    /// Where its nodes are.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The same, to change its limits.
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Nodes that were looked at since the pool was made.
    pub fn looked_at(&self) -> u64 {
        self.looked_at.get()
    }

    /// Nodes that a label takes, as if it shared none with others: what its owner is charged, so that nobody sees in his account
    /// what others have.
    pub fn nodes(&self, label: Label) -> u32 {
        label.root.map_or(0, |root| self.memory.node(root).nodes)
    }

    /// Entries of a label.
    pub fn entries(&self, label: Label) -> u32 {
        label.root.map_or(0, |root| self.memory.node(root).count)
    }

    /// The lowest and the highest level of a label.
    pub fn bounds(&self, label: Label) -> Bounds {
        let default = Levels::of(label.default);
        label.root.map_or(default, |root| default.and(self.memory.node(root).levels)).bounds()
    }

    /// The same label for somebody else, who lets go of it, too.
    pub fn keep(&mut self, label: Label) -> Label {
        self.keep_node(label.root);
        label
    }

    /// Lets go of a label.
    pub fn release(&mut self, label: Label) {
        self.release_node(label.root);
        self.tidy(TIDIED);
    }

    /// Frees so many nodes that nobody refers to; true if there are no more. Few calls of [`Self::release`] leave any.
    pub fn tidy(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let Some(id) = self.going else { return true };
            let node = self.memory.node(id);
            let parts = if node.is_leaf() { [None; PARTS] } else { node.parts() };
            self.going = node.next;
            parts.into_iter().for_each(|part| self.release_node(part));
            self.memory.free(id);
        }
        self.going.is_none()
    }

    pub(crate) fn node(&self, id: Id) -> &Node {
        self.looked_at.set(self.looked_at.get() + 1);
        self.memory.node(id)
    }

    pub(crate) fn keep_node(&mut self, id: Option<Id>) -> Option<Id> {
        if let Some(id) = id {
            // One that has too many users to count stays for good.
            let uses = &mut self.memory.node_mut(id).uses;
            *uses = uses.saturating_add(1);
        }
        id
    }

    pub(crate) fn release_node(&mut self, id: Option<Id>) {
        let Some(id) = id else { return };
        let node = self.memory.node_mut(id);
        node.uses -= u32::from(node.uses != u32::MAX);
        if node.uses == 0 {
            let (hash, next) = (node.hash, node.next);
            self.unlink(hash, id, next);
            self.memory.node_mut(id).next = self.going;
            self.going = Some(id);
        }
    }

    /// Takes a node out of the list of its hash.
    fn unlink(&mut self, hash: u64, id: Id, next: Option<Id>) {
        let mut at = self.memory.first(hash);
        if at == Some(id) {
            return self.memory.set_first(hash, next);
        }
        while let Some(before) = at {
            at = self.memory.node(before).next;
            if at == Some(id) {
                self.memory.node_mut(before).next = next;
                return;
            }
        }
    }

    /// The leaf with these entries, which are sorted.
    pub(crate) fn leaf(&mut self, entries: &[u64]) -> Result<Option<Id>, Exhausted> {
        if entries.is_empty() {
            return Ok(None);
        }
        let (id, _) = self.find_or_make(entries, 1, entries.len() as u32, Levels::of_entries(entries))?;
        Ok(Some(id))
    }

    /// The node with these parts, which it takes over.
    pub(crate) fn inner(&mut self, parts: [Option<Id>; PARTS]) -> Result<Option<Id>, Exhausted> {
        let (mut nodes, mut count) = (1, 0);
        let mut levels: Option<Levels> = None;
        for part in parts.into_iter().flatten() {
            let part = self.node(part);
            nodes += part.nodes;
            count += part.count;
            levels = Some(levels.map_or(part.levels, |levels| levels.and(part.levels)));
        }
        let Some(levels) = levels else { return Ok(None) };
        if count as usize <= LEAF {
            let made = self.joined(parts);
            self.release_nodes(parts);
            return made;
        }
        let made =
            self.find_or_make(&parts.map(|part| part.map_or(0, |part| part.number().into())), nodes, count, levels);
        // A new one has these parts from now on; one that was there has them already.
        if !made.is_ok_and(|(_, is_new)| is_new) {
            self.release_nodes(parts);
        }
        made.map(|(id, _)| Some(id))
    }

    pub(crate) fn release_nodes(&mut self, nodes: [Option<Id>; PARTS]) {
        nodes.into_iter().for_each(|node| self.release_node(node));
    }

    /// The leaf with the entries of leaves.
    fn joined(&mut self, parts: [Option<Id>; PARTS]) -> Result<Option<Id>, Exhausted> {
        let mut entries = [0; LEAF];
        let mut count = 0;
        for part in parts.into_iter().flatten() {
            let part = self.node(part).entries();
            entries[count..count + part.len()].copy_from_slice(part);
            count += part.len();
        }
        entries[..count].sort_unstable();
        self.leaf(&entries[..count])
    }

    /// The node with this content, and whether it is new.
    fn find_or_make(
        &mut self,
        content: &[u64],
        nodes: u32,
        count: u32,
        levels: Levels,
    ) -> Result<(Id, bool), Exhausted> {
        // A polynomial in the secret seed, then both halves of a product.
        let sum = content.iter().fold(u64::from(count), |sum, word| sum.wrapping_mul(self.seed).wrapping_add(*word));
        let product = u128::from(sum) * 0x9e37_79b9_7f4a_7c15;
        let hash = (product >> 64) as u64 ^ product as u64;
        let mut at = self.memory.first(hash);
        while let Some(id) = at {
            let node = self.memory.node(id);
            if node.hash == hash && node.count == count && node.content() == content {
                self.keep_node(Some(id));
                return Ok((id, false));
            }
            at = node.next;
        }
        let id = match self.memory.allocate() {
            Some(id) => id,
            None => {
                self.tidy(TIDIED);
                self.memory.allocate().ok_or(Exhausted)?
            }
        };
        let next = self.memory.first(hash);
        let node = self.memory.node_mut(id);
        (node.hash, node.next, node.uses) = (hash, next, 1);
        (node.nodes, node.count, node.levels) = (nodes, count, levels);
        node.words[..content.len()].copy_from_slice(content);
        self.memory.set_first(hash, Some(id));
        Ok((id, true))
    }
}
