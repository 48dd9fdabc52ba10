//! `ps`: the domains, and what they use.

use alloc::string::ToString;
use alloc::vec::Vec;

use runtime::abi::info::Thread;
use tool::Arguments;
use tool::compartments::{self, Names};
use tool::inspect::{self, CpuSets};
use tool::table::{Side, Table, kibibytes};

/// The text of `--help`.
pub const HELP: &str = "\
usage: ps [-l]

Shows every domain: components and programs.

  -l  also their compartments, as with takes them: NAME is owned, NAME:3 taints;
      all = it owns all

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
pub fn main(mut arguments: Arguments) -> u8 {
    let Some(options) = arguments.options("l") else { return tool::USAGE };
    if !arguments.none() {
        return tool::USAGE;
    }
    let (domains, threads) = match (inspect::domains(), inspect::threads()) {
        (Ok(domains), Ok(threads)) => (domains, threads),
        (Err(error), _) | (_, Err(error)) => return arguments.fail("domains", error),
    };
    let sets = CpuSets::new(&threads);
    let lists_compartments = options.contains('l');
    let compartments: Vec<Vec<u64>> = match lists_compartments {
        true => domains.iter().map(|(_, domain)| compartments::of_domain(domain.number)).collect(),
        false => Vec::new(),
    };
    compartments::give_up_privileges();
    // The names are files.
    let names = lists_compartments.then(Names::new);
    let mut columns = Vec::from([
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
    if names.is_some() {
        columns.insert(columns.len() - 1, ("COMPARTMENTS", Side::Left));
    }
    let mut table = Table::new(&columns);
    for (place, (name, domain)) in domains.into_iter().enumerate() {
        // Each domain has one besides, for chains that nobody waits for, which is of no priority until there is one.
        let is_own = |thread: &&Thread| thread.home == domain.number && thread.priority != 0;
        let own = threads.iter().filter(is_own).map(|thread| thread.cpus);
        let state = if domain.state == 0 { "alive".into() } else { inspect::status(domain.status) };
        let compartments = names.as_ref().zip(compartments.get(place)).map(|(names, all)| names.texts(all));
        let row = [
            domain.number.to_string(),
            domain.parent.to_string(),
            state,
            kibibytes(domain.charged),
            kibibytes(domain.limit),
            domain.threads.to_string(),
            domain.crossings.to_string(),
            if own.clone().next().is_none() { "-".into() } else { sets.text(own.fold(0, |set, cpus| set | cpus)) },
        ];
        table.row(row.into_iter().chain(compartments).chain([name]));
    }
    table.print();
    0
}
