//! `portals`: who can call whom.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use tool::table::{Side, Table};
use tool::{Arguments, inspect};

/// What `--help` prints.
pub const HELP: &str = "\
usage: portals

Shows who can call whom: the call entries of all portal tables.

  FROM     the domain in whose table they stand
  TO       the domain that they call
  ENTRIES  how many there are of one service: as many files are open, say
  SERVICE  address at which the service is entered
";

/// The program.
pub fn main(arguments: Arguments) -> u8 {
    if !arguments.none() {
        return tool::USAGE;
    }
    let (portals, domains) = match (inspect::portals(), inspect::domains()) {
        (Ok(portals), Ok(domains)) => (portals, domains),
        (Err(error), _) | (_, Err(error)) => return arguments.fail("portals", error),
    };
    let name = |number: u64| match domains.iter().find(|(_, domain)| domain.number == number) {
        Some((name, _)) => alloc::format!("{name} ({number})"),
        None => number.to_string(),
    };
    let mut edges = BTreeMap::new();
    for portal in portals {
        *edges.entry((portal.from, portal.to, portal.service)).or_insert(0_u64) += 1;
    }
    let columns = [("FROM", Side::Left), ("TO", Side::Left), ("ENTRIES", Side::Right), ("SERVICE", Side::Right)];
    let mut table = Table::new(&columns);
    for ((from, to, service), entries) in edges {
        let cells: [String; 4] = [name(from), name(to), entries.to_string(), alloc::format!("{service:#x}")];
        table.row(cells);
    }
    table.print();
    0
}
