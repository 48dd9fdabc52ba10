//! `domains`: the nucleus's record of each domain.

use alloc::string::ToString;

use tool::compartments::give_up_privileges;
use tool::table::{Side, Table};
use tool::{Arguments, inspect};

/// The text of `--help`.
pub const HELP: &str = "\
usage: domains

Shows what the nucleus keeps for each domain (see also ps).

  PAGES        mapped in its address space
  ACTIVATIONS  places for flows of control: its threads and calls it can serve
  TABLE        entries of its portal table
  LABELS       how often its labels have changed, from 1
  RESTARTS     how often the component was started again since boot
";

/// The program.
pub fn main(arguments: Arguments) -> u8 {
    if !arguments.none() {
        return tool::USAGE;
    }
    let domains = match inspect::domains() {
        Ok(domains) => domains,
        Err(error) => return arguments.fail("domains", error),
    };
    let restarts = match inspect::restarts() {
        Ok(restarts) => restarts,
        Err(error) => return arguments.fail("restarts", error),
    };
    give_up_privileges();
    let mut table = Table::new(&[
        ("DOMAIN", Side::Right),
        ("PAGES", Side::Right),
        ("ACTIVATIONS", Side::Right),
        ("TABLE", Side::Right),
        ("LABELS", Side::Right),
        ("RESTARTS", Side::Right),
        ("NAME", Side::Left),
    ]);
    for (name, domain) in domains {
        let numbers = [domain.number, domain.pages, domain.activations, domain.table, domain.labels];
        // A program, and what the nucleus started, has no such number.
        let started = restarts.iter().find(|(number, _)| *number == domain.number);
        let started = started.map_or_else(|| "-".to_string(), |(_, restarts)| restarts.to_string());
        table.row(numbers.map(|number| number.to_string()).into_iter().chain([started, name]));
    }
    table.print();
    0
}
