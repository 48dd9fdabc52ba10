//! What is done with labels: the order, bounds, and levels by themselves.
//!
//! Two trees are walked side by side. Where their lowest and highest levels tell the outcome, nothing below is looked at; where
//! one of them is the outcome, it is that itself. What is left is merged leaf by leaf.

use crate::pool::{Exhausted, Id, LEAF, Label, Memory, PARTS, Pool};
use crate::{Bounds, Handle, Level};

/// Entries of two leaves.
const BOTH: usize = 2 * LEAF;

/// What of two levels becomes one.
#[derive(Clone, Copy)]
enum Rule {
    Higher,
    Lower,
    /// The first one alone counts.
    Mapped(fn(Level) -> Level),
}

impl Rule {
    #[inline]
    fn of(self, first: Level, second: Level) -> Level {
        match self {
            Self::Higher => first.max(second),
            Self::Lower => first.min(second),
            Self::Mapped(map) => map(first),
        }
    }

    /// Whether of two equal levels it makes that.
    const fn keeps_equals(self) -> bool {
        !matches!(self, Self::Mapped(_))
    }

    /// Whether the first one is the outcome, or the second one, wherever levels are within these bounds.
    fn keeps(self, first: Bounds, second: Bounds) -> (bool, bool) {
        match self {
            Self::Higher => (second.most <= first.least, first.most <= second.least),
            Self::Lower => (first.most <= second.least, second.most <= first.least),
            Self::Mapped(_) => (false, false),
        }
    }
}

/// A part of a label: entries of one part of all handles, and the level of the others there.
#[derive(Clone, Copy)]
struct Part<'e> {
    default: Level,
    tree: Tree<'e>,
}

#[derive(Clone, Copy)]
enum Tree<'e> {
    Node(Option<Id>),
    /// Some of the entries of a leaf.
    Entries(&'e [u64]),
}

/// The entries of a leaf, part by part.
struct Divided {
    entries: [u64; BOTH],
    /// Where each part ends.
    ends: [usize; PARTS],
}

impl Divided {
    fn new(entries: &[u64], depth: u32) -> Self {
        let mut divided = Self { entries: [0; BOTH], ends: [0; PARTS] };
        let mut count = 0;
        for part in 0..PARTS {
            for entry in entries.iter().filter(|entry| Handle::of(**entry).part(depth) == part) {
                divided.entries[count] = *entry;
                count += 1;
            }
            divided.ends[part] = count;
        }
        divided
    }

    fn part(&self, part: usize) -> &[u64] {
        let start = if part == 0 { 0 } else { self.ends[part - 1] };
        &self.entries[start..self.ends[part]]
    }
}

impl<M: Memory> Pool<M> {
    /// The level of a handle.
    pub fn get(&self, label: Label, handle: Handle) -> Level {
        let mut at = label.root;
        let mut depth = 0;
        while let Some(id) = at {
            let node = self.node(id);
            if node.is_leaf() {
                let entries = node.entries();
                let found = entries.binary_search_by_key(&handle, |entry| Handle::of(*entry));
                return found.map_or(label.default, |place| Level::from_bits(entries[place]));
            }
            at = node.parts()[handle.part(depth)];
            depth += 1;
        }
        label.default
    }

    /// The same label with another level for a handle.
    pub fn set(&mut self, label: Label, handle: Handle, level: Level) -> Result<Label, Exhausted> {
        let entry = (level != label.default).then(|| handle.with(level));
        let root = self.put(label.root, handle, entry, 0)?;
        Ok(Label { root, ..label })
    }

    /// A node with another entry for a handle, or none.
    fn put(&mut self, at: Option<Id>, handle: Handle, entry: Option<u64>, depth: u32) -> Result<Option<Id>, Exhausted> {
        let Some(id) = at else { return self.leaf(entry.as_slice()) };
        let node = self.node(id);
        if node.is_leaf() {
            let mut entries = [0; LEAF + 1];
            let old = node.entries();
            let (before, from) = match old.binary_search_by_key(&handle, |entry| Handle::of(*entry)) {
                Ok(place) => (&old[..place], &old[place + 1..]),
                Err(place) => old.split_at(place),
            };
            let parts = [before, entry.as_slice(), from];
            let mut count = 0;
            for part in parts {
                entries[count..count + part.len()].copy_from_slice(part);
                count += part.len();
            }
            return self.tree(&entries[..count], depth);
        }
        let mut parts = node.parts();
        let part = handle.part(depth);
        let changed = self.put(parts[part], handle, entry, depth + 1)?;
        for (number, other) in parts.iter().enumerate() {
            if number != part {
                self.keep_node(*other);
            }
        }
        parts[part] = changed;
        self.inner(parts)
    }

