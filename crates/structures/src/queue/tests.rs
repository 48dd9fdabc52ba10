//! Against a list that is searched.

use super::{Linked, Queue, Ranked, Ranks};
use crate::STEPS;
use core::cell::Cell;
use proptest::prelude::*;
use std::boxed::Box;
use std::collections::VecDeque;
use std::vec::Vec;

struct Item {
    number: usize,
    rank: usize,
    next: Cell<Option<&'static Item>>,
    previous: Cell<Option<&'static Item>>,
    behind: Queue<&'static Item>,
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Ranks for &'static Item {
    fn rank(&self) -> u8 {
        self.rank as u8
    }
    fn behind(&self) -> &Queue<Self> {
        &self.behind
    }
}

impl Linked for &'static Item {
    fn next(&self) -> &Cell<Option<Self>> {
        &self.next
    }
    fn previous(&self) -> &Cell<Option<Self>> {
        &self.previous
    }
}

const ITEMS: usize = 12;

/// Three ranks of four.
fn items() -> &'static [Item] {
    let item =
        |number| Item { number, rank: number % 3, next: Cell::new(None), previous: Cell::new(None), behind: empty() };
    Box::leak((0..ITEMS).map(item).collect())
}

fn empty() -> Queue<&'static Item> {
    Queue { head: Cell::new(None), tail: Cell::new(None) }
}

/// The queue from its head, and whether each one's `previous` leads back.
fn listed(queue: &Queue<&'static Item>) -> Vec<usize> {
    let mut previous: Option<&Item> = None;
    let mut listed = Vec::new();
    let mut next = queue.head.get();
    while let Some(item) = next {
        assert!(listed.len() < ITEMS, "the queue is a ring");
        assert_eq!(item.previous.get().map(|item| item.number), previous.map(|item| item.number), "way back");
        listed.push(item.number);
        (previous, next) = (Some(item), item.next.get());
    }
    assert_eq!(queue.tail.get().map(|item| item.number), listed.last().copied(), "tail");
    listed
}

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    /// Before those of its rank.
    Prepend(usize),
    Take,
    Remove(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..ITEMS).prop_map(Step::Append),
        (0..ITEMS).prop_map(Step::Prepend),
        Just(Step::Take),
        (0..ITEMS).prop_map(Step::Remove),
    ]
}

proptest! {
    #[test]
    fn a_queue_is_a_list(steps in prop::collection::vec(step(), 0..STEPS)) {
        let items = items();
        let queue = empty();
        let mut model: VecDeque<usize> = VecDeque::new();
        for step in steps {
            match step {
                Step::Append(number) if !model.contains(&number) => {
                    queue.append(&items[number]);
                    model.push_back(number);
                }
                Step::Take => prop_assert_eq!(queue.take().map(|item| item.number), model.pop_front()),
                Step::Remove(number) if model.contains(&number) => {
                    queue.remove(&items[number]);
                    model.retain(|other| *other != number);
                }
                Step::Append(_) | Step::Prepend(_) | Step::Remove(_) => {}
            }
            prop_assert_eq!(listed(&queue), Vec::from(model.clone()));
            // Nothing is left of what is in no queue any more.
            for item in items.iter().filter(|item| !model.contains(&item.number)) {
                prop_assert!(item.next.get().or(item.previous.get()).is_none());
            }
        }
    }
}

/// A ranked queue from its head.
fn listed_by_rank(queue: &Ranked<&'static Item>) -> Vec<usize> {
    let firsts = listed(&queue.firsts);
    let mut all = Vec::new();
    let mut next = queue.head();
    while let Some(first) = next {
        all.push(first.number);
        all.extend(listed(&first.behind));
        next = first.next.get();
    }
    let ranks: Vec<_> = firsts.iter().map(|number| number % 3).collect();
    assert!(ranks.is_sorted_by(|one, next| one > next), "two of a rank");
    all
}

proptest! {
    #[test]
    fn a_ranked_queue_is_a_sorted_list(steps in prop::collection::vec(step(), 0..STEPS)) {
        let items = items();
        let queue = Ranked { firsts: empty() };
        let mut model: Vec<usize> = Vec::new();
        for step in steps {
            match step {
                Step::Append(number) if !model.contains(&number) => {
                    if number.is_multiple_of(2) {
                        queue.append(&items[number]);
                    } else {
                        queue.append_soon(&items[number]);
                    }
                    let place = model.iter().position(|other| items[*other].rank < items[number].rank);
                    model.insert(place.unwrap_or(model.len()), number);
                }
                Step::Prepend(number) if !model.contains(&number) => {
                    queue.prepend(&items[number]);
                    let place = model.iter().position(|other| items[*other].rank <= items[number].rank);
                    model.insert(place.unwrap_or(model.len()), number);
                }
                Step::Take if model.is_empty() => prop_assert!(queue.take().is_none() && queue.take_soon().is_none()),
                Step::Take => {
                    let taken = if model[0].is_multiple_of(2) { queue.take() } else { queue.take_soon() };
                    prop_assert_eq!(taken.map(|item| item.number), Some(model.remove(0)));
                }
                Step::Remove(number) if model.contains(&number) => {
                    queue.remove(&items[number]);
                    model.retain(|other| *other != number);
                }
                Step::Append(_) | Step::Prepend(_) | Step::Remove(_) => {}
            }
            prop_assert_eq!(queue.head().map(|item| item.number), model.first().copied());
            prop_assert_eq!(listed_by_rank(&queue), model.clone());
            // Nothing is left of what is in no queue any more.
            for item in items.iter().filter(|item| !model.contains(&item.number)) {
                prop_assert!(item.next.get().or(item.previous.get()).or(item.behind.head.get()).is_none());
            }
        }
    }
}

#[test]
#[should_panic(expected = "way back")]
fn a_lost_way_back_is_seen() {
    let (items, queue) = (items(), empty());
    items[..3].iter().for_each(|item| queue.append(item));
    items[1].previous.set(None);
    listed(&queue);
}
