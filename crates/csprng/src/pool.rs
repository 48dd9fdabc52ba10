//! A generator, what contributed to it, and when it wants to be seeded.

use crate::{Generator, Health, KEY_BYTES, Unhealthy};

/// Bytes of a whole seed of one source.
pub const SEED_BYTES: usize = 48;
/// Sources that a pool distinguishes.
pub const SOURCES: usize = 2;
/// It wants to be seeded again after so many bytes,
pub const RESEED_BYTES: u64 = 1 << 20;
/// or after so many nanoseconds.
pub const RESEED_NANOSECONDS: u64 = 300_000_000_000;
/// Sources are not asked more often than once in this time. Once it was seeded the time doubles whenever none of them gives anything,
/// up to the longest: who asks for numbers waits for the sources meanwhile.
pub const RETRY_NANOSECONDS: u64 = 1_000_000_000;
pub const LONGEST_RETRY_NANOSECONDS: u64 = 64 * RETRY_NANOSECONDS;

const _: () = assert!(SEED_BYTES >= KEY_BYTES);

/// No source has contributed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotReady;

/// The sources to ask now: a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due(u64);

impl Due {
    /// Is this source to be asked?
    pub fn includes(self, source: usize) -> bool {
        self.0 >> source & 1 != 0
    }
}

