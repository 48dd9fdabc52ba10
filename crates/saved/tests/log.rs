//! Logs: refusals, and kills between any two stores.
#![allow(missing_docs)]

mod common;

use common::{Memory, silence_expected_panics};
use saved::{Error, Log, Pages, Record};

const PAGE: usize = saved::PAGE_BYTES;

fn open(memory: &Memory) -> Log<Memory> {
    Log::open(memory.clone(), 1).expect("a log")
}

fn all(log: &Log<Memory>) -> Vec<Vec<u8>> {
    log.records().map(|record| log.get(record.expect("whole")).expect("memory")).collect()
}

fn places(log: &Log<Memory>) -> Vec<Record> {
    log.records().map(|record| record.expect("whole")).collect()
}

/// Records of all lengths at which something could be counted wrong.
fn samples() -> Vec<Vec<u8>> {
    [0, 1, 7, 8, 9, 300, PAGE - 9, PAGE - 8, PAGE, PAGE + 1, 3 * PAGE]
        .iter()
        .enumerate()
        .map(|(number, length)| vec![number as u8 + 1; *length])
        .collect()
}

#[test]
fn records_are_found_again() {
    let memory = Memory::new(100);
    let mut log = open(&memory);
    for record in samples() {
        let place = log.append(&record).expect("room");
        assert_eq!(place.bytes(), record.len());
    }
    assert_eq!(all(&log), samples());
    let log = open(&memory);
    assert_eq!(all(&log), samples());
    // Parts, and what is past the end.
    let last = *places(&log).last().expect("some");
    let mut part = [0; 10];
    assert_eq!(log.read(last, 3 * PAGE - 4, &mut part), 4);
    assert_eq!(part, [11, 11, 11, 11, 0, 0, 0, 0, 0, 0]);
    assert_eq!(log.read(last, 3 * PAGE + 4, &mut part), 0);
}

#[test]
fn keeping_records_drops_all_others() {
    let memory = Memory::new(100);
    let mut log = open(&memory);
    for record in samples() {
        log.append(&record).expect("room");
    }
    let before = places(&log);
    let kept = log.keep(&[before[10], before[2]]).expect("room");
    assert_eq!(all(&log), [samples()[10].clone(), samples()[2].clone()]);
    assert_eq!(kept, places(&log));
    assert_eq!(memory.present(), 1 + 4, "the other half is given back");
    // One of before is somewhere else, or nowhere.
    assert_eq!(log.read(before[9], 0, &mut [0; 8]), 0);
    assert_eq!(log.append(b"more").map(|place| log.get(place)), Ok(Ok(b"more".to_vec())));
    assert_eq!(all(&open(&memory)).len(), 3);
    assert_eq!(log.keep(&[]), Ok(vec![]));
    assert_eq!((all(&open(&memory)).len(), memory.present()), (0, 1));
}

#[test]
fn no_room() {
    // Page 0 and two for each half.
    let memory = Memory::new(6);
    let mut log = open(&memory);
    assert_eq!(log.capacity(), 2 * PAGE as u64);
    assert_eq!(log.append(&vec![1; 2 * PAGE - 7]), Err(Error::NoSpace));
    let all_of_it = vec![1; 2 * PAGE - 8];
    let place = log.append(&all_of_it).expect("room");
    assert_eq!(log.append(b""), Err(Error::NoSpace));
    assert_eq!(all(&open(&memory)), core::slice::from_ref(&all_of_it));
    // The account has no room for the copies: nothing changes.
    memory.set_account(4);
    assert_eq!(log.keep(&[place]), Err(Error::NoSpace));
    assert_eq!(memory.present(), 3);
    assert_eq!(all(&open(&memory)), [all_of_it]);
    for pages in [0, 1, 2] {
        let memory = Memory::new(pages);
        let log = Log::open(memory.clone(), 1);
        assert_eq!(log.map(drop), Err(Error::NoSpace), "{pages} pages");
    }
}

#[test]
fn foreign_contents_are_refused() {
    let refused = |memory: &Memory| Log::open(memory.clone(), 1).err();
    let memory = Memory::new(10);
    drop(Log::open(memory.clone(), 7));
    assert_eq!(refused(&memory), Some(Error::OtherVersion(7)));
    let made = Memory::new(10);
    open(&made).append(b"a record").expect("room");
    assert_eq!(refused(&made), None);
    let page = PAGE as u64;
    for (number, word, value) in [
        // The mark; a state of more than there is, of half a record, of part of a word, of pages that are not there.
        (0, 0, 1),
        (0, 1, 100 * page),
        (0, 1, 8),
        (0, 1, 12),
        (0, 1, 1 << 63 | 16),
        (0, 1, u64::MAX),
        (0, 1, 2 * page),
        // The length of a record.
        (1, 0, 9),
        (1, 0, u64::MAX),
        (1, 0, u64::MAX - 15),
    ] {
        let mut memory = made.copy();
        memory.store(number, word, value);
        assert_eq!(refused(&memory), Some(Error::Corrupt), "{number} {word} {value:#x}");
    }
}

#[test]
fn kills_between_any_two_stores() {
    silence_expected_panics();
    let made = Memory::new(40);
    let mut log = open(&made);
    for record in samples() {
        log.append(&record).expect("room");
    }
    let keep = |log: &mut Log<Memory>| log.keep(&places(log)[5..8]).map(drop);
    let append = |log: &mut Log<Memory>| log.append(&[9; 2 * PAGE]).map(drop);
    let mut appended = samples();
    appended.push(vec![9; 2 * PAGE]);
    type Work<'a> = &'a dyn Fn(&mut Log<Memory>) -> Result<(), Error>;
    for (work, after) in [(&keep as Work<'_>, samples()[5..8].to_vec()), (&append, appended)] {
        for stores in 0.. {
            let memory = made.copy();
            let mut log = open(&memory);
            let outcome = memory.with_kill(stores, || work(&mut log));
            // The repair is killed as well, at one place each time.
            let _ = memory.with_kill(stores % 7, || drop(open(&memory)));
            let found = all(&open(&memory));
            let halves = [1, 2].map(|first| (first..40).step_by(2).any(|page| memory.is_present(page)));
            assert!(!(halves[0] && halves[1]), "the half that does not count has pages");
            match outcome {
                None => assert!(found == samples() || found == after, "killed after {stores} stores"),
                Some(outcome) => {
                    assert_eq!((outcome, found), (Ok(()), after));
                    assert!(stores > 3, "nothing was killed");
                    break;
                }
            }
        }
    }
}

#[test]
fn kills_while_it_is_made() {
    silence_expected_panics();
    for stores in 0..4 {
        let memory = Memory::new(10);
        let _ = memory.with_kill(stores, || drop(open(&memory)));
        assert!(all(&open(&memory)).is_empty());
    }
}
