//! What is done with labels: the order, bounds, and levels by themselves.
//!
//! Two trees are walked side by side. Where their lowest and highest levels tell the outcome, nothing below is looked at; where
//! one of them is the outcome, it is that itself. What is left is merged leaf by leaf.
//!
//! Each can stop between two nodes and go on there, as a nucleus must that lets interrupts in.

use crate::level::{Levels, part_of};
use crate::pool::{Exhausted, Id, LEAF, Label, PARTS, Pool};
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

    /// What becomes of each two levels.
    fn table(self) -> [[u8; 8]; 8] {
        let mut table = [[0; 8]; 8];
        for (first, row) in Level::ALL.into_iter().zip(&mut table) {
            Level::ALL.into_iter().zip(row).for_each(|(second, place)| *place = self.of(first, second) as u8);
        }
        table
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

/// Which two levels of a handle go together: for each level of the first label, those of the second one, a bit each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relation([u8; 8]);

impl Relation {
    /// The first is no higher.
    pub(crate) const BELOW: Self = Self([0b11111, 0b11110, 0b11100, 0b11000, 0b10000, 0, 0, 0]);
    /// The same, or the second is ★.
    pub(crate) const BELOW_UNLESS_OWNED: Self = Self([0b11111, 0b11111, 0b11101, 0b11001, 0b10001, 0, 0, 0]);
    /// Where the first is below 3 the second is ★.
    pub(crate) const OWNED_BELOW_THREE: Self = Self([1, 1, 1, 1, 0b11111, 0, 0, 0]);
    /// Where the first is not ★ the second is.
    pub(crate) const OWNED_ABOVE_STAR: Self = Self([0b11111, 1, 1, 1, 1, 0, 0, 0]);

    #[inline]
    pub(crate) fn of(&self, first: u64, second: u64) -> bool {
        self.0[(first & 7) as usize] >> (second & 7) & 1 != 0
    }

    /// Whether each of the first goes with each of the second.
    fn of_all(&self, first: Levels, second: Levels) -> bool {
        first.each().all(|level| second.are_among(self.0[level as usize]))
    }

    /// Whether each level goes with itself.
    fn is_reflexive(&self) -> bool {
        Level::ALL.into_iter().all(|level| self.of(level as u64, level as u64))
    }
}

/// A part of a label: entries of some handles, and the level of the others there.
#[derive(Clone, Copy)]
struct Part<'e> {
    default: Level,
    tree: Tree<'e>,
}

#[derive(Clone, Copy)]
enum Tree<'e> {
    Node(Option<Id>),
    /// A leaf of more handles: of its entries, those that belong here.
    Leaf(&'e [u64]),
}

impl Tree<'_> {
    const fn node(self) -> Option<Id> {
        match self {
            Self::Node(id) => id,
            Self::Leaf(_) => None,
        }
    }
}

impl Part<'_> {
    const fn whole(label: Label) -> Self {
        Self { default: label.default, tree: Tree::Node(label.root) }
    }
}

/// Which handles a node is of.
#[derive(Clone, Copy)]
struct Place {
    depth: u32,
    /// It is the one of this number among those of its depth, from left to right.
    number: u64,
    /// The lowest bits of its handles.
    low: u64,
}

impl Place {
    const ROOT: Self = Self { depth: 0, number: 0, low: 0 };
    /// Here is a leaf at last: so a walk needs a stack of known size. No label has more than a leaf of handles that are alike so far.
    const DEEPEST: u32 = 10;

    const fn part(self, part: usize) -> Self {
        let part = part as u64;
        Self {
            depth: self.depth + 1,
            number: self.number * PARTS as u64 + part,
            low: self.low | part << (2 * self.depth),
        }
    }

    /// Where it begins among all.
    const fn start(self) -> u64 {
        self.number << (2 * (Self::DEEPEST - self.depth))
    }

    /// Where the next one begins.
    const fn end(self) -> u64 {
        Self { number: self.number + 1, ..self }.start()
    }

    /// Whether an entry belongs here.
    #[inline]
    const fn has(self, entry: u64) -> bool {
        (entry >> 3 ^ self.low) & ((1 << (2 * self.depth)) - 1) == 0
    }
}

/// Room for the entries of two leaves.
struct Entries {
    entries: [u64; BOTH],
    count: usize,
}

