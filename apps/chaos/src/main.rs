//! `chaos COMPONENT`: kills a component at random instants while others use it, and looks whether
//! anything is lost.
//!
//! The load runs below our own priority: when we wake at a random time, whatever of it runs is interrupted
//! wherever it is, in a call to the victim above all (a call runs with its caller's priority). After most
//! kills we wait until the victim is back and each load went on; the next kill after the others comes while
//! the victim starts. All that was acknowledged to the load is compared in the end.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod again;
mod clients;
mod files;
mod load;
mod log;
mod only;

use alloc::format;
use alloc::string::String;

use load::LOADS;
use log::Log;
use only::{LOOK, PATIENCE};
use runtime::thread;
use tool::random::Random;
use tool::{Arguments, println};

runtime::entry!(main);

const HELP: &str = "\
usage: chaos COMPONENT [--kills N] [--seed N]
       chaos --only [--kills N] [--seed N] [--pause MS] COMPONENT...
       chaos --clients [--rounds N] [--seed N] [SERVICE...]

Kills a component N times (50) at random instants, while threads write and read
files, print, look names up, start programs, sleep and yield. Ends well if the
component came back each time, everything went on, and nothing that was
acknowledged is lost. The instants follow from the seed (1).

With --only nothing else is done, and each of the components is killed N times,
in random order: what happens to their clients is for others to see. From one
kill to the next pass up to twice MS (400) milliseconds. Both need the right
to end components: type with admin in front.

With --clients nothing is killed but clients: threads that call a service are
killed, cancelled, and run into deadlines at random instants, N rounds (10) for
each service, and a fresh client must be answered soon after each.
";

/// Longest time before a kill, in nanoseconds: when all is at work, and while the victim starts.
const AT_WORK: u64 = 6_000_000;
const STARTING: u64 = 1_500_000;

fn main() -> u8 {
    let mut arguments = Arguments::new("chaos", HELP);
    if arguments.flag("--only") {
        return only::run(arguments);
    }
    if arguments.flag("--clients") {
        return clients::run(arguments);
    }
    if let ["--client", service] = arguments.words() {
        return clients::client(service);
    }
    let numbers = arguments.number("--kills").and_then(|kills| Ok((kills, arguments.number("--seed")?)));
    let Ok((kills, seed)) = numbers else { return tool::USAGE };
    let Some(victim) = arguments.one("COMPONENT") else { return tool::USAGE };
    let (kills, seed) = (kills.unwrap_or(50), seed.unwrap_or(1));
    println!("chaos: {kills} kills of {victim}, seed {seed}");
    match kill_and_look(victim, kills, seed) {
        Ok(()) => 0,
        Err(cause) => arguments.fail(victim, cause),
    }
}

fn kill_and_look(victim: &str, kills: u64, seed: u64) -> Result<(), String> {
    let mut random = Random(seed);
    let mut log = Log::new(victim)?;
    log.skip()?;
    load::publish().map_err(|error| format!("publish: {error}"))?;
    let threads = LOADS.each_ref().map(|load| load.start(random.any()));
    let mut slowest = 0;
    let mut outcome = all_go_on("at first");
    for kill in 1..=kills {
        if outcome.is_err() {
            break;
        }
        outcome = once(victim, kill, &mut random, &mut log, &mut slowest);
    }
    load::stop();
    for thread in threads {
        thread.map_err(|error| format!("no thread: {error}"))?.join();
    }
    outcome?;
    for load in &LOADS {
        println!("chaos: {}: {}", load.name, load.summary()?);
    }
    log.read()?;
    println!("chaos: dmesg: {} deaths of {victim}, {} restarts", log.deaths, log.restarts);
    println!("chaos: back after {} us at most", slowest / 1000);
    if (log.deaths, log.restarts) != (kills, kills) {
        return Err(format!("{kills} kills, but dmesg reports other numbers"));
    }
    Ok(())
}

/// One kill.
fn once(victim: &str, kill: u64, random: &mut Random, log: &mut Log, slowest: &mut u64) -> Result<(), String> {
    let while_starting = random.once_in(4);
    let pause = random.below(if while_starting { STARTING } else { AT_WORK });
    let number = only::find(victim)?;
    thread::sleep(pause).map_err(|error| format!("{error}"))?;
    let start = only::kill(victim, number).map_err(|error| format!("kill {kill}: {error}"))?;
    if !while_starting {
        all_go_on(&format!("after kill {kill}"))?;
        *slowest = (*slowest).max(thread::clock() - start);
    }
    log.read()
}

/// Waits until each load has done something more.
fn all_go_on(when: &str) -> Result<(), String> {
    let before = LOADS.each_ref().map(load::Load::done);
    let start = thread::clock();
    loop {
        for load in &LOADS {
            load.failure()?;
        }
        let idle = LOADS.iter().zip(before).find(|(load, before)| load.done() == *before);
        let Some((load, _)) = idle else { return Ok(()) };
        if thread::clock() - start > PATIENCE {
            return Err(format!("{when}: {} does not go on", load.name));
        }
        thread::sleep(LOOK).map_err(|error| format!("{error}"))?;
    }
}
