//! When a component that died is started again: at once as a rule; after a while if it dies again and again, or dies
//! before it did anything. Each delay is twice the one before; a minute of life makes all forgotten.

/// The first delay, in nanoseconds.
pub const FIRST_DELAY: u64 = 50_000_000;
/// The longest delay, in nanoseconds.
pub const LONGEST_DELAY: u64 = 30_000_000_000;
/// Deaths are counted within so many nanoseconds, and forgotten after as many of life.
pub const MINUTE: u64 = 60_000_000_000;

/// The record of a component's deaths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// When the minute began in which deaths are counted.
    since: u64,
    /// Deaths since then.
    deaths: u64,
    /// The last delay; 0 = none since the last minute of life.
    delay: u64,
}

impl History {
    /// An instance that started at `started` died `now`: nanoseconds until the next one may start. So many deaths within
    /// a minute are answered at once; none, if the instance did nothing.
    pub fn died(&mut self, started: u64, now: u64, at_once: u64) -> u64 {
        if now.saturating_sub(started) >= MINUTE {
            *self = Self::default();
        }
        if now.saturating_sub(self.since) >= MINUTE {
            self.since = now;
            self.deaths = 0;
        }
        self.deaths += 1;
        if self.delay == 0 && self.deaths <= at_once { 0 } else { self.failed() }
    }

    /// It could not be started: nanoseconds until that is tried again.
    pub fn failed(&mut self) -> u64 {
        self.delay = (2 * self.delay).clamp(FIRST_DELAY, LONGEST_DELAY);
        self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn delays_double_up_to_the_longest() {
        let mut history = History::default();
        let delays: [u64; 12] = core::array::from_fn(|_| history.failed() / 1_000_000);
        assert_eq!(delays, [50, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
    }

    #[test]
    fn so_many_deaths_are_answered_at_once() {
        let mut history = History::default();
        let start = 5 * MINUTE;
        let delays: [u64; 5] = core::array::from_fn(|number| history.died(start, start + number as u64, 3));
        assert_eq!(delays, [0, 0, 0, FIRST_DELAY, 2 * FIRST_DELAY]);
    }

    #[test]
    fn a_component_that_did_nothing_is_delayed_from_the_first_death() {
        assert_eq!(History::default().died(MINUTE, MINUTE + 1, 0), FIRST_DELAY);
    }

    #[test]
    fn a_minute_of_life_is_a_new_beginning() {
        let mut history = History::default();
        for _ in 0..9 {
            let _ = history.failed();
        }
        assert_eq!(history.died(0, MINUTE, 1), 0);
        assert_eq!(history.died(MINUTE, MINUTE + 1, 1), FIRST_DELAY);
    }

    proptest! {
        /// However soon each instance dies: so many restarts in any minute, and not one more than the delays leave room
        /// for.
        #[test]
        fn restarts_are_bounded(at_once in 0u64..50, lives in proptest::collection::vec(0..MINUTE / 10, 1..400)) {
            let mut history = History::default();
            let mut now = 0;
            let mut starts = Vec::new();
            for life in lives {
                starts.push(now);
                now += life + history.died(now, now + life, at_once);
            }
            for (place, start) in starts.iter().enumerate() {
                let within = starts[place..].iter().take_while(|other| **other - start < MINUTE).count() as u64;
                // Ten delays until they are as long as they get, twice as many at once around the end of a minute.
                prop_assert!(within <= 2 * at_once + 14, "{within}");
            }
        }
    }
}
