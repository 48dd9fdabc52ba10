//! `random [BYTES]`: random bytes in hexadecimal digits.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use protocols::random::{DEVICE, MAX_RANDOM, PROCESSOR, RandomClient, RandomError};
use runtime::connection::{Connection, Name};
use runtime::idl::Failure;
use runtime::{op, thread};
use tool::{Arguments, print, println};

runtime::entry!(main);

const HELP: &str = "\
usage: random [BYTES]
       random --sources

Prints random bytes in hexadecimal digits, 32 to a line; 16 bytes if no number is given.

  --sources  which sources contributed to them, and how often
";

static RANDOM: RandomClient<Connection<Name<'static>>> = RandomClient(Connection::named("random"));

/// How long a seed is waited for, and how long between two questions, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
const PAUSE: u64 = 20_000_000;
/// Bytes of a line.
const LINE: usize = 32;

fn main() -> u8 {
    let mut arguments = Arguments::new("random", HELP);
    let sources = arguments.flag("--sources");
    if sources {
        return if arguments.none() { show_sources(&arguments) } else { tool::USAGE };
    }
    let count = match arguments.words() {
        [] => 16,
        [word] => match tool::parse(word) {
            Some(count) => count,
            None => return arguments.wrong("BYTES is a number"),
        },
        _ => return arguments.wrong("too many arguments"),
    };
    let mut missing = count;
    while missing > 0 {
        let mut bytes = [0; LINE];
        let line = &mut bytes[..LINE.min(usize::try_from(missing).unwrap_or(LINE))];
        const { assert!(LINE <= MAX_RANDOM) };
        match fill(line) {
            Ok(got) if got == line.len() => {}
            Ok(_) => return arguments.fail("random", "fewer bytes came than were asked for"),
            Err(error) => return arguments.fail("random", error),
        }
        for byte in line.iter() {
            print!("{byte:02x}");
        }
        println!();
        missing -= line.len() as u64;
    }
    0
}

/// Fills a line; soon after the start it may take a moment until there is a seed.
fn fill(line: &mut [u8]) -> Result<usize, Failure<RandomError>> {
    let end = op::clock() + PATIENCE;
    loop {
        match RANDOM.fill(line) {
            Err(Failure::Refused(RandomError::NotReady)) if op::clock() < end => {
                thread::sleep(PAUSE).map_err(Failure::Transport)?;
            }
            answer => return answer,
        }
    }
}

fn show_sources(arguments: &Arguments) -> u8 {
    let (sources, seeds) = match RANDOM.sources() {
        Ok(reported) => reported,
        Err(error) => return arguments.fail("random", error),
    };
    for (bit, name) in [(PROCESSOR, "processor"), (DEVICE, "device")] {
        println!("{name:<10} {}", if sources & bit != 0 { "contributes" } else { "does not contribute" });
    }
    println!("seeded     {seeds} times");
    0
}
