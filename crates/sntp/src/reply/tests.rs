//! Good replies, and those that a server or somebody on the way may send instead.

use super::*;
use proptest::prelude::*;
use std::string::ToString;

const NONCE: u64 = 0x0123_4567_89ab_cdef;
/// By our clock: sent five seconds after the start, answered 30 ms later.
const SENT: u64 = 5 * SECOND;
const CAME: u64 = SENT + 30_000_000;
/// 2026-01-01 00:00:00 UTC, since 1900 and since 1970.
const SINCE_1900: u64 = SINCE_1970 + FROM_1900;
const SINCE_1970: u64 = 1_767_225_600;

/// A part of a second in NTP's form, rounded up so that it comes back as it was.
fn fraction(nanoseconds: u64) -> u64 {
    (nanoseconds << 32).div_ceil(SECOND)
}

/// A reply of a server that got the request at 2026-01-01 00:00:00 and answered 10 ms later.
fn reply() -> [u8; PACKET_BYTES] {
    let mut reply = [0; PACKET_BYTES];
    reply[0] = VERSION << 3 | SERVER;
    reply[field::STRATUM] = 2;
    reply[field::PRECISION] = (-20i8) as u8;
    // 1/64 s, 1/128 s.
    put(&mut reply, field::ROOT_DELAY, 1 << 42, 4);
    put(&mut reply, field::ROOT_DISPERSION, 1 << 41, 4);
    put(&mut reply, field::ORIGINATE, NONCE, 8);
    put(&mut reply, field::RECEIVE, SINCE_1900 << 32, 8);
    put(&mut reply, field::TRANSMIT, SINCE_1900 << 32 | fraction(10_000_000), 8);
    reply
}

/// Puts the first bytes of a number.
fn put(reply: &mut [u8], at: usize, value: u64, bytes: usize) {
    reply[at..at + bytes].copy_from_slice(&value.to_be_bytes()[..bytes]);
}

/// The judgement of a reply that was changed.
fn changed(change: impl FnOnce(&mut [u8; PACKET_BYTES])) -> Result<Sample, Bad> {
    let mut reply = reply();
    change(&mut reply);
    Request::new(NONCE, SENT).check(&reply, CAME)
}

#[test]
fn a_request_reveals_nothing_but_its_number() {
    let bytes = Request::new(NONCE, SENT).bytes();
    assert_eq!(bytes[0], 0x23);
    assert!(bytes[1..field::TRANSMIT].iter().all(|byte| *byte == 0));
    assert_eq!(bytes[field::TRANSMIT..], NONCE.to_be_bytes());
    assert_ne!(Request::new(0, SENT).bytes()[field::TRANSMIT..], [0; 8]);
}

#[test]
fn offset_delay_and_error() {
    // 30 ms away, 10 ms of them at the server: 20 ms under way, 10 ms each way.
    let sample = changed(|_| {}).unwrap();
    assert_eq!((sample.delay, sample.stratum), (20_000_000, 2));
    assert_eq!(sample.offset, SINCE_1970 * SECOND - SENT - 10_000_000);
    // Half of the delay; half of 1/64 s and 1/128 s; 2^-20 s.
    assert_eq!(sample.error, 10_000_000 + 7_812_500 + 7_812_500 + 953);
}

#[test]
fn eras() {
    // The last second of the first era, and the first of the second, which NTP counts from 0.
    let last = 0xffff_ffff_u64;
    for (timestamp, since_1970) in [(last << 32, last - FROM_1900), (1 << 32, last + 2 - FROM_1900)] {
        let sample = changed(|reply| {
            put(reply, field::RECEIVE, timestamp, 8);
            put(reply, field::TRANSMIT, timestamp + fraction(10_000_000), 8);
        });
        assert_eq!(sample.unwrap().offset, since_1970 * SECOND - SENT - 10_000_000);
    }
    // Received in one era, answered in the next.
    let over = changed(|reply| {
        put(reply, field::RECEIVE, last << 32 | fraction(995_000_000), 8);
        put(reply, field::TRANSMIT, fraction(5_000_000), 8);
    });
    assert_eq!(over.unwrap().delay / 1_000_000, 20);
    // 1968 was before 1970.
    assert_eq!(changed(|reply| put(reply, field::RECEIVE, 1 << 63, 8)), Err(Bad::Impossible));
}

#[test]
fn only_the_reply_to_this_request_counts() {
    for byte in field::ORIGINATE..field::ORIGINATE + 8 {
        assert_eq!(changed(|reply| reply[byte] ^= 1), Err(Bad::NotOurs));
    }
    // Not even a refusal.
    let forged = changed(|reply| {
        reply[field::STRATUM] = 0;
        reply[field::ORIGINATE] ^= 1;
    });
    assert_eq!(forged, Err(Bad::NotOurs));
}

