//! Tries the runtime where it has to work: in the machine.
//!
//! Runs in the place of a shell. Alone, it has the machine and the serial line's ports, and tries the
//! runtime itself; with the argument `services` it tries what the runtime offers for the system's
//! services, through them; with `tables` portal tables that grow; with `contract` what follows from the table of operations; with `flows`
//! whether labels are asked, and with `rules` whether what comes of them is what the specification says, with `replay` whether it is what a
//! trace says; with `windows` windows; with
//! `ports` ports; with `shapes` how long making portals keeps interrupts out; with `table` it tries what happens between CPUs; with `order`
//! it prints in which order threads run, with `share` and `burden` how equal their time is; with `driver` it gives bad frames to a driver;
//! with `restarts` it is a component that does not last, with `declared` one of a compartment. Each check prints one line; the machine
//! stops with 0 if all hold. A check must not hang: the boot tests have a time limit.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

#[allow(unsafe_code)]
mod arch;
#[allow(unsafe_code)]
mod archive;
mod block;
mod bytes;
mod calls;
mod changing;
mod check;
mod contract;
mod crowd;
mod deadlines;
mod declared;
#[allow(unsafe_code)]
mod devices;
mod driver;
mod example;
mod flows;
mod inspect;
mod lending;
mod lent;
mod limits;
mod order;
#[allow(unsafe_code)]
mod pagers;
mod ports;
#[allow(unsafe_code)]
mod raw;
mod registers;
mod replay;
mod restarts;
mod rules;
mod services;
mod shapes;
mod share;
mod shares;
mod shown;
mod slices;
mod subject;
mod table;
mod tables;
mod terminal;
mod threads;
#[allow(unsafe_code)]
mod torn;
mod vectors;
mod versions;
mod windows;

use alloc::format;
use alloc::string::String;
use core::fmt::Write;

use raw::{activation_in, map_code, start_nowhere};
use runtime::serial::Serial;
use runtime::stream::Stream;
use runtime::{Arguments, Entry, op, program};

runtime::entry!(main);

/// Trials that are made alone.
const SEVERAL: [(&str, &[check::Check]); 6] = [
    ("tables", tables::CHECKS),
    ("contract", contract::CHECKS),
    ("windows", windows::CHECKS),
    ("ports", ports::CHECKS),
    ("crowd", crowd::CHECKS),
    ("devices", devices::CHECKS),
];

