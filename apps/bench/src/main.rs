//! `bench`: measures what `tests/budgets.toml` limits, and prints a line per row.
//!
//! A line is `bench NAME VALUE UNIT [key=value …]`. Where the unit is instructions, the value is what the
//! time-stamp counter advanced per operation, rounded up, less an empty loop measured the same way: with
//! one tick per instruction (`./x bench` runs the emulator so) these are guest instructions, of everything that
//! the operation makes run. The pair `counted` numbers the rows of which the emulator's plugin says what costs more on hardware than
//! an instruction, by marks in the program; `operations` are those of the row.
//!
//! | module | what |
//! |---|---|
//! | [`measure`] | loops, averages, rows |
//! | [`peer`] | the other domain: this program again, started with `--peer` |
//! | [`crossings`] | system calls, calls, semaphores, switches |
//! | [`chains`] | calls through several domains |
//! | [`rings`] | domains of which each passes on to the next |
//! | [`portals`] | what portals cost to make, and what they take |
//! | [`faults`] | page faults |
//! | [`objects`] | threads, domains, programs, files |
//! | [`network`] | the network over loopback |
//! | [`labels`] | what labels cost |
//! | [`asked`] | what the peer asks about its caller |
//! | [`parallel`] | what takes several CPUs, each measured alone |
//! | [`together`] | threads that do something at the same time |
//! | [`speed`] | how much faster several CPUs are than one, by the clock |
//! | [`machine`] | what the boot took, and what stays in memory |
//! | [`arch`] | marks for the emulator's plugin |
//! | [`pages`] | the unsafe part: touching and moving pages |
#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod asked;
mod chains;
mod crossings;
mod faults;
mod labels;
mod machine;
mod measure;
mod network;
mod objects;
mod pages;
mod parallel;
mod peer;
mod portals;
mod ports;
mod rings;
mod speed;
mod together;

use alloc::string::String;

use tool::{Arguments, println};

use measure::Row;

runtime::entry!(main);

const HELP: &str = "\
usage: bench [TEXT]
       with admin bench [TEXT]
       bench --interrupts-off
       bench --cpus NUMBER calls | ping-pong | shootdown | speed-up

Measures what the system's operations cost, and prints a line for each whose name
contains TEXT: name, value, unit, and further numbers. The values
are guest instructions only under ./x bench (or ./x run --icount). Rows that
look at the log and at other programs are measured behind with admin.

  --interrupts-off  only the longest non-preemptible section since boot, which a
                    nucleus knows that was built to measure it (./x run --measured)
  --cpus            only one thing, on the first so many CPUs: a call on each at once; a
                    semaphore between two; a page unmapped that all may have used. They
                    are rows as above. speed-up takes the time, and is no row; it
                    needs with admin
";

/// Measures one row.
type Benchmark = fn() -> Result<Row, String>;

/// The rows of a program that may look at the log and at others. Its calls cost more, as it has labels: it measures no other row.
const OF_ADMIN: &[(&str, Benchmark)] = &[
    ("boot", machine::boot),
    ("resident", machine::resident),
    ("system", machine::system),
    ("process", machine::process),
];

