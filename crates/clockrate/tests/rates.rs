//! What stands still while it measures is not what is measured.

use clockrate::{Measurement, undisturbed};
use proptest::prelude::*;

/// Counts of both clocks in a measurement that nothing disturbs.
const INNER: u64 = 1_000_000;
const OUTER: u64 = 62_500;
/// Inner counts per outer count.
const RATIO: u64 = INNER / OUTER;

/// The machine stands still for so many inner counts between the readings at the begin, while both clocks are looked
/// at, and between the readings at the end.
fn disturbed([begin, middle, end]: [u64; 3]) -> Measurement {
    Measurement { inner: INNER + middle, outer: OUTER + (begin + middle + end) / RATIO }
}

fn measured(stops: &[[u64; 3]]) -> (Measurement, usize) {
    let mut taken = 0;
    let best = undisturbed(64, || {
        taken += 1;
        disturbed(stops.get(taken - 1).copied().unwrap_or_default())
    });
    (best, taken)
}

const TRUE: Measurement = Measurement { inner: INNER, outer: OUTER };

#[test]
fn two_that_agree_suffice() {
    assert_eq!(measured(&[]), (TRUE, 2));
}

#[test]
fn standing_still_between_two_readings_is_noticed() {
    for stop in [[3_000_000, 0, 0], [0, 0, 3_000_000], [0, 3_000_000, 0], [3_000_000, 0, 3_000_000]] {
        assert_eq!(measured(&[stop]), (TRUE, 3), "{stop:?} first");
        assert_eq!(measured(&[[0; 3], stop]), (TRUE, 3), "{stop:?} second");
        assert_eq!(measured(&[stop, stop.map(|time| time * 2)]), (TRUE, 4), "{stop:?} twice");
    }
}

#[test]
fn who_is_always_disturbed_takes_the_least() {
    let mut time = 33_000_000;
    let best = undisturbed(64, || {
        time -= 500_000;
        disturbed([time, 0, 0])
    });
    assert_eq!(best, disturbed([1_000_000, 0, 0]));
}

proptest! {
    #[test]
    fn the_least_disturbed_is_taken(stops in prop::collection::vec([any::<u32>(), any::<u32>(), any::<u32>()], 0..70)) {
        let stops: Vec<_> = stops.into_iter().map(|stop| stop.map(u64::from)).collect();
        let (best, taken) = measured(&stops);
        let all = (0..taken).map(|number| disturbed(stops.get(number).copied().unwrap_or_default()));
        prop_assert_eq!(Some(best.outer), all.map(|one| one.outer).min());
        // Undisturbed at last: that is what was found, if nothing looked like it before.
        if taken > stops.len() + 1 {
            prop_assert_eq!(best, TRUE);
        }
    }
}
