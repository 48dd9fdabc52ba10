//! `threads`: every thread, where it is and what it waits for.

use alloc::string::{String, ToString};

use tool::Arguments;
use tool::compartments::give_up_privileges;
use tool::inspect::{self, CpuSets};
use tool::table::{Side, Table, seconds};

/// The text of `--help`.
pub const HELP: &str = "\
usage: threads

Shows every thread.

  HOME      the domain it started in
  NOW       the domain it is in, if it is in a call
  STATE     running, handed to sched, in sched's ring, or blocked
  PRIORITY  0 (lowest) to 63
  DEPTH     activations in its chain of calls
  CPU       on which it runs or ran last
  CPUS      on which it may run: all, or these
  USED      processor time
";

/// The program.
pub fn main(arguments: Arguments) -> u8 {
    if !arguments.none() {
        return tool::USAGE;
    }
    let (threads, domains) = match (inspect::threads(), inspect::domains()) {
        (Ok(threads), Ok(domains)) => (threads, domains),
        (Err(error), _) | (_, Err(error)) => return arguments.fail("threads", error),
    };
    let name = |number: u64| match domains.iter().find(|(_, domain)| domain.number == number) {
        Some((name, _)) => name.clone(),
        None => alloc::format!("({number})"),
    };
    let sets = CpuSets::new(&threads);
    give_up_privileges();
    let mut table = Table::new(&[
        ("THREAD", Side::Right),
        ("HOME", Side::Left),
        ("NOW", Side::Left),
        ("STATE", Side::Left),
        ("PRIORITY", Side::Right),
        ("DEPTH", Side::Right),
        ("CPU", Side::Right),
        ("CPUS", Side::Left),
        ("USED", Side::Right),
    ]);
    for thread in threads {
        let state = ["running", "with sched", "in ring", "blocked"].get(thread.state as usize).unwrap_or(&"?");
        table.row([
            thread.number.to_string(),
            name(thread.home),
            if thread.now == thread.home { String::new() } else { name(thread.now) },
            state.to_string(),
            thread.priority.to_string(),
            thread.depth.to_string(),
            thread.cpu.to_string(),
            sets.text(thread.cpus),
            seconds(thread.used),
        ]);
    }
    table.print();
    0
}
