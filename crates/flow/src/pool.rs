//! Where labels are kept.
//!
//! A label is a default and the entries that differ from it. These stand in a tree: up to [`LEAF`] entries are a leaf, more are
//! divided by two bits of what stands for their handles, the highest first. So the same entries always make a tree of the same form, and labels that differ
//! somewhere share the rest.
//! Nodes never change, once they are complete. Each knows the levels of its entries, so that most of a tree need not be looked at.
//!
//! **Who pays.** Each node belongs to one owner, whose labels have nodes of that owner alone: nodes of somebody else are copied. So an
//! owner's memory depends on that owner alone. A copy has the *identity* of what it is a copy of, by which it is known to be the same
//! without a look at its entries. Nodes with different identities may be the same, too: their makers did not know of each other.

use crate::level::Levels;
use crate::{Bounds, Level};

/// Entries of a leaf. A node takes 512 bytes with them.
pub const LEAF: usize = 60;
/// Parts of what is more.
pub(crate) const PARTS: usize = 4;
/// Nodes that nobody refers to any more which are freed with each that becomes one.
pub(crate) const TIDIED: usize = 16;

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
    /// Nodes that have the same one have the same entries.
    identity: u64,
    /// The next one that is to be freed.
    next: Option<Id>,
    /// Labels and nodes that refer to it.
    uses: u32,
    /// Nodes that it takes, itself included, as if it shared none. A leaf takes one; a node with parts takes more.
    nodes: u32,
    /// Entries. If they fit a leaf this is one, unless it is [unfinished](Pool::unfinished).
    count: u32,
    /// Of these.
    levels: Levels,
    /// Of a leaf: its entries, sorted by handle. Else its parts.
    words: [u64; LEAF],
}

impl Node {
    /// One in which nothing stands yet.
    pub const EMPTY: Self = Self {
        identity: 0,
        next: None,
        uses: 0,
        nodes: 0,
        count: 0,
        levels: Levels::of(Level::Star),
        words: [0; LEAF],
    };

    pub(crate) fn is_leaf(&self) -> bool {
        self.nodes == 1
    }

    /// Entries of a leaf.
    pub(crate) fn entries(&self) -> &[u64] {
        &self.words[..self.count as usize]
    }

    /// The same, copied, and how many they are.
    pub(crate) fn copied_entries(&self) -> ([u64; LEAF], usize) {
        (self.words, self.entries().len())
    }

    /// Parts of one that is no leaf.
    pub(crate) fn parts(&self) -> [Option<Id>; PARTS] {
        core::array::from_fn(|part| self.part(part))
    }

    /// One of them.
    pub(crate) fn part(&self, part: usize) -> Option<Id> {
        Id::from_word(self.words[part])
    }

    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn levels(&self) -> Levels {
        self.levels
    }
}

/// The payer of nodes.
pub type Owner = usize;

/// Where nodes are.
pub trait Memory {
    /// One that was allocated.
    fn node(&self, id: Id) -> &Node;
    /// The same, to be written.
    fn node_mut(&mut self, id: Id) -> &mut Node;
    /// The payer of a node.
    fn owner(&self, id: Id) -> Owner;
    /// One that nobody has, whatever stands in it.
    fn allocate(&mut self, owner: Owner) -> Option<Id>;
    /// Gives one back.
    fn free(&mut self, id: Id);
}

/// There is no room for another node, or there are more handles that are alike than a label has room for. The nodes made so far are given
/// back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exhausted;

/// A level for each handle. Equal ones are the same. Those that are not may still have the same levels: see the module `pool`. The holder
/// of one lets go of it with [`Pool::release`].
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

    /// As one word, to be kept: [`Self::from_word`].
    pub const fn word(self) -> u64 {
        let root = match self.root {
            Some(root) => root.number(),
            None => 0,
        };
        self.default as u64 | (root as u64) << 32
    }

    /// The label that was kept as this word.
    pub const fn from_word(word: u64) -> Self {
        Self { default: Level::from_bits(word), root: Id::new((word >> 32) as u32) }
    }
}

/// The state of a pool beside its nodes.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Identities that were given out.
    identities: u64,
    /// First of the nodes that nobody refers to any more.
    going: Option<Id>,
}

