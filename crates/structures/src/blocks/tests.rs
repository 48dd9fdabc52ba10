//! Against a note for each frame: its owner.

use super::{Blocks, CLEARED, Frame, JOINED, ORDERS, Records};
use crate::STEPS;
use core::cell::Cell;
use core::ops::Range;
use proptest::prelude::*;
use proptest::sample::Index;
use std::vec::Vec;

const COUNT: usize = 1200;

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Free(usize),
    Inside,
}

/// Frames from `first` on, the words with which records link blocks, and the first words of their memory.
struct Ram {
    first: Frame,
    states: Vec<Cell<State>>,
    owners: Vec<Cell<u32>>,
    memory: Vec<[Cell<u32>; 2]>,
}

impl Ram {
    fn new(first: Frame) -> Self {
        let states = std::vec![Cell::new(State::Inside); COUNT];
        let owners = std::vec![Cell::new(7); COUNT];
        let memory = (0..COUNT).map(|_| [Cell::new(7), Cell::new(7)]).collect();
        Self { first, states, owners, memory }
    }
    fn words(&self, frame: Frame) -> [&Cell<u32>; 2] {
        self.memory[frame - self.first].each_ref()
    }
    fn clear(&self, frame: Frame) {
        self.words(frame).iter().for_each(|word| word.set(0));
    }
    fn is_clear(&self, frame: Frame) -> bool {
        self.words(frame).iter().all(|word| word.get() == 0)
    }
}

impl Records for &Ram {
    fn has(self, frame: Frame) -> bool {
        (self.first..self.first + COUNT).contains(&frame)
    }
    fn set_free(self, frame: Frame, order: usize) {
        self.states[frame - self.first].set(State::Free(order));
    }
    fn set_inside(self, frame: Frame) {
        self.states[frame - self.first].set(State::Inside);
    }
    fn is_free(self, frame: Frame, order: usize) -> bool {
        self.states[frame - self.first].get() == State::Free(order)
    }
    fn order(self, frame: Frame) -> usize {
        let State::Free(order) = self.states[frame - self.first].get() else { panic!("frame {frame} is in no list") };
        order
    }
    fn links(&self, frame: Frame, order: usize) -> [&Cell<u32>; 2] {
        let place = frame - self.first;
        if order > 0 { [&self.owners[place], &self.owners[place + 1]] } else { self.words(frame) }
    }
}

/// RAM with a hole, its allocator, what was taken of it, and for each frame whether it is free.
struct World {
    ram: Ram,
    blocks: Blocks,
    taken: Vec<(Frame, usize)>,
    is_free: Vec<bool>,
}

