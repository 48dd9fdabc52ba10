//! The time of day: the machine's clock chip, read once, and what corrects it later.
//!
//! The chip has whole seconds. It is read at once, so that there is a time from the beginning; then its
//! interrupt at the end of a second says when exactly that second began. From there on the nucleus's clock
//! counts, and the chip is not asked again. A new instance of this component begins with the chip again.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::{String, ToString};

use calendar::Civil;
use idl::AllWords;
use protocols::time::{LEASE, Offset, TimeError, TimeServer};
use runtime::op;
use runtime::server::{self, ServeAllWords};
use runtime::sync::Mutex;

runtime::entry!(main);

/// Calls are short.
const ACTIVATIONS: usize = 1;
const SECOND: u64 = 1_000_000_000;
/// No time of day is accepted from the year 2500 on.
const LAST: u64 = 16_725_225_600 * SECOND;
/// Assumed error of the chip after its interrupt: its second began within this time before the interrupt was seen. Its true
/// error is unknown.
const LATENCY: u64 = 10_000_000;

#[derive(Clone, Copy)]
struct Setting {
    offset: u64,
    error: u64,
    version: u64,
    /// Set by an authorised client, not read from the chip.
    corrected: bool,
}

static SETTING: Mutex<Option<Setting>> = Mutex::new(None);

struct Time;

impl ServeAllWords for Time {
    fn serve(badge: u64, words: &AllWords) -> AllWords {
        Time.dispatch(badge, words)
    }
}

impl TimeServer for Time {
    fn offset(&self, _badge: u64) -> Result<Offset, TimeError> {
        let Setting { offset, error, version, .. } = (*SETTING.lock()).ok_or(TimeError::Unknown)?;
        Ok(Offset { offset, error, version, until: op::clock().saturating_add(LEASE) })
    }

    fn set(&self, badge: u64, offset: u64, error: u64) -> Result<(), TimeError> {
        // A client that opened us by name has no badge.
        if badge == 0 {
            return Err(TimeError::NotAllowed);
        }
        let now = op::clock();
        let time = offset.checked_add(now).filter(|time| *time < LAST).ok_or(TimeError::BadTime)?;
        let before = SETTING.lock().replace(Setting { offset, error, version: now, corrected: true });
        match before {
            Some(before) => {
                let [more, less] = [offset.saturating_sub(before.offset), before.offset.saturating_sub(offset)];
                let sign = if more > 0 { "forward" } else { "back" };
                runtime::log!("set {sign} by {} us: {}", more.max(less) / 1_000, text(time));
            }
            None => runtime::log!("set: {}", text(time)),
        }
        Ok(())
    }
}

/// A time of day in nanoseconds, as text.
fn text(time: u64) -> String {
    Civil::from_seconds(time / SECOND).map_or_else(String::new, |civil| civil.to_string())
}

/// Takes the chip's time, unless something better came meanwhile.
fn take(time: u64, at: u64, error: u64) {
    let mut setting = SETTING.lock();
    if setting.is_none_or(|setting| !setting.corrected) {
        *setting = Some(Setting { offset: time.saturating_sub(at), error, version: at, corrected: false });
    }
}

fn publish() -> Result<(), String> {
    server::activations(ACTIVATIONS).map_err(|error| error.to_string())?;
    let service = server::all_words_service::<Time>().map_err(|error| error.to_string())?;
    server::publish_service("time", service).map_err(|error| error.to_string())
}

fn main() -> u8 {
    match chip::now() {
        Ok((time, at)) => {
            take(time, at, SECOND);
            runtime::log!("the machine's clock says {}", text(time));
        }
        Err(cause) => runtime::log!("the time of day is not known: {cause}"),
    }
    if let Err(error) = publish() {
        runtime::log!("cannot serve: {error}");
        return 1;
    }
    if SETTING.lock().is_some() {
        match chip::next_second() {
            Ok((time, at)) => take(time, at, LATENCY),
            Err(cause) => runtime::log!("the time of day may be off by a second: {cause}"),
        }
    }
    server::park()
}