impl State {
    /// Of a pool without labels.
    pub const NEW: Self = Self { identities: 0, going: None };

    /// Whether there is nothing for [`Pool::tidy`].
    pub const fn is_tidy(&self) -> bool {
        self.going.is_none()
    }
}

/// Whether the words of two leaves are the same. Where `memcmp` goes byte by byte, `==` of slices takes several times as long.
fn are_same(one: &[u64], other: &[u64]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one == other)
}

/// All labels that there are.
pub struct Pool<M> {
    /// The payer of new nodes.
    payer: Owner,
    state: State,
    /// Nodes that were looked at, for counts.
    #[cfg(feature = "std")]
    looked_at: core::cell::Cell<u64>,
    memory: M,
}

impl<M> Pool<M> {
    /// Without labels, in memory without nodes. New nodes are `payer`'s.
    pub const fn new(memory: M, payer: Owner) -> Self {
        Self::resume(memory, payer, State::NEW)
    }

    /// One whose state was kept, with the memory that it had.
    pub const fn resume(memory: M, payer: Owner, state: State) -> Self {
        Self {
            payer,
            state,
            #[cfg(feature = "std")]
            looked_at: core::cell::Cell::new(0),
            memory,
        }
    }

    /// Where its nodes are.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The same, to change its limits.
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }
}

impl<M: Memory> Pool<M> {
    /// The state that is needed to go on with the pool later.
    pub fn state(&self) -> State {
        self.state
    }

    /// The payer of new nodes.
    pub fn payer(&self) -> Owner {
        self.payer
    }

    /// Sets the payer of new nodes.
    pub fn pay(&mut self, payer: Owner) {
        self.payer = payer;
    }

    /// Nodes that were looked at since the pool was made.
    #[cfg(feature = "std")]
    pub fn looked_at(&self) -> u64 {
        self.looked_at.get()
    }

    /// Nodes that a label takes, as if it shared none with others of the same owner.
    pub fn nodes(&self, label: Label) -> u32 {
        label.root.map_or(0, |root| self.memory.node(root).nodes)
    }

    /// Entries of a label.
    pub fn entries(&self, label: Label) -> u32 {
        label.root.map_or(0, |root| self.memory.node(root).count)
    }

    /// The levels that handles have in a label.
    #[inline]
    fn levels(&self, label: Label) -> Levels {
        let default = Levels::of(label.default);
        label.root.map_or(default, |root| default.and(self.memory.node(root).levels))
    }

    /// The lowest and the highest level of a label.
    pub fn bounds(&self, label: Label) -> Bounds {
        self.levels(label).bounds()
    }

    /// Whether no handle has one of these levels.
    #[inline]
    pub(crate) fn has_none<const N: usize>(&self, label: Label, levels: [Level; N]) -> bool {
        self.levels(label).are_among(levels.into_iter().fold(!0, |bits, level| bits & !(1 << level as u8)))
    }

    /// The same label for another owner, which releases it, too.
    #[inline(never)]
    pub fn keep(&mut self, label: Label) -> Label {
        self.keep_node(label.root);
        label
    }

    /// The same for so many other owners.
    pub fn keep_times(&mut self, label: Label, times: u32) {
        self.keep_node_times(label.root, times);
    }

    /// Lets go of a label.
    pub fn release(&mut self, label: Label) {
        self.release_later(label);
        self.tidy(TIDIED);
    }

    /// The same; its nodes are freed by [`Self::tidy`], or with those of others.
    pub fn release_later(&mut self, label: Label) {
        self.release_node(label.root);
    }

    /// A number that no label with other levels has, or ever gets. One with the same levels may have another one.
    #[inline(never)]
    pub fn name(&self, label: Label) -> u64 {
        label.root.map_or(0, |root| self.memory.node(root).identity) << 3 | label.default as u64
    }

