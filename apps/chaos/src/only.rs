//! Kills, and nothing else.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use runtime::idl::Failure;
use runtime::protocols::process::{Force, ProcessError};
use runtime::thread;
use tool::inspect::{self, PROC};
use tool::{Arguments, println};

use crate::log::Log;
use tool::random::Random;

/// Nanoseconds until everything must go on after a kill.
pub const PATIENCE: u64 = 10_000_000_000;
/// Nanoseconds between two looks.
pub const LOOK: u64 = 300_000;
const MILLISECOND: u64 = 1_000_000;

/// A component that is to be killed so many times more.
struct Victim {
    name: &'static str,
    left: u64,
    log: Log,
}

/// `chaos --only`.
pub fn run(mut arguments: Arguments) -> u8 {
    let mut number = |name, usual| arguments.number(name).map(|number| number.unwrap_or(usual));
    let numbers = (number("--kills", 50), number("--seed", 1), number("--pause", 400));
    let (Ok(kills), Ok(seed), Ok(pause)) = numbers else { return tool::USAGE };
    let names = arguments.words();
    if names.is_empty() {
        return arguments.wrong("COMPONENT is missing");
    }
    println!("chaos: {kills} kills of each of {}, seed {seed}", names.join(", "));
    match all(names, kills, seed, pause * MILLISECOND) {
        Ok(()) => 0,
        Err(cause) => arguments.fail(&names.join(" "), cause),
    }
}

fn all(names: &[&'static str], kills: u64, seed: u64, pause: u64) -> Result<(), String> {
    let mut random = Random(seed);
    let victims = names.iter().map(|name| {
        let mut log = Log::new(name)?;
        log.skip()?;
        Ok(Victim { name, left: kills, log })
    });
    let mut victims = victims.collect::<Result<Vec<_>, String>>()?;
    let mut left = kills * victims.len() as u64;
    while left > 0 {
        thread::sleep(random.below(2 * pause + 1)).map_err(|error| format!("{error}"))?;
        // Each kill that is left is as likely as any other.
        let mut drawn = random.below(left);
        let victim = victims.iter_mut().find(|victim| {
            let is_it = drawn < victim.left;
            drawn = drawn.wrapping_sub(victim.left);
            is_it
        });
        let victim = victim.ok_or("nobody was drawn")?;
        let start = kill(victim.name, find(victim.name)?)?;
        println!(
            "chaos: killed {} at {} us, alive after {} us",
            victim.name,
            start / 1000,
            (thread::clock() - start) / 1000
        );
        victim.left -= 1;
        left -= 1;
    }
    for victim in &mut victims {
        // It is alive a little before the log says so.
        let start = thread::clock();
        loop {
            victim.log.read()?;
            if victim.log.restarts >= kills || thread::clock() - start >= PATIENCE {
                break;
            }
            thread::sleep(LOOK).map_err(|error| format!("{error}"))?;
        }
        println!("chaos: dmesg: {} deaths of {}, {} restarts", victim.log.deaths, victim.name, victim.log.restarts);
        if (victim.log.deaths, victim.log.restarts) != (kills, kills) {
            return Err(format!("{kills} kills of {}, but dmesg reports other numbers", victim.name));
        }
    }
    Ok(())
}

/// The number of the living domain with this name.
pub fn find(victim: &str) -> Result<u64, String> {
    let domains = inspect::domains().map_err(|error| format!("domains: {error}"))?;
    Ok(inspect::only(&domains, victim)?)
}

/// Kills it and waits until it is alive again: under a new number, or, of a scheduler, the one that stood by. Gives
/// when it was killed.
pub fn kill(victim: &str, number: u64) -> Result<u64, String> {
    let start = thread::clock();
    // As soon as it may die: the last scheduler that did has a successor.
    while let Err(error) = PROC.kill_domain(number, Force::Gentle) {
        if error != Failure::Refused(ProcessError::NoStandby) || thread::clock() - start > PATIENCE {
            return Err(format!("{error}"));
        }
        thread::sleep(LOOK).map_err(|error| format!("{error}"))?;
    }
    while find(victim).map_or(true, |now| now == number) {
        if thread::clock() - start > PATIENCE {
            return Err(format!("{victim} does not come back"));
        }
        thread::sleep(LOOK).map_err(|error| format!("{error}"))?;
    }
    Ok(start)
}
