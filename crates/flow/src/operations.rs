//! What is done with labels: the order, bounds, and levels by themselves.
//!
//! Two trees are walked side by side. Where their lowest and highest levels tell the outcome, nothing below is looked at; where
//! one of them is the outcome, it is that itself. What is left is merged leaf by leaf.
//!
//! Each can stop between two nodes and go on there, as a nucleus must that lets interrupts in.

use crate::pool::{Exhausted, Id, LEAF, Label, Memory, PARTS, Pool};
use crate::{Bounds, Handle, Level};
use core::cell::Cell;

/// Entries of two leaves.
const BOTH: usize = 2 * LEAF;

/// What of two levels becomes one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
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

impl Part<'_> {
    const fn whole(label: Label) -> Self {
        Self { default: label.default, tree: Tree::Node(label.root) }
    }
}

/// Which handles a node is of: it is the one of this number among those of its depth, from left to right.
#[derive(Clone, Copy)]
struct Place {
    depth: u32,
    number: u64,
}

impl Place {
    const ROOT: Self = Self { depth: 0, number: 0 };
    /// Handles differ at this depth at last.
    const DEEPEST: u32 = Handle::BITS.div_ceil(2);

    const fn part(self, part: usize) -> Self {
        Self { depth: self.depth + 1, number: self.number * PARTS as u64 + part as u64 }
    }

    /// Where it begins among all.
    const fn start(self) -> u64 {
        self.number << (2 * (Self::DEEPEST - self.depth))
    }

    /// Where the next one begins.
    const fn end(self) -> u64 {
        Self { number: self.number + 1, ..self }.start()
    }
}

/// How far a walk through two trees is.
struct Walk {
    /// What begins before was done in earlier steps.
    from: u64,
    /// Nodes that may still be looked at.
    effort: Cell<u32>,
    /// What begins here or later is left for the next step.
    until: Cell<u64>,
}

impl Walk {
    const END: u64 = u64::MAX;

    const fn new(from: u64, effort: u32) -> Self {
        Self { from, effort: Cell::new(effort), until: Cell::new(Self::END) }
    }

    fn has_stopped(&self) -> bool {
        self.until.get() != Self::END
    }

    /// Whether a node may be looked at; else the walk stops before it. Those on the way to where it goes on do not count, so each
    /// step does something.
    fn enters(&self, place: Place) -> bool {
        if self.has_stopped() || place.start() <= self.from {
            return !self.has_stopped();
        }
        match self.effort.get().checked_sub(1) {
            Some(left) => self.effort.set(left),
            None => self.until.set(place.start()),
        }
        !self.has_stopped()
    }
}

/// Something that is done in steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// What begins before is done.
    at: u64,
    /// Of what becomes a label: the part of it that is done.
    done: Label,
}

