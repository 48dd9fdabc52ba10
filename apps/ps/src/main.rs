//! `ps [-a]`: the domains, and what they use.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::ToString;

use tool::table::{Side, Table, kibibytes};
use tool::{Arguments, inspect};

runtime::entry!(main);

const HELP: &str = "\
usage: ps

Shows every domain: components and programs.

  DOMAIN     its number; kill takes it
  PARENT     number of the domain that made it
  STATE      alive, or what it died of
  MEMORY     charged to its account
  LIMIT      what its account may have
  THREADS    that started in it
  CROSSINGS  portal calls it made
";

fn main() -> u8 {
    let arguments = Arguments::new("ps", HELP);
    if !arguments.none() {
        return tool::USAGE;
    }
    let domains = match inspect::domains() {
        Ok(domains) => domains,
        Err(error) => return arguments.fail("domains", error),
    };
    let mut table = Table::new(&[
        ("DOMAIN", Side::Right),
        ("PARENT", Side::Right),
        ("STATE", Side::Left),
        ("MEMORY", Side::Right),
        ("LIMIT", Side::Right),
        ("THREADS", Side::Right),
        ("CROSSINGS", Side::Right),
        ("NAME", Side::Left),
    ]);
    for (name, domain) in domains {
        let state = if domain.state == 0 { "alive".into() } else { inspect::status(domain.status) };
        table.row([
            domain.number.to_string(),
            domain.parent.to_string(),
            state,
            kibibytes(domain.charged),
            kibibytes(domain.limit),
            domain.threads.to_string(),
            domain.crossings.to_string(),
            name,
        ]);
    }
    table.print();
    0
}
