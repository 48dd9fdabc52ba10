//! Each memory order in the crate counts: where one is taken away, a model goes wrong.

use crate::atomic::weaken;
use crate::{exclusion, rings, semaphores, stopped};
use std::collections::BTreeSet;
use std::panic::catch_unwind;

const FILES: [(&str, &str); 4] = [
    ("src/lock.rs", include_str!("../../src/lock.rs")),
    ("src/quiescent.rs", include_str!("../../src/quiescent.rs")),
    ("src/ring.rs", include_str!("../../src/ring.rs")),
    ("src/tokens.rs", include_str!("../../src/tokens.rs")),
];

/// A line of a file, and the model that goes wrong without its order.
type Case = (&'static str, &'static str, fn());

const CASES: &[Case] = &[
    ("src/lock.rs", "self.count.fetch_add(1, Ordering::Acquire)", exclusion::two_cpus_twice),
    ("src/lock.rs", "self.served.load(Ordering::Acquire)", exclusion::two_cpus_twice),
    ("src/lock.rs", "self.count.fetch_sub(1, Ordering::Release)", exclusion::two_cpus_twice),
    ("src/lock.rs", "self.served.store(served.wrapping_add(1), Ordering::Release)", exclusion::two_cpus_twice),
    ("src/quiescent.rs", "self.0.store(true, Ordering::Release)", stopped::by_one),
    ("src/quiescent.rs", "self.0.load(Ordering::Acquire)", stopped::by_one),
    ("src/ring.rs", "Ordering::Release, Ordering::Relaxed)", rings::a_slot_for_each),
    ("src/ring.rs", "self.written.store(written.wrapping_add(1), Ordering::Release)", rings::a_slot_for_each),
    ("src/ring.rs", "if self.written.load(Ordering::Acquire) == read", rings::a_slot_for_each),
    ("src/ring.rs", "swap(0, Ordering::Acquire)", rings::a_slot_for_each),
    ("src/tokens.rs", "self.0.fetch_sub(1, Ordering::Acquire)", semaphores::as_a_lock),
    ("src/tokens.rs", "self.0.fetch_add(1, Ordering::Release)", semaphores::as_a_lock),
];

/// Lines with an order that need none for their own sake, with the reason.
const SPARE: &[(&str, &str)] = &[
    // A scheduler asks by itself, or the nucleus with the lock, which the writer had before.
    ("src/ring.rs", "written.load(Ordering::Acquire) != read.load"),
];

fn lines_with<'a>(text: &'a str, part: &'a str) -> impl Iterator<Item = u32> + 'a {
    text.lines().enumerate().filter(move |(_, line)| line.contains(part)).map(|(number, _)| number as u32 + 1)
}

fn line_of(file: &str, part: &str) -> u32 {
    let (_, text) = FILES.iter().find(|(name, _)| *name == file).expect("a file of the crate");
    let lines: Vec<u32> = lines_with(text, part).collect();
    assert_eq!(lines.len(), 1, "`{part}` stands in {} lines of {file}, not in one", lines.len());
    lines[0]
}

#[test]
fn each_is_in_the_list() {
    let listed: BTreeSet<(&str, u32)> = CASES
        .iter()
        .map(|(file, part, _)| (*file, *part))
        .chain(SPARE.iter().copied())
        .map(|(file, part)| (file, line_of(file, part)))
        .collect();
    let mut there = BTreeSet::new();
    for (file, text) in FILES {
        for order in ["Ordering::Acquire", "Ordering::Release", "Ordering::AcqRel", "Ordering::SeqCst"] {
            there.extend(lines_with(text, order).map(|line| (file, line)));
        }
    }
    assert_eq!(listed, there, "lines with an order, listed (left) and there (right)");
}

#[test]
fn each_counts() {
    for (file, part, model) in CASES {
        // The thread of this test runs one model after the other.
        model();
        weaken(Some((file, line_of(file, part))));
        let verdict = catch_unwind(model);
        weaken(None);
        assert!(verdict.is_err(), "{file}: no model misses the order of `{part}`");
    }
}
