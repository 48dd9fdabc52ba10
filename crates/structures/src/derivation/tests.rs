//! Against trees of vectors.

use super::Derived;
use crate::STEPS;
use abi::{Error, MAX_DERIVATION};
use core::cell::Cell;
use proptest::prelude::*;
use std::boxed::Box;
use std::collections::BTreeSet;
use std::vec::Vec;

#[derive(Default)]
struct Node {
    number: usize,
    previous: Cell<Option<&'static Node>>,
    next: Cell<Option<&'static Node>>,
    depth: Cell<u16>,
}

impl Derived for &'static Node {
    fn previous(&self) -> &Cell<Option<Self>> {
        &self.previous
    }
    fn next(&self) -> &Cell<Option<Self>> {
        &self.next
    }
    fn depth(&self) -> &Cell<u16> {
        &self.depth
    }
}

const NODES: usize = 24;

fn nodes(count: usize) -> &'static [Node] {
    Box::leak((0..count).map(|number| Node { number, ..Node::default() }).collect())
}

/// The tree of an original, from its list.
fn listed(original: &'static Node) -> Vec<(usize, u16)> {
    let mut listed = std::vec![(original.number, original.depth.get())];
    let mut node = original;
    while let Some(next) = node.next.get() {
        assert!(listed.len() < NODES, "the list is a ring");
        assert!(next.previous.get().is_some_and(|previous| core::ptr::eq(previous, node)), "way back");
        listed.push((next.number, next.depth.get()));
        node = next;
    }
    listed
}

/// The nodes below a node, as revocation sees it.
fn below(node: &'static Node) -> Vec<usize> {
    let first = node.descendant();
    core::iter::successors(first, |next| next.after(node)).map(|node| node.number).collect()
}

/// A node that is in a tree.
struct Place {
    depth: u16,
    parent: Option<usize>,
    /// The nodes derived from it, the last first.
    children: Vec<usize>,
}

#[derive(Default)]
struct Model([Option<Place>; NODES]);

