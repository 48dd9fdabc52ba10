//! When to ask: seldom, and ever more seldom where nobody answers (RFC 4330, section 10).

use crate::Bad;

/// Seconds between the first questions that nobody answers; each further one doubles them.
const FIRST: u64 = 4;
/// Seconds between questions once somebody answered.
const REGULAR: u64 = 1_024;
/// Seconds between questions that nobody answers, in the end.
const SELDOM: u64 = 8_192;
/// Seconds between questions to a server that does not want any.
const UNWANTED: u64 = 86_400;

/// The outcome of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was answered.
    Answered,
    /// Nobody answered anything that can be accepted.
    Silence,
    /// The answer was this.
    Refused(Bad),
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// Seconds of the last pause.
    pause: u64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new()
    }
}

impl Schedule {
    /// Nothing was asked yet.
    pub const fn new() -> Self {
        Self { pause: 0 }
    }

    /// How long to wait after this, in seconds.
    pub fn after(&mut self, outcome: Outcome) -> u64 {
        self.pause = match outcome {
            Outcome::Answered => REGULAR,
            Outcome::Refused(Bad::Kiss(code)) => match &code {
                b"DENY" | b"RSTR" => UNWANTED,
                // RATE above all, but also those that there are not yet: less often than before, whatever was.
                _ => (2 * self.pause.max(REGULAR)).min(UNWANTED),
            },
            Outcome::Refused(_) | Outcome::Silence => (2 * self.pause).clamp(FIRST, SELDOM.max(self.pause)),
        };
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_asked_into_ever_more_seldom() {
        let mut schedule = Schedule::new();
        let pauses: [u64; 14] = core::array::from_fn(|_| schedule.after(Outcome::Silence));
        assert_eq!(pauses, [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 8192, 8192]);
        // So a day without a server costs some twenty datagrams.
        assert_eq!(schedule.after(Outcome::Answered), REGULAR);
        assert_eq!(schedule.after(Outcome::Refused(Bad::NotSet)), 2 * REGULAR);
    }

    #[test]
    fn refusals_are_heeded() {
        let mut schedule = Schedule::new();
        let refused = |code: &[u8; 4]| Outcome::Refused(Bad::Kiss(*code));
        assert_eq!(schedule.after(refused(b"RATE")), 2 * REGULAR);
        assert_eq!(schedule.after(refused(b"RATE")), 4 * REGULAR);
        assert_eq!(schedule.after(refused(b"DENY")), UNWANTED);
        // Silence after that is no reason to ask more often.
        assert_eq!(schedule.after(Outcome::Silence), UNWANTED);
        assert_eq!(schedule.after(refused(b"WHAT")), UNWANTED);
        let mut other = Schedule::new();
        assert_eq!(other.after(refused(b"RSTR")), UNWANTED);
    }
}
