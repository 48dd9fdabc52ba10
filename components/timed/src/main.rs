//! Corrects the clock by time servers of the network (crate `sntp`).
//!
//! Servers stand in the file `/etc/ntp`, one to a line: an address or a name, with a port if it is not 123. The file is
//! read again before each request. No server is asked often, and one that does not answer ever more seldom. The log
//! reports only changes. Between two requests nothing is kept in the network.
//!
//! A restarted clock knows only what the RTC says. So the last answer is kept here
//! and set again then.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod ask;
mod servers;

use alloc::format;
use alloc::string::String;

use ask::SECOND;
use idl::Failure;
use protocols::time::{TimeClient, TimeError};
use runtime::{Direct, thread};
use sntp::{Outcome, Sample, Schedule};

runtime::entry!(main);

/// Between two looks whether the clock still knows, in nanoseconds.
const LOOK: u64 = 60 * SECOND;

/// The clock, and the offset set there.
struct Clock {
    client: TimeClient<Direct>,
    /// The last answer, and the clock's version with it.
    kept: Option<(Sample, u64)>,
    /// The last line for the log: only changes are logged.
    reported: String,
}

fn main() -> u8 {
    let Some(clock) = runtime::program::portal("time") else {
        runtime::log!("no portal to the clock: the system description must give `clock/time`");
        return 1;
    };
    let mut clock = Clock { client: TimeClient(Direct(clock)), kept: None, reported: String::new() };
    let mut schedule = Schedule::new();
    loop {
        let outcome = clock.correct();
        clock.rest(schedule.after(outcome) * SECOND);
    }
}

impl Clock {
    /// Asks the servers in turn until one answers.
    fn correct(&mut self) -> Outcome {
        let mut outcome = Outcome::Silence;
        for server in servers::read() {
            match ask::ask(&server) {
                Ok(Ok(sample)) => {
                    match self.set(sample) {
                        Ok(()) => self.report(format!("the time comes from {server}")),
                        Err(error) => self.report(format!("the clock refuses what {server} says: {error}")),
                    }
                    return Outcome::Answered;
                }
                Ok(Err(bad)) => {
                    outcome = Outcome::Refused(bad);
                    self.report(format!("{server}: {bad}"));
                }
                // That nobody answers is the usual thing.
                Err(_) => {}
            }
        }
        outcome
    }

    fn set(&mut self, sample: Sample) -> Result<(), Failure<TimeError>> {
        self.client.set(sample.offset, sample.error)?;
        self.kept = Some((sample, self.client.offset()?.version));
        Ok(())
    }

    /// Waits. Meanwhile a clock that was restarted is set again.
    fn rest(&mut self, nanoseconds: u64) {
        let end = thread::clock().saturating_add(nanoseconds);
        while thread::clock() < end {
            // A cancelled wait only makes the next look come sooner.
            let _ = thread::sleep_until(end.min(thread::clock() + LOOK));
            if let Some((sample, version)) = self.kept
                && self.client.offset().map(|reported| reported.version) != Ok(version)
            {
                // If it does not take, the next look finds that out.
                let _ = self.set(sample);
            }
        }
    }

    fn report(&mut self, line: String) {
        if self.reported != line {
            runtime::log!("{line}");
            self.reported = line;
        }
    }
}
