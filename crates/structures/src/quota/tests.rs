//! Against a tree of numbers.

use super::{Paying, Quota};
use crate::STEPS;
use abi::{Error, MAX_ACCOUNT_DEPTH};
use core::cell::Cell;
use proptest::prelude::*;
use std::boxed::Box;
use std::vec::Vec;

/// An account that lies in a frame for which its parent pays, as it does in the nucleus.
struct Account {
    quota: Quota<Pointer>,
    has_ended: Cell<bool>,
}

#[derive(Clone, Copy)]
struct Pointer(&'static Account);

impl PartialEq for Pointer {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

impl Paying for Pointer {
    fn exhausted(self) -> Error {
        Error::AccountExhausted
    }
    fn quota(&self) -> &Quota<Self> {
        assert!(!self.0.has_ended.get(), "is used after its end");
        &self.0.quota
    }
    fn end(self) {
        let parent = self.quota().parent;
        self.0.has_ended.set(true);
        parent.expect("the root stays").uncharge(1);
    }
}

fn account(quota: Quota<Pointer>) -> Pointer {
    Pointer(Box::leak(Box::new(Account { quota, has_ended: Cell::new(false) })))
}

const TOTAL: usize = 1000;

/// The expected state of an account.
struct Place {
    limit: usize,
    charged: usize,
    parent: Option<usize>,
    depth: usize,
    threads: usize,
    most: usize,
    is_ownerless: bool,
    has_ended: bool,
}

struct World {
    accounts: Vec<Pointer>,
    model: Vec<Place>,
}

impl World {
    fn new() -> Self {
        let root = account(Quota::root());
        root.quota().limit.set(TOTAL);
        let mut world = Self { accounts: std::vec![root], model: Vec::new() };
        world.note(TOTAL, None, 0, u16::MAX as usize);
        world
    }
    fn note(&mut self, limit: usize, parent: Option<usize>, depth: usize, most: usize) {
        let (charged, threads, is_ownerless, has_ended) = (0, 0, false, false);
        self.model.push(Place { limit, charged, parent, depth, threads, most, is_ownerless, has_ended });
    }
    fn children(&self, of: usize) -> impl Iterator<Item = usize> {
        (0..self.model.len())
            .filter(move |other| self.model[*other].parent == Some(of) && !self.model[*other].has_ended)
    }
    fn used(&self, of: usize) -> usize {
        self.model[of].charged + self.children(of).map(|child| self.model[child].limit).sum::<usize>()
    }
    fn left(&self, of: usize) -> usize {
        self.model[of].limit - self.used(of)
    }
    fn threads(&self, of: usize) -> usize {
        let below = (0..self.model.len()).filter(|other| self.model[*other].parent == Some(of));
        self.model[of].threads + below.map(|child| self.threads(child)).sum::<usize>()
    }
    fn above(&self, of: usize) -> impl Iterator<Item = usize> {
        core::iter::successors(Some(of), |account| self.model[*account].parent)
    }
    /// Accounts without owners shrink, and end, until none of them changes any more.
    fn end_ownerless(&mut self) {
        let is_late = |world: &Self, of: usize| {
            let place = &world.model[of];
            place.is_ownerless && !place.has_ended && (world.left(of) > 0 || world.used(of) == 0)
        };
        while let Some(of) = (1..self.model.len()).find(|of| is_late(self, *of)) {
            self.model[of].limit = self.used(of);
            if self.used(of) == 0 {
                self.model[of].has_ended = true;
                let parent = self.model[of].parent.expect("is not the root");
                self.model[parent].charged -= 1;
            }
        }
    }
    fn check(&self) {
        let mut sum = 0;
        for (number, (account, place)) in self.accounts.iter().zip(&self.model).enumerate() {
            assert_eq!(account.0.has_ended.get(), place.has_ended, "account {number} has ended");
            if place.has_ended {
                continue;
            }
            let quota = account.quota();
            assert_eq!((quota.limit.get(), quota.used.get()), (place.limit, self.used(number)), "account {number}");
            assert_eq!(quota.numbers.get() as usize, self.threads(number), "numbers of account {number}");
            assert!(quota.numbers.get() <= quota.most_numbers);
            sum += place.charged + account.left();
        }
        assert_eq!(sum, TOTAL, "each frame is charged or left");
    }
    fn is_owned(&self, of: usize) -> bool {
        of < self.model.len() && !self.model[of].is_ownerless
    }
}

#[derive(Clone, Debug)]
enum Step {
    Charge(usize, usize),
    Uncharge(usize, usize),
    Child(usize, usize, u64),
    Move(usize, usize, usize),
    Disown(usize),
    /// A thread begins, whose object takes a frame.
    Begin(usize),
    Exit(usize),
}

const MANY: usize = 30;

fn step() -> impl Strategy<Value = Step> {
    let account = || 0..MANY;
    // The last or one of the first, so that chains get long.
    let parent = prop_oneof![Just(usize::MAX), account()];
    prop_oneof![
        3 => (account(), 0..40usize).prop_map(|(of, frames)| Step::Charge(of, frames)),
        3 => (account(), 0..40usize).prop_map(|(of, frames)| Step::Uncharge(of, frames)),
        4 => (parent, 0..300usize, 0..5u64).prop_map(|(of, limit, numbers)| Step::Child(of, limit, numbers)),
        2 => (account(), account(), 0..300usize).prop_map(|(from, to, frames)| Step::Move(from, to, frames)),
        1 => account().prop_map(Step::Disown),
        3 => account().prop_map(Step::Begin),
        2 => account().prop_map(Step::Exit),
    ]
}

fn child(of: usize, limit: usize, numbers: u64, world: &mut World) {
    let parent = world.accounts[of];
    // Its own frame first.
    if world.left(of) < 1 {
        assert_eq!(parent.check(1), Err(Error::AccountExhausted));
        return;
    }
    parent.charge(1);
    world.model[of].charged += 1;
    match parent.child(limit, numbers) {
        Ok(quota) => {
            assert!(world.model[of].depth < MAX_ACCOUNT_DEPTH && limit <= world.left(of));
            world.accounts.push(account(quota));
            world.note(
                limit,
                Some(of),
                world.model[of].depth + 1,
                if numbers == 0 { u16::MAX.into() } else { numbers as usize },
            );
        }
        Err(error) => {
            let is_deep = world.model[of].depth == MAX_ACCOUNT_DEPTH;
            assert_eq!(error, if is_deep { Error::AccountsTooNested } else { Error::AccountExhausted });
            assert!(is_deep || limit > world.left(of));
            parent.uncharge(1);
            world.model[of].charged -= 1;
        }
    }
}

fn move_to(from: usize, to: usize, frames: usize, world: &mut World) {
    let result = world.accounts[from].move_to(world.accounts[to], frames);
    if frames > world.left(from) {
        assert_eq!(result, Err(Error::AccountExhausted));
    } else if world.model[to].parent == Some(from) {
        assert_eq!(result, Ok(()));
        world.model[to].limit += frames;
    } else if world.model[from].parent == Some(to) {
        assert_eq!(result, Ok(()));
        world.model[from].limit -= frames;
    } else {
        assert_eq!(result, Err(Error::NotParent));
    }
}

fn begin(of: usize, world: &mut World) {
    let account = world.accounts[of];
    if account.check(1).is_err() {
        return;
    }
    let has_room = world.above(of).all(|above| world.threads(above) < world.model[above].most);
    assert_eq!(account.take_number(), if has_room { Ok(()) } else { Err(Error::AccountThreads) });
    if has_room {
        account.charge(1);
        world.model[of].charged += 1;
        world.model[of].threads += 1;
    }
}

fn apply(step: Step, world: &mut World) {
    match step {
        Step::Charge(of, frames) if of < world.model.len() && !world.model[of].has_ended => {
            let result = world.accounts[of].check(frames);
            assert_eq!(result.is_ok(), frames <= world.left(of));
            if result.is_ok() {
                world.accounts[of].charge(frames);
                world.model[of].charged += frames;
            }
        }
        Step::Uncharge(of, frames) if of < world.model.len() && !world.model[of].has_ended => {
            // Not those of threads, and of the accounts below.
            let kept = world.model[of].threads + world.children(of).count();
            let frames = frames.min(world.model[of].charged - kept);
            if frames > 0 {
                world.model[of].charged -= frames;
                world.accounts[of].uncharge(frames);
            }
        }
        Step::Child(of, limit, numbers) => {
            let of = of.min(world.model.len() - 1);
            if world.is_owned(of) && world.model.len() < MANY {
                child(of, limit, numbers, world);
            }
        }
        Step::Move(from, to, frames) if world.is_owned(from) && world.is_owned(to) => move_to(from, to, frames, world),
        Step::Disown(of) if of != 0 && world.is_owned(of) => {
            world.model[of].is_ownerless = true;
            world.accounts[of].disown();
        }
        Step::Begin(of) if world.is_owned(of) => begin(of, world),
        Step::Exit(of) if of < world.model.len() && world.model[of].threads > 0 => {
            world.model[of].threads -= 1;
            world.model[of].charged -= 1;
            world.accounts[of].release_number();
            world.accounts[of].uncharge(1);
        }
        _ => {}
    }
    world.end_ownerless();
}

proptest! {
    #[test]
    fn frames_are_somebodys_and_go_back_up(steps in prop::collection::vec(step(), 0..STEPS)) {
        let mut world = World::new();
        for step in steps {
            apply(step, &mut world);
            world.check();
        }
        // All goes: everything is the root's again.
        for of in 0..world.model.len() {
            (0..world.model[of].threads).for_each(|_| apply(Step::Exit(of), &mut world));
            apply(Step::Disown(of), &mut world);
        }
        for of in (0..world.model.len()).rev() {
            apply(Step::Uncharge(of, TOTAL), &mut world);
            world.check();
        }
        prop_assert_eq!(world.accounts[0].left(), TOTAL);
    }
}

/// A chain as deep as it may be.
fn chain() -> World {
    let mut world = World::new();
    (0..MAX_ACCOUNT_DEPTH).for_each(|of| child(of, 500 - 20 * of, 0, &mut world));
    world
}

#[test]
fn a_chain_of_accounts_ends_from_below() {
    let mut world = chain();
    assert_eq!(world.accounts[MAX_ACCOUNT_DEPTH].check_depth(), Err(Error::AccountsTooNested));
    apply(Step::Charge(MAX_ACCOUNT_DEPTH, 3), &mut world);
    (1..=MAX_ACCOUNT_DEPTH).for_each(|of| apply(Step::Disown(of), &mut world));
    world.check();
    // Those above pay for what the ones below lie in, and for the three frames.
    assert_eq!(world.accounts[0].quota().used.get(), MAX_ACCOUNT_DEPTH + 3);
    apply(Step::Uncharge(MAX_ACCOUNT_DEPTH, 3), &mut world);
    world.check();
    assert_eq!(world.accounts[0].left(), TOTAL);
}

#[test]
#[should_panic(expected = "account 2")]
fn a_frame_too_much_is_seen() {
    let world = chain();
    world.accounts[2].charge(1);
    world.check();
}