/// See the module.
pub struct Pool {
    generator: Generator,
    health: [Health; SOURCES],
    /// A bit for each source that contributed a whole seed.
    contributed: u64,
    seeds: u64,
    /// Bytes given since the last seed.
    given: u64,
    /// When it was last seeded, and when a source was last asked; `None` = never.
    seeded: Option<u64>,
    asked: Option<u64>,
    /// How long the sources are not asked again.
    retry: u64,
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl Pool {
    /// One that gives nothing yet.
    pub const fn new() -> Self {
        const HEALTH: Health = Health::new();
        Self {
            generator: Generator::new(),
            health: [HEALTH; SOURCES],
            contributed: 0,
            seeds: 0,
            given: 0,
            seeded: None,
            asked: None,
            retry: RETRY_NANOSECONDS,
        }
    }

    /// Which sources should be asked at this time (nanoseconds, monotonic): all when it wants to be seeded, else
    /// those that have not contributed; none if any was asked shortly before: see [`RETRY_NANOSECONDS`]. To ask is to be
    /// followed by [`Pool::contribute`].
    pub fn due(&mut self, now: u64) -> Due {
        let passed = |since: Option<u64>, time: u64| since.is_none_or(|since| now.saturating_sub(since) >= time);
        let all = (1 << SOURCES) - 1;
        let old = self.given >= RESEED_BYTES || passed(self.seeded, RESEED_NANOSECONDS);
        let due = if old { all } else { all & !self.contributed };
        if due == 0 || !passed(self.asked, self.retry) {
            return Due(0);
        }
        self.asked = Some(now);
        Due(due)
    }

    /// Mixes in what the sources gave by this time, when all of them have answered, each at most one whole seed; `salt` is mixed in too and
    /// counts for nothing. Less than a whole seed, or one of an unhealthy source, counts for nothing either.
    pub fn contribute(&mut self, now: u64, given: [&[u8]; SOURCES], salt: &[u8]) -> [Result<bool, Unhealthy>; SOURCES] {
        let mut outcome = [Ok(false); SOURCES];
        // From now on, not from when they were asked: a source may take as long as the time between two.
        self.asked = self.asked.map(|asked| asked.max(now));
        for source in 0..SOURCES {
            outcome[source] = self.health[source].check(given[source]).map(|()| given[source].len() >= SEED_BYTES);
        }
        // A bad contribution does no harm in the mix.
        self.generator.mix(&[&now.to_le_bytes(), given[0], given[1], salt]);
        for (source, outcome) in outcome.iter().enumerate() {
            match outcome {
                Ok(true) => self.contributed |= 1 << source,
                Ok(false) => {}
                Err(_) => self.contributed &= !(1 << source),
            }
        }
        if outcome.contains(&Ok(true)) {
            self.seeds += 1;
            self.given = 0;
            self.seeded = Some(now);
            self.retry = RETRY_NANOSECONDS;
        } else if self.seeds != 0 {
            self.retry = (2 * self.retry).min(LONGEST_RETRY_NANOSECONDS);
        }
        outcome
    }

    /// Fills the buffer, if it was ever seeded.
    pub fn fill(&mut self, into: &mut [u8]) -> Result<(), NotReady> {
        if self.seeds == 0 {
            return Err(NotReady);
        }
        self.generator.fill(into);
        self.given = self.given.saturating_add(into.len() as u64);
        Ok(())
    }

    /// A bit for each source that contributed and is healthy.
    pub fn contributed(&self) -> u64 {
        self.contributed
    }

    /// How often it was seeded.
    pub fn seeds(&self) -> u64 {
        self.seeds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A seed that looks healthy.
    fn seed(number: u8) -> [u8; SEED_BYTES] {
        let (mut generator, mut bytes) = (Generator::new(), [0; SEED_BYTES]);
        generator.mix(&[&[number]]);
        generator.fill(&mut bytes);
        bytes
    }

    fn asked(pool: &mut Pool, now: u64) -> [bool; SOURCES] {
        let due = pool.due(now);
        core::array::from_fn(|source| due.includes(source))
    }

    #[test]
    fn nothing_is_given_before_a_whole_seed() {
        let (mut pool, mut bytes) = (Pool::new(), [0; 8]);
        assert_eq!(pool.fill(&mut bytes), Err(NotReady));
        let _ = pool.contribute(0, [&[], &[]], b"salt");
        assert_eq!(pool.fill(&mut bytes), Err(NotReady));
        // Too little, or broken.
        assert_eq!(pool.contribute(1, [&seed(1)[1..], &[]], b"")[0], Ok(false));
        assert_eq!(pool.contribute(2, [&[], &[0; SEED_BYTES]], b"")[1], Err(Unhealthy::Stuck));
        assert_eq!((pool.fill(&mut bytes), bytes, pool.contributed()), (Err(NotReady), [0; 8], 0));
        // A good one.
        assert_eq!(pool.contribute(3, [&seed(2), &[]], b"")[0], Ok(true));
        assert_eq!((pool.fill(&mut bytes), pool.contributed(), pool.seeds()), (Ok(()), 1, 1));
        assert_ne!(bytes, [0; 8]);
    }

    #[test]
    fn either_source_alone_is_enough() {
        for source in 0..SOURCES {
            let (mut pool, seed) = (Pool::new(), seed(4));
            let given = core::array::from_fn(|other| if other == source { &seed[..] } else { &[] });
            let _ = pool.contribute(0, given, b"");
            assert_eq!(pool.contributed(), 1 << source);
            assert!(pool.fill(&mut [0; 4]).is_ok());
        }
    }

    #[test]
    fn a_source_that_breaks_counts_no_longer_but_the_seed_does() {
        let mut pool = Pool::new();
        let _ = pool.contribute(0, [&seed(1), &seed(2)], b"");
        assert_eq!(pool.contributed(), 3);
        let outcome = pool.contribute(1, [&[0xff; SEED_BYTES], &[]], b"");
        assert_eq!((outcome[0], pool.contributed()), (Err(Unhealthy::Stuck), 2));
        assert!(pool.fill(&mut [0; 4]).is_ok());
        // Even if it gives good data later.
        assert!(pool.contribute(2, [&seed(3), &[]], b"")[0].is_err());
        assert_eq!(pool.contributed(), 2);
    }

    #[test]
    fn it_is_reseeded_after_time_and_volume() {
        let mut pool = Pool::new();
        assert_eq!(asked(&mut pool, 0), [true, true]);
        let _ = pool.contribute(0, [&seed(1), &seed(2)], b"");
        assert_eq!(asked(&mut pool, RESEED_NANOSECONDS - 1), [false, false]);
        assert_eq!(asked(&mut pool, RESEED_NANOSECONDS), [true, true]);
        let _ = pool.contribute(RESEED_NANOSECONDS, [&seed(3), &seed(4)], b"");
        let (mut given, mut block, later) = (0, [0; 1024], RESEED_NANOSECONDS + SECOND);
        while given < RESEED_BYTES {
            assert_eq!(asked(&mut pool, later), [false, false], "after {given} bytes");
            pool.fill(&mut block).unwrap();
            given += block.len() as u64;
        }
        assert_eq!(asked(&mut pool, later), [true, true]);
        // Nobody answered: later requests do not wait for that each time.
        let _ = pool.contribute(later, [&[], &[]], b"");
        assert_eq!(asked(&mut pool, later + 2 * SECOND - 1), [false, false]);
        assert_eq!(asked(&mut pool, later + 2 * SECOND), [true, true]);
    }

    #[test]
    fn a_source_that_answers_late_and_never_gives_is_asked_more_and_more_seldom() {
        let mut pool = Pool::new();
        let mut now = 0;
        assert_eq!(asked(&mut pool, now), [true, true]);
        now += SECOND;
        let _ = pool.contribute(now, [&seed(1), &[]], b"");
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert_eq!(asked(&mut pool, now + seconds * SECOND - 1), [false, false], "after {seconds} seconds");
            now += seconds * SECOND;
            assert_ne!(asked(&mut pool, now), [false, false], "after {seconds} seconds");
            // The answer takes a second.
            now += SECOND;
            let _ = pool.contribute(now, [&[], &[]], b"");
        }
        now += 64 * SECOND;
        assert!(asked(&mut pool, now)[1]);
        let _ = pool.contribute(now, [&[], &seed(2)], b"");
        assert_eq!((pool.contributed(), pool.retry), (3, RETRY_NANOSECONDS));
    }

    #[test]
    fn idle_sources_are_asked_once_a_second() {
        let mut pool = Pool::new();
        assert_eq!(asked(&mut pool, 0), [true, true]);
        let _ = pool.contribute(0, [&seed(1), &[]], b"");
        assert_eq!(asked(&mut pool, SECOND - 1), [false, false]);
        assert_eq!(asked(&mut pool, SECOND), [false, true]);
        assert_eq!(asked(&mut pool, SECOND + 1), [false, false]);
        let _ = pool.contribute(SECOND + 1, [&[], &seed(2)], b"");
        assert_eq!(asked(&mut pool, 3 * SECOND), [false, false]);
    }

    #[test]
    fn without_any_source_it_asks_once_a_second() {
        let mut pool = Pool::new();
        assert_eq!(asked(&mut pool, 5), [true, true]);
        let _ = pool.contribute(5, [&[], &[]], b"");
        assert_eq!(asked(&mut pool, 6), [false, false]);
        assert_eq!(asked(&mut pool, 5 + SECOND), [true, true]);
    }

    #[test]
    fn the_same_seeds_at_another_time_give_something_else() {
        let draw = |now| {
            let (mut pool, mut bytes) = (Pool::new(), [0; 32]);
            let _ = pool.contribute(now, [&seed(1), &seed(2)], b"");
            pool.fill(&mut bytes).unwrap();
            bytes
        };
        assert_ne!(draw(1), draw(2));
    }
}
