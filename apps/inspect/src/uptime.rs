//! `uptime`: time since boot, and what the nucleus counted.

use alloc::vec::Vec;

use tool::compartments::give_up_privileges;
use tool::table::seconds;
use tool::{Arguments, inspect, println};

/// The text of `--help`.
pub const HELP: &str = "\
usage: uptime [--all]

Shows the time since boot.

  --all  also what the nucleus counted since then; counts that tainted programs change
         are 0 without the compartment admin
";

/// The program.
pub fn main(mut arguments: Arguments) -> u8 {
    let all = arguments.flag("--all");
    if !arguments.none() {
        return tool::USAGE;
    }
    let time = seconds(runtime::op::clock());
    let counters = if all { inspect::counters() } else { Ok(Vec::new()) };
    give_up_privileges();
    println!("up {time}");
    if all {
        match counters {
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
