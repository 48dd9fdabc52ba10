//! `sleep SECONDS`: waits. `sleep --busy SECONDS`: works meanwhile, and says how much of the time it had.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use runtime::thread;
use tool::{Arguments, println};

runtime::entry!(main);

const HELP: &str = "\
usage: sleep [--busy] SECONDS

Waits. SECONDS may have a fraction of up to nine digits.

With --busy it works all the time, and says which part of the time of a CPU it
had: of all, and of the tenth of it in which it had least.
";

/// Steps of work that are counted as one.
const STEPS: u64 = 20_000;
/// Parts of the time, each with a count.
const PARTS: usize = 10;

fn main() -> u8 {
    let mut arguments = Arguments::new("sleep", HELP);
    let is_busy = arguments.flag("--busy");
    let Some(word) = arguments.one("SECONDS") else { return tool::USAGE };
    let Some(nanoseconds) = nanoseconds(word) else {
        return arguments.wrong("SECONDS is a number");
    };
    if is_busy {
        work(nanoseconds);
        return 0;
    }
    match thread::sleep(nanoseconds) {
        Ok(()) => 0,
        Err(error) => arguments.fail("waiting", error),
    }
}

/// Works so long. An uninterrupted run shows how long a piece of work takes.
fn work(nanoseconds: u64) {
    let (start, mut pieces, mut shortest) = (thread::clock(), [0; PARTS], u64::MAX);
    let (mut before, part) = (start, nanoseconds / PARTS as u64 + 1);
    while let Some(pieces) = pieces.get_mut(((before - start) / part) as usize) {
        for step in 0..STEPS {
            core::hint::black_box(step);
        }
        let now = thread::clock();
        shortest = shortest.min(now - before).max(1);
        before = now;
        *pieces += 1;
    }
    let percent = |pieces: u64, time: u64| pieces * shortest * 100 / time;
    let (all, least) = (pieces.iter().sum(), pieces.into_iter().min().unwrap_or(0));
    println!("worked for {} % of the time, {} % at least", percent(all, before - start), percent(least, part));
}

fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let unit = 10u64.pow(9 - fraction.len() as u32);
    whole.checked_mul(1_000_000_000)?.checked_add(part * unit)
}
