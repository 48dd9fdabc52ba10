//! Values against a map, with kills between any two stores.
#![allow(missing_docs)]

mod common;

use std::collections::BTreeMap;

use common::{Memory, silence_expected_panics};
use proptest::prelude::*;
use saved::{Error, Log, MAX_KEY, Values};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
/// Changes made together.
type Step = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn open(memory: &Memory) -> Values<Memory> {
    Values::open(memory.clone(), 1).expect("values")
}

fn all(values: &Values<Memory>) -> Model {
    let mut found = Model::new();
    let mut last: Option<Vec<u8>> = None;
    while let Some(key) = values.after(last.as_deref()).map(<[u8]>::to_vec) {
        let value = values.get(&key).expect("a value");
        let mut read = vec![0; value.len() + 1];
        assert_eq!(values.read(&key, &mut read), Some(value.len()));
        assert_eq!(read[..value.len()], value);
        found.insert(key.clone(), value);
        last = Some(key);
    }
    assert_eq!((found.len(), found.is_empty()), (values.len(), values.is_empty()));
    found
}

fn make(values: &mut Values<Memory>, step: &Step) -> Result<(), Error> {
    let changes: Vec<_> = step.iter().map(|(key, value)| (key.as_slice(), value.as_deref())).collect();
    values.change(&changes)
}

fn make_in(model: &mut Model, step: &Step) {
    for (key, value) in step {
        match value {
            Some(value) => drop(model.insert(key.clone(), value.clone())),
            None => drop(model.remove(key)),
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let key = prop::collection::vec(0..3_u8, 0..3);
    let value = prop::option::of(prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..20),
        1 => (any::<u8>(), 2000..6000_usize).prop_map(|(byte, length)| vec![byte; length]),
    ]);
    prop::collection::vec((key, value), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn as_a_map_with_kills(steps in prop::collection::vec(step(), 1..12), pages in 8..24_usize) {
        silence_expected_panics();
        let memory = Memory::new(pages);
        let mut model = Model::new();
        for step in &steps {
            let mut after = model.clone();
            make_in(&mut after, step);
            for stores in 0.. {
                let copy = memory.copy();
                let mut values = open(&copy);
                let outcome = copy.with_kill(stores, || make(&mut values, step));
                let found = all(&open(&copy));
                match outcome {
                    None => prop_assert!(found == model || found == after),
                    Some(Ok(())) => prop_assert_eq!(&found, &after),
                    Some(Err(error)) => {
                        prop_assert_eq!(error, Error::NoSpace);
                        prop_assert_eq!(&found, &model);
                    }
                }
                if let Some(outcome) = outcome {
                    prop_assert_eq!(all(&values), found);
                    if outcome.is_ok() {
                        model = after;
                    }
                    let _ = make(&mut open(&memory), step);
                    break;
                }
            }
            prop_assert_eq!(all(&open(&memory)), model.clone());
        }
    }
}

#[test]
fn old_values_make_room() {
    // Two pages for each half: each value is written a hundred times.
    let memory = Memory::new(5);
    let mut values = open(&memory);
    for round in 0..100_u32 {
        for key in 0..5_u8 {
            values.set(&[key], &[round.to_le_bytes(), [key; 4]].concat().repeat(100)).expect("room");
        }
    }
    assert_eq!(values.get(&[3]), Some([99, 0, 0, 0, 3, 3, 3, 3].repeat(100)));
    assert_eq!(values.set(b"more", &[0; 8000]), Err(Error::NoSpace));
    assert_eq!(all(&open(&memory)), all(&values));
    for key in 0..5 {
        assert_eq!((values.remove(&[key]), values.remove(&[key])), (Ok(true), Ok(false)));
    }
    assert_eq!(values.set(b"more", &[0; 8000]), Ok(()));
}

#[test]
fn existing_values_change_in_a_full_vault() {
    for size in [0, 1, 7, 8, 100, 4000] {
        let memory = Memory::new(5);
        let mut values = open(&memory);
        let key = |number: u32| number.to_le_bytes();
        let count = (0..).find(|number| values.set(&key(*number), &vec![1; size]).is_err()).expect("an end");
        assert!(count > 1);
        for number in 0..count {
            assert_eq!(values.set(&key(number), &vec![2; size]), Ok(()), "{number} of {count}");
        }
        assert_eq!(all(&open(&memory)), (0..count).map(|number| (key(number).to_vec(), vec![2; size])).collect());
        for number in 0..count {
            assert_eq!(values.remove(&key(number)), Ok(true), "{number} of {count}");
        }
        assert!(all(&open(&memory)).is_empty());
    }
}

#[test]
fn keys() {
    let memory = Memory::new(9);
    let mut values = open(&memory);
    assert_eq!(values.set(&[1; MAX_KEY + 1], b""), Err(Error::KeyTooLong));
    assert_eq!(values.set(&[1; MAX_KEY], b"long"), Ok(()));
    assert_eq!(values.set(b"", b"none"), Ok(()));
    assert_eq!(values.change(&[]), Ok(()));
    let values = open(&memory);
    assert_eq!(
        (values.get(b""), values.get(&[1; MAX_KEY]), values.get(b"1")),
        (Some(b"none".to_vec()), Some(b"long".to_vec()), None)
    );
    assert_eq!(values.read(b"", &mut []), Some(4));
    assert_eq!(values.read(b"1", &mut []), None);
}

#[test]
fn a_log_of_something_else() {
    for record in [&b""[..], b"\x01", b"\x01\x05abc", b"\x03\x00", b"\x00\x00"] {
        let memory = Memory::new(9);
        Log::open(memory.clone(), 1).expect("a log").append(record).expect("room");
        assert_eq!(Values::open(memory, 1).map(drop), Err(Error::Corrupt), "{record:?}");
    }
}
