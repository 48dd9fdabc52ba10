//! `kill DOMAIN…`: ends programs and components.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use runtime::interfaces::parent::State;
use runtime::interfaces::process::Force;
use tool::inspect::{self, PROC};
use tool::{Arguments, parse};

runtime::entry!(main);

const HELP: &str = "\
usage: kill [-f] DOMAIN...

Ends programs and components. DOMAIN is a number as ps shows it, or the name of
exactly one domain that is alive; of a scheduler and the one that stands by,
the name means the one that schedules. A component comes back if the system
description says so; one that does not is ended only by force.

  -f  by force: the machine may stop
";

fn main() -> u8 {
    let mut arguments = Arguments::new("kill", HELP);
    let Some(options) = arguments.options("f") else { return tool::USAGE };
    let force = if options.contains('f') { Force::Forced } else { Force::Gentle };
    if arguments.words().is_empty() {
        return arguments.wrong("DOMAIN is missing");
    }
    let domains = match inspect::domains() {
        Ok(domains) => domains,
        Err(error) => return arguments.fail("domains", error),
    };
    let mut status = 0;
    for word in arguments.words() {
        let number = match parse(word).map_or_else(|| inspect::only(&domains, word), Ok) {
            Ok(number) => number,
            Err(cause) => {
                let cause = match inspect::state(word) {
                    Ok(State::Waits) => "it does not run; it is started later",
                    Ok(State::Dead) => "it does not run, and nobody starts it again",
                    _ => cause,
                };
                status = arguments.fail(word, cause);
                continue;
            }
        };
        if let Err(error) = PROC.kill_domain(number, force) {
            status = arguments.fail(word, error);
        }
    }
    status
}
