//! The operations on labels: the order, bounds, and levels by themselves.
//!
//! Two trees are walked side by side. Where their levels decide the outcome, nothing below is looked at; where one of them is
//! the outcome, it is that itself. The rest is merged leaf by leaf.
//!
//! Each can stop between two nodes and go on there, as a nucleus must that lets interrupts in.

use crate::level::{Levels, end_of, part_of};
use crate::pool::{Exhausted, Id, LEAF, Label, Memory, Node, PARTS, Pool, TIDIED};
use crate::{Handle, Level};
use core::cell::Cell;

/// Room for the entries of two leaves: a power of two.
const ROOM: usize = (2 * LEAF).next_power_of_two();
/// Bits of an entry's level.
const LEVEL: u64 = 7;

/// Two levels as one number.
#[inline]
const fn pair(first: u64, second: u64) -> usize {
    ((first & 7) << 3 | second & 7) as usize
}

/// Which two levels of a handle go together: a bit for each [`pair`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relation(u64);

impl Relation {
    /// The first is no higher.
    pub(crate) const BELOW: Self = Self::rows([0b11111, 0b11110, 0b11100, 0b11000, 0b10000]);
    /// The same, or the second is ★.
    pub(crate) const BELOW_UNLESS_OWNED: Self = Self::rows([0b11111, 0b11111, 0b11101, 0b11001, 0b10001]);
    /// The same either way.
    pub(crate) const SAME_UNLESS_OWNED: Self = Self::rows([0b11111, 0b00011, 0b00101, 0b01001, 0b10001]);
    /// Where the first is below 3 the second is ★.
    pub(crate) const OWNED_BELOW_THREE: Self = Self::rows([1, 1, 1, 1, 0b11111]);
    /// Where the first is not ★ the second is.
    pub(crate) const OWNED_ABOVE_STAR: Self = Self::rows([0b11111, 1, 1, 1, 1]);

    /// For each level of the first label, those of the second one, a bit each.
    const fn rows([star, zero, one, two, three]: [u8; 5]) -> Self {
        Self(u64::from_le_bytes([star, zero, one, two, three, 0, 0, 0]))
    }

    #[inline]
    pub(crate) const fn of(self, first: u64, second: u64) -> bool {
        self.0 >> pair(first, second) & 1 != 0
    }

    /// Whether each of these pairs goes together.
    #[inline]
    const fn has(self, pairs: u64) -> bool {
        pairs & !self.0 == 0
    }

    /// Whether each level goes with itself.
    #[inline]
    const fn is_reflexive(self) -> bool {
        /// A bit for each level with itself.
        const SAME: u64 = Relation::rows([1, 1 << 1, 1 << 2, 1 << 3, 1 << 4]).0;
        self.0 & SAME == SAME
    }
}

/// A rule that makes one level of two, as tables.
#[derive(Debug)]
pub(crate) struct Rule {
    /// By their [`pair`].
    made: [u8; 64],
    /// The pairs of which each level becomes.
    makes: [Relation; 5],
    /// Those of which the first level becomes, and those of which the second one does.
    keeps: [Relation; 2],
}

impl Rule {
    pub(crate) const HIGHER: Self =
        Self::new([[0, 1, 2, 3, 4], [1, 1, 2, 3, 4], [2, 2, 2, 3, 4], [3, 3, 3, 3, 4], [4; 5]]);
    /// The second level raises the first one, but ★ stays.
    pub(crate) const RAISED: Self = Self::new([[0; 5], [1, 1, 2, 3, 4], [2, 2, 2, 3, 4], [3, 3, 3, 3, 4], [4; 5]]);
    pub(crate) const LOWER: Self =
        Self::new([[0; 5], [0, 1, 1, 1, 1], [0, 1, 2, 2, 2], [0, 1, 2, 3, 3], [0, 1, 2, 3, 4]]);

    /// The first level alone counts: the results for ★, 0, 1, 2 and 3.
    pub(crate) const fn mapped([star, zero, one, two, three]: [Level; 5]) -> Self {
        Self::new([[star as u8; 5], [zero as u8; 5], [one as u8; 5], [two as u8; 5], [three as u8; 5]])
    }

    /// For each first level a row, in which each second one has its place.
    const fn new(rows: [[u8; 5]; 5]) -> Self {
        let mut rule = Self { made: [0; 64], makes: [Relation(0); 5], keeps: [Relation(0); 2] };
        let mut number = 0;
        while number < 25 {
            let (first, second) = (number / 5, number % 5);
            let (made, pair) = (rows[first][second], pair(first as u64, second as u64));
            rule.made[pair] = made;
            rule.makes[made as usize].0 |= 1 << pair;
            rule.keeps[0].0 |= ((made as usize == first) as u64) << pair;
            rule.keeps[1].0 |= ((made as usize == second) as u64) << pair;
            number += 1;
        }
        rule
    }

