//! `date`: the time of day.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use calendar::{Civil, Long};
use tool::{Arguments, println};

runtime::entry!(main);

const SECOND: u64 = 1_000_000_000;

const HELP: &str = "\
usage: date [-u] [-I | -s]
       date --set SECONDS

Shows the time of day. The only time zone is UTC.

  -u  in UTC, as always
  -I  as ISO 8601 has it: 2026-01-31T23:59:59Z
  -s  in seconds since 1970-01-01

  --set SECONDS  sets it, in seconds since 1970-01-01, if this program may
";

fn main() -> u8 {
    let mut arguments = Arguments::new("date", HELP);
    match arguments.number("--set") {
        Ok(None) => {}
        Ok(Some(seconds)) if arguments.none() => return set(&arguments, seconds),
        _ => return tool::USAGE,
    }
    let Some(options) = arguments.options("uIs") else { return tool::USAGE };
    if !arguments.none() {
        return tool::USAGE;
    }
    let seconds = match runtime::time::now() {
        Ok(time) => time / SECOND,
        Err(error) => return arguments.fail("the time of day", error),
    };
    let Some(civil) = Civil::from_seconds(seconds) else {
        return arguments.fail("the time of day", "after the year 9999");
    };
    match (options.contains('I'), options.contains('s')) {
        (true, true) => return arguments.wrong("-I and -s exclude each other"),
        (true, false) => println!("{civil}"),
        (false, true) => println!("{seconds}"),
        (false, false) => println!("{}", Long(civil)),
    }
    0
}

/// Sets the time of day, to the second.
fn set(arguments: &Arguments, seconds: u64) -> u8 {
    let time = seconds.saturating_mul(SECOND);
    match runtime::time::CLOCK.set(time.saturating_sub(runtime::op::clock()), SECOND) {
        Ok(()) => 0,
        Err(error) => arguments.fail("the clock", error),
    }
}
