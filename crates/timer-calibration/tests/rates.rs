//! Disturbed measurements are dropped: a clock that stands still while it is measured gives no rate.

use proptest::prelude::*;
use timer_calibration::{Measurement, undisturbed};

/// Counts of both clocks in a measurement that nothing disturbs.
const INNER: u64 = 1_000_000;
const OUTER: u64 = 62_500;
/// Inner counts per outer count.
const RATIO: u64 = INNER / OUTER;
const MOST: usize = 32;

/// The machine stands still for so many inner counts: before the first reading, though the interval has begun; between the
/// readings at the start; while both clocks are looked at; between the readings at the end.
fn disturbed([before, begin, middle, end]: [u64; 4]) -> Measurement {
    let interval = INNER - before.min(INNER - 1000);
    Measurement { inner: interval + middle, outer: (interval + begin + middle + end) / RATIO }
}

fn measured(stops: &[[u64; 4]]) -> (Measurement, usize) {
    let mut taken = 0;
    let found = undisturbed::<MOST>(|| {
        taken += 1;
        disturbed(stops.get(taken - 1).copied().unwrap_or_default())
    });
    (found, taken)
}

const TRUE: Measurement = Measurement { inner: INNER, outer: OUTER };

#[test]
fn two_that_agree_suffice() {
    assert_eq!(measured(&[]), (TRUE, 2));
}

#[test]
fn standing_still_is_noticed_wherever_it_is() {
    for place in 0..4 {
        let stop = |time| {
            let mut stop = [0; 4];
            stop[place] = time;
            stop
        };
        assert_eq!(measured(&[stop(800_000)]), (TRUE, 3), "{place}, first");
        assert_eq!(measured(&[[0; 4], stop(800_000)]), (TRUE, 3), "{place}, second");
        assert_eq!(measured(&[stop(800_000), [0; 4], stop(400_000)]), (TRUE, 4), "{place}, around");
        assert_eq!(measured(&[stop(800_000), stop(400_000)]), (TRUE, 4), "{place}, twice");
    }
}

#[test]
fn constant_disturbance_gives_the_middle_value() {
    let mut time = 0;
    let found = undisturbed::<MOST>(|| {
        time += 500_000;
        disturbed([0, time, 0, 0])
    });
    assert_eq!(found, disturbed([0, 17 * 500_000, 0, 0]));
}

proptest! {
    #[test]
    fn the_result_was_measured_twice(stops in prop::collection::vec(prop::array::uniform4(0..20_000_000u64), 0..MOST - 2)) {
        let (found, taken) = measured(&stops);
        prop_assert!(taken <= stops.len() + 2);
        let all = (0..taken).map(|number| disturbed(stops.get(number).copied().unwrap_or_default()));
        let near = |one: u64, other: u64| one.abs_diff(other) * 100 <= one;
        let alike = all.filter(|one| near(one.inner, found.inner) && near(one.outer, found.outer)).count();
        prop_assert!(alike >= 2);
    }
}
