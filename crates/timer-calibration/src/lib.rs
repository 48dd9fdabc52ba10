//! How fast two clocks run, from short measurements of the same interval of a third one.
//!
//! A machine that is an emulated one may stand still at any instant while all clocks go on: in the interval, which is then
//! longer for both; between the readings of the two clocks, so that one of them counts more; before the first reading,
//! when the interval has begun, so that both count less. So neither the shortest nor the longest measurement is the right one.
//! Measurements without an interruption agree in both counts; interrupted ones do not. So two that agree are accepted.
#![no_std]
#![forbid(unsafe_code)]

/// The counts of two clocks during the same interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Measurement {
    /// The clock that is read last at the start and first at the end.
    pub inner: u64,
    /// The clock that is read around the other one.
    pub outer: u64,
}

/// Two measurements agree to one part in this.
const EXACT_TO: u64 = 128;

impl Measurement {
    fn agrees_with(self, other: Self) -> bool {
        let close = |one: u64, other: u64| one.abs_diff(other) <= one.min(other) / EXACT_TO;
        close(self.inner, other.inner) && close(self.outer, other.outer)
    }
}

/// Measures until two agree, at most `MOST` times; if none do, gives the one in the middle.
pub fn undisturbed<const MOST: usize>(mut measure: impl FnMut() -> Measurement) -> Measurement {
    let mut all = [Measurement::default(); MOST];
    for count in 0..MOST {
        let new = measure();
        if all[..count].iter().any(|earlier| earlier.agrees_with(new)) {
            return new;
        }
        all[count] = new;
    }
    // Sorting them would take more code than the rest of the nucleus's clocks together.
    let below = |one: &&Measurement| all.iter().filter(|other| other.outer < one.outer).count();
    all.iter().filter(|one| below(one) <= MOST / 2).max_by_key(|one| one.outer).copied().unwrap_or_default()
}