impl Model {
    fn place(&mut self, number: usize) -> &mut Place {
        self.0[number].as_mut().expect("is in a tree")
    }
    fn depth(&self, number: usize) -> u16 {
        self.0[number].as_ref().expect("is in a tree").depth
    }
    fn members(&self) -> BTreeSet<usize> {
        (0..NODES).filter(|number| self.0[*number].is_some()).collect()
    }
    /// Nodes that an unfinished revocation left below `parent`, two levels deeper or more, are below the new one from now on:
    /// it goes anyway.
    fn derive(&mut self, number: usize, parent: usize) {
        let depth = self.depth(parent) + 1;
        let siblings = core::mem::take(&mut self.place(parent).children);
        let (deeper, others): (Vec<usize>, Vec<usize>) =
            siblings.into_iter().partition(|other| self.depth(*other) > depth);
        deeper.iter().for_each(|other| self.place(*other).parent = Some(number));
        self.place(parent).children = [std::vec![number], others].concat();
        self.0[number] = Some(Place { depth, parent: Some(parent), children: deeper });
    }
    /// Takes a node out; the nodes below it are below its parent from now on.
    fn take(&mut self, number: usize) {
        let Place { parent, children, .. } = self.0[number].take().expect("is in a tree");
        children.iter().for_each(|child| self.place(*child).parent = parent);
        if let Some(parent) = parent {
            let siblings = &mut self.place(parent).children;
            let place = siblings.iter().position(|other| *other == number).expect("is below its parent");
            siblings.splice(place..=place, children);
        }
    }
    /// A node and what is below it, in preorder.
    fn walk(&self, number: usize, found: &mut Vec<(usize, u16)>) {
        found.push((number, self.depth(number)));
        self.0[number].iter().flat_map(|place| &place.children).for_each(|child| self.walk(*child, found));
    }
    fn tree(&self, number: usize) -> Vec<(usize, u16)> {
        let mut found = Vec::new();
        self.walk(number, &mut found);
        found
    }
    fn check(&self, nodes: &'static [Node]) {
        for node in nodes {
            let Some(place) = &self.0[node.number] else {
                assert!(node.next.get().or(node.previous.get()).is_none(), "is in no tree");
                continue;
            };
            assert_eq!(node.is_original(), place.depth == 0);
            let tree = self.tree(node.number);
            if place.parent.is_none() {
                assert_eq!(listed(node), tree);
            }
            assert_eq!(below(node), tree[1..].iter().map(|node| node.0).collect::<Vec<usize>>());
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Original(usize),
    /// The first from the second.
    Derive(usize, usize),
    /// A step of the revocation of what is below.
    RevokeOne(usize),
    /// Takes out what has nothing below it.
    Unlink(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (0..NODES).prop_map(Step::Original),
        6 => (0..NODES, 0..NODES).prop_map(|(number, parent)| Step::Derive(number, parent)),
        2 => (0..NODES).prop_map(Step::RevokeOne),
        1 => (0..NODES).prop_map(Step::Unlink),
    ]
}

fn apply(step: Step, nodes: &'static [Node], model: &mut Model) {
    match step {
        Step::Original(number) if model.0[number].is_none() => {
            (&nodes[number]).root();
            model.0[number] = Some(Place { depth: 0, parent: None, children: Vec::new() });
        }
        Step::Derive(number, parent) if model.0[number].is_none() && model.0[parent].is_some() => {
            assert_eq!((&nodes[number]).derive_from(&nodes[parent]), Ok(()));
            model.derive(number, parent);
        }
        Step::RevokeOne(number) if model.0[number].is_some() => {
            let first = model.place(number).children.first().copied();
            let descendant = (&nodes[number]).descendant();
            assert_eq!(descendant.map(|node| node.number), first);
            descendant.into_iter().for_each(Derived::unlink);
            first.into_iter().for_each(|first| model.take(first));
        }
        Step::Unlink(number) if model.0[number].as_ref().is_some_and(|place| place.children.is_empty()) => {
            (&nodes[number]).unlink();
            model.take(number);
        }
        _ => {}
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let originals = Just(std::vec![Step::Original(0), Step::Original(1)]);
    (originals, prop::collection::vec(step(), 0..STEPS)).prop_map(|(originals, steps)| [originals, steps].concat())
}

proptest! {
    #[test]
    fn a_list_with_depths_is_a_tree(steps in steps()) {
        let (nodes, mut model) = (nodes(NODES), Model::default());
        for step in steps {
            apply(step, nodes, &mut model);
            model.check(nodes);
        }
    }

    /// Step by step, while others go on deriving elsewhere.
    #[test]
    fn revocation_takes_all_below_and_nothing_else(steps in steps(), of in 0..NODES, others in prop::collection::vec(step(), 0..40)) {
        let (nodes, mut model) = (nodes(NODES), Model::default());
        steps.into_iter().for_each(|step| apply(step, nodes, &mut model));
        if model.0[of].is_none() {
            return Ok(());
        }
        let tree: BTreeSet<usize> = model.tree(of).into_iter().map(|node| node.0).collect();
        let mut stays = model.members();
        stays.retain(|number| *number == of || !tree.contains(number));
        let mut others = others.into_iter();
        while let Some(descendant) = (&nodes[of]).descendant() {
            descendant.unlink();
            model.take(descendant.number);
            if let Some(Step::Derive(number, parent)) = others.next()
                && !tree.contains(&number) && !tree.contains(&parent)
                && model.0[number].is_none() && model.0[parent].is_some()
            {
                apply(Step::Derive(number, parent), nodes, &mut model);
                stays.insert(number);
            }
        }
        model.check(nodes);
        prop_assert_eq!(model.members(), stays);
    }
}

#[test]
fn too_deep_is_refused_and_changes_nothing() {
    let nodes = nodes(MAX_DERIVATION + 1);
    (&nodes[0]).root();
    for number in 1..MAX_DERIVATION {
        assert_eq!((&nodes[number]).derive_from(&nodes[number - 1]), Ok(()));
    }
    let last = &nodes[MAX_DERIVATION - 1];
    assert_eq!((&nodes[MAX_DERIVATION]).derive_from(last), Err(Error::TooDerived));
    assert!(last.descendant().is_none() && nodes[MAX_DERIVATION].previous.get().is_none());
    assert_eq!(below(&nodes[0]).len(), MAX_DERIVATION - 1);
}

#[test]
#[should_panic(expected = "way back")]
fn a_lost_way_back_is_seen() {
    let (nodes, mut model) = (nodes(NODES), Model::default());
    for step in [Step::Original(0), Step::Derive(1, 0), Step::Derive(2, 1)] {
        apply(step, nodes, &mut model);
    }
    nodes[2].previous.set(None);
    model.check(nodes);
}

#[test]
fn a_node_takes_the_place_of_another() {
    let [original, first, second, child, third] = nodes(5) else { panic!("five") };
    original.root();
    third.derive_from(original).expect("room");
    second.derive_from(original).expect("room");
    first.derive_from(original).expect("room");
    child.take_place_of(second);
    assert_eq!(listed(original), [(0, 0), (1, 1), (3, 1), (4, 1)]);
    assert!(second.next.get().is_none() && second.previous.get().is_none());
    // At the end of the list, and at the greatest depth, from which nothing can be derived.
    second.take_place_of(third);
    assert_eq!(listed(original), [(0, 0), (1, 1), (3, 1), (2, 1)]);
    second.depth.set(MAX_DERIVATION as u16 - 1);
    assert!(second.is_last() && third.derive_from(second) == Err(Error::TooDerived));
    second.depth.set(MAX_DERIVATION as u16 - 2);
    assert!(!second.is_last() && third.derive_from(second).is_ok());
}
