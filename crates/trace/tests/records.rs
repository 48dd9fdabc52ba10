//! Records come back as they were written, and each damage is found where it is.

use proptest::prelude::*;
use trace::{BYTES, Damage, Kind, MAX_TIME, Mistake, Record, Records, VERSION, text};

fn begin() -> Record {
    Record { kind: Kind::Begin, cpu: 0, thread: 0, domain: 0, time: 5, operands: [VERSION, 0] }
}

fn record(kind: Kind, time: u64) -> Record {
    Record { kind, cpu: 1, thread: 7, domain: 0x1_0002, time, operands: [0x0123_4567_89ab_cdef, u64::MAX] }
}

fn bytes(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(Record::encode).collect()
}

fn damage(bytes: &[u8]) -> Damage {
    Records::new(bytes).find_map(Result::err).expect("damage")
}

#[test]
fn every_kind_comes_back() {
    let mut records = vec![begin()];
    records.extend(Kind::ALL.iter().filter(|kind| **kind != Kind::Begin).map(|kind| record(*kind, 9)));
    let read: Vec<Record> = Records::new(&bytes(&records)).map(Result::unwrap).collect();
    assert_eq!(read, records);
    let mut numbers: Vec<u8> = Kind::ALL.iter().map(|kind| *kind as u8).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), Kind::ALL.len());
}

#[test]
fn only_on_one_cpu_time_never_goes_back() {
    let on = |cpu, time| Record { cpu, ..record(Kind::Idle, time) };
    let mixed = [begin(), on(1, 40), on(0, 30), on(63, 7), on(0, 30), on(1, 41), on(0, MAX_TIME - 1)];
    let read: Vec<Record> = Records::new(&bytes(&mixed)).map(Result::unwrap).collect();
    assert_eq!(read, mixed);
    let back = [begin(), on(1, 40), on(0, 50), on(1, 39)];
    assert_eq!(damage(&bytes(&back)), Damage { at: 3 * BYTES, mistake: Mistake::Backwards(40) });
}

#[test]
fn texts_come_back() {
    for length in 0..=16 {
        let name: Vec<u8> = (1..=length).collect();
        let record = Record { operands: text(&name), ..begin() };
        assert_eq!(record.text()[..name.len()], name);
        assert!(record.text()[name.len()..].iter().all(|byte| *byte == 0));
    }
    assert_eq!(text(b"more than 16 bytes of it"), text(b"more than 16 byt"));
}

#[test]
fn every_truncation_is_found() {
    let whole = bytes(&[begin(), record(Kind::Call, 6), record(Kind::Return, 7)]);
    for length in 0..whole.len() {
        let part = &whole[..length];
        let count = Records::new(part).filter(Result::is_ok).count();
        assert_eq!(count, length / BYTES);
        let expected = match length % BYTES {
            0 if length == 0 => Mistake::Empty,
            0 => continue,
            left => Mistake::CutOff(left),
        };
        assert_eq!(damage(part), Damage { at: length / BYTES * BYTES, mistake: expected });
    }
}

#[test]
fn each_mistake_has_its_error() {
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes(&[begin(), record(Kind::Call, 6), record(Kind::Return, 7)]);
        bytes[at] = byte;
        damage(&bytes)
    };
    assert_eq!(with(0, 0), Damage { at: 0, mistake: Mistake::NoMark(0) });
    assert_eq!(with(BYTES, 0x20), Damage { at: BYTES, mistake: Mistake::NoMark(0x20) });
    assert_eq!(with(BYTES + 1, 0), Damage { at: BYTES, mistake: Mistake::UnknownKind(0) });
    assert_eq!(with(2 * BYTES + 1, 200), Damage { at: 2 * BYTES, mistake: Mistake::UnknownKind(200) });
    assert_eq!(with(1, Kind::Idle as u8), Damage { at: 0, mistake: Mistake::NoBegin(Kind::Idle) });
    assert_eq!(with(BYTES + 1, Kind::Begin as u8), Damage { at: BYTES, mistake: Mistake::BeginsAgain });
    assert_eq!(with(16, 9), Damage { at: 0, mistake: Mistake::OtherVersion(9) });
    assert_eq!(with(2 * BYTES + 8, 5), Damage { at: 2 * BYTES, mistake: Mistake::Backwards(6) });
    assert_eq!(with(2 * BYTES + 15, 64), Damage { at: 2 * BYTES, mistake: Mistake::UnknownCpu(64) });
    assert_eq!(with(2 * BYTES + 15, 255), Damage { at: 2 * BYTES, mistake: Mistake::UnknownCpu(255) });
    let reported = with(2 * BYTES + 1, 200).to_string();
    assert_eq!(reported, "record 2 of the trace (byte 64): there is no kind 200");
}

proptest! {
    #[test]
    fn garbage_never_panics(garbage in prop::collection::vec(any::<u8>(), 0..300)) {
        let results: Vec<_> = Records::new(&garbage).collect();
        prop_assert!(results.iter().rev().skip(1).all(Result::is_ok), "nothing comes after a mistake");
        prop_assert!(results.len() <= garbage.len() / BYTES + 1);
    }

    #[test]
    fn damage_never_panics(at in 0usize..96, byte: u8) {
        let mut bytes = bytes(&[begin(), record(Kind::Call, 6), record(Kind::Return, 7)]);
        bytes[at] = byte;
        let _ = Records::new(&bytes).count();
    }
}