impl Task {
    pub(crate) const NEW: Self = Self { at: 0, done: Label::of(Level::Star) };
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
        let (mut task, mut effort) = (Task::NEW, u32::MAX);
        loop {
            if let Some(is_below) = self.is_below_step(&mut task, first, second, &mut effort) {
                return is_below;
            }
        }
    }

    /// A step of [`Self::is_below`], which looks at some nodes of a tree at most, and says how many are left; nothing: there is more to do.
    pub(crate) fn is_below_step(&self, task: &mut Task, first: Label, second: Label, effort: &mut u32) -> Option<bool> {
        let walk = Walk::new(task.at, *effort);
        // There are more handles than entries.
        let is_below = first.default <= second.default
            && self.is_part_below(Part::whole(first), Part::whole(second), Place::ROOT, &walk);
        *effort = walk.effort.get();
        if is_below && walk.has_stopped() {
            task.at = walk.until.get();
            return None;
        }
        *task = Task::NEW;
        Some(is_below)
    }

    /// True if it is not known yet: then the walk has stopped.
    fn is_part_below(&self, first: Part<'_>, second: Part<'_>, place: Place, walk: &Walk) -> bool {
        if place.end() <= walk.from || !walk.enters(place) {
            return true;
        }
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
                let divided = [one, other].map(|leaf| leaf.map(|leaf| Divided::new(leaf, place.depth)));
                (0..PARTS).all(|part| {
                    let [one, other] = [(first, &divided[0]), (second, &divided[1])]
                        .map(|(whole, divided)| Part { tree: self.part_of(whole.tree, divided, part), ..whole });
                    self.is_part_below(one, other, place.part(part), walk)
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
        let (mut task, mut effort) = (Task::NEW, u32::MAX);
        loop {
            if let Some(made) = self.combined_step(&mut task, rule, first, second, &mut effort)? {
                return Ok(made);
            }
        }
    }

    /// A step of making a label of two, which looks at some nodes of a tree at most, and says how many are left; nothing: there is more to do. What it has by then is the
    /// task's, and goes with [`Self::abandon`], also after an error.
    pub(crate) fn combined_step(
        &mut self,
        task: &mut Task,
        rule: Rule,
        first: Label,
        second: Label,
        effort: &mut u32,
    ) -> Result<Option<Label>, Exhausted> {
        let walk = Walk::new(task.at, *effort);
        let default = rule.of(first.default, second.default);
        let done = Part { default, tree: Tree::Node(task.done.root) };
        let root = self.combined_part(rule, [Part::whole(first), Part::whole(second), done], Place::ROOT, &walk)?;
        *effort = walk.effort.get();
        self.abandon(task);
        let made = Label { default, root };
        if !walk.has_stopped() {
            return Ok(Some(made));
        }
        *task = Task { at: walk.until.get(), done: made };
        Ok(None)
    }

    /// Lets go of what a task has made.
    pub(crate) fn abandon(&mut self, task: &mut Task) {
        self.release(task.done);
        *task = Task::NEW;
    }

    /// The third part is what was made of the first two before.
    fn combined_part(
        &mut self,
        rule: Rule,
        parts: [Part<'_>; 3],
        place: Place,
        walk: &Walk,
    ) -> Result<Option<Id>, Exhausted> {
        let [first, second, done] = parts;
        if place.end() <= walk.from {
            return self.kept(done.tree, place.depth);
        }
        if !walk.enters(place) {
            return Ok(None);
        }
        let bounds = [first, second].map(|part| self.part_bounds(part));
        let keeps = rule.keeps(bounds[0], bounds[1]);
        let is_same = matches!((first.tree, second.tree), (Tree::Node(one), Tree::Node(other)) if one == other);
        if keeps.0 || is_same && first.default == second.default && rule.keeps_equals() {
            return self.kept(first.tree, place.depth);
        }
        if keeps.1 {
            return self.kept(second.tree, place.depth);
        }
        // Each rule goes one way: what is between these becomes what they become.
        let ends = [rule.of(bounds[0].least, bounds[1].least), rule.of(bounds[0].most, bounds[1].most)];
        if ends == [done.default; 2] {
            return Ok(None);
        }
        let leaves = [first, second, done].map(|part| self.leaf_of(part.tree));
        if let [Some(one), Some(other), _] = leaves {
            let mut entries = [0; BOTH];
            let mut count = 0;
            merge(one, other, |handle, one, other| {
                let level = rule.of(one.unwrap_or(first.default), other.unwrap_or(second.default));
                if level != done.default {
                    entries[count] = handle.with(level);
                    count += 1;
                }
                true
            });
            return self.tree(&entries[..count], place.depth);
        }
        let divided = leaves.map(|leaf| leaf.map(|leaf| Divided::new(leaf, place.depth)));
        let mut made = [None; PARTS];
        for part in 0..PARTS {
            let below: [Part<'_>; 3] = core::array::from_fn(|whole| Part {
                tree: self.part_of(parts[whole].tree, &divided[whole], part),
                ..parts[whole]
            });
            match self.combined_part(rule, below, place.part(part), walk) {
                Ok(node) => made[part] = node,
                Err(exhausted) => {
                    self.release_nodes(made);
                    return Err(exhausted);
                }
            }
        }
        self.inner(made)
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