    /// Of one that is [`Self::mapped`].
    pub(crate) fn of_first(&self, level: Level) -> Level {
        Level::from_bits(self.of(level as u64, 0))
    }

    #[inline]
    fn of(&self, first: u64, second: u64) -> u64 {
        self.made[pair(first, second)].into()
    }
}

/// A part of a label: the entries of some handles.
#[derive(Clone, Copy)]
enum Tree<'e> {
    Node(Option<Id>),
    /// Some of the entries of a leaf of more handles.
    Leaf(&'e [u64]),
}

impl Tree<'_> {
    const fn node(self) -> Option<Id> {
        match self {
            Self::Node(id) => id,
            Self::Leaf(_) => None,
        }
    }

    /// Whether both are one node, or nothing.
    fn is_shared(self, other: Self) -> bool {
        matches!((self, other), (Self::Node(one), Self::Node(other)) if one == other)
    }
}

/// Which handles a node is of.
#[derive(Clone, Copy)]
struct Place {
    depth: u32,
    /// It is the one of this number among those of its depth, from left to right.
    number: u64,
}

impl Place {
    const ROOT: Self = Self { depth: 0, number: 0 };
    /// Here is a leaf at last: so a walk needs a stack of known size. No label has more than a leaf of handles that are alike so far.
    const DEEPEST: u32 = 10;

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

    /// Of the entries that belong here, those of a part.
    fn part_of(self, entries: &[u64], part: usize) -> &[u64] {
        let begins = |part: usize| entries.partition_point(|entry| part_of(*entry, self.depth) < part);
        &entries[begins(part)..begins(part + 1)]
    }
}

/// How two labels become one.
struct Merger<'r> {
    rule: &'r Rule,
    /// The levels of handles without an entry, of both and of what is made.
    defaults: [Level; 2],
    default: Level,
    walk: Walk,
    /// Room for the entries of two leaves, made for the first ones: many labels have none.
    room: Option<[u64; ROOM]>,
}

impl Merger<'_> {
    fn new(rule: &Rule, defaults: [Level; 2], walk: Walk) -> Merger<'_> {
        let default = Level::from_bits(rule.of(defaults[0] as u64, defaults[1] as u64));
        Merger { rule, defaults, default, walk, room: None }
    }

    /// Whether each entry of a leaf stays as it is, where the other label has none: by the pairs of their levels.
    fn stays(&self, side: usize, pairs: u64) -> bool {
        self.rule.keeps[side].has(pairs) && pairs & self.rule.makes[self.default as usize].0 == 0
    }

    /// Puts the entries of two leaves together, whose levels are known. Gives the levels of the outcome, too.
    #[inline(never)]
    fn merge(&mut self, [one, other]: [(&[u64], Levels); 2]) -> (&[u64], Levels) {
        let pairs = [one.1.pairs(Levels::of(self.defaults[1])), Levels::of(self.defaults[0]).pairs(other.1)];
        let all_stay = self.stays(0, pairs[0]) && self.stays(1, pairs[1]);
        let room = match &mut self.room {
            Some(room) => room,
            none => none.insert([0; ROOM]),
        };
        let (rule, default, defaults) = (self.rule, self.default as u64, self.defaults.map(|level| level as u64));
        let (count, is_in_both) = (Cell::new(0), Cell::new(false));
        let cells = Cell::from_mut(&mut room[..]).as_slice_of_cells();
        // An entry that does not stay is overwritten.
        let put = |entry: u64, made: u64| {
            cells[count.get() % ROOM].set(entry & !LEVEL | made);
            count.set(count.get() + usize::from(made != default));
            true
        };
        let put_both = |one, other| {
            is_in_both.set(true);
            put(one, rule.of(one, other))
        };
        if all_stay {
            let put = |entry: u64| {
                cells[count.get() % ROOM].set(entry);
                count.set(count.get() + 1);
                true
            };
            merge(one.0, other.0, put, put, put_both);
        } else {
            let put_one = |entry| put(entry, rule.of(entry, defaults[1]));
            merge(one.0, other.0, put_one, |entry| put(entry, rule.of(defaults[0], entry)), put_both);
        }
        let made = &room[..count.get()];
        (made, if all_stay && !is_in_both.get() { one.1.and(other.1) } else { Levels::of_entries(made) })
    }
}

/// How far a walk through two trees is.
struct Walk {
    /// Entries that begin before this were done in earlier steps.
    from: u64,
    /// Nodes that may still be looked at.
    effort: Cell<u32>,
    /// Entries that begin here or later are left for the next step.
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