impl Entries {
    const fn new() -> Self {
        Self { entries: [0; BOTH], count: 0 }
    }

    #[inline]
    fn push(&mut self, entry: u64) {
        self.entries[self.count] = entry;
        self.count += 1;
    }

    fn as_slice(&self) -> &[u64] {
        &self.entries[..self.count]
    }

    /// What becomes of the levels of two leaves, but where it is the default.
    #[inline(never)]
    fn collect(&mut self, [one, other]: [(Leaf<'_>, Level); 2], default: Level, table: &[[u8; 8]; 8]) {
        let default = default as u64;
        let mut count = 0;
        let entries = &mut self.entries;
        one.0.merge(one.1, &other.0, other.1, |handle, one, other| {
            let level = u64::from(table[(one & 7) as usize][(other & 7) as usize]);
            if let Some(entry) = entries.get_mut(count) {
                // What is not to stay is written over.
                *entry = handle | level;
                count += usize::from(level != default);
            }
            true
        });
        self.count = count;
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

impl Pool {
    /// The level of a handle.
    pub fn get(&self, label: Label, handle: Handle) -> Level {
        let (mut at, mut depth, spread) = (label.root, 0, handle.spread());
        while let Some(id) = at {
            let node = self.node(id);
            if node.is_leaf() {
                let entries = node.entries();
                let found = entries.binary_search_by_key(&spread, |entry| entry >> 3);
                return found.map_or(label.default, |place| Level::from_bits(entries[place]));
            }
            at = node.parts()[part_of(spread, depth)];
            depth += 1;
        }
        label.default
    }

    /// The same label with another level for a handle.
    pub fn set(&mut self, label: Label, handle: Handle, level: Level) -> Result<Label, Exhausted> {
        // A path of it changes; the rest is to be of who pays.
        let own = match label.root {
            Some(root) if !self.is_own(root) => self.higher(label, Label::of(Level::Star))?,
            _ => self.keep(label),
        };
        if self.get(own, handle) == level {
            return Ok(own);
        }
        let entry = (level != label.default).then(|| handle.with(level));
        let root = self.put(own.root, handle.spread(), entry, Place::ROOT);
        self.release(own);
        Ok(Label { root: root?, ..label })
    }

    /// A node with another entry for a handle, or none.
    fn put(&mut self, at: Option<Id>, spread: u64, entry: Option<u64>, place: Place) -> Result<Option<Id>, Exhausted> {
        let Some(id) = at else { return self.leaf(entry.as_slice(), [None; 2]) };
        let node = self.node(id);
        if node.is_leaf() {
            return self.put_into_leaf(id, spread, entry, place);
        }
        let mut parts = node.parts();
        let part = part_of(spread, place.depth);
        let changed = self.put(parts[part], spread, entry, place.part(part))?;
        for (number, other) in parts.iter().enumerate() {
            if number != part {
                self.keep_node(*other);
            }
        }
        parts[part] = changed;
        self.inner(parts, [None; 2])
    }

    #[inline(never)]
    fn put_into_leaf(
        &mut self,
        leaf: Id,
        spread: u64,
        entry: Option<u64>,
        place: Place,
    ) -> Result<Option<Id>, Exhausted> {
        let mut entries = [0; LEAF + 1];
        let old = self.node(leaf).entries();
        let (before, from) = match old.binary_search_by_key(&spread, |entry| entry >> 3) {
            Ok(place) => (&old[..place], &old[place + 1..]),
            Err(place) => old.split_at(place),
        };
        let parts = [before, entry.as_slice(), from];
        let mut count = 0;
        for part in parts {
            entries[count..count + part.len()].copy_from_slice(part);
            count += part.len();
        }
        // All belong here.
        match count {
            0..=LEAF => self.leaf(&entries[..count], [None; 2]),
            _ => self.tree(&entries[..count], place),
        }
    }

    /// The entries that a label has besides its default, in no order.
    pub fn each(&self, label: Label, mut work: impl FnMut(Handle, Level)) {
        self.each_below(label.root, &mut work);
    }

    /// Writes entries that a label has besides its default, from a position on, as many as there is room for: 8 · handle + level.
    pub fn read(&self, label: Label, position: u32, room: &mut [u64]) {
        let (mut skipped, mut written) = (position, 0);
        self.read_below(label.root, &mut skipped, &mut written, room);
    }

    fn read_below(&self, at: Option<Id>, skipped: &mut u32, written: &mut usize, room: &mut [u64]) {
        let Some(node) = at.map(|id| self.node(id)).filter(|_| *written < room.len()) else { return };
        if node.is_leaf() {
            for entry in node.entries().iter().skip(*skipped as usize) {
                let Some(place) = room.get_mut(*written) else { return };
                *place = Handle::of(*entry).number() << 3 | entry & 7;
                *written += 1;
            }
            *skipped = skipped.saturating_sub(node.entries().len() as u32);
            return;
        }
        for part in node.parts() {
            let count = part.map_or(0, |part| self.node(part).count());
            match skipped.checked_sub(count) {
                Some(rest) => *skipped = rest,
                None => self.read_below(part, skipped, written, room),
            }
        }
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
            if let Some(is_below) = self.relate_step(&mut task, &Relation::BELOW, first, second, &mut effort) {
                return is_below;
            }
        }
    }

    /// A step of finding out whether the levels of each handle go together, which looks at some nodes of a tree at most, and says how many are left;
    /// nothing: there is more to do.
    pub(crate) fn relate_step(
        &self,
        task: &mut Task,
        relation: &Relation,
        first: Label,
        second: Label,
        effort: &mut u32,
    ) -> Option<bool> {
        // There are more handles than entries.
        let is_so = relation.of(first.default as u64, second.default as u64);
        if !is_so || first.root.is_none() && second.root.is_none() {
            return Some(is_so);
        }
        let walk = Walk::new(task.at, *effort);
        let is_so = self.relate_parts(relation, Part::whole(first), Part::whole(second), Place::ROOT, &walk);
        *effort = walk.effort.get();
        if is_so && walk.has_stopped() {
            task.at = walk.until.get();
            return None;
        }
        *task = Task::NEW;
        Some(is_so)
    }

    /// True if it is not known yet: then the walk has stopped.
    fn relate_parts(&self, relation: &Relation, first: Part<'_>, second: Part<'_>, place: Place, walk: &Walk) -> bool {
        if place.end() <= walk.from || !walk.enters(place) {
            return true;
        }
        if let (Tree::Node(one), Tree::Node(other)) = (first.tree, second.tree)
            && self.is_same(one, other)
            && relation.is_reflexive()
        {
            return true;
        }
        if relation.of_all(self.part_levels(first, place), self.part_levels(second, place)) {
            return true;
        }
        let (one, other) = (self.leaf_of(first.tree, place), self.leaf_of(second.tree, place));
        if let (Some(one), Some(other)) = (&one, &other) {
            return one.relates(relation, first.default, other, second.default);
        }
        // Each level of one label meets the only one of the other: so what is not told by their levels is refuted.
        if one.is_some_and(|leaf| leaf.is_empty()) || other.is_some_and(|leaf| leaf.is_empty()) {
            return false;
        }
        (0..PARTS).all(|part| {
            let (one, other) = (self.part_of(first, part), self.part_of(second, part));
            self.relate_parts(relation, one, other, place.part(part), walk)
        })
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
        if place.end() <= walk.from
            && let Some(kept) = self.kept(done.tree, place)
        {
            return kept;
        }
        if !walk.enters(place) {
            return Ok(None);
        }
        let bounds = [first, second].map(|part| self.part_bounds(part, place));
        let keeps = rule.keeps(bounds[0], bounds[1]);
        let is_same =
            matches!((first.tree, second.tree), (Tree::Node(one), Tree::Node(other)) if self.is_same(one, other));
        let kept = if keeps.0 || is_same && first.default == second.default && rule.keeps_equals() {
            self.kept(first.tree, place)
        } else if keeps.1 {
            self.kept(second.tree, place)
        } else {
            None
        };
        if let Some(kept) = kept {
            return kept;
        }
        // Each rule goes one way: what is between these becomes what they become.
        let ends = [rule.of(bounds[0].least, bounds[1].least), rule.of(bounds[0].most, bounds[1].most)];
        if ends == [done.default; 2] {
            return Ok(None);
        }
        if let Some(made) = self.combined_leaves(rule, [first, second], done.default, place) {
            return made;
        }
        self.combined_below(rule, parts, place, walk)
    }

    /// The same of two leaves; nothing if one of them is more.
    #[inline(never)]
    fn combined_leaves(
        &mut self,
        rule: Rule,
        [first, second]: [Part<'_>; 2],
        default: Level,
        place: Place,
    ) -> Option<Result<Option<Id>, Exhausted>> {
        let (one, other) = (self.leaf_of(first.tree, place)?, self.leaf_of(second.tree, place)?);
        let mut made = Entries::new();
        made.collect([(one, first.default), (other, second.default)], default, &rule.table());
        Some(self.tree_like(made.as_slice(), place, [first.tree.node(), second.tree.node()]))
    }

    /// The same of more than a leaf.
    fn combined_below(
        &mut self,
        rule: Rule,
        parts: [Part<'_>; 3],
        place: Place,
        walk: &Walk,
    ) -> Result<Option<Id>, Exhausted> {
        let leaf = |part: &Part<'_>| matches!(part.tree, Tree::Node(Some(id)) if self.node(id).is_leaf());
        if let Some(number) = parts.iter().position(leaf) {
            return self.combined_with_leaf(rule, parts, number, place, walk);
        }
        self.of_parts([parts[0].tree.node(), parts[1].tree.node()], |pool, part| {
            let below = parts.map(|whole| Part { tree: pool.node_part(whole.tree, part), ..whole });
            pool.combined_part(rule, below, place.part(part), walk)
        })
    }

    /// The same, where the part of this number is a leaf. Its entries are looked at in each part below, while the pool is changed: so they are
    /// copied, once on the way to the deepest part.
    #[inline(never)]
    fn combined_with_leaf(
        &mut self,
        rule: Rule,
        parts: [Part<'_>; 3],
        number: usize,
        place: Place,
        walk: &Walk,
    ) -> Result<Option<Id>, Exhausted> {
        let mut copy = Entries::new();
        if let Tree::Node(Some(id)) = parts[number].tree {
            self.node(id).entries().iter().for_each(|entry| copy.push(*entry));
        }
        let mut parts = parts;
        parts[number].tree = Tree::Leaf(copy.as_slice());
        self.combined_below(rule, parts, place, walk)
    }

    /// The node of what is kept as it is; nothing if that is more than a leaf of somebody else, which is copied part by part.
    fn kept(&mut self, tree: Tree<'_>, place: Place) -> Option<Result<Option<Id>, Exhausted>> {
        match tree {
            Tree::Node(Some(id)) if !self.is_own(id) => self.node(id).is_leaf().then(|| self.copied(id)),
            Tree::Node(id) => Some(Ok(self.keep_node(id))),
            Tree::Leaf(leaf) => Some(self.tree(leaf, place)),
        }
    }

    /// The same leaf, of who pays now.
    #[inline(never)]
    fn copied(&mut self, leaf: Id) -> Result<Option<Id>, Exhausted> {
        let node = self.node(leaf);
        let (mut entries, count) = ([0; LEAF], node.entries().len());
        entries[..count].copy_from_slice(node.entries());
        self.leaf(&entries[..count], [Some(leaf), None])
    }

    /// The node for those of some entries that belong to a place. They are sorted.
    fn tree(&mut self, entries: &[u64], place: Place) -> Result<Option<Id>, Exhausted> {
        self.tree_like(entries, place, [None; 2])
    }

    /// The same. If it is a leaf with the entries of one of these it is that one, or a copy of it.
    fn tree_like(&mut self, entries: &[u64], place: Place, like: [Option<Id>; 2]) -> Result<Option<Id>, Exhausted> {
        if entries.iter().filter(|entry| place.has(**entry)).count() <= LEAF {
            return self.leaf_at(entries, place, like);
        }
        if place.depth == Place::DEEPEST {
            return Err(Exhausted);
        }
        self.of_parts([None; 2], |pool, part| pool.tree(entries, place.part(part)))
    }

    /// The node with four parts that are made one after the other.
    fn of_parts(
        &mut self,
        like: [Option<Id>; 2],
        mut make: impl FnMut(&mut Self, usize) -> Result<Option<Id>, Exhausted>,
    ) -> Result<Option<Id>, Exhausted> {
        let mut made = [None; PARTS];
        for part in 0..PARTS {
            match make(self, part) {
                Ok(node) => made[part] = node,
                Err(exhausted) => {
                    self.release_nodes(made);
                    return Err(exhausted);
                }
            }
        }
        self.inner(made, like)
    }

    #[inline(never)]
    fn leaf_at(&mut self, entries: &[u64], place: Place, like: [Option<Id>; 2]) -> Result<Option<Id>, Exhausted> {
        self.leaf(Leaf { entries, place: None }.few(place).as_slice(), like)
    }

    /// The lowest and the highest level of a part.
    fn part_bounds(&self, part: Part<'_>, place: Place) -> Bounds {
        self.part_levels(part, place).bounds()
    }

    /// The levels of a part. Each is that of a handle: the default, too, as there are more handles than entries.
    fn part_levels(&self, part: Part<'_>, place: Place) -> Levels {
        let default = Levels::of(part.default);
        match part.tree {
            Tree::Node(None) => default,
            Tree::Node(Some(id)) => default.and(self.node(id).levels()),
            Tree::Leaf(leaf) => {
                let entries = leaf.iter().filter(|entry| place.has(**entry));
                entries.fold(default, |levels, entry| levels.and(Levels::of_entries(&[*entry])))
            }
        }
    }

    /// What is no more than a leaf.
    fn leaf_of<'e>(&'e self, tree: Tree<'e>, place: Place) -> Option<Leaf<'e>> {
        match tree {
            Tree::Node(None) => Some(Leaf { entries: &[], place: None }),
            Tree::Node(Some(id)) => {
                let node = self.node(id);
                node.is_leaf().then(|| Leaf { entries: node.entries(), place: None })
            }
            Tree::Leaf(entries) => Some(Leaf { entries, place: Some(place) }),
        }
    }

    /// A part of another: of a leaf, its place says later what belongs there.
    fn part_of<'e>(&'e self, whole: Part<'e>, part: usize) -> Part<'e> {
        let tree = match whole.tree {
            Tree::Node(Some(id)) if self.node(id).is_leaf() => Tree::Leaf(self.node(id).entries()),
            tree => self.node_part(tree, part),
        };
        Part { tree, ..whole }
    }

    /// The same of what is no leaf.
    fn node_part<'e>(&self, tree: Tree<'e>, part: usize) -> Tree<'e> {
        match tree {
            Tree::Node(Some(id)) => Tree::Node(self.node(id).parts()[part]),
            tree => tree,
        }
    }
}

/// Entries of a leaf, all of them or those of a place.
#[derive(Clone, Copy)]
struct Leaf<'e> {
    entries: &'e [u64],
    place: Option<Place>,
}

impl Leaf<'_> {
    fn is_empty(&self) -> bool {
        !self.entries.iter().any(|entry| self.place.is_none_or(|place| place.has(*entry)))
    }

    /// Those that belong to the place.
    #[inline(never)]
    fn few(&self, place: Place) -> Entries {
        let mut few = Entries::new();
        self.entries.iter().filter(|entry| place.has(**entry)).for_each(|entry| few.push(*entry));
        few
    }

    #[inline(never)]
    fn relates(&self, relation: &Relation, default: Level, other: &Self, other_default: Level) -> bool {
        let mut is_so = true;
        self.merge(default, other, other_default, |_, one, other| {
            is_so = relation.of(one, other);
            is_so
        });
        is_so
    }

    /// Goes through the entries of two leaves in the order of their handles, while the work says so: the handle as it stands in an
    /// entry, and both levels.
    #[inline(always)]
    fn merge(&self, default: Level, other: &Self, other_default: Level, work: impl FnMut(u64, u64, u64) -> bool) {
        let (default, other_default) = (default as u64, other_default as u64);
        if self.place.or(other.place).is_none() {
            return merge(self.entries, default, other.entries, other_default, work);
        }
        let [few, other_few] = [self, other].map(|leaf| leaf.few(leaf.place.unwrap_or(Place::ROOT)));
        merge(few.as_slice(), default, other_few.as_slice(), other_default, work);
    }
}

#[inline(always)]
fn merge(
    mut ones: &[u64],
    default: u64,
    mut others: &[u64],
    other_default: u64,
    mut work: impl FnMut(u64, u64, u64) -> bool,
) {
    /// Bits of a level.
    const LEVEL: u64 = 7;
    while let ([one, rest @ ..], [other, other_rest @ ..]) = (ones, others) {
        let (handle, other_handle) = (one | LEVEL, other | LEVEL);
        let goes_on = if handle < other_handle {
            ones = rest;
            work(one & !LEVEL, one & LEVEL, other_default)
        } else if handle > other_handle {
            others = other_rest;
            work(other & !LEVEL, default, other & LEVEL)
        } else {
            (ones, others) = (rest, other_rest);
            work(one & !LEVEL, one & LEVEL, other & LEVEL)
        };
        if !goes_on {
            return;
        }
    }
    let _ = ones.iter().all(|one| work(one & !LEVEL, one & LEVEL, other_default))
        && others.iter().all(|other| work(other & !LEVEL, default, other & LEVEL));
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::{Heap, Memory, Node, Owner};

    /// Handles whose entries are alike in so many bits.
    fn alike(bits: u32, first: u64, count: u64) -> impl Iterator<Item = Handle> {
        (first..first + count).map(move |number| Handle::of((number << bits | 5) << 3))
    }

    fn label(pool: &mut Pool, handles: impl Iterator<Item = Handle>, level: Level) -> Label {
        let mut made = Label::of(Level::One);
        for handle in handles {
            let next = pool.set(made, handle, level).expect("room");
            pool.release(made);
            made = next;
        }
        made
    }

    #[test]
    fn more_handles_that_are_alike_than_a_leaf_has_are_refused() {
        let mut pool = Pool::new(Heap::new(1_000), 0);
        let most = LEAF as u64;
        let full = label(&mut pool, alike(20, 0, most), Level::Three);
        let used = pool.memory().used();
        let other = label(&mut pool, alike(20, most, 1), Level::Two);
        assert_eq!(alike(20, most, 1).map(|handle| pool.set(full, handle, Level::Three)).next(), Some(Err(Exhausted)));
        assert_eq!(pool.higher(full, other), Err(Exhausted));
        // One bit less is no matter, and neither is what takes no entry more.
        let fits = label(&mut pool, alike(19, 0, 2 * most), Level::Three);
        let same = pool.lower(full, fits).expect("room");
        for label in [other, fits, same] {
            pool.release(label);
        }
        pool.tidy(1_000);
        assert_eq!(pool.memory().used(), used);
        pool.release(full);
        assert!(pool.tidy(1_000) && pool.memory().used() == 0);
    }

    /// Memory that knows how deep the stack was at most.
    struct Deep {
        heap: Heap,
        lowest: Cell<usize>,
    }

    impl Deep {
        fn look(&self) {
            let here = 0u8;
            self.lowest.set(self.lowest.get().min(core::ptr::from_ref(&here).addr()));
        }
    }

    impl Memory for Deep {
        fn node(&self, id: Id) -> &Node {
            self.look();
            self.heap.node(id)
        }
        fn node_mut(&mut self, id: Id) -> &mut Node {
            self.heap.node_mut(id)
        }
        fn owner(&self, id: Id) -> Owner {
            self.look();
            self.heap.owner(id)
        }
        fn allocate(&mut self, owner: Owner) -> Option<Id> {
            self.look();
            self.heap.allocate(owner)
        }
        fn free(&mut self, id: Id) {
            self.heap.free(id);
        }
    }

    #[test]
    fn the_stack_does_not_grow_with_labels() {
        /// A copy of entries at each depth would take more.
        const MOST: usize = 12 * 1024;
        let mut pool = Pool::new(Deep { heap: Heap::new(100_000), lowest: Cell::new(usize::MAX) }, 0);
        let most = LEAF as u64;
        let one = label(&mut pool, alike(18, 0, 2 * most), Level::Three);
        let few = label(&mut pool, alike(18, 30, most), Level::Two);
        let other = label(&mut pool, alike(16, 3, 10 * most), Level::Star);
        let many = label(&mut pool, alike(0, 0, 10_000), Level::Zero);
        for (one, other) in [(one, few), (few, other), (one, other), (one, many), (many, few), (other, many)] {
            let begin = 0u8;
            pool.memory().lowest.set(usize::MAX);
            for made in [pool.higher(one, other), pool.lower(one, other)] {
                pool.release(made.expect("room"));
            }
            pool.is_below(one, other);
            let deep = core::ptr::from_ref(&begin).addr() - pool.memory().lowest.get();
            assert!(deep < MOST, "{deep} bytes of stack");
        }
    }
}
