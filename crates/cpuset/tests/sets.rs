//! Sets are read as they are written, and what is none is refused with its cause.

use cpuset::{BadSet, CpuSet, parse};
use proptest::prelude::*;

#[test]
fn texts_and_sets() {
    for (text, set) in [("0", 1), ("0,2", 5), ("1-3,7", 0x8e), ("62,63", 3 << 62), ("0-63", u64::MAX), ("0,1", 3)] {
        assert_eq!(parse(text), Ok(set), "{text}");
        assert_eq!(CpuSet(set).to_string(), text);
    }
    // Shorter ways to say the same.
    for (text, short) in
        [("3,1", "1,3"), ("2-2", "2"), ("1,1,1", "1"), ("0,1,2", "0-2"), ("5-6,6-8,0", "0,5-8"), ("007", "7")]
    {
        assert_eq!(parse(text).map(|set| CpuSet(set).to_string()), Ok(short.into()), "{text}");
    }
    assert_eq!(CpuSet(0).to_string(), "none");
}

#[test]
fn malformed_sets_are_refused() {
    for text in ["", ",", "0,", ",0", "a", "0x1", "-", "1-", "-1", "+1", "1--2", "1-2-3", "0 1", " 1", "all", "¹"] {
        assert_eq!(parse(text), Err(BadSet::NoNumber), "{text}");
    }
    for text in ["64", "0-64", "99999999999999999999", "1,64"] {
        assert_eq!(parse(text), Err(BadSet::TooLarge), "{text}");
    }
    assert_eq!(parse("3-1"), Err(BadSet::Backwards));
}

proptest! {
    #[test]
    fn written_and_read(set in 1..=u64::MAX) {
        prop_assert_eq!(parse(&CpuSet(set).to_string()), Ok(set));
    }

    #[test]
    fn no_text_panics(text in "[0-9,-]{0,12}|\\PC{0,12}") {
        if let Ok(set) = parse(&text) {
            prop_assert!(set != 0);
        }
    }
}
