//! `cpus [-f] [SECONDS]`: the CPUs, and how busy they are.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use runtime::abi::info::{Cpu, Domain, Thread, cpu_state};
use status_json::cpus;
use tool::compartments::give_up_privileges;
use tool::table::{Side, Table};
use tool::{Arguments, USAGE, inspect, println};

/// The text of `--help`.
pub const HELP: &str = "\
usage: cpus [-f] [SECONDS]

Shows the CPUs and how busy they were in so many seconds (1 if not said; 0 is
since boot). All else is of now, counts are since boot.

  -f          goes on showing (Ctrl-C ends it)

  CPU         its number
  ID          the number that the machine gives it
  STATE       busy with a thread, in its scheduler, idle, or offline: it did not
              start
  LOAD        share of the time in which it had something to do
  THREAD, IN  the thread that runs, and the domain that it is in
  DISPATCHES  decisions of its scheduler
  INTERRUPTS  taken, those from other CPUs included
  RECEIVED    threads that came to it from other CPUs
  WAKES       interrupts sent to other CPUs, to wake them
  HALTS       times it stopped another CPU
  WAITS       times it waited for the nucleus's lock; MEAN and WORST are
              nanoseconds of a wait
  HELD        the longest time it held that lock, in ticks; only a nucleus that
              measures it (./x run --measured) knows
";

/// Nanoseconds between two readings if nothing is said.
const SECOND: u64 = 1_000_000_000;
/// More would not be a time that somebody waits.
const MAX_SECONDS: u64 = 3600;

/// A reading.
struct Reading {
    time: u64,
    cpus: Vec<Cpu>,
}

fn reading() -> Result<Reading, inspect::Refusal> {
    Ok(Reading { time: runtime::op::clock(), cpus: inspect::cpus()? })
}

/// The program.
pub fn main(mut arguments: Arguments) -> u8 {
    let Some(options) = arguments.options("f") else { return USAGE };
    let pause = match arguments.words() {
        [] => SECOND,
        [word] => match tool::parse(word).filter(|seconds| *seconds <= MAX_SECONDS) {
            Some(seconds) => seconds * SECOND,
            None => return arguments.wrong("SECONDS is a number of at most 3600"),
        },
        _ => return arguments.wrong("too many arguments"),
    };
    let follows = options.contains('f');
    let mut before = None;
    loop {
        if before.is_none() && pause != 0 {
            before = match reading() {
                Ok(reading) => Some(reading),
                Err(error) => return arguments.fail("CPUs", error),
            };
        }
        if (pause != 0 || follows) && runtime::thread::sleep(pause.max(SECOND / 10)).is_err() {
            return 0;
        }
        let now = match reading() {
            Ok(reading) => reading,
            Err(error) => return arguments.fail("CPUs", error),
        };
        // Without these there is only less to say.
        let (threads, domains) = (inspect::threads().unwrap_or_default(), inspect::domains().unwrap_or_default());
        if !follows {
            give_up_privileges();
        }
        show(before.as_ref(), &now, &threads, &domains);
        if !follows {
            return 0;
        }
        println!();
        let _ = runtime::stream::STDOUT.lock().flush();
        before = Some(now).filter(|_| pause != 0);
    }
}

fn show(before: Option<&Reading>, now: &Reading, threads: &[Thread], domains: &[(String, Domain)]) {
    let place = |number: u64| {
        let thread = threads.iter().find(|thread| thread.number == number && number != 0)?;
        let (name, _) = domains.iter().find(|(_, domain)| domain.number == thread.now)?;
        Some(name.clone())
    };
    let is_measured = now.cpus.iter().any(|cpu| cpu.longest != 0);
    let mut columns = Vec::from([("CPU", Side::Right), ("ID", Side::Right), ("STATE", Side::Left)]);
    columns.extend([("LOAD", Side::Right), ("THREAD", Side::Right), ("IN", Side::Left)]);
    let counts = ["DISPATCHES", "INTERRUPTS", "RECEIVED", "WAKES", "HALTS", "WAITS", "MEAN", "WORST", "HELD"];
    let counts = &counts[..counts.len() - usize::from(!is_measured)];
    columns.extend(counts.iter().map(|head| (*head, Side::Right)));
    let mut table = Table::new(&columns);
    for cpu in &now.cpus {
        let start = [cpu.number.to_string(), cpu.identity.to_string(), String::from(cpus::state(cpu))];
        if cpu.state == cpu_state::OFFLINE {
            table.row(start);
            continue;
        }
        let was = before.and_then(|before| before.cpus.iter().find(|was| was.number == cpu.number));
        let elapsed = now.time - before.map_or(0, |before| before.time);
        let load = cpus::load(was, cpu, elapsed)
            .map_or_else(String::new, |load| alloc::format!("{}.{} %", load / 10, load % 10));
        let thread = if cpu.thread == 0 { String::new() } else { cpu.thread.to_string() };
        let numbers = [cpu.dispatches, cpu.interrupts, cpu.received, cpu.wakes, cpu.stops, cpu.lock_waits];
        let lock = [cpus::mean_wait(cpu), cpu.lock_longest, cpu.longest];
        let numbers = numbers.into_iter().chain(lock).take(counts.len()).map(|number| number.to_string());
        table.row(start.into_iter().chain([load, thread, place(cpu.thread).unwrap_or_default()]).chain(numbers));
    }
    table.print();
}
