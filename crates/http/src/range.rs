//! Byte ranges (RFC 9110, 14).

/// The meaning of a `Range` field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Range {
    /// All of it: the field is malformed, or asks for several ranges, and is ignored.
    All,
    /// From a byte on, so many (at least one).
    Part(u64, u64),
    /// Nothing that there is.
    Unsatisfiable,
}

/// Reads a `Range` field for something that is `size` bytes long.
pub fn parse_range(field: &str, size: u64) -> Range {
    let Some((unit, set)) = field.split_once('=') else { return Range::All };
    let Some((first, last)) = set.trim().split_once('-') else { return Range::All };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Range::All;
    }
    let (start, end) = match (first.trim(), last.trim()) {
        ("", "") => return Range::All,
        ("", suffix) => match number(suffix) {
            Some(0) => return Range::Unsatisfiable,
            Some(count) => (size.saturating_sub(count), size),
            None => return Range::All,
        },
        (first, "") => match number(first) {
            Some(first) => (first, size),
            None => return Range::All,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(size)),
            _ => return Range::All,
        },
    };
    if start < size && start < end { Range::Part(start, end - start) } else { Range::Unsatisfiable }
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A number beyond all files is beyond this one.
    if digits { Some(text.parse().unwrap_or(u64::MAX)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let cases = [
            ("bytes=0-0", Range::Part(0, 1)),
            ("bytes=0-", Range::Part(0, 100)),
            ("bytes=10-19", Range::Part(10, 10)),
            ("BYTES = 90-1000", Range::Part(90, 10)),
            ("bytes=-1", Range::Part(99, 1)),
            ("bytes=-1000", Range::Part(0, 100)),
            ("bytes=99-99999999999999999999999", Range::Part(99, 1)),
            ("bytes=100-", Range::Unsatisfiable),
            ("bytes=99999999999999999999999-", Range::Unsatisfiable),
            ("bytes=-0", Range::Unsatisfiable),
            ("bytes=5-4", Range::All),
            ("bytes=0-1,3-4", Range::All),
            ("bytes=+1-2", Range::All),
            ("lines=1-2", Range::All),
            ("bytes", Range::All),
            ("bytes=-", Range::All),
        ];
        for (field, expected) in cases {
            assert_eq!(parse_range(field, 100), expected, "{field}");
        }
        assert_eq!(parse_range("bytes=0-", 0), Range::Unsatisfiable);
        assert_eq!(parse_range("bytes=-5", 0), Range::Unsatisfiable);
    }

    proptest::proptest! {
        #[test]
        fn parts_are_within(field in "bytes=[0-9]{0,21}-[0-9]{0,21}", size in 0u64..1000) {
            if let Range::Part(start, count) = parse_range(&field, size) {
                assert!(count > 0 && start + count <= size);
            }
        }
    }
}
