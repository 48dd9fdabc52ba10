//! A date and a time of day.

use core::fmt;

const DAY: u64 = 86_400;
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// The last second of the year 9999.
pub const LAST_SECOND: u64 = 253_402_300_799;

/// A date and a time of day, in UTC. As text: `2026-01-31T23:59:59Z` (ISO 8601, RFC 3339).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Civil {
    /// 1970 to 9999.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
}

impl Civil {
    /// Of a time in seconds since 1970-01-01; `None` after the year 9999. (H. Hinnant: chrono-compatible
    /// low-level date algorithms; years begin in March there.)
    pub fn from_seconds(seconds: u64) -> Option<Self> {
        if seconds > LAST_SECOND {
            return None;
        }
        let (days, of_day) = (seconds / DAY + 719_468, seconds % DAY);
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        Some(Self {
            year: (era * 400 + year_of_era + u64::from(month < 3)) as u16,
            month: month as u8,
            day: (of_year - (153 * from_march + 2) / 5 + 1) as u8,
            hour: (of_day / 3_600) as u8,
            minute: (of_day / 60 % 60) as u8,
            second: (of_day % 60) as u8,
        })
    }

    /// Seconds since 1970-01-01; `None` for what is no date, or before that day.
    pub fn seconds(self) -> Option<u64> {
        let fits = (1970..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_of(self.year, self.month)).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60;
        if !fits {
            return None;
        }
        let (month, day) = (u64::from(self.month), u64::from(self.day));
        let year = u64::from(self.year) - u64::from(month < 3);
        let (era, year_of_era) = (year / 400, year % 400);
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
        let days = era * 146_097 + of_era - 719_468;
        Some(days * DAY + u64::from(self.hour) * 3_600 + u64::from(self.minute) * 60 + u64::from(self.second))
    }

    /// Days of the week since Thursday.
    fn weekday(self) -> usize {
        self.seconds().map_or(0, |seconds| (seconds / DAY % 7) as usize)
    }
}

/// Days of a month.
fn days_of(year: u16, month: u8) -> u8 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl fmt::Display for Civil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// The form of date(1): `Sat Jan 31 23:59:59 UTC 2026`.
#[derive(Clone, Copy, Debug)]
pub struct Long(pub Civil);

impl fmt::Display for Long {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, hour, minute, second } = self.0;
        let month = MONTHS.get(usize::from(month).wrapping_sub(1)).unwrap_or(&"???");
        let weekday = DAYS[self.0.weekday()];
        write!(f, "{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} UTC {year:04}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    fn date(year: u16, month: u8, day: u8) -> Civil {
        Civil { year, month, day, hour: 0, minute: 0, second: 0 }
    }

    #[test]
    fn known_times() {
        // As `date -u -d @N` of GNU coreutils has them.
        for (seconds, iso, long) in [
            (0, "1970-01-01T00:00:00Z", "Thu Jan  1 00:00:00 UTC 1970"),
            (951_782_400, "2000-02-29T00:00:00Z", "Tue Feb 29 00:00:00 UTC 2000"),
            (1_767_225_599, "2025-12-31T23:59:59Z", "Wed Dec 31 23:59:59 UTC 2025"),
            (4_107_542_400, "2100-03-01T00:00:00Z", "Mon Mar  1 00:00:00 UTC 2100"),
            (LAST_SECOND, "9999-12-31T23:59:59Z", "Fri Dec 31 23:59:59 UTC 9999"),
        ] {
            let civil = Civil::from_seconds(seconds).unwrap();
            assert_eq!((civil.to_string().as_str(), Long(civil).to_string().as_str()), (iso, long));
            assert_eq!(civil.seconds(), Some(seconds));
        }
        assert_eq!(Civil::from_seconds(LAST_SECOND + 1), None);
        assert_eq!(Civil::from_seconds(u64::MAX), None);
    }

    #[test]
    fn bad_dates_are_refused() {
        for bad in [
            date(2026, 2, 29),
            date(2100, 2, 29),
            date(2026, 4, 31),
            date(2026, 0, 1),
            date(2026, 13, 1),
            date(2026, 1, 0),
            date(2026, 1, 32),
            date(1969, 12, 31),
            date(10_000, 1, 1),
            Civil { hour: 24, ..date(2026, 1, 1) },
            Civil { minute: 60, ..date(2026, 1, 1) },
            Civil { second: 60, ..date(2026, 1, 1) },
        ] {
            assert_eq!(bad.seconds(), None, "{bad:?}");
        }
        assert!(date(2024, 2, 29).seconds().is_some() && date(2000, 2, 29).seconds().is_some());
    }

    proptest! {
        #[test]
        fn there_and_back(seconds in 0..=LAST_SECOND) {
            let civil = Civil::from_seconds(seconds).unwrap();
            prop_assert_eq!(civil.seconds(), Some(seconds));
            // Later times are later dates.
            prop_assert!(Civil::from_seconds(seconds + 1).is_none_or(|next| next > civil));
        }

        #[test]
        fn no_value_panics(year: u16, month: u8, day: u8, hour: u8, minute: u8, second: u8) {
            let civil = Civil { year, month, day, hour, minute, second };
            let _ = (civil.seconds(), civil.to_string(), Long(civil).to_string());
        }
    }
}