    /// Looks at so many entries. Eight take as long as a node.
    fn spend(&self, entries: usize) {
        self.effort.set(self.effort.get().saturating_sub(entries as u32 / 8));
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
    /// Entries that begin before this are done.
    at: u64,
    /// Of what becomes a label: the part of it that is done.
    done: Label,
}

impl Task {
    pub(crate) const NEW: Self = Self { at: 0, done: Label::of(Level::Star) };
}

impl<M: Memory> Pool<M> {
    /// The level of a handle.
    pub fn get(&self, label: Label, handle: Handle) -> Level {
        let (mut at, mut depth, sought) = (label.root, 0, handle.with(Level::Star));
        while let Some(id) = at {
            let node = self.node(id);
            if node.is_leaf() {
                let entries = node.entries();
                let found = entries.binary_search_by_key(&(sought >> 3), |entry| entry >> 3);
                return found.map_or(label.default, |place| Level::from_bits(entries[place]));
            }
            at = node.part(part_of(sought, depth));
            depth += 1;
        }
        label.default
    }

    /// The same label with another level for a handle.
    pub fn set(&mut self, label: Label, handle: Handle, level: Level) -> Result<Label, Exhausted> {
        // A path of it changes; the rest is to belong to the payer.
        if label.root.is_some_and(|root| !self.is_own(root)) {
            let own = self.higher(label, Label::of(Level::Star))?;
            let made = self.set(own, handle, level);
            self.release(own);
            return made;
        }
        if self.get(label, handle) == level {
            return Ok(self.keep(label));
        }
        let is_kept = level != label.default;
        let root = self.put(label.root, handle.with(level), is_kept, Place::ROOT)?;
        Ok(Label { root, ..label })
    }

    /// A node with this entry for its handle, or none.
    fn put(&mut self, at: Option<Id>, entry: u64, is_kept: bool, place: Place) -> Result<Option<Id>, Exhausted> {
        let Some(id) = at else {
            return self.new_leaf(None, &[entry][..usize::from(is_kept)], Levels::of(Level::from_bits(entry)));
        };
        let node = self.node(id);
        if node.is_leaf() {
            return self.put_into_leaf(id, entry, is_kept, place);
        }
        let mut parts = node.parts();
        let part = part_of(entry, place.depth);
        let changed = self.put(parts[part], entry, is_kept, place.part(part))?;
        for (number, other) in parts.iter().enumerate() {
            if number != part {
                self.keep_node(*other);
            }
        }
        parts[part] = changed;
        self.inner(parts, [None; 2], None)
    }

    #[inline(never)]
    fn put_into_leaf(&mut self, leaf: Id, entry: u64, is_kept: bool, place: Place) -> Result<Option<Id>, Exhausted> {
        let mut entries = [0; LEAF + 1];
        let node = self.node(leaf);
        let old = node.entries();
        let (at, rest, levels) = match old.binary_search_by_key(&(entry >> 3), |entry| entry >> 3) {
            Ok(at) => (at, &old[at + 1..], None),
            Err(at) => (at, &old[at..], Some(node.levels().and(Levels::of(Level::from_bits(entry))))),
        };
        entries[..at].copy_from_slice(&old[..at]);
        entries[at] = entry;
        let from = at + usize::from(is_kept);
        let count = from + rest.len();
        entries[from..count].copy_from_slice(rest);
        let entries = &entries[..count];
        if count > LEAF {
            return self.tree(entries, place.depth);
        }
        self.new_leaf(None, entries, levels.unwrap_or_else(|| Levels::of_entries(entries)))
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
        if let Some(is_below) = self.is_related_at_once(Relation::BELOW, first, second) {
            return is_below;
        }
        let (mut task, mut effort) = (Task::NEW, u32::MAX);
        loop {
            if let Some(is_below) = self.relate_step(&mut task, Relation::BELOW, first, second, &mut effort) {
                return is_below;
            }
        }
    }

    /// A step of finding out whether the levels of each handle go together, which looks at some nodes of a tree at most, and says how many are left;
    /// nothing: there is more to do.
    pub(crate) fn relate_step(
        &self,
        task: &mut Task,
        relation: Relation,
        first: Label,
        second: Label,
        effort: &mut u32,
    ) -> Option<bool> {
        // There are more handles than entries.
        if !relation.of(first.default as u64, second.default as u64) {
            return Some(false);
        }
        let walk = Walk::new(task.at, *effort);
        let sides = Sides { relation, defaults: [first.default, second.default] };
        let is_so = self.relate_parts(&sides, [first.root, second.root].map(Tree::Node), Place::ROOT, &walk);
        *effort = walk.effort.get();
        if is_so && walk.has_stopped() {
            task.at = walk.until.get();
            return None;
        }
        *task = Task::NEW;
        Some(is_so)
    }