    /// The entries that a label has besides its default, in no order.
    pub fn each(&self, label: Label, mut work: impl FnMut(Handle, Level)) {
        self.each_below(label.root, &mut work);
    }

    fn each_below(&self, at: Option<Id>, work: &mut impl FnMut(Handle, Level)) {
        let Some(id) = at else { return };
        let node = self.node(id);
        if node.is_leaf() {
            node.entries().iter().for_each(|entry| work(Handle::of(*entry), Level::from_bits(*entry)));
        } else {
            node.parts().into_iter().for_each(|part| self.each_below(part, work));
        }
    }

    /// `first ⊑ second`: no handle has a higher level in the first one.
    pub fn is_below(&self, first: Label, second: Label) -> bool {
        let part = |label: Label| Part { default: label.default, tree: Tree::Node(label.root) };
        // There are more handles than entries.
        first.default <= second.default && self.is_part_below(part(first), part(second), 0)
    }

    fn is_part_below(&self, first: Part<'_>, second: Part<'_>, depth: u32) -> bool {
        if let (Tree::Node(one), Tree::Node(other)) = (first.tree, second.tree)
            && one == other
        {
            return true;
        }
        if self.part_bounds(first).most <= self.part_bounds(second).least {
            return true;
        }
        match (self.leaf_of(first.tree), self.leaf_of(second.tree)) {
            (Some(one), Some(other)) => {
                let mut is_below = true;
                merge(one, other, |_, one, other| {
                    is_below &= one.unwrap_or(first.default) <= other.unwrap_or(second.default);
                    is_below
                });
                is_below
            }
            // What is not told by the bounds of one level is refuted by them.
            (Some([]), None) | (None, Some([])) => false,
            (one, other) => {
                let divided = [one, other].map(|leaf| leaf.map(|leaf| Divided::new(leaf, depth)));
                (0..PARTS).all(|part| {
                    let [one, other] = [(first, &divided[0]), (second, &divided[1])]
                        .map(|(whole, divided)| Part { tree: self.part_of(whole.tree, divided, part), ..whole });
                    self.is_part_below(one, other, depth + 1)
                })
            }
        }
    }

    /// `first ⊔ second`: of each handle the higher level.
    pub fn higher(&mut self, first: Label, second: Label) -> Result<Label, Exhausted> {
        self.combined(Rule::Higher, first, second)
    }

    /// `first ⊓ second`: of each handle the lower level.
    pub fn lower(&mut self, first: Label, second: Label) -> Result<Label, Exhausted> {
        self.combined(Rule::Lower, first, second)
    }

    /// Another level for each, by the level alone. The map never falls, or never rises, with the level.
    pub fn mapped(&mut self, label: Label, map: fn(Level) -> Level) -> Result<Label, Exhausted> {
        self.combined(Rule::Mapped(map), label, Label::of(label.default))
    }

    fn combined(&mut self, rule: Rule, first: Label, second: Label) -> Result<Label, Exhausted> {
        let default = rule.of(first.default, second.default);
        let part = |label: Label| Part { default: label.default, tree: Tree::Node(label.root) };
        let root = self.combined_part(rule, part(first), part(second), default, 0)?;
        Ok(Label { default, root })
    }

