//! The time of day, asked for seldom ([`protocols::time`]).

use protocols::time::{Offset, TimeClient, TimeError};

use crate::connection::{Connection, Direct, Name, Source};
use crate::entry::Owned;
use crate::op;
use crate::sync::Mutex;
use idl::Failure;

/// How long it waits before it asks a service again that did not know, in nanoseconds.
const RETRY: u64 = 1_000_000_000;

/// The clock of this program. Where nobody serves the time of day it waits for nobody.
#[derive(Debug)]
pub struct WallClock {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    clock: Option<Owned>,
    reported: Option<Offset>,
    /// Before this time since boot nobody is asked.
    not_before: u64,
}

impl Default for WallClock {
    fn default() -> Self {
        Self::new()
    }
}

impl WallClock {
    /// One that asked nobody yet.
    pub const fn new() -> Self {
        Self { state: Mutex::new(State { clock: None, reported: None, not_before: 0 }) }
    }

    /// Nanoseconds since 1970-01-01 (UTC); `None` as long as nobody knows.
    pub fn now(&self) -> Option<u64> {
        let now = op::clock();
        let mut state = self.state.lock();
        if state.reported.is_none_or(|reported| now >= reported.until) && now >= state.not_before {
            match state.ask() {
                Ok(reported) => state.reported = Some(reported),
                // The time that was read before is better than nothing, as while the clock is started again.
                Err(_) => state.not_before = now.saturating_add(RETRY),
            }
        }
        state.reported.and_then(|reported| reported.offset.checked_add(now))
    }
}

impl State {
    fn ask(&mut self) -> Result<Offset, Failure<TimeError>> {
        let clock = match self.clock.take() {
            Some(clock) => clock,
            None => Owned::new(Name("time").open().map_err(Failure::Transport)?),
        };
        let reported = TimeClient(Direct(clock.entry())).offset();
        // An entry that leads nowhere any more is not kept.
        if !matches!(reported, Err(Failure::Transport(_))) {
            self.clock = Some(clock);
        }
        reported
    }
}

/// The clock, by name. Its calls wait for a clock that is being started.
pub static CLOCK: TimeClient<Connection<Name<'static>>> = TimeClient(Connection::named("time"));

/// Asks for the time of day now: nanoseconds since 1970-01-01 (UTC).
pub fn now() -> Result<u64, Failure<TimeError>> {
    let reported = CLOCK.offset()?;
    Ok(reported.offset.wrapping_add(op::clock()))
}
