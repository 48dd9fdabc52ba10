//! `uptime`: time since boot, and what the nucleus counted.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use tool::table::seconds;
use tool::{Arguments, inspect, println};

runtime::entry!(main);

const HELP: &str = "\
usage: uptime [--all]

Shows the time since boot.

  --all  also what the nucleus counted since then
";

fn main() -> u8 {
    let mut arguments = Arguments::new("uptime", HELP);
    let all = arguments.flag("--all");
    if !arguments.none() {
        return tool::USAGE;
    }
    println!("up {}", seconds(runtime::op::clock()));
    if all {
        match inspect::counters() {
            Ok(counters) => {
                for (name, value) in counters.iter().skip(1) {
                    println!("{name:<36}{value:>12}");
                }
            }
            Err(error) => return arguments.fail("counters", error),
        }
    }
    0
}