fn main(arguments: Arguments) {
    let mut failed = 0;
    let chosen = |name: &str| arguments.clone().skip(1).any(|argument| argument == name);
    if chosen("order") {
        for line in order::lines() {
            let line = line.unwrap_or_else(|error| report("order", Err(error.text()), &mut failed));
            let _ = Serial::new().write_str(&line);
        }
        let _ = op::machine_stop(Entry::SPECIAL, failed);
    } else if chosen("shapes") {
        for line in shapes::longest() {
            let line = line.unwrap_or_else(|error| report("shapes", Err(error.text()), &mut failed));
            let _ = Serial::new().write_str(&line);
        }
        let _ = op::machine_stop(Entry::SPECIAL, failed);
    } else if let Some(checks) = SEVERAL.iter().find(|(name, _)| chosen(name)).map(|(_, checks)| checks) {
        for (name, check) in *checks {
            let line = report(name, check(), &mut failed);
            let _ = Serial::new().write_str(&line);
        }
        let _ = op::machine_stop(Entry::SPECIAL, failed);
    } else if chosen("flows") {
        for (name, outcome) in flows::lines().into_iter().chain([("the example of the book", example::run())]) {
            failed += u64::from(outcome.is_err());
            let said = outcome.unwrap_or_else(|why| format!("FAILED: {why}"));
            let _ = Serial::new().write_str(&format!("{name}: {said}\n"));
        }
        let _ = op::machine_stop(Entry::SPECIAL, failed);
    } else if chosen("rules") {
        let line = try_rules(&arguments).unwrap_or_else(|why| {
            failed += 1;
            format!("rules: FAILED: {why}\n")
        });
        let _ = Serial::new().write_str(&line);
        let _ = op::machine_stop(Entry::SPECIAL, failed);
    } else if chosen("replay") {
        let line = replay::line().unwrap_or_else(|why| {
            failed += 1;
            format!("replay: FAILED: {why}\n")
        });
        let _ = Serial::new().write_str(&line);
        let _ = op::machine_stop(Entry::SPECIAL, failed);
    } else if chosen("table") {
        let failed = try_table(&arguments);
        let _ = op::machine_stop(Entry::SPECIAL, failed);
    } else if chosen("share") {
        let line = share::line().unwrap_or_else(|error| report("share", Err(error.text()), &mut failed));
        let _ = Serial::new().write_str(&line);
        let _ = op::machine_stop(Entry::SPECIAL, failed);
    } else if chosen("burden") {
        let count = arguments.clone().filter_map(|argument| argument.parse().ok()).next();
        let _ = share::burden(count.unwrap_or(1));
    } else if chosen("driver") {
        for (name, check) in driver::CHECKS {
            let line = report(name, check(), &mut failed);
            let _ = Serial::new().write_str(&line);
        }
        let _ = op::machine_stop(Entry::SPECIAL, failed);
    } else if chosen("declared") {
        program::exit(declared::run().into());
    } else if chosen("restarts") {
        program::exit(restarts::run(arguments.clone().nth(2).unwrap_or("")).into());
    } else if chosen("services") {
        let console = Stream::new("console");
        for (name, check) in services::CHECKS
            .iter()
            .chain(versions::CHECKS)
            .chain(lending::CHECKS)
            .chain([&deadlines::CAME_BACK])
            .chain(terminal::CHECKS)
        {
            let line = report(name, check(), &mut failed);
            let _ = console.write_all(line.as_bytes());
        }
        let _ = services::proc().stop_machine(failed);
    } else {
        for (name, check) in bytes::CHECKS
            .iter()
            .chain(threads::CHECKS)
            .chain(calls::CHECKS)
            .chain(deadlines::CHECKS)
            .chain(shares::CHECKS)
            .chain(slices::CHECKS)
            .chain(vectors::CHECKS)
            .chain(registers::CHECKS)
            .chain(shapes::CHECKS)
            .chain(changing::CHECKS)
            .chain(torn::CHECKS)
            .chain(pagers::CHECKS)
            .chain(limits::CHECKS)
            .chain(archive::CHECKS)
            .chain(inspect::CHECKS)
            .chain(devices::CHECKS)
        {
            let line = report(name, check(), &mut failed);
            let _ = Serial::new().write_str(&line);
        }
        let _ = op::machine_stop(Entry::SPECIAL, failed);
    }
    runtime::server::park()
}

/// `rules [--seed N] [--steps N]`
fn try_rules(arguments: &Arguments) -> Result<String, String> {
    let after = |name: &str| arguments.clone().skip_while(|argument| *argument != name).nth(1);
    let number = |name, otherwise| after(name).map_or(Ok(otherwise), str::parse);
    match (number("--seed", 1), number("--steps", 20_000)) {
        (Ok(seed), Ok(steps)) => Ok(format!("{}\n{}{}", flows::callers()?, lent::lines()?, rules::line(seed, steps)?)),
        _ => Err("--seed and --steps take a number".into()),
    }
}

/// `table [--list] [--seed N] [--rounds R] [--case WORDS]`; gives the number of failures.
fn try_table(arguments: &Arguments) -> u64 {
    let after = |name: &str| arguments.clone().skip_while(|argument| *argument != name).nth(1);
    let number = |name, otherwise| after(name).map_or(Ok(otherwise), str::parse);
    let say = |line: &str| {
        let _ = Serial::new().write_str(line);
    };
    if arguments.clone().any(|argument| argument == "--list") {
        table::list(say);
        return 0;
    }
    match (number("--seed", 1), number("--rounds", 3)) {
        (Ok(seed), Ok(rounds)) => table::run(&table::Wanted { seed, rounds, case: after("--case").unwrap_or("") }, say),
        _ => {
            say("table: FAILED: --seed and --rounds take a number\n");
            1
        }
    }
}

fn report(name: &str, result: Result<(), &'static str>, failed: &mut u64) -> String {
    *failed += u64::from(result.is_err());
    match result {
        Ok(()) => format!("{name}: ok\n"),
        Err(what) => format!("{name}: FAILED: {what}\n"),
    }
}
