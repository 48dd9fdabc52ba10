//! `kill DOMAIN…`: ends domains.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use tool::inspect::{self, PROC};
use tool::{Arguments, parse};

runtime::entry!(main);

const HELP: &str = "\
usage: kill DOMAIN...

Ends domains. DOMAIN is a number as ps shows it, or the name of exactly one
domain that is alive. A component comes back if the system description says so.
";

fn main() -> u8 {
    let arguments = Arguments::new("kill", HELP);
    if arguments.words().is_empty() {
        return arguments.wrong("DOMAIN is missing");
    }
    let domains = match inspect::domains() {
        Ok(domains) => domains,
        Err(error) => return arguments.fail("domains", error),
    };
    let mut status = 0;
    for word in arguments.words() {
        let mut named = domains.iter().filter(|(name, domain)| name == word && domain.state == 0);
        let number = match (parse(word), named.next(), named.next()) {
            (Some(number), ..) => number,
            (None, Some((_, domain)), None) => domain.number,
            (None, None, _) => {
                status = arguments.fail(word, "no such domain");
                continue;
            }
            (None, Some(_), Some(_)) => {
                status = arguments.fail(word, "several domains have this name; give a number");
                continue;
            }
        };
        if let Err(error) = PROC.kill_domain(number) {
            status = arguments.fail(word, error);
        }
    }
    status
}