impl World {
    fn new(first: Frame) -> Self {
        let mut world =
            Self { ram: Ram::new(first), blocks: Blocks::empty(), taken: Vec::new(), is_free: std::vec![false; COUNT] };
        for part in [first.max(1)..first + 1080, first + 1100..first + COUNT] {
            world.hand_over(part);
        }
        world
    }
    /// In blocks that are as large as can be.
    fn hand_over(&mut self, part: Range<Frame>) {
        let mut frame = part.start;
        while frame < part.end {
            let order = frame.trailing_zeros().min((part.end - frame).ilog2()).min(ORDERS as u32 - 1) as usize;
            self.blocks.give_block(&self.ram, frame, order);
            self.mark(frame, order, true);
            frame += 1 << order;
        }
    }
    fn mark(&mut self, frame: Frame, order: usize, free: bool) {
        let place = frame - self.ram.first;
        for is_free in &mut self.is_free[place..place + (1 << order)] {
            assert_ne!(*is_free, free, "frame {frame}, of order {order}");
            *is_free = free;
        }
    }
    fn took(&mut self, frame: Option<Frame>, order: usize) {
        if let Some(frame) = frame {
            assert_eq!(frame % (1 << order), 0, "alignment");
            self.mark(frame, order, false);
            self.taken.push((frame, order));
        }
    }
    /// Takes a block from those that were taken, if there are any.
    fn chosen(&mut self, which: Index) -> Option<(Frame, usize)> {
        let chosen = (!self.taken.is_empty()).then(|| self.taken.swap_remove(which.index(self.taken.len())))?;
        self.mark(chosen.0, chosen.1, true);
        Some(chosen)
    }
    fn count(&self) -> usize {
        self.is_free.iter().filter(|is_free| **is_free).count()
    }
    /// The free blocks: first frame and order.
    fn listed(&self) -> Vec<(Frame, usize)> {
        let mut listed = Vec::new();
        for (order, list) in self.blocks.lists.iter().enumerate() {
            let mut previous = 0;
            let mut frame = list.get();
            while frame != 0 {
                assert!(listed.len() < COUNT, "a list is a ring");
                let links = (&self.ram).links(frame, order).map(|link| link.get() as Frame);
                assert_eq!(links[1], previous, "way back");
                assert!((&self.ram).is_free(frame, order), "frame {frame} is in the list of order {order}");
                listed.push((frame, order));
                (previous, frame) = (frame, links[0]);
            }
        }
        listed
    }
    fn loose(&self) -> Vec<Frame> {
        let some = |frame: Frame| (frame != 0).then_some(frame);
        let next = |frame: &Frame| some((&self.ram).links(*frame, 0)[0].get() as Frame);
        core::iter::successors(some(self.blocks.loose.get()), next).collect()
    }
    fn clear(&self) -> Vec<Frame> {
        let kept = &self.blocks.cleared[..self.blocks.cleared_count.get()];
        kept.iter().map(|frame| frame.get() as Frame).collect()
    }
    /// Each free frame is in one place, and nothing else is in any.
    fn check(&self) {
        let mut found = std::vec![false; COUNT];
        let singles = [self.loose(), self.clear()].concat().into_iter().map(|frame| (frame, 0));
        for (frame, order) in self.listed().into_iter().chain(singles) {
            assert_eq!(frame % (1 << order), 0, "alignment");
            for frame in frame..frame + (1 << order) {
                assert!(!core::mem::replace(&mut found[frame - self.ram.first], true), "frame {frame} is free twice");
            }
        }
        assert!(found == self.is_free, "what is free");
        assert_eq!(self.blocks.free(), self.count());
        assert!(self.clear().into_iter().all(|frame| self.ram.is_clear(frame)), "what is kept clear");
    }
    /// Whether 2^order frames that could be a block are free.
    fn has_room(&self, order: usize) -> bool {
        let frames = 1 << order;
        let first = self.ram.first.next_multiple_of(frames);
        let places = (first..self.ram.first + COUNT + 1 - frames).step_by(frames).map(|frame| frame - self.ram.first);
        places.into_iter().any(|place| !self.is_free[place..place + frames].contains(&false))
    }
    /// Nothing is kept one by one any more, and all buddies are joined.
    fn join_all(&mut self) {
        self.taken.drain(..).collect::<Vec<_>>().into_iter().for_each(|(frame, order)| {
            self.mark(frame, order, true);
            self.blocks.give(&self.ram, frame, order);
        });
        let all: Vec<Frame> = core::iter::from_fn(|| self.blocks.take(&self.ram, 0)).collect();
        assert_eq!((all.len(), self.blocks.free()), (self.count(), 0), "exhaustion");
        all.into_iter().for_each(|frame| self.blocks.give_block(&self.ram, frame, 0));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Take(usize),
    TakeOne,
    TakeClear,
    Give(Index),
    /// If it is a single frame, and it was filled with zeros.
    GiveClear(Index),
    ClearAhead(usize),
    Loosen,
    Prepare(usize),
}

/// Steps, those of `Prepare` among them if asked for.
fn steps(prepare: u32) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..4usize).prop_map(Step::Take),
        2 => (0..=ORDERS).prop_map(Step::Take),
        2 => Just(Step::TakeOne),
        1 => Just(Step::TakeClear),
        4 => any::<Index>().prop_map(Step::Give),
        2 => any::<Index>().prop_map(Step::GiveClear),
        2 => (0..CLEARED + 2).prop_map(Step::ClearAhead),
        1 => Just(Step::Loosen),
        prepare => (0..=ORDERS).prop_map(Step::Prepare),
    ];
    prop::collection::vec(step, 0..STEPS)
}

