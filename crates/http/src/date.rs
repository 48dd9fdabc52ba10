//! Dates as HTTP has them (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.

/// Bytes of a date.
pub const DATE_BYTES: usize = 29;

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY: u64 = 86_400;

/// Year, month from 0, day from 1, of a day since 1970-01-01 (Hinnant: chrono-compatible low-level date algorithms).
fn civil(days: u64) -> (u64, usize, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12;
    (era * 400 + year_of_era + u64::from(month < 2), month as usize, day)
}

/// Days since 1970-01-01 of a date.
fn days(year: u64, month: usize, day: u64) -> Option<u64> {
    let shifted_year = if month < 2 { year.checked_sub(1)? } else { year };
    let (era, year_of_era) = (shifted_year / 400, shifted_year % 400);
    let of_year = (153 * ((month as u64 + 10) % 12) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    (era * 146_097 + of_era).checked_sub(719_468)
}

/// The date of a time in seconds since 1970-01-01, before the year 10000.
pub fn write_date(seconds: u64) -> [u8; DATE_BYTES] {
    let (year, month, day) = civil(seconds / DAY);
    let of_day = seconds % DAY;
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(DAYS[(seconds / DAY % 7) as usize].as_bytes());
    text[8..11].copy_from_slice(MONTHS[month].as_bytes());
    let mut two = |at: usize, number: u64| {
        text[at] = b'0' + (number / 10 % 10) as u8;
        text[at + 1] = b'0' + (number % 10) as u8;
    };
    two(5, day);
    two(12, year / 100);
    two(14, year % 100);
    two(17, of_day / 3_600);
    two(20, of_day / 60 % 60);
    two(23, of_day % 60);
    text
}

/// The time of a date, in seconds since 1970-01-01. Only the form that is to be sent is read.
pub fn parse_date(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    if bytes.len() != DATE_BYTES || !text.ends_with(" GMT") {
        return None;
    }
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok())?
    };
    let month = MONTHS.iter().position(|name| text.get(8..11) == Some(name))?;
    let (year, day) = (number(12, 16)?, number(5, 7)?);
    let (hour, minute, second) = (number(17, 19)?, number(20, 22)?, number(23, 25)?);
    if !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days(year, month, day)? * DAY + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(&write_date(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(&write_date(0), b"Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(&write_date(951_782_400), b"Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(parse_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        for bad in
            ["", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nox 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT"]
        {
            assert_eq!(parse_date(bad), None, "{bad}");
        }
        assert_eq!(parse_date("Thu, 01 Jan 0000 00:00:00 GMT"), None);
    }

    proptest::proptest! {
        #[test]
        fn there_and_back(seconds in 0u64..253_402_300_800) {
            let text = write_date(seconds);
            assert_eq!(parse_date(core::str::from_utf8(&text).unwrap()), Some(seconds));
        }

        #[test]
        fn anything_is_read(text in "\\PC{0,40}") {
            let _ = parse_date(&text);
        }
    }
}