#[test]
fn malformed_replies_are_refused() {
    for count in 0..PACKET_BYTES {
        assert_eq!(Request::new(NONCE, SENT).check(&reply()[..count], CAME), Err(Bad::Short));
    }
    let mut long = [0; 100];
    long[..PACKET_BYTES].copy_from_slice(&reply());
    assert!(Request::new(NONCE, SENT).check(&long, CAME).is_ok());
    for mode in [0, 1, 2, 3, 5, 6, 7] {
        assert_eq!(changed(|reply| reply[0] = VERSION << 3 | mode), Err(Bad::NotAReply));
    }
    for version in [0, 1, 2, 3, 5, 7] {
        assert_eq!(changed(|reply| reply[0] = version << 3 | SERVER), Err(Bad::NotAReply));
    }
    // Our own request, sent back.
    assert_eq!(Request::new(NONCE, SENT).check(&Request::new(NONCE, SENT).bytes(), CAME), Err(Bad::NotAReply));
}

#[test]
fn servers_that_refuse_or_do_not_know() {
    let kiss = |code: &[u8; 4]| {
        changed(|reply| {
            reply[field::STRATUM] = 0;
            reply[field::REFERENCE..][..4].copy_from_slice(code);
        })
    };
    assert_eq!(kiss(b"RATE"), Err(Bad::Kiss(*b"RATE")));
    assert_eq!(kiss(b"DENY").unwrap_err().to_string(), "the server refuses: DENY");
    assert_eq!(kiss(b"\x1b[2J").unwrap_err().to_string(), "the server refuses: .[2J");
    assert_eq!(changed(|reply| reply[0] |= NOT_SET << 6), Err(Bad::NotSet));
    for stratum in [16, 17, 255] {
        assert_eq!(changed(|reply| reply[field::STRATUM] = stratum), Err(Bad::NotSet));
    }
    // Leap seconds to come are none of our business.
    for leap in [1, 2] {
        assert!(changed(|reply| reply[0] |= leap << 6).is_ok());
    }
}

#[test]
fn times_that_cannot_be() {
    // Without a time; answered before it was received; a longer time at the server than away.
    assert_eq!(changed(|reply| put(reply, field::TRANSMIT, 0, 8)), Err(Bad::Impossible));
    assert_eq!(changed(|reply| put(reply, field::RECEIVE, 0, 8)), Err(Bad::Impossible));
    let at = |nanoseconds| SINCE_1900 << 32 | fraction(nanoseconds);
    assert_eq!(changed(|reply| put(reply, field::RECEIVE, at(20_000_000), 8)), Err(Bad::Impossible));
    assert_eq!(changed(|reply| put(reply, field::TRANSMIT, at(40_000_000), 8)), Err(Bad::Impossible));
    // By less than clocks differ in such a time.
    assert_eq!(changed(|reply| put(reply, field::TRANSMIT, at(30_500_000), 8)).map(|sample| sample.delay), Ok(0));
    // Came before it was sent.
    assert_eq!(Request::new(NONCE, SENT).check(&reply(), SENT - 1), Err(Bad::Impossible));
}

#[test]
fn imprecise_replies_are_refused() {
    let request = Request::new(NONCE, SENT);
    assert!(request.check(&reply(), SENT + 10_000_000 + MAX_DELAY).is_ok());
    assert_eq!(request.check(&reply(), SENT + 10_000_001 + MAX_DELAY), Err(Bad::Vague));
    assert_eq!(changed(|reply| put(reply, field::ROOT_DELAY, 3 << 48, 4)), Err(Bad::Vague));
    assert_eq!(changed(|reply| put(reply, field::ROOT_DISPERSION, u64::MAX, 4)), Err(Bad::Vague));
}

proptest! {
    #[test]
    fn no_reply_makes_it_panic(reply in proptest::collection::vec(any::<u8>(), 0..80), nonce: u64, sent: u64, now: u64) {
        let _ = Request::new(nonce, sent).check(&reply, now);
    }

    #[test]
    fn no_change_of_a_good_reply_makes_it_panic(at in 0..PACKET_BYTES, value: u8, now in SENT..SENT + 5 * SECOND) {
        let mut reply = reply();
        reply[at] = value;
        if let Ok(sample) = Request::new(NONCE, SENT).check(&reply, now) {
            prop_assert!(sample.delay <= MAX_DELAY && sample.error <= MAX_DELAY / 2 + MAX_ROOT_ERROR + SECOND);
        }
    }
}