    fn combined_part(
        &mut self,
        rule: Rule,
        first: Part<'_>,
        second: Part<'_>,
        default: Level,
        depth: u32,
    ) -> Result<Option<Id>, Exhausted> {
        let bounds = [first, second].map(|part| self.part_bounds(part));
        let keeps = rule.keeps(bounds[0], bounds[1]);
        let is_same = matches!((first.tree, second.tree), (Tree::Node(one), Tree::Node(other)) if one == other);
        if keeps.0 || is_same && first.default == second.default && rule.keeps_equals() {
            return self.kept(first.tree, depth);
        }
        if keeps.1 {
            return self.kept(second.tree, depth);
        }
        // Each rule goes one way: what is between these becomes what they become.
        let ends = [rule.of(bounds[0].least, bounds[1].least), rule.of(bounds[0].most, bounds[1].most)];
        if ends == [default; 2] {
            return Ok(None);
        }
        let (one, other) = (self.leaf_of(first.tree), self.leaf_of(second.tree));
        if let (Some(one), Some(other)) = (one, other) {
            let mut entries = [0; BOTH];
            let mut count = 0;
            merge(one, other, |handle, one, other| {
                let level = rule.of(one.unwrap_or(first.default), other.unwrap_or(second.default));
                if level != default {
                    entries[count] = handle.with(level);
                    count += 1;
                }
                true
            });
            return self.tree(&entries[..count], depth);
        }
        let divided = [one, other].map(|leaf| leaf.map(|leaf| Divided::new(leaf, depth)));
        let mut parts = [None; PARTS];
        for part in 0..PARTS {
            let [one, other] = [(first, &divided[0]), (second, &divided[1])]
                .map(|(whole, divided)| Part { tree: self.part_of(whole.tree, divided, part), ..whole });
            match self.combined_part(rule, one, other, default, depth + 1) {
                Ok(made) => parts[part] = made,
                Err(exhausted) => {
                    self.release_nodes(parts);
                    return Err(exhausted);
                }
            }
        }
        self.inner(parts)
    }

    /// The node of what is kept as it is.
    fn kept(&mut self, tree: Tree<'_>, depth: u32) -> Result<Option<Id>, Exhausted> {
        match tree {
            Tree::Node(id) => Ok(self.keep_node(id)),
            Tree::Entries(entries) => self.tree(entries, depth),
        }
    }

    /// The node for some entries, which are sorted.
    fn tree(&mut self, entries: &[u64], depth: u32) -> Result<Option<Id>, Exhausted> {
        if entries.len() <= LEAF {
            return self.leaf(entries);
        }
        let divided = Divided::new(entries, depth);
        let mut parts = [None; PARTS];
        for part in 0..PARTS {
            match self.tree(divided.part(part), depth + 1) {
                Ok(made) => parts[part] = made,
                Err(exhausted) => {
                    self.release_nodes(parts);
                    return Err(exhausted);
                }
            }
        }
        self.inner(parts)
    }

    /// The lowest and the highest level of a part.
    fn part_bounds(&self, part: Part<'_>) -> Bounds {
        let bounds = Bounds::of(part.default);
        match part.tree {
            Tree::Node(None) => bounds,
            Tree::Node(Some(id)) => bounds.and(self.node(id).bounds()),
            Tree::Entries(entries) => {
                entries.iter().fold(bounds, |bounds, entry| bounds.with(Level::from_bits(*entry)))
            }
        }
    }

    /// The entries of what is no more than a leaf.
    fn leaf_of<'e>(&'e self, tree: Tree<'e>) -> Option<&'e [u64]> {
        match tree {
            Tree::Node(None) => Some(&[]),
            Tree::Node(Some(id)) => {
                let node = self.node(id);
                node.is_leaf().then(|| node.entries())
            }
            Tree::Entries(entries) => Some(entries),
        }
    }

    /// A part of a tree: of a leaf, what it was divided into.
    fn part_of<'e>(&self, tree: Tree<'e>, divided: &'e Option<Divided>, part: usize) -> Tree<'e> {
        match (tree, divided) {
            (_, Some(divided)) => Tree::Entries(divided.part(part)),
            (Tree::Node(Some(id)), None) => Tree::Node(self.node(id).parts()[part]),
            (tree, None) => tree,
        }
    }
}

/// Goes through the entries of two leaves in the order of their handles, while the work says so.
fn merge(one: &[u64], other: &[u64], mut work: impl FnMut(Handle, Option<Level>, Option<Level>) -> bool) {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    loop {
        let next = match (one.peek(), other.peek()) {
            (None, None) => return,
            (Some(entry), None) | (None, Some(entry)) => Handle::of(**entry),
            (Some(first), Some(second)) => Handle::of(**first).min(Handle::of(**second)),
        };
        let level = |entry: &u64| Level::from_bits(*entry);
        let first = one.next_if(|entry| Handle::of(**entry) == next).map(level);
        let second = other.next_if(|entry| Handle::of(**entry) == next).map(level);
        if !work(next, first, second) {
            return;
        }
    }
}
