//! Against lists that are searched; and the shape of the tree.

use super::{Place, Timed, add, remove};
use crate::STEPS;
use core::cell::Cell;
use proptest::prelude::*;
use std::boxed::Box;
use std::vec::Vec;

struct Item {
    number: usize,
    deadline: Cell<u64>,
    place: Place<Pointer>,
}

#[derive(Clone, Copy)]
struct Pointer(&'static Item);

impl PartialEq for Pointer {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

impl Timed for Pointer {
    fn deadline(&self) -> u64 {
        self.0.deadline.get()
    }
    fn place(&self) -> &Place<Self> {
        &self.0.place
    }
}

const ITEMS: usize = 64;
const TREES: usize = 2;

fn items() -> &'static [Item] {
    let [left, right, up] = [const { None }; 3];
    let place = || Place {
        left: Cell::new(left),
        right: Cell::new(right),
        up: Cell::new(up),
        tree: Cell::new(0),
        rank: Cell::new(0),
    };
    Box::leak((0..ITEMS).map(|number| Item { number, deadline: Cell::new(0), place: place() }).collect())
}

/// Looks at the whole tree below; its numbers go to `found`, and its rank is the result.
fn check(item: Option<Pointer>, up: Option<Pointer>, found: &mut Vec<usize>) -> u32 {
    let Some(item) = item else { return 0 };
    let place = item.place();
    assert!(found.len() < ITEMS, "the tree is a ring");
    assert!(place.up.get() == up, "way up");
    assert!(up.is_none_or(|up| up.deadline() <= item.deadline()), "earlier than the one above");
    found.push(item.0.number);
    let left = check(place.left.get(), Some(item), found);
    let right = check(place.right.get(), Some(item), found);
    assert!(left >= right, "leans to the right");
    assert_eq!(place.rank.get(), right + 1, "rank");
    right + 1
}

/// The numbers in the tree of `root`; its right spine is as long as its rank says, and that is logarithmic.
fn listed(root: Option<Pointer>) -> Vec<usize> {
    let mut found = Vec::new();
    let rank = check(root, None, &mut found);
    assert!(found.len() + 1 >= 1 << rank, "the right spine is too long");
    found.sort_unstable();
    found
}

#[derive(Clone, Debug)]
enum Step {
    /// Item, tree and deadline; few deadlines, so that there are equal ones.
    Set(usize, usize, u64),
    Clear(usize),
    /// The earliest is met.
    Meet(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..ITEMS, 0..TREES, 1u64..40).prop_map(|(number, tree, deadline)| Step::Set(number, tree, deadline)),
        1 => (0..ITEMS).prop_map(Step::Clear),
        1 => (0..TREES).prop_map(Step::Meet),
    ]
}

/// Trees, and beside them for each item in which tree it is.
struct World {
    items: &'static [Item],
    roots: [Cell<Option<Pointer>>; TREES],
    model: [Option<usize>; ITEMS],
}

impl World {
    fn clear(&mut self, number: usize) {
        if self.model[number].take().is_some() {
            let item = &self.items[number];
            remove(Pointer(item), |root| self.roots[item.place.tree.get() as usize].set(root));
        }
    }
    fn set(&mut self, number: usize, tree: usize, deadline: u64) {
        self.clear(number);
        let item = &self.items[number];
        item.deadline.set(deadline);
        item.place.tree.set(tree as u8);
        self.roots[tree].set(add(self.roots[tree].get(), Pointer(item)));
        self.model[number] = Some(tree);
    }
    fn check(&self) {
        for (tree, root) in self.roots.iter().enumerate() {
            let wanted: Vec<usize> = (0..ITEMS).filter(|number| self.model[*number] == Some(tree)).collect();
            let earliest = wanted.iter().map(|number| self.items[*number].deadline.get()).min();
            assert_eq!(root.get().map(|root| root.deadline()), earliest, "the earliest is the root");
            assert_eq!(listed(root.get()), wanted, "what is in the tree");
        }
    }
}

fn world() -> World {
    World { items: items(), roots: [const { Cell::new(None) }; TREES], model: [None; ITEMS] }
}

proptest! {
    #[test]
    fn a_tree_has_its_earliest_at_the_root(steps in prop::collection::vec(step(), 0..STEPS)) {
        let mut world = world();
        for step in steps {
            match step {
                Step::Set(number, tree, deadline) => world.set(number, tree, deadline),
                Step::Clear(number) => world.clear(number),
                Step::Meet(tree) => {
                    if let Some(root) = world.roots[tree].get() {
                        world.clear(root.0.number);
                    }
                }
            }
            world.check();
        }
    }
}

#[test]
fn deadlines_are_met_in_their_order() {
    let mut world = world();
    (0..ITEMS).for_each(|number| world.set(number, 0, 1 + (number * 37 % ITEMS) as u64));
    for deadline in 1..=ITEMS as u64 {
        let root = world.roots[0].get().expect("there are more");
        assert_eq!(root.deadline(), deadline);
        world.clear(root.0.number);
    }
    assert!(world.roots[0].get().is_none());
}

/// The one that is put in last is the root, and `spoil` changes something of it.
fn spoilt(spoil: impl FnOnce(&'static Item)) {
    let mut world = world();
    (0..8).for_each(|number| world.set(number, 0, 100 - number as u64));
    spoil(&world.items[7]);
    world.check();
}

#[test]
#[should_panic(expected = "way up")]
fn a_lost_way_up_is_seen() {
    spoilt(|item| item.place.left.get().expect("seven are below").0.place.up.set(None));
}

#[test]
#[should_panic(expected = "rank")]
fn a_wrong_rank_is_seen() {
    spoilt(|item| item.place.rank.set(5));
}

#[test]
#[should_panic(expected = "leans to the right")]
fn a_tree_that_leans_to_the_right_is_seen() {
    spoilt(|item| item.place.left.swap(&item.place.right));
}