    /// Frees so many nodes that nobody refers to; true if there are no more. Few calls of [`Self::release`] leave any.
    #[inline(never)]
    pub fn tidy(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let Some(id) = self.state.going else { return true };
            let node = self.memory.node(id);
            self.state.going = node.next;
            if !node.is_leaf() {
                self.release_nodes(node.parts());
            }
            self.memory.free(id);
        }
        self.state.going.is_none()
    }

    pub(crate) fn node(&self, id: Id) -> &Node {
        #[cfg(feature = "std")]
        self.looked_at.set(self.looked_at.get() + 1);
        self.memory.node(id)
    }

    pub(crate) fn keep_node(&mut self, id: Option<Id>) -> Option<Id> {
        self.keep_node_times(id, 1);
        id
    }

    #[inline(always)]
    fn keep_node_times(&mut self, id: Option<Id>, times: u32) {
        if let Some(id) = id {
            // One that has too many users to count stays for good.
            let uses = &mut self.memory.node_mut(id).uses;
            *uses = uses.saturating_add(times);
        }
    }

    #[inline(never)]
    pub(crate) fn release_node(&mut self, id: Option<Id>) {
        let Some(id) = id else { return };
        let going = self.state.going;
        let node = self.memory.node_mut(id);
        node.uses -= u32::from(node.uses != u32::MAX);
        if node.uses == 0 {
            node.next = going;
            self.state.going = Some(id);
        }
    }

    /// Whether both are known to have the same entries.
    pub(crate) fn is_same(&self, one: Option<Id>, other: Option<Id>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => one == other || self.node(one).identity == self.node(other).identity,
            (one, other) => one == other,
        }
    }

    /// Whether the present payer owns this node.
    pub(crate) fn is_own(&self, id: Id) -> bool {
        self.memory.owner(id) == self.payer
    }

    /// The leaf with these entries, which are sorted. If one of the nodes `like` has the same it is that one, or a copy of it.
    pub(crate) fn leaf(
        &mut self,
        entries: &[u64],
        levels: Levels,
        like: [Option<Id>; 2],
    ) -> Result<Option<Id>, Exhausted> {
        let same = self.own_or_first(like, |node| node.is_leaf() && are_same(node.entries(), entries));
        if let Some(same) = same.filter(|same| self.is_own(*same)) {
            return Ok(self.keep_node(Some(same)));
        }
        self.new_leaf(same, entries, levels)
    }

    /// A new one with entries of these levels. It has the identity of `same`, which has the same ones.
    pub(crate) fn new_leaf(
        &mut self,
        same: Option<Id>,
        entries: &[u64],
        levels: Levels,
    ) -> Result<Option<Id>, Exhausted> {
        if entries.is_empty() {
            return Ok(None);
        }
        self.made(same, entries, 1, entries.len() as u32, levels).map(Some)
    }

    /// Of two nodes one that is right, and of two that are, one of the present payer.
    fn own_or_first(&self, nodes: [Option<Id>; 2], is_right: impl Fn(&Node) -> bool) -> Option<Id> {
        let [one, other] = nodes.map(|node| node.filter(|node| is_right(self.node(*node))));
        other.filter(|other| self.is_own(*other)).or(one).or(other)
    }

    /// The node with these parts, which it takes over, and with them a node that was [unfinished](Self::unfinished). If one of the nodes `like` has
    /// the same it is that one, or a copy of it.
    pub(crate) fn inner(
        &mut self,
        parts: [Option<Id>; PARTS],
        like: [Option<Id>; 2],
        unfinished: Option<Id>,
    ) -> Result<Option<Id>, Exhausted> {
        let made = self.inner_of(parts, like, unfinished);
        if !matches!(made, Ok((_, true))) {
            self.discard(parts, unfinished);
        }
        made.map(|(id, _)| id)
    }

    /// The node with these parts, of which the last ones are not made yet: with few entries it is no leaf, so that its parts are found again. Nobody
    /// else refers to it, so it is the one that was unfinished before, if there is one.
    pub(crate) fn unfinished(
        &mut self,
        parts: [Option<Id>; PARTS],
        before: Option<Id>,
    ) -> Result<Option<Id>, Exhausted> {
        if parts == [None; PARTS] {
            self.discard(parts, before);
            return Ok(None);
        }
        // No leaf.
        let sums = (2, 0, Levels::NONE);
        if let Some(id) = before {
            self.set_content(id, &words(parts), sums);
            return Ok(before);
        }
        let made = self.new_inner(None, parts, sums);
        if made.is_err() {
            self.release_nodes(parts);
        }
        made.map(Some)
    }

    /// Lets go of parts, and of the unfinished node that they were made for, if there is one.
    pub(crate) fn discard(&mut self, parts: [Option<Id>; PARTS], unfinished: Option<Id>) {
        match unfinished {
            Some(id) => {
                self.set_content(id, &words(parts), (2, 0, Levels::NONE));
                self.release_node(unfinished);
            }
            None => self.release_nodes(parts),
        }
    }

    /// Nodes, entries and levels of a node with these parts.
    #[inline(never)]
    fn sums(&self, parts: [Option<Id>; PARTS]) -> (u32, u32, Levels) {
        let parts = parts.into_iter().flatten().map(|part| self.node(part));
        parts.fold((1, 0, Levels::NONE), |(nodes, count, levels), part| {
            (nodes + part.nodes, count + part.count, levels.and(part.levels))
        })
    }

    fn new_inner(
        &mut self,
        same: Option<Id>,
        parts: [Option<Id>; PARTS],
        (nodes, count, levels): (u32, u32, Levels),
    ) -> Result<Id, Exhausted> {
        self.made(same, &words(parts), nodes, count, levels)
    }

    /// The node of [`Self::inner`], and whether it has taken the parts over.
    fn inner_of(
        &mut self,
        parts: [Option<Id>; PARTS],
        like: [Option<Id>; 2],
        unfinished: Option<Id>,
    ) -> Result<(Option<Id>, bool), Exhausted> {
        let (nodes, count, levels) = self.sums(parts);
        if count as usize <= LEAF {
            return Ok((self.joined(parts, levels, like)?, false));
        }
        let same = self.own_or_first(like, |node| {
            node.count == count && node.parts().iter().zip(&parts).all(|(one, other)| self.is_same(*one, *other))
        });
        if let Some(same) = same.filter(|same| self.is_own(*same)) {
            return Ok((self.keep_node(Some(same)), false));
        }
        let Some(id) = unfinished else {
            return self.new_inner(same, parts, (nodes, count, levels)).map(|made| (Some(made), true));
        };
        self.set_content(id, &words(parts), (nodes, count, levels));
        if let Some(same) = same {
            self.memory.node_mut(id).identity = self.node(same).identity;
        }
        Ok((unfinished, true))
    }

    #[inline(never)]
    pub(crate) fn release_nodes(&mut self, nodes: [Option<Id>; PARTS]) {
        nodes.into_iter().for_each(|node| self.release_node(node));
    }

    /// The leaf with the entries of leaves, one after the other.
    #[inline(never)]
    fn joined(
        &mut self,
        parts: [Option<Id>; PARTS],
        levels: Levels,
        like: [Option<Id>; 2],
    ) -> Result<Option<Id>, Exhausted> {
        let mut entries = [0; LEAF];
        let mut count = 0;
        for part in parts.into_iter().flatten() {
            let part = self.node(part).entries();
            entries[count..count + part.len()].copy_from_slice(part);
            count += part.len();
        }
        self.leaf(&entries[..count], levels, like)
    }

    /// A new node with this content. It has the identity of `same`, which has that, too.
    fn made(
        &mut self,
        same: Option<Id>,
        content: &[u64],
        nodes: u32,
        count: u32,
        levels: Levels,
    ) -> Result<Id, Exhausted> {
        let id = match self.memory.allocate(self.payer) {
            Some(id) => id,
            None => {
                self.tidy(TIDIED);
                self.memory.allocate(self.payer).ok_or(Exhausted)?
            }
        };
        let identity = match same {
            Some(same) => self.node(same).identity,
            None => {
                self.state.identities += 1;
                self.state.identities
            }
        };
        let node = self.memory.node_mut(id);
        node.identity = identity;
        node.next = None;
        node.uses = 1;
        self.set_content(id, content, (nodes, count, levels));
        Ok(id)
    }

    /// Writes words, nodes, entries and levels of a node that nobody else knows yet.
    #[inline(always)]
    fn set_content(&mut self, id: Id, words: &[u64], (nodes, count, levels): (u32, u32, Levels)) {
        let node = self.memory.node_mut(id);
        node.nodes = nodes;
        node.count = count;
        node.levels = levels;
        node.words[..words.len()].copy_from_slice(words);
    }
}

/// Parts as words of a node.
fn words(parts: [Option<Id>; PARTS]) -> [u64; PARTS] {
    parts.map(|part| part.map_or(0, |part| part.number().into()))
}
