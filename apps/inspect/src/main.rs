//! Programs that print the nucleus's records of the machine. The name that it is started under selects the program.
//!
//! They have one binary, of which each name in `/bin` is a further one: most of it is what they share.
//!
//! | module | what |
//! |---|---|
//! | [`cpus`] | CPUs |
//! | [`df`] | room for files |
//! | [`dmesg`] | the kernel log |
//! | [`domains`], [`ps`] | domains: the nucleus's record of each, and their use of resources |
//! | [`frames`] | where every frame is |
//! | [`portals`] | possible calls between domains |
//! | [`threads`] | threads |
//! | [`top`] | what domains do right now |
//! | [`uptime`] | time since boot, counters |
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod cpus;
mod df;
mod dmesg;
mod domains;
mod frames;
mod portals;
mod ps;
mod threads;
mod top;
mod uptime;

use tool::{Arguments, USAGE, eprintln};

runtime::entry!(main);

/// A program: its name, its help, and what it does with its arguments.
struct Program(&'static str, &'static str, fn(Arguments) -> u8);

const PROGRAMS: [Program; 10] = [
    Program("cpus", cpus::HELP, cpus::main),
    Program("df", df::HELP, df::main),
    Program("dmesg", dmesg::HELP, dmesg::main),
    Program("domains", domains::HELP, domains::main),
    Program("frames", frames::HELP, frames::main),
    Program("portals", portals::HELP, portals::main),
    Program("ps", ps::HELP, ps::main),
    Program("threads", threads::HELP, threads::main),
    Program("top", top::HELP, top::main),
    Program("uptime", uptime::HELP, uptime::main),
];

fn main() -> u8 {
    let own = runtime::program::name();
    match PROGRAMS.iter().find(|Program(name, ..)| *name == own) {
        Some(Program(name, help, run)) => run(Arguments::new(name, help)),
        None => {
            eprintln!("{own}: started under a name that means nothing to it; start it as one of:");
            PROGRAMS.iter().for_each(|Program(name, ..)| eprintln!("  {name}"));
            USAGE
        }
    }
}