    /// True if it is not known yet: then the walk has stopped.
    fn relate_parts(&self, sides: &Sides, [first, second]: [Tree<'_>; 2], place: Place, walk: &Walk) -> bool {
        if place.end() <= walk.from || !walk.enters(place) {
            return true;
        }
        let (one, other) = (self.look(first), self.look(second));
        if let Some(is_so) = sides.relate_at_once(&one, &other) {
            return is_so;
        }
        if let (Some(ones), Some(others)) = (one.entries, other.entries) {
            walk.spend(ones.len() + others.len());
            return sides.relate_leaves(ones, others);
        }
        (0..PARTS).all(|part| {
            let parts = [one.part(part, place), other.part(part, place)];
            // Most parts of labels that are nearly the same are the same.
            parts[0].is_shared(parts[1]) && sides.relation.is_reflexive()
                || self.relate_parts(sides, parts, place.part(part), walk)
        })
    }

    /// The answer, if the roots of both labels give it without a look below. That takes no step.
    pub(crate) fn is_related_at_once(&self, relation: Relation, first: Label, second: Label) -> Option<bool> {
        if first == second && relation.is_reflexive() {
            return Some(true);
        }
        if !relation.of(first.default as u64, second.default as u64) {
            return Some(false);
        }
        let (one, other) = (self.look(Tree::Node(first.root)), self.look(Tree::Node(second.root)));
        Sides { relation, defaults: [first.default, second.default] }.relate_at_once(&one, &other)
    }

    /// `first ⊔ second`: of each handle the higher level.
    pub fn higher(&mut self, first: Label, second: Label) -> Result<Label, Exhausted> {
        self.combined(&Rule::HIGHER, first, second)
    }

    /// `first ⊓ second`: of each handle the lower level.
    pub fn lower(&mut self, first: Label, second: Label) -> Result<Label, Exhausted> {
        self.combined(&Rule::LOWER, first, second)
    }

    fn combined(&mut self, rule: &Rule, first: Label, second: Label) -> Result<Label, Exhausted> {
        let (mut task, mut effort) = (Task::NEW, u32::MAX);
        loop {
            if let Some(made) = self.combined_step(&mut task, rule, first, second, &mut effort)? {
                return Ok(made);
            }
        }
    }

    /// A step of making a label of two, which looks at some nodes of a tree at most, and says how many are left; nothing: there is more to
    /// do. Its results by then are the task's, and go with [`Self::abandon`], also after an error.
    pub(crate) fn combined_step(
        &mut self,
        task: &mut Task,
        rule: &Rule,
        first: Label,
        second: Label,
        effort: &mut u32,
    ) -> Result<Option<Label>, Exhausted> {
        let Task { at, done } = core::mem::replace(task, Task::NEW);
        let mut merger = Merger::new(rule, [first.default, second.default], Walk::new(at, *effort));
        let trees = [first.root, second.root].map(Tree::Node);
        let root = self.combined_part(&mut merger, trees, done.root, Place::ROOT);
        *effort = merger.walk.effort.get();
        self.tidy_after(done);
        let made = Label { default: merger.default, root: root? };
        if !merger.walk.has_stopped() {
            return Ok(Some(made));
        }
        *task = Task { at: merger.walk.until.get(), done: made };
        Ok(None)
    }

    /// Lets go of what a task has made.
    pub(crate) fn abandon(&mut self, task: &mut Task) {
        let done = core::mem::replace(task, Task::NEW).done;
        self.release_later(done);
        self.tidy_after(done);
    }

    /// Lets go of what earlier steps made, which is nothing almost always.
    #[inline(always)]
    fn release_done(&mut self, done: Option<Id>) {
        if done.is_some() {
            self.release_node(done);
        }
    }

    /// Frees nodes after a step that went on with `done`: few, so that it takes less time.
    fn tidy_after(&mut self, done: Label) {
        self.tidy(if done.root.is_some() { 4 } else { TIDIED });
    }

    /// `done` is what earlier steps made of both. It becomes part of the result, or goes: a copy of a label is walked otherwise than the label.
    fn combined_part(
        &mut self,
        merger: &mut Merger<'_>,
        trees: [Tree<'_>; 2],
        done: Option<Id>,
        place: Place,
    ) -> Result<Option<Id>, Exhausted> {
        let [first, second] = trees;
        if place.end() <= merger.walk.from {
            return Ok(done);
        }
        if !merger.walk.enters(place) {
            return Ok(None);
        }
        let (one, other) = (self.look(first), self.look(second));
        let (rule, defaults) = (merger.rule, merger.defaults);
        let pairs = one.levels(defaults[0]).pairs(other.levels(defaults[1]));
        let is_same = || defaults[0] == defaults[1] && rule.keeps[0].is_reflexive() && one.is_same(&other);
        let kept = if rule.keeps[0].has(pairs) || is_same() {
            Some(first)
        } else {
            rule.keeps[1].has(pairs).then_some(second)
        };
        if let Some(kept) = kept.filter(|kept| self.may_keep(*kept)) {
            self.release_done(done);
            return self.kept(kept);
        }
        if rule.makes[merger.default as usize].has(pairs) {
            self.release_done(done);
            return Ok(None);
        }
        if let (Some(one_entries), Some(other_entries)) = (one.entries, other.entries) {
            let (made, levels) = merger.merge([(one_entries, one.levels), (other_entries, other.levels)]);
            let like = [first.node(), second.node()];
            self.release_done(done);
            return if made.len() <= LEAF { self.leaf(made, levels, like) } else { self.tree(made, place.depth) };
        }
        self.combined_below(merger, trees, done, place)
    }

    /// The same of more than a leaf.
    fn combined_below(
        &mut self,
        merger: &mut Merger<'_>,
        trees: [Tree<'_>; 2],
        done: Option<Id>,
        place: Place,
    ) -> Result<Option<Id>, Exhausted> {
        let is_leaf = |tree: &Tree<'_>| tree.node().is_some_and(|id| self.node(id).is_leaf());
        if let Some(number) = trees.iter().position(is_leaf) {
            return self.combined_with_leaf(merger, trees, number, done, place);
        }
        let parts = self.parts(done, |pool, part, done| {
            let below = trees.map(|tree| match tree {
                Tree::Leaf(entries) => Tree::Leaf(place.part_of(entries, part)),
                Tree::Node(id) => Tree::Node(id.and_then(|id| pool.node(id).part(part))),
            });
            pool.combined_part(merger, below, done, place.part(part))
        })?;
        if merger.walk.has_stopped() {
            self.unfinished(parts, done)
        } else {
            self.inner(parts, trees.map(Tree::node), done)
        }
    }

    /// The same, where the part of this number is a leaf. Its entries are looked at in each part below, while the pool is changed: so they are
    /// copied, once on the way to the deepest part.
    #[inline(never)]
    fn combined_with_leaf(
        &mut self,
        merger: &mut Merger<'_>,
        trees: [Tree<'_>; 2],
        number: usize,
        done: Option<Id>,
        place: Place,
    ) -> Result<Option<Id>, Exhausted> {
        let (copy, count) = trees[number].node().map_or(([0; LEAF], 0), |id| self.node(id).copied_entries());
        let mut trees = trees;
        trees[number] = Tree::Leaf(&copy[..count]);
        self.combined_below(merger, trees, done, place)
    }

    /// Whether a part can be kept as it is. Where somebody else has more than a leaf, that is copied part by part.
    fn may_keep(&self, tree: Tree<'_>) -> bool {
        tree.node().is_none_or(|id| self.is_own(id) || self.node(id).is_leaf())
    }

    /// The node of what is kept as it is.
    fn kept(&mut self, tree: Tree<'_>) -> Result<Option<Id>, Exhausted> {
        match tree {
            Tree::Node(Some(id)) if !self.is_own(id) => self.copied(id),
            Tree::Node(id) => Ok(self.keep_node(id)),
            Tree::Leaf(leaf) => self.leaf(leaf, Levels::of_entries(leaf), [None; 2]),
        }
    }

    /// The same leaf, owned by the present payer.
    #[inline(never)]
    fn copied(&mut self, leaf: Id) -> Result<Option<Id>, Exhausted> {
        let node = self.node(leaf);
        let (levels, (entries, count)) = (node.levels(), node.copied_entries());
        self.new_leaf(Some(leaf), &entries[..count], levels)
    }

    /// The new node for more entries of a place of this depth than a leaf has. They are sorted.
    fn tree(&mut self, entries: &[u64], depth: u32) -> Result<Option<Id>, Exhausted> {
        if depth == Place::DEEPEST {
            return Err(Exhausted);
        }
        let mut rest = entries;
        let parts = self.parts(None, |pool, part, _| {
            let (count, levels) = Levels::of_first(rest, end_of(entries[0], depth, part));
            let (entries, others) = rest.split_at(count);
            rest = others;
            if count <= LEAF { pool.new_leaf(None, entries, levels) } else { pool.tree(entries, depth + 1) }
        })?;
        self.inner(parts, [None; 2], None)
    }

    /// Four parts that are made one after the other, or none: each of the part that earlier steps made, if there is an unfinished node.
    fn parts(
        &mut self,
        unfinished: Option<Id>,
        mut make: impl FnMut(&mut Self, usize, Option<Id>) -> Result<Option<Id>, Exhausted>,
    ) -> Result<[Option<Id>; PARTS], Exhausted> {
        let mut parts = unfinished.map_or([None; PARTS], |id| self.node(id).parts());
        for part in 0..PARTS {
            match make(self, part, parts[part].take()) {
                Ok(node) => parts[part] = node,
                Err(exhausted) => {
                    self.discard(parts, unfinished);
                    return Err(exhausted);
                }
            }
        }
        Ok(parts)
    }

    /// The node of a part, and its entries if it is no more than a leaf.
    #[inline]
    fn look<'e>(&'e self, tree: Tree<'e>) -> Look<'e> {
        match tree {
            Tree::Node(None) => Look { node: None, entries: Some(&[]), levels: Levels::NONE },
            Tree::Node(Some(id)) => {
                let node = self.node(id);
                Look { node: Some(node), entries: node.is_leaf().then(|| node.entries()), levels: node.levels() }
            }
            Tree::Leaf(entries) => Look { node: None, entries: Some(entries), levels: Levels::of_entries(entries) },
        }
    }
}

/// A part that is looked at.
struct Look<'e> {
    node: Option<&'e Node>,
    /// If it is no more than a leaf.
    entries: Option<&'e [u64]>,
    /// Those of its entries.
    levels: Levels,
}

impl<'e> Look<'e> {
    /// The levels of the part. Each is that of a handle: the default, too, as there are more handles than entries.
    #[inline]
    fn levels(&self, default: Level) -> Levels {
        self.levels.and(Levels::of(default))
    }

    /// Whether both are known to have the same entries.
    #[inline]
    fn is_same(&self, other: &Self) -> bool {
        match (self.node, other.node) {
            (Some(one), Some(other)) => one.identity() == other.identity(),
            _ => self.is_empty() && other.is_empty(),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self.entries, Some([]))
    }

    /// A part of it, if it belongs to a place.
    #[inline(always)]
    fn part(&self, part: usize, place: Place) -> Tree<'e> {
        match (self.entries, self.node) {
            (Some(entries), _) => Tree::Leaf(place.part_of(entries, part)),
            (None, node) => Tree::Node(node.and_then(|node| node.part(part))),
        }
    }
}

/// How the levels of two labels are to go together, and those of handles without entries.
struct Sides {
    relation: Relation,
    defaults: [Level; 2],
}

impl Sides {
    /// Whether the levels of each handle go together, if that is known without a look at entries.
    fn relate_at_once(&self, one: &Look<'_>, other: &Look<'_>) -> Option<bool> {
        if one.is_same(other) && self.relation.is_reflexive()
            || self.relation.has(one.levels(self.defaults[0]).pairs(other.levels(self.defaults[1])))
        {
            return Some(true);
        }
        // Each level of one label meets the only one of the other: so relations that their levels do not show are refuted.
        (one.is_empty() || other.is_empty()).then_some(false)
    }

    /// Whether the levels of each handle of two leaves go together.
    #[inline(never)]
    fn relate_leaves(&self, one: &[u64], other: &[u64]) -> bool {
        let relation = self.relation;
        // Leading entries that are the same in both are skipped together.
        let all = if relation.is_reflexive() { one } else { &[] };
        let same = all.iter().zip(other).take_while(|(one, other)| one == other).count();
        let (alone, other_alone) = (relation.0 >> self.defaults[1] as u64, relation.0 >> (8 * self.defaults[0] as u64));
        merge(
            &one[same..],
            &other[same..],
            |one| alone >> (one << 3 & 63) & 1 != 0,
            |other| other_alone >> (other & LEVEL) & 1 != 0,
            |one, other| relation.of(one, other),
        )
    }
}

/// Goes through the entries of two leaves in the order of their handles, while all say so; true if they always did. One is asked for entries
/// of the first leaf whose handles the other one has not, one for those of the other leaf, and one for both entries of a handle.
#[inline(always)]
fn merge(
    ones: &[u64],
    others: &[u64],
    mut of_one: impl FnMut(u64) -> bool,
    mut of_other: impl FnMut(u64) -> bool,
    mut of_both: impl FnMut(u64, u64) -> bool,
) -> bool {
    let mut at = 0;
    for &one in ones {
        let handle = one & !LEVEL;
        // No entry has this level.
        let mut other = u64::MAX;
        while let Some(&next) = others.get(at) {
            other = next;
            if other >= handle {
                break;
            }
            at += 1;
            if !of_other(other) {
                return false;
            }
        }
        let goes_on = if other ^ handle <= LEVEL {
            at += 1;
            of_both(one, other)
        } else {
            of_one(one)
        };
        if !goes_on {
            return false;
        }
    }
    others[at..].iter().all(|other| of_other(*other))
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::{Heap, Memory, Node, Owner};

    /// Handles whose entries are alike in so many bits, and no more.
    fn alike(bits: u32, first: u64, count: u64) -> impl Iterator<Item = Handle> {
        let begin = 5u64.checked_shl(u64::BITS - bits).unwrap_or(0);
        (first..first + count).map(move |number| Handle::of(begin | number.reverse_bits() >> bits))
    }

    fn label<M: Memory>(pool: &mut Pool<M>, handles: impl Iterator<Item = Handle>, level: Level) -> Label {
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

    #[test]
    fn a_label_and_itself() {
        let mut pool = Pool::new(Heap::new(1_000), 0);
        let relations =
            [Relation::BELOW, Relation::BELOW_UNLESS_OWNED, Relation::OWNED_BELOW_THREE, Relation::OWNED_ABOVE_STAR];
        for (default, level) in Level::ALL.into_iter().flat_map(|default| Level::ALL.map(|level| (default, level))) {
            let label = pool.set(Label::of(default), Handle::of(1), level).expect("room");
            for relation in relations {
                let right = [default, level].iter().all(|level| relation.of(*level as u64, *level as u64));
                assert_eq!(pool.relate_step(&mut { Task::NEW }, relation, label, label, &mut 9), Some(right));
                assert!(pool.is_related_at_once(relation, label, label).is_none_or(|known| known == right));
            }
            pool.release(label);
        }
    }

    /// Full leaves that are compared entry by entry: one in a step with effort for as many entries.
    #[test]
    fn a_step_of_a_comparison_looks_at_few_entries() {
        let mut pool = Pool::new(Heap::new(1_000), 0);
        let full = PARTS as u64 * LEAF as u64;
        let [one, other] = [(); 2].map(|()| label(&mut pool, alike(0, 0, full), Level::Two));
        let (mut task, mut steps) = (Task::NEW, 1);
        while pool.relate_step(&mut task, Relation::BELOW, one, other, &mut { LEAF as u32 / 4 }).is_none() {
            steps += 1;
        }
        assert_eq!((pool.nodes(one), steps), (1 + PARTS as u32, PARTS));
        [one, other].into_iter().for_each(|label| pool.release(label));
        assert!(pool.tidy(1_000) && pool.memory().used() == 0);
    }

    /// Two leaves with an entry of their own each and one of the same handle, of all levels and defaults.
    #[test]
    fn levels_and_entries_of_what_is_merged() {
        let mut pool = Pool::new(Heap::new(100), 0);
        let handles: [Handle; 3] = core::array::from_fn(|number| Handle::of(8 * number as u64));
        for number in 0..5_usize.pow(6) {
            let level = |place: u32| Level::ALL[number / 5_usize.pow(place) % 5];
            let mut leaf = |side: u32| {
                let first = Label::of(level(3 * side));
                let of_both = pool.set(first, handles[2], level(3 * side + 1)).expect("room");
                let made = pool.set(of_both, handles[side as usize], level(3 * side + 2)).expect("room");
                pool.release(of_both);
                made
            };
            let (one, other) = (leaf(0), leaf(1));
            for (rule, of) in [(Rule::HIGHER, Level::max as fn(_, _) -> _), (Rule::LOWER, Level::min)] {
                let made = pool.combined(&rule, one, other).expect("room");
                let right = handles.map(|handle| of(pool.get(one, handle), pool.get(other, handle)));
                let default = of(one.default, other.default);
                assert_eq!((made.default, handles.map(|handle| pool.get(made, handle))), (default, right));
                assert_eq!(pool.entries(made) as usize, right.iter().filter(|level| **level != default).count());
                for level in Level::ALL {
                    assert_eq!(!pool.has_none(made, [level]), level == default || right.contains(&level), "{level:?}");
                }
                pool.release(made);
            }
            [one, other].into_iter().for_each(|label| pool.release(label));
        }
        assert!(pool.tidy(100) && pool.memory().used() == 0);
    }

    /// Leaves that are just full or not, that are divided more than once, and that become few enough for one, in one part of all or in all; with room
    /// for less nodes than it takes, and in steps.
    #[test]
    fn leaves_that_are_divided_and_joined() {
        const PLENTY: usize = 10_000;
        let most = LEAF as u64;
        let mut pool = Pool::new(Heap::new(PLENTY), 0);
        let counts = [1, most - 1, most, most + 1, 2 * most];
        let sides = counts.into_iter().flat_map(|count| [(0, count), (count / 2, count), (count, 1)]);
        let sides: std::vec::Vec<_> = sides.collect();
        // Entries stay, become the default, or become what the other label has.
        let levels = [Level::Star, Level::Two, Level::Three];
        for (bits, first, second) in [0, 2, 9, 17].into_iter().flat_map(|bits| {
            let pairs = sides.iter().flat_map(|first| sides.iter().map(move |second| (*first, *second)));
            pairs.map(move |(first, second)| (bits, first, second))
        }) {
            let [one, other] = [first, second].map(|(from, count)| alike(bits, from, count));
            let level = |from: u64| levels[from as usize % levels.len()];
            let one = label(&mut pool, one, level(first.0 + first.1));
            let other = label(&mut pool, other, level(second.0));
            for rule in [Rule::HIGHER, Rule::LOWER] {
                let mut right = Label::of(Level::One);
                for handle in alike(bits, 0, 4 * most) {
                    let [one, other] = [one, other].map(|label| pool.get(label, handle) as u64);
                    let level = Level::from_bits(rule.of(one, other));
                    let next = pool.set(right, handle, level).expect("room");
                    pool.release(right);
                    right = next;
                }
                pool.tidy(PLENTY);
                let used = pool.memory().used();
                for (room, effort) in (0..PLENTY).zip([0, 1, u32::MAX].into_iter().cycle()) {
                    pool.memory_mut().limit(used + room);
                    let mut task = Task::NEW;
                    let made = loop {
                        let mut effort = effort;
                        match pool.combined_step(&mut task, &rule, one, other, &mut effort) {
                            Ok(None) => {}
                            Ok(Some(made)) => break Ok(made),
                            Err(exhausted) => break Err(exhausted),
                        }
                    };
                    pool.abandon(&mut task);
                    pool.memory_mut().limit(PLENTY);
                    if let Ok(made) = made {
                        let all = alike(bits, 0, 4 * most);
                        assert!(all.into_iter().all(|handle| pool.get(made, handle) == pool.get(right, handle)));
                        assert_eq!(pool.nodes(made), pool.nodes(right), "another form");
                        pool.release(made);
                    }
                    pool.tidy(PLENTY);
                    assert_eq!(pool.memory().used(), used, "with room for {room}");
                    if made.is_ok() {
                        break;
                    }
                }
                pool.release(right);
            }
            pool.release(one);
            pool.release(other);
        }
        assert!(pool.tidy(PLENTY) && pool.memory().used() == 0);
    }

    /// Memory that knows how deep the stack was at most, and how many nodes it gave.
    struct Deep {
        heap: Heap,
        lowest: Cell<usize>,
        given: usize,
    }

    impl Deep {
        fn new(nodes: usize) -> Self {
            Self { heap: Heap::new(nodes), lowest: Cell::new(usize::MAX), given: 0 }
        }

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
            self.given += 1;
            self.heap.allocate(owner)
        }
        fn free(&mut self, id: Id) {
            self.heap.free(id);
        }
    }

    /// A label with few entries is made of two large ones. Its entries come from many leaves; no step makes the leaves of earlier
    /// steps again.
    #[test]
    fn a_step_makes_a_path_and_a_leaf() {
        /// From the root of ten thousand entries to a leaf, and a leaf that is divided.
        const MOST: usize = 6 + PARTS;
        let mut pool = Pool::new(Deep::new(100_000), 0);
        let many = label(&mut pool, alike(0, 0, 10_000), Level::Three);
        for count in [1, 20, LEAF as u64, 200] {
            let few = label(&mut pool, alike(0, 0, count), Level::Two);
            let (mut task, mut steps) = (Task::NEW, 0);
            let made = loop {
                let before = pool.memory().given;
                let made = pool.combined_step(&mut task, &Rule::LOWER, many, few, &mut 0).expect("room");
                steps += 1;
                let given = pool.memory().given - before;
                assert!(given <= MOST, "{given} nodes in step {steps} of {count} entries");
                if let Some(made) = made {
                    break made;
                }
            };
            assert!(steps > count.min(20) && u64::from(pool.entries(made)) == count);
            [few, made].into_iter().for_each(|label| pool.release(label));
        }
        pool.release(many);
        assert!(pool.tidy(100_000) && pool.memory().heap.used() == 0);
    }

    #[test]
    fn the_stack_does_not_grow_with_labels() {
        /// A copy of entries at each depth would take more.
        const MOST: usize = 12 * 1024;
        let mut pool = Pool::new(Deep::new(100_000), 0);
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