/// The rows that the shipped build can measure besides, by name. The first is the shape that nobody has asked for yet.
const BENCHMARKS: &[(&str, Benchmark)] = &[
    ("portal-of-new-shape", portals::of_new_shape),
    ("portal-of-known-shape", portals::of_known_shape),
    ("shape-code", portals::code),
    ("entry", portals::entry),
    ("empty-domain", portals::empty_domain),
    ("short-circuit", crossings::short_circuit),
    ("call-return", crossings::call_and_return),
    ("npciii", crossings::short),
    ("fpu-call", crossings::short_with_fpu),
    ("window", crossings::window),
    ("window-written", crossings::window_written),
    ("copy-16", crossings::by_copy::<16>),
    ("copy-64", crossings::by_copy::<64>),
    ("copy-256", crossings::by_copy::<256>),
    ("copy-1024", crossings::by_copy::<1024>),
    ("copy-4096", crossings::by_copy::<4096>),
    ("copy-16384", crossings::by_copy::<16384>),
    ("copy-65536", crossings::by_copy::<65536>),
    ("show-16", crossings::by_window::<16>),
    ("show-64", crossings::by_window::<64>),
    ("show-256", crossings::by_window::<256>),
    ("show-1024", crossings::by_window::<1024>),
    ("show-4096", crossings::by_window::<4096>),
    ("show-16384", crossings::by_window::<16384>),
    ("show-65536", crossings::by_window::<65536>),
    ("tear-4096", crossings::by_tear::<4096>),
    ("tear-16384", crossings::by_tear::<16384>),
    ("tear-65536", crossings::by_tear::<65536>),
    ("torn-page", crossings::torn_page),
    ("semaphore", crossings::semaphore),
    ("semaphore-shared", crossings::shared_semaphore),
    ("page-fault", faults::warm),
    ("page-fault-cold", faults::cold),
    ("memory", faults::used),
    ("message", crossings::message),
    ("message-bytes", crossings::message_of_bytes),
    ("page-message", crossings::page),
    ("page-window", crossings::page_shown),
    ("ping-pong", crossings::ping_pong),
    ("port", ports::ping_pong),
    ("port-send", ports::send),
    ("port-send-waiting", ports::send_waiting),
    ("yield", crossings::yield_to_peer),
    ("thread", objects::thread),
    ("spawn", objects::spawn),
    ("file", objects::file),
    ("file-read", objects::file_read),
    ("open-close", objects::open),
    ("destroy", objects::destroy),
    ("tcp-local", network::tcp_local),
    ("chain-2", chains::chain::<2>),
    ("chain-3", chains::chain::<3>),
    ("chain-4", chains::chain::<4>),
    ("chain-5", chains::chain::<5>),
    ("chain-6", chains::chain::<6>),
    ("chain-7", chains::chain::<7>),
    ("chain-8", chains::chain::<8>),
    ("chain-flat", chains::flat),
    ("yield-ring-2", rings::yields::<2>),
    ("yield-ring-4", rings::yields::<4>),
    ("yield-ring-8", rings::yields::<8>),
    ("yield-ring-16", rings::yields::<16>),
    ("yield-ring-32", rings::yields::<32>),
    ("yield-ring-flat", rings::yields_flat),
    ("semaphore-ring-2", rings::semaphores::<2>),
    ("semaphore-ring-4", rings::semaphores::<4>),
    ("semaphore-ring-8", rings::semaphores::<8>),
    ("semaphore-ring-16", rings::semaphores::<16>),
    ("semaphore-ring-32", rings::semaphores::<32>),
    ("semaphore-ring-flat", rings::semaphores_flat),
    ("pipe-ring-2", rings::bytes::<2>),
    ("pipe-ring-4", rings::bytes::<4>),
    ("pipe-ring-8", rings::bytes::<8>),
    ("pipe-ring-flat", rings::bytes_flat),
    ("pipe-page", rings::page),
    ("label-set", labels::set_one),
    ("label-below-same", labels::below_same),
    ("label-below-near", labels::below_near),
    ("label-below-alike", labels::below_alike),
    ("label-below-disjoint", labels::below_disjoint),
    ("label-below-woven", labels::below_woven),
    ("label-higher", labels::higher),
    ("label-lower", labels::lower),
    ("label-caller-may", labels::caller_may),
    ("label-others-change", labels::others_change),
];

/// Those that leave us with large labels: each is measured in a process of its own.
const ALONE: &[(&str, Benchmark)] = &[
    ("label-first-call-16", labels::first_call::<16>),
    ("label-first-call-300", labels::first_call::<300>),
    ("label-first-call-owner", labels::first_call_of_owner::<300>),
    ("label-first-tainted-16", labels::first_call_tainted::<16>),
    ("label-first-tainted-300", labels::first_call_tainted::<300>),
    ("label-handle", labels::new_handle),
    // Last: the next changes of labels free the nodes of its large ones.
    ("port-labels", ports::ping_pong_labelled),
];

fn main() -> u8 {
    let mut arguments = Arguments::new("bench", HELP);
    match arguments.number(peer::OPTION) {
        Ok(None) => {}
        Ok(Some(number)) => return peer::serve(number),
        Err(status) => return status,
    }
    match arguments.number("--cpus") {
        Ok(None) => {}
        Ok(Some(cpus)) => return on_several(&arguments, cpus),
        Err(status) => return status,
    }
    let has_admin = runtime::program::startup().is_some_and(|startup| startup.compartments().next().is_some());
    let (all, alone): (&[(&str, Benchmark)], &[_]) = match arguments.flag("--interrupts-off") {
        true => (&[("interrupts-off", machine::interrupts_off)], ALONE),
        false if has_admin => (OF_ADMIN, &[]),
        false => (BENCHMARKS, ALONE),
    };
    let filter = match arguments.words() {
        [] => "",
        [text] => text,
        _ => return arguments.wrong("too many arguments"),
    };
    let mut status = 0;
    let mut measure = |name: &str, outcome: Result<Option<Row>, String>| match outcome {
        Ok(Some(row)) => println!("bench {name} {row}"),
        Ok(None) => {}
        Err(cause) => status = arguments.fail(name, cause),
    };
    for (name, benchmark) in all.iter().filter(|(name, _)| name.contains(filter)) {
        measure::begin_row();
        measure(name, benchmark().map(Some));
    }
    for (name, benchmark) in alone.iter().filter(|(name, _)| name.contains(filter)) {
        measure(name, if *name == filter { benchmark().map(Some) } else { peer::alone(name).map(|()| None) });
    }
    peer::end();
    status
}

/// Does the one thing that is named, on so many CPUs.
fn on_several(arguments: &Arguments, cpus: u64) -> u8 {
    let Some(what) = arguments.one("what to measure") else { return tool::USAGE };
    let done = match what {
        "calls" => parallel::calls(cpus).map(|row| println!("bench call-return-{cpus} {row}")),
        "ping-pong" => parallel::ping_pong(cpus).map(|row| println!("bench ping-pong-{cpus} {row}")),
        "shootdown" => parallel::shootdown(cpus).map(|row| println!("bench shootdown {row}")),
        "speed-up" => speed::up(cpus),
        _ => return arguments.wrong("it measures calls, ping-pong, shootdown or speed-up"),
    };
    peer::end();
    match done {
        Ok(()) => 0,
        Err(cause) => arguments.fail(what, cause),
    }
}
