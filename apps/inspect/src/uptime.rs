//! `uptime`: time since boot, and what the nucleus counted.

use tool::table::seconds;
use tool::{Arguments, inspect, println};

/// The text of `--help`.
pub const HELP: &str = "\
usage: uptime [--all]

Shows the time since boot.

  --all  also what the nucleus counted since then; counts that tainted programs change
         are 0 without `allow`
";

/// The program.
pub fn main(mut arguments: Arguments) -> u8 {
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
