//! `negtest KIND`: runs a negative test, which shows what the system does about a program that does what it must not.
//!
//! | module | negative tests |
//! |---|---|
//! | [`deaths`] | for which a domain dies |
//! | [`refusals`] | that the nucleus refuses with an error, and states that must not hurt it |
//! | [`bounds`] | refused, too: addresses, sizes, cycles |
//! | [`rule`] | of programs that want more than their makers allow |
//! | [`exhaustion`] | with an account that has too few frames, every number of them |
//! | [`callees`] | of callees |
//! | [`chases`] | of programs that copy objects during their removal |
//! | [`pagers`] | of pagers |
//! | [`storms`] | by as many at once as there can be |
//! | [`long`] | that make a loop of the nucleus as long as it can be |
//! | [`fragile`] | of clients whose call kills the server |
//! | [`fuzz`] | random messages to services |
//! | [`names`] | of programs that claim a name that is not theirs |
//! | [`hoards`] | of programs that take all there is and never give it back |
//! | [`pipes`] | of programs that want pipes of others, or all of them, and all room for files |
//! | [`images`] | of files that are no programs |
//! | [`network`] | of programs that take all there is of the network |
//! | [`statuses`] | of programs that ask for the system's state without end |
//! | [`terminal`] | of programs that want the terminal for themselves |
//! | [`turns`] | of threads that keep others waiting for an activation or a lock |
//! | [`woken`] | of threads that were woken to call again |
//! | [`lent`] | of threads with a lent priority |
//! | [`confined`] | of programs that may reach only services on a list |
//! | [`labels`] | of tainted domains |
//! | [`leaks`] | of programs in a compartment that leak its secrets |
//! | [`attack`] | all that a downloaded program could try |
//! | [`windows`] | of lenders and receivers of windows |
//!
//! [`arch`] has those of one ISA alone, [`child`] is a domain that runs some of them, [`launch`] starts this program again as callee and the like.
//!
//! `negtest --all` runs all of those that leave us alive and says whether the errors are the right ones. Unsafe
//! code is the purpose here.
#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod attack;
mod bounds;
mod callees;
mod case;
mod chases;
mod child;
mod commands;
mod confined;
mod deaths;
mod deputies;
mod exhaustion;
mod fragile;
mod fuzz;
mod hoards;
mod images;
mod labels;
mod launch;
mod leaks;
mod lent;
mod long;
mod names;
mod network;
mod pagers;
mod pipes;
mod refusals;
mod rule;
mod statuses;
mod storms;
mod terminal;
mod turns;
mod windows;
mod woken;

use case::{Case, Expected};
use tool::{Arguments, USAGE, println};

runtime::entry!(main);

const HELP: &str = "\
usage: negtest KIND
       negtest --list | --all

Runs a negative test. The domain dies of it, and the shell reports the cause, or
the nucleus refuses it, and negtest reports the error. Some tests need a second
domain, or are tried in many ways: negtest reports the outcome.

  --list  lists the kinds
  --all   runs everything that is refused, in turn; the status is the number of
          wrong answers
";

fn cases() -> impl Iterator<Item = &'static Case> {
    let groups = [
        deaths::ALL,
        arch::DEATHS,
        refusals::HARMLESS,
        arch::HARMLESS,
        refusals::ALL,
        bounds::ALL,
        bounds::TRIED,
        rule::ALL,
        exhaustion::ALL,
        callees::ALL,
        pagers::ALL,
        storms::ALL,
        long::ALL,
        fuzz::ALL,
        chases::ALL,
        hoards::ALL,
        names::ALL,
        deputies::ALL,
        fragile::ALL,
        pipes::ALL,
        images::ALL,
        statuses::ALL,
        network::ALL,
        terminal::ALL,
        turns::ALL,
        woken::ALL,
        lent::ALL,
        windows::ALL,
        labels::ALL,
        attack::ALL,
        leaks::ALL,
        confined::ALL,
        commands::ALL,
    ];
    groups.into_iter().flatten()
}

fn main() -> u8 {
    let arguments = Arguments::new("negtest", HELP);
    // Forms in which this program or a test starts it.
    match arguments.words() {
        ["--serve"] => return callees::serve(callees::ACTIVATIONS),
        ["--serve-windows"] => return windows::serve(),
        ["--serve-labels", name] => return labels::serve(name),
        ["--lend"] => return windows::call(),
        ["--serve", "2"] => return callees::serve(2),
        ["--crowd"] => return callees::part_of_crowd(),
        ["--call"] => return callees::call(),
        ["--hoard", own] => return names::hoarder(own),
        ["--storm", first] => return storms::part(first),
        ["--ticket", number] => return deputies::thief(number),
        ["--tickets"] => return hoards::take_and_wait(),
        ["--hold-domains"] => return hoards::hold_domains(),
        ["--hold-threads"] => return hoards::hold_threads(),
        ["--log"] => return hoards::log_something(),
        ["--rewrite"] => return hoards::rewrite(),
        ["--kv"] => return hoards::store(),
        ["--leave"] => return pipes::leave(),
        ["--start-reader"] => return pipes::start_reader(),
        ["--net-neighbour"] => return network::neighbour(),
        ["--net-hog"] => return network::hog(),
        ["--net-sip"] => return network::sip(),
        ["--hold"] => return hoards::hold(),
        ["--threads"] => return storms::fill(),
        [what @ ("--leak-send" | "--leak-hear"), name, ..] => return leaks::part(what, name),
        ["--leak-outside"] => return leaks::reported(leaks::outside()),
        ["--leak-inside"] => return leaks::reported(leaks::inside_only()),
        ["--leak-privileged"] => return leaks::reported(leaks::privileged()),
        ["--leak-cleared"] => return leaks::reported(leaks::cleared()),
        ["--leak-child"] => return leaks::child(),
        ["--leak-sip"] => return leaks::sip(),
        ["--terminal-kept"] => return terminal::kept(),
        ["--nothing"] => return 0,
        ["--spin"] => return long::spin(),
        [what @ ("--pool-full" | "--wait-many" | "--wait-gone")] => return long::part(what),
        _ => {}
    }
    let Some(kind) = arguments.one("KIND") else { return USAGE };
    match kind {
        "--list" => {
            for case in cases() {
                let end = match case.expected {
                    Expected::Dies(_) => "dies",
                    Expected::Refused(..) => "refused",
                    Expected::Harmless(_) => "harmless",
                    Expected::Tried(_) => "tried",
                };
                println!("{:<22} {:<9} {}", case.name, end, case.what);
            }
            0
        }
        "--all" => {
            let alive = cases().filter(|case| matches!(case.expected, Expected::Refused(..) | Expected::Harmless(_)));
            let wrong = alive.filter(|case| !case.run()).count();
            if wrong == 0 {
                println!("all refused as they should be");
            }
            wrong.min(100) as u8
        }
        kind => match cases().find(|case| case.name == kind) {
            Some(case) => u8::from(!case.run()),
            None => arguments.fail(kind, "no such kind; see negtest --list"),
        },
    }
}
