//! Decimal numbers of any length, as text: compared by `sort -n`, counted by `seq`.

use core::cmp::Ordering;

/// A number as it stands in a text.
#[derive(Clone, Copy, Debug)]
pub struct Decimal<'a> {
    negative: bool,
    /// Without zeros in front.
    whole: &'a [u8],
    /// Without zeros behind.
    fraction: &'a [u8],
}

impl<'a> Decimal<'a> {
    /// The number at the start of a text, after blanks; 0 if none is there.
    pub fn leading(text: &'a [u8]) -> Self {
        let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let text = &text[blanks..];
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let (whole, rest) = text.split_at(digits(text));
        let fraction = match rest {
            [b'.', rest @ ..] => &rest[..digits(rest)],
            _ => &[],
        };
        let zeros = whole.iter().take_while(|digit| **digit == b'0').count();
        let end = fraction.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        Self { negative, whole: &whole[zeros..], fraction: &fraction[..end] }
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// Which of two is less.
    pub fn compare(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| if number.is_zero() { 0 } else { 1 - 2 * i8::from(number.negative) };
        let size = || {
            let length = self.whole.len().cmp(&other.whole.len());
            length.then_with(|| self.whole.cmp(other.whole)).then_with(|| self.fraction.cmp(other.fraction))
        };
        match sign(self).cmp(&sign(other)) {
            Ordering::Equal if self.negative => size().reverse(),
            Ordering::Equal => size(),
            unequal => unequal,
        }
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// A number with so many digits after the point, as a count of its smallest unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixed {
    /// The count.
    pub units: i128,
    /// Digits after the point.
    pub digits: u32,
}

/// Most digits of a [`Fixed`], before and after the point.
const MAX_DIGITS: usize = 18;

impl Fixed {
    /// From a text that is nothing else: an optional sign, digits, and a point with more. `None` also if it is too long.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, digits) = match text.strip_prefix(['-', '+']) {
            Some(digits) if text.starts_with('-') => (-1, digits),
            Some(digits) => (1, digits),
            None => (1, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |part: &str| part.len() <= MAX_DIGITS && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || whole.len() + fraction.len() == 0 {
            return None;
        }
        let count = whole.bytes().chain(fraction.bytes());
        let units = count.fold(0, |sum: i128, digit| sum * 10 + i128::from(digit - b'0'));
        Some(Self { units: sign * units, digits: fraction.len() as u32 })
    }

    /// The count, in units of so many digits, which are no fewer.
    pub fn scaled(&self, digits: u32) -> i128 {
        self.units * 10_i128.pow(digits - self.digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared() {
        let compare = |a: &str, b: &str| Decimal::leading(a.as_bytes()).compare(&Decimal::leading(b.as_bytes()));
        for (less, more) in [("9", "10"), ("-10", "-9"), ("-1", ""), ("1.5", "1.50001"), ("x", ".1"), ("-.5", "0")] {
            assert_eq!(compare(less, more), Ordering::Less, "{less} {more}");
            assert_eq!(compare(more, less), Ordering::Greater, "{more} {less}");
        }
        for (one, other) in [("007", "7"), ("-0", "0"), (" 1.0", "1"), ("1e3", "1"), ("x", "0")] {
            assert_eq!(compare(one, other), Ordering::Equal, "{one} {other}");
        }
        let long = "9".repeat(1000);
        assert_eq!(compare(&long, &("1".to_owned() + &long)), Ordering::Less);
    }

    extern crate std;
    use std::borrow::ToOwned;

    #[test]
    fn fixed_numbers() {
        assert_eq!(Fixed::parse("-1.50"), Some(Fixed { units: -150, digits: 2 }));
        assert_eq!(Fixed::parse("+.5").map(|number| number.scaled(3)), Some(500));
        for none in ["", "-", ".", "1e3", "0x1", "1.2.3", "--1", "1111111111111111111"] {
            assert_eq!(Fixed::parse(none), None, "{none}");
        }
    }
}
