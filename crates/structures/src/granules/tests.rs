//! Against an array of `bool`.

use super::{Granules, HALF, MOST, mask, taken};
use crate::STEPS;
use core::cell::Cell;
use proptest::prelude::*;
use std::vec::Vec;

const PAGE: usize = 64;

/// Which granules are in use.
#[derive(Clone)]
struct Model([bool; PAGE]);

impl Model {
    /// The first free run.
    fn take(&mut self, count: usize) -> Option<usize> {
        let first = (1..=PAGE - count).find(|first| !self.0[*first..first + count].contains(&true))?;
        self.0[first..first + count].fill(true);
        Some(first)
    }
}

fn take(granules: &Granules, count: u32) -> Option<usize> {
    let first = match count {
        1 => granules.take::<1>(),
        2 => granules.take::<2>(),
        3 => granules.take::<3>(),
        4 => granules.take::<4>(),
        8 => granules.take::<8>(),
        12 => granules.take::<12>(),
        HALF => granules.take::<HALF>(),
        MOST => granules.take::<MOST>(),
        _ => panic!("nothing takes {count} granules"),
    };
    first.map(|first| first as usize)
}

fn check(granules: &Granules, model: &Model) {
    for (place, used) in model.0.iter().enumerate() {
        let is_free = granules.has_any(mask(1) << place);
        assert_eq!(is_free, place != 0 && !used, "granule {place}");
    }
    assert_eq!(granules.is_full(), model.0[1..].iter().all(|used| *used), "full");
    assert_eq!(granules.is_empty(), !model.0[1..].contains(&true), "empty");
}

#[derive(Clone, Debug)]
enum Step {
    /// An object of so many granules.
    Take(u32),
    /// Of those that there are, the one at this place.
    Give(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..=MOST).prop_map(Step::Take),
        (1u32..5).prop_map(Step::Take),
        any::<prop::sample::Index>().prop_map(Step::Give)
    ]
}

proptest! {
    #[test]
    fn granules_are_an_array_of_bool(first in 1..=MOST, steps in prop::collection::vec(step(), 0..STEPS)) {
        let (granules, mut model) = (Granules(Cell::new(0x5555)), Model([false; PAGE]));
        granules.begin(taken(first));
        let mut objects: Vec<(usize, u32)> = Vec::from([(1, taken(first))]);
        model.take(taken(first) as usize);
        check(&granules, &model);
        for step in steps {
            match step {
                Step::Take(count) => {
                    let count = taken(count);
                    let place = take(&granules, count);
                    prop_assert_eq!(place, model.take(count as usize));
                    objects.extend(place.map(|place| (place, count)));
                }
                Step::Give(which) if !objects.is_empty() => {
                    let (place, count) = objects.swap_remove(which.index(objects.len()));
                    granules.give(mask(count) << place);
                    model.0[place..place + count as usize].fill(false);
                }
                Step::Give(_) => {}
            }
            check(&granules, &model);
        }
        objects.into_iter().for_each(|(place, count)| granules.give(mask(count) << place));
        prop_assert!(granules.is_empty());
    }
}

#[test]
fn rounded_sizes_have_room_and_are_fixed_points() {
    for count in 1..=MOST {
        assert!(taken(count) >= count && taken(taken(count)) == taken(count), "{count} granules");
    }
}

#[test]
#[should_panic(expected = "granule 5")]
fn a_granule_that_is_given_too_much_is_seen() {
    let (granules, mut model) = (Granules(Cell::new(0)), Model([false; PAGE]));
    granules.begin(8);
    model.take(8);
    granules.give(1 << 5);
    check(&granules, &model);
}
