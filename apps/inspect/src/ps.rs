//! `ps`: the domains, and what they use.

use alloc::string::ToString;

use runtime::abi::info::Thread;
use tool::Arguments;
use tool::inspect::{self, CpuSets};
use tool::table::{Side, Table, kibibytes};

/// What `--help` prints.
pub const HELP: &str = "\
usage: ps

Shows every domain: components and programs.

  DOMAIN     its number; kill takes it
  PARENT     number of the domain that made it
  STATE      alive, or what it died of
  MEMORY     charged to its account
  LIMIT      what its account may have
  THREADS    that started in it
  CROSSINGS  portal calls it made
  CPUS       on which its threads may run: all, these, or - without threads
";

/// The program.
pub fn main(arguments: Arguments) -> u8 {
    if !arguments.none() {
        return tool::USAGE;
    }
    let (domains, threads) = match (inspect::domains(), inspect::threads()) {
        (Ok(domains), Ok(threads)) => (domains, threads),
        (Err(error), _) | (_, Err(error)) => return arguments.fail("domains", error),
    };
    let sets = CpuSets::new(&threads);
    let mut table = Table::new(&[
        ("DOMAIN", Side::Right),
        ("PARENT", Side::Right),
        ("STATE", Side::Left),
        ("MEMORY", Side::Right),
        ("LIMIT", Side::Right),
        ("THREADS", Side::Right),
        ("CROSSINGS", Side::Right),
        ("CPUS", Side::Left),
        ("NAME", Side::Left),
    ]);
    for (name, domain) in domains {
        // Each domain has one besides, for chains that nobody waits for, which is of no priority until there is one.
        let is_own = |thread: &&Thread| thread.home == domain.number && thread.priority != 0;
        let own = threads.iter().filter(is_own).map(|thread| thread.cpus);
        let state = if domain.state == 0 { "alive".into() } else { inspect::status(domain.status) };
        table.row([
            domain.number.to_string(),
            domain.parent.to_string(),
            state,
            kibibytes(domain.charged),
            kibibytes(domain.limit),
            domain.threads.to_string(),
            domain.crossings.to_string(),
            if own.clone().next().is_none() { "-".into() } else { sets.text(own.fold(0, |set, cpus| set | cpus)) },
            name,
        ]);
    }
    table.print();
    0
}
