//! The time of day, for `Date` and `Last-Modified`. While nobody knows it, these fields are left out.

use alloc::vec::Vec;
use http::{DATE_BYTES, write_date};
use protocols::time::TimeClient;
use runtime::connection::{Connection, Name};
use runtime::op;
use runtime::sync::Mutex;

static CLOCK: Connection<Name<'static>> = Connection::named("time");

const SECOND: u64 = 1_000_000_000;

struct Time {
    /// The time of day minus the time since boot, in nanoseconds.
    offset: Option<u64>,
    /// Until when that may be used.
    until: u64,
    /// The second that `date` is of.
    second: u64,
    date: [u8; DATE_BYTES],
}

static TIME: Mutex<Time> = Mutex::new(Time { offset: None, until: 0, second: 0, date: [0; DATE_BYTES] });

impl Time {
    fn offset(&mut self, now: u64) -> Option<u64> {
        if now >= self.until {
            let reported = TimeClient(CLOCK.once()).offset().ok();
            self.offset = reported.map(|reported| reported.offset);
            self.until = reported.map_or(now + SECOND, |reported| reported.until);
        }
        self.offset
    }
}

/// Appends `Date`, with its line end.
pub fn push_date(into: &mut Vec<u8>) {
    let mut time = TIME.lock();
    let now = op::clock();
    let Some(since_1970) = time.offset(now).and_then(|offset| offset.checked_add(now)) else { return };
    if since_1970 / SECOND != time.second {
        time.second = since_1970 / SECOND;
        time.date = write_date(time.second);
    }
    into.extend_from_slice(b"Date: ");
    into.extend_from_slice(&time.date);
    into.extend_from_slice(b"\r\n");
}

/// A time since boot, in nanoseconds, as seconds since 1970.
pub fn of(since_boot: u64) -> Option<u64> {
    let offset = TIME.lock().offset(op::clock())?;
    Some(since_boot.checked_add(offset)? / SECOND)
}
