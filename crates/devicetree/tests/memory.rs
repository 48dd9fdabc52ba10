//! Memory that is named and reserved in any way, against a map of single bytes.

use devicetree::{MAX_RANGES, Memory, Range};
use proptest::prelude::*;

const BYTES: u64 = 256;

/// The map's word for each byte, and that of the ranges, which must have none in common.
fn bytes(memory: &Memory) -> Vec<bool> {
    let mut map = vec![false; BYTES as usize];
    for range in memory.ranges() {
        assert_ne!(range.bytes, 0, "an empty range");
        for byte in range.start..range.end() {
            assert!(!std::mem::replace(&mut map[byte as usize], true), "byte {byte} stands there twice");
        }
    }
    map
}

fn range() -> impl Strategy<Value = Range> {
    (0..BYTES, 0..BYTES).prop_map(|(start, bytes)| Range { start, bytes: bytes.min(BYTES - start) })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn memory_is_what_was_added_and_not_taken(steps in proptest::collection::vec((any::<bool>(), range()), 0..12)) {
        let within = 16..240;
        let mut memory = Memory::default();
        let mut map = vec![false; BYTES as usize];
        for (adds, range) in steps {
            if adds {
                memory.add(range, &within);
            } else {
                memory.take(range);
            }
            for byte in range.start..range.end() {
                map[byte as usize] = adds && (within.contains(&byte) || map[byte as usize]);
            }
            // Without room for all pieces some are missing, and none is too many.
            let found = bytes(&memory);
            let is_whole = memory.ranges().len() < MAX_RANGES;
            prop_assert!(found.iter().zip(&map).all(|(found, right)| found == right || !is_whole && *right));
            let whole = Range { start: 0, bytes: BYTES };
            prop_assert!(!memory.holds(whole));
            for own in memory.ranges() {
                prop_assert!(memory.holds(*own));
            }
        }
    }

    #[test]
    fn no_number_does_harm(steps in proptest::collection::vec((any::<bool>(), any::<u64>(), any::<u64>()), 0..40), start: u64, end: u64) {
        let mut memory = Memory::default();
        for (adds, start_of, bytes) in steps {
            let range = Range { start: start_of, bytes };
            if adds { memory.add(range, &(start..end)) } else { memory.take(range) }
        }
        prop_assert!(memory.ranges().iter().all(|range| range.start >= start && range.end() <= end));
    }
}

#[test]
fn ranges_without_room_are_counted() {
    let mut memory = Memory::default();
    let within = 0..1 << 20;
    memory.add(Range { start: 0, bytes: 3 << 19 }, &within);
    assert_eq!(memory.left_out(), 1 << 19);
    for piece in 0..MAX_RANGES as u64 {
        memory.take(Range { start: piece << 8, bytes: 1 });
    }
    assert_eq!(memory.ranges().len(), MAX_RANGES);
    assert_eq!(memory.left_out(), 1 << 19);
    memory.take(Range { start: 1 << 16, bytes: 1 });
    assert_eq!(memory.ranges().len(), MAX_RANGES);
    assert!(memory.left_out() > 1 << 19);
}
