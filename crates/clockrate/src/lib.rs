//! How fast two clocks run, from short measurements of the same stretch of a third one.
//!
//! A machine that is an emulated one may stand still at any instant, between the readings of two clocks, too, while all
//! clocks go on. So each measurement reads one clock, the *outer* one, before and after the other: what disturbs it makes
//! the outer count larger, and the inner one as well if it comes between its readings. The smallest outer count is the
//! least disturbed one. The inner count alone says nothing: it is as short as ever when the machine stands still
//! just outside of its readings, and a timer set by such a pair would be late by as much.
#![no_std]
#![forbid(unsafe_code)]

/// What two clocks counted during the same stretch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measurement {
    /// The clock that is read last at the begin and first at the end.
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

/// Measures until the least disturbed measurement so far is confirmed by another one, at most `most` times.
pub fn undisturbed(most: u32, mut measure: impl FnMut() -> Measurement) -> Measurement {
    let mut best = measure();
    for _ in 1..most {
        let other = measure();
        let agrees = other.agrees_with(best);
        if other.outer < best.outer {
            best = other;
        }
        if agrees {
            break;
        }
    }
    best
}
