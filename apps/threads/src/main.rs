//! `threads`: every thread, where it is and what it waits for.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::{String, ToString};

use tool::table::{Side, Table, seconds};
use tool::{Arguments, inspect};

runtime::entry!(main);

const HELP: &str = "\
usage: threads

Shows every thread.

  HOME      the domain it started in
  NOW       the domain it is in, if it is in a call
  STATE     running, handed to sched, in sched's ring, or blocked
  PRIORITY  0 (lowest) to 63
  DEPTH     activations in its chain of calls
  USED      processor time
";

fn main() -> u8 {
    let arguments = Arguments::new("threads", HELP);
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
    let mut table = Table::new(&[
        ("THREAD", Side::Right),
        ("HOME", Side::Left),
        ("NOW", Side::Left),
        ("STATE", Side::Left),
        ("PRIORITY", Side::Right),
        ("DEPTH", Side::Right),
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
            seconds(thread.used),
        ]);
    }
    table.print();
    0
}
