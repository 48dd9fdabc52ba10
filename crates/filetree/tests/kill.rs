//! The server is killed after every possible number of stores, in an operation and in the repair after
//! it. Nothing acknowledged may be missing, nothing half done may be seen, no page may be lost.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use common::*;
use filetree::Tree;
use proptest::prelude::*;

/// Runs `what` on this memory with a kill after `stores`; `None` if it was killed.
fn with_kill<T>(memory: &Memory, stores: u64, what: impl FnOnce(Memory) -> T) -> Option<T> {
    memory.store.borrow_mut().stores_left = stores;
    let outcome = catch_unwind(AssertUnwindSafe(|| what(memory.clone())));
    memory.store.borrow_mut().stores_left = u64::MAX;
    match outcome {
        Ok(value) => Some(value),
        Err(cause) if cause.is::<Killed>() => None,
        Err(cause) => resume_unwind(cause),
    }
}

fn open(memory: Memory) -> Tree<Memory> {
    Tree::open(memory, PAYER).expect("the memory suffices").0
}

fn copy(memory: &Memory) -> Memory {
    Memory::from(memory.store.borrow().clone(), archive())
}

/// Checks a file after a kill in a write: inside the range old or new bytes, else the old ones.
fn possible_write(before: &[u8], now: &[u8], offset: usize, bytes: &[u8]) -> bool {
    let end = offset + bytes.len();
    (now.len() == before.len() || now.len() == before.len().max(end))
        && now.iter().enumerate().all(|(at, byte)| {
            let old = before.get(at).copied().unwrap_or(0);
            *byte == old || (offset..end).contains(&at) && *byte == bytes[at - offset]
        })
}

fn possible(before: &Model, after: &Model, now: &Model, operation: &Operation) -> bool {
    if now == before || now == after {
        return true;
    }
    let Operation::Write(path, offset, bytes) = operation else { return false };
    let (Some(Content::File(old)), Some(Content::File(new))) = (before.get(path), now.get(path)) else { return false };
    let mut others = now.clone();
    others.insert(path.clone(), Content::File(old.clone()));
    others == *before && possible_write(old, new, *offset as usize, bytes)
}

/// Kills one operation after every number of stores, and some of the repairs.
fn kill_everywhere(memory: &Memory, model: &Model, operation: &Operation) {
    let mut after = model.clone();
    let _ = apply_model(&mut after, operation, &archive());
    for stores in 0.. {
        let memory = copy(memory);
        let finished = with_kill(&memory, u64::MAX, |memory| {
            let mut tree = open(memory.clone());
            memory.store.borrow_mut().stores_left = stores;
            let _ = apply_tree(&mut tree, operation);
        });
        // A kill in the repair, at one place per round: all places are met over the rounds.
        let _ = with_kill(&memory, stores * 7 % 400, open);
        let tree = open(memory);
        let now = snapshot(&tree);
        match finished {
            Some(()) => assert_eq!(now, after, "acknowledged, but not there: {operation:?}"),
            None => assert!(possible(model, &after, &now, operation), "{operation:?} killed after {stores} stores"),
        }
        tree.audit().expect("every page is in one place");
        let mut tree = tree;
        // And it still works.
        let _ = apply_tree(&mut tree, operation);
        tree.audit().expect("every page is in one place after a retry");
        if finished.is_some() {
            return;
        }
    }
}

fn silence_expected_panics() {
    std::panic::set_hook(Box::new(|info| {
        if !info.payload().is::<Killed>() {
            eprintln!("{info}");
        }
    }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn kills_in_every_operation(operations in prop::collection::vec(operation(), 1..16)) {
        silence_expected_panics();
        let memory = Memory::new(archive());
        let mut tree = open(memory.clone());
        let mut model = Model::new();
        for operation in &operations {
            kill_everywhere(&memory, &model, operation);
            let _ = apply_tree(&mut tree, operation);
            let _ = apply_model(&mut model, operation, &archive());
        }
    }
}

/// The operations whose repair is not obvious, each from a fixed state.
#[test]
fn kills_in_the_hard_ones() {
    silence_expected_panics();
    let setup = [
        Operation::MakeDirectory("/d".into()),
        Operation::MakeDirectory("/d/e".into()),
        Operation::Create("/d/e/z".into()),
        Operation::Write("/d/e/z".into(), 0, vec![1; 5_000]),
        Operation::Create("/a".into()),
        Operation::Write("/a".into(), 0, vec![2; 100_000]),
        Operation::Import("/b".into(), 10, 9_000),
    ];
    let memory = Memory::new(archive());
    let mut tree = open(memory.clone());
    let mut model = Model::new();
    for operation in &setup {
        apply_tree(&mut tree, operation).unwrap();
        apply_model(&mut model, operation, &archive()).unwrap();
    }
    for operation in [
        Operation::Rename("/a".into(), "/d/e/z".into()),
        Operation::Rename("/d/e".into(), "/moved".into()),
        Operation::Rename("/b".into(), "/a".into()),
        Operation::Write("/b".into(), 4_000, vec![9; 200]),
        Operation::Truncate("/b".into(), 0),
        Operation::Truncate("/b".into(), 5_000),
        Operation::Truncate("/a".into(), 10),
        Operation::Write("/a".into(), 120_000, vec![9; 5_000]),
        Operation::Remove("/a".into()),
    ] {
        kill_everywhere(&memory, &model, &operation);
    }
}

#[test]
fn kills_while_the_tree_is_made() {
    silence_expected_panics();
    for stores in 0..200 {
        let memory = Memory::new(archive());
        let _ = with_kill(&memory, stores, open);
        let tree = open(memory);
        assert_eq!(snapshot(&tree), Model::new());
        tree.audit().expect("every page is in one place");
    }
}
