//! Chips of all kinds, broken ones above all.

use super::*;
use proptest::prelude::*;
use std::string::ToString;

/// 2026-01-31, 23:59:58, in two decimal digits and 24 hours.
const GOOD: Registers = Registers {
    seconds: 0x58,
    minutes: 0x59,
    hours: 0x23,
    day: 0x31,
    month: 0x01,
    year: 0x26,
    century: 0x20,
    status: HOURS_24,
};

fn reported(registers: Registers) -> Result<std::string::String, BadClock> {
    registers.civil().map(|civil| civil.to_string())
}

/// The answer of a chip with these registers when it is read.
fn chip(registers: Registers, register: u8) -> u8 {
    match register {
        register::SECONDS => registers.seconds,
        register::MINUTES => registers.minutes,
        register::HOURS => registers.hours,
        register::DAY => registers.day,
        register::MONTH => registers.month,
        register::YEAR => registers.year,
        register::CENTURY => registers.century,
        register::STATUS_B => registers.status,
        register::STATUS_D => VALID,
        _ => 0,
    }
}

#[test]
fn both_forms_of_numbers_and_hours() {
    assert_eq!(reported(GOOD).unwrap(), "2026-01-31T23:59:58Z");
    let binary = Registers { seconds: 58, minutes: 59, hours: 23, day: 31, month: 1, year: 26, century: 20, status: 6 };
    assert_eq!(reported(binary).unwrap(), "2026-01-31T23:59:58Z");
    for (status, hours, hour) in [
        (0, 0x12, 0),
        (0, 0x01, 1),
        (0, 0x11, 11),
        (0, 0x92, 12),
        (0, 0x81, 13),
        (0, 0x91, 23),
        (BINARY, 12, 0),
        (BINARY, 0x8c, 12),
        (BINARY, 0x8b, 23),
    ] {
        let base = if status & BINARY != 0 { binary } else { GOOD };
        let civil = Registers { status, hours, ..base }.civil();
        assert_eq!(civil.map(|civil| civil.hour), Ok(hour), "status {status:#x}, hours {hours:#x}");
    }
}

#[test]
fn each_bad_register_is_named() {
    let bad = |registers: Registers| match registers.civil() {
        Err(BadClock::BadRegister { register, .. }) => register,
        other => panic!("{registers:?}: {other:?}"),
    };
    assert_eq!(bad(Registers { seconds: 0x60, ..GOOD }), register::SECONDS);
    assert_eq!(bad(Registers { seconds: 0x5a, ..GOOD }), register::SECONDS);
    assert_eq!(bad(Registers { minutes: 0xa0, ..GOOD }), register::MINUTES);
    assert_eq!(bad(Registers { hours: 0x24, ..GOOD }), register::HOURS);
    assert_eq!(bad(Registers { hours: 0x13, status: 0, ..GOOD }), register::HOURS);
    assert_eq!(bad(Registers { hours: 0x80, status: 0, ..GOOD }), register::HOURS);
    assert_eq!(bad(Registers { hours: 0x92, ..GOOD }), register::HOURS);
    assert_eq!(bad(Registers { day: 0, ..GOOD }), register::DAY);
    assert_eq!(bad(Registers { day: 0x32, ..GOOD }), register::DAY);
    assert_eq!(bad(Registers { month: 0x13, ..GOOD }), register::MONTH);
    assert_eq!(bad(Registers { month: 0, ..GOOD }), register::MONTH);
    assert_eq!(bad(Registers { year: 0xff, ..GOOD }), register::YEAR);
    assert_eq!(bad(Registers { year: 100, status: 6, ..GOOD }), register::HOURS);
}

#[test]
fn numbers_that_are_no_date_together() {
    assert_eq!(reported(Registers { month: 0x02, ..GOOD }), Err(BadClock::NoDate));
    assert_eq!(reported(Registers { month: 0x02, day: 0x29, ..GOOD }), Err(BadClock::NoDate));
    assert!(reported(Registers { month: 0x02, day: 0x29, year: 0x24, ..GOOD }).is_ok());
}

#[test]
fn centuries() {
    for (century, year, expected) in [
        (0x20, 0x26, 2026),
        (0x19, 0x99, 1999),
        (0x21, 0x00, 2100),
        (0, 0x26, 2026),
        (0xff, 0x99, 1999),
        (0x19, 0x26, 2026),
    ] {
        let civil = Registers { century, year, ..GOOD }.civil();
        assert_eq!(civil.map(|civil| civil.year), Ok(expected), "{century:#x} {year:#x}");
    }
}

#[test]
fn a_clock_that_is_being_set_stands() {
    assert_eq!(reported(Registers { status: SETTING | HOURS_24, ..GOOD }), Err(BadClock::Setting));
}

#[test]
fn an_update_is_waited_for() {
    let (mut left, mut pauses) = (5, 0);
    let read = read(
        |register| {
            if register == register::STATUS_A && left > 0 {
                left -= 1;
                return UPDATING;
            }
            chip(GOOD, register)
        },
        || pauses += 1,
    );
    assert_eq!((read, pauses), (Ok(GOOD), 5));
}

#[test]
fn an_update_between_two_registers_is_noticed() {
    // The clock goes to 2026-02-01 00:00:00 after any number of reads; no result mixes halves of both.
    let after = Registers { seconds: 0, minutes: 0, hours: 0, day: 1, month: 2, ..GOOD };
    for reads in 0..40 {
        let mut count = 0;
        let read = read(
            |register| {
                count += 1;
                chip(if count > reads { after } else { GOOD }, register)
            },
            || {},
        );
        assert!(read == Ok(GOOD) || read == Ok(after), "after {reads} reads: {read:?}");
    }
}

#[test]
fn broken_chips_are_distinguished_and_never_waited_for_long() {
    assert_eq!(read(|_| 0xff, || {}), Err(BadClock::Missing));
    assert_eq!(read(|_| 0, || {}), Err(BadClock::NoPower));
    let always = |register| if register == register::STATUS_A { UPDATING } else { chip(GOOD, register) };
    let mut pauses = 0;
    assert_eq!(read(always, || pauses += 1), Err(BadClock::Unsteady));
    assert_eq!(pauses, TRIES);
    let mut noise = 0u8;
    let noisy = |register| {
        noise = noise.wrapping_add(1);
        if register == register::STATUS_A { 0 } else { noise | VALID }
    };
    assert_eq!(read(noisy, || {}), Err(BadClock::Unsteady));
}

proptest! {
    #[test]
    fn no_chip_makes_it_panic(bytes: [u8; 8]) {
        let [seconds, minutes, hours, day, month, year, century, status] = bytes;
        let registers = Registers { seconds, minutes, hours, day, month, year, century, status };
        if let Ok(civil) = registers.civil() {
            prop_assert!(civil.seconds().is_some());
        }
    }
}