fn apply(step: Step, world: &mut World) {
    match step {
        Step::Take(order) => {
            let (may, frame) = (order < ORDERS && world.has_room(order), world.blocks.take(&world.ram, order));
            assert!(if order == 0 { frame.is_some() == may } else { frame.is_none() || may }, "order {order}");
            world.took(frame, order);
        }
        Step::TakeOne => {
            let frame = world.blocks.take_one(&world.ram);
            assert!(frame.is_some() || world.count() == world.blocks.cleared_count.get());
            world.took(frame, 0);
        }
        Step::TakeClear => {
            let frame = world.blocks.take_clear();
            assert!(frame.is_none_or(|frame| world.ram.is_clear(frame)));
            world.took(frame, 0);
        }
        Step::Give(which) => {
            if let Some((frame, order)) = world.chosen(which) {
                world.blocks.give(&world.ram, frame, order);
            }
        }
        Step::GiveClear(which) => match world.chosen(which) {
            Some((frame, 0)) => {
                world.ram.clear(frame);
                world.blocks.give_clear(&world.ram, frame);
            }
            Some((frame, order)) => world.blocks.give(&world.ram, frame, order),
            None => {}
        },
        Step::ClearAhead(most) => {
            let before = world.clear().len();
            let done = world.blocks.clear_ahead(&world.ram, most, |frame| world.ram.clear(frame));
            assert_eq!(world.clear().len(), before + usize::from(done));
            assert!(!done || before < most.min(CLEARED));
        }
        Step::Loosen => {
            let (before, had_one) = (world.loose().len(), !world.listed().is_empty());
            assert_eq!(world.blocks.loosen(&world.ram, 0), had_one);
            assert_eq!(world.loose().len(), before + usize::from(had_one));
        }
        Step::Prepare(order) => {
            let before = world.loose().len() + world.clear().len();
            let done = world.blocks.prepare(&world.ram, order);
            let after = world.loose().len() + world.clear().len();
            assert!(before.saturating_sub(after) <= JOINED && (order < ORDERS || !done), "a step is short");
            assert!(
                after.saturating_sub(before) <= if order == 0 { 1 << super::FEW_ORDER } else { 0 },
                "a step is short"
            );
        }
    }
}

fn first() -> impl Strategy<Value = Frame> {
    prop_oneof![Just(0), Just(1000)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(96), ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "looks at all frames again and again")]
    fn each_frame_is_taken_once_and_all_are_joined_again(first in first(), steps in steps(2)) {
        let mut world = World::new(first);
        let mut whole = world.listed();
        world.check();
        for step in steps {
            apply(step, &mut world);
            world.check();
        }
        world.join_all();
        world.check();
        let mut joined = world.listed();
        whole.sort_unstable();
        joined.sort_unstable();
        prop_assert_eq!(joined, whole);
    }

    /// In steps of a few frames each.
    #[test]
    #[cfg_attr(miri, ignore = "looks at all frames again and again")]
    fn a_prepared_block_is_available(first in first(), steps in steps(0), order in 1..ORDERS) {
        let mut world = World::new(first);
        steps.into_iter().for_each(|step| apply(step, &mut world));
        let count = (0..).take_while(|_| world.blocks.prepare(&world.ram, order)).count();
        world.check();
        prop_assert!(count <= COUNT.div_ceil(JOINED) + 1);
        let (has_room, frame) = (world.has_room(order), world.blocks.take(&world.ram, order));
        prop_assert_eq!(frame.is_some(), has_room);
    }
}

#[test]
fn single_frames_are_prepared() {
    let mut world = World::new(0);
    while world.blocks.lists[2].get() != 0 {
        let block = world.blocks.take(&world.ram, 2);
        world.took(block, 2);
    }
    assert!(world.blocks.prepare(&world.ram, 0), "a larger block is split");
    assert!(world.loose().is_empty() && world.blocks.lists[2].get() != 0);
    assert!(world.blocks.prepare(&world.ram, 0), "its frames are loose");
    assert_eq!(world.loose().len(), 4);
    assert!(!world.blocks.prepare(&world.ram, 0), "three are loose");
    world.check();
}

#[test]
#[should_panic(expected = "is free twice")]
fn a_frame_that_is_given_twice_is_seen() {
    let mut world = World::new(1000);
    let frame = world.blocks.take(&world.ram, 0).expect("there is one");
    world.took(Some(frame), 0);
    (0..2).for_each(|_| world.blocks.give_clear(&world.ram, frame));
    world.check();
}
