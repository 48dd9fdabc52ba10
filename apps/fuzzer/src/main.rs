//! `fuzzer`, the syscall fuzzer: makes random and structured system calls, and counts the answers.
//!
//! The parent starts children with small accounts; each draws its calls from a generator with a seed of its
//! own, so that a run can be repeated. A child prints its counts at the end; the parent adds them up.
//! A child may not harm the system: it has nothing but its own domain, its account and what it makes
//! of them, and calls nobody else's server. That the nucleus survives it is the test.
//!
//! | module | what |
//! |---|---|
//! | [`arch`] | what is an ISA's own |
//! | [`child`], [`calls`] | drawing calls and making them |
//! | [`scenes`] | short sequences for what single calls hardly meet |
//! | [`storm`], [`minion`] | domains that call each other, map to each other and die |
//! | [`histogram`], [`counts`] | counting |
#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod calls;
mod child;
mod counts;
mod minion;
mod scenes;
mod storm;

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use loader::startup::ENTRY;
use runtime::child::Child;
use runtime::pipes::{self, PIPES};
use runtime::stream::Stream;
use runtime::thread;
use tool::command::Command;
use tool::inspect;
use tool::{Arguments, println};

use fuzzer::histogram::{Histogram, OF_PROGRAMS};

runtime::entry!(main);

const HELP: &str = "\
usage: fuzzer [--seed N] [--count N] [--domains N] [--frames N] [--demand N]

Makes random system calls: half of them make sense, half do not. Shows
at the end how often each operation was answered how, and checks that no frame
of memory was lost.

  --seed N     where the random numbers begin (default: 1); the same seed makes
               the same calls
  --count N    calls per domain (default: 10000)
  --domains N  domains that do it at the same time (default: 2, at most 8)
  --frames N   frames in the account of each (default: 800)
  --demand N   fail unless a tenth of each operation succeeds and each error comes
               N times; what cannot come here is listed with its reason
";

/// Domains at the same time: each has a pipe.
const MAX_DOMAINS: u64 = 8;
/// Seeds of a run's children.
const SEEDS: u64 = 16;

fn main() -> u8 {
    let mut arguments = Arguments::new("fuzzer", HELP);
    let mut number = |name: &str, usual: u64| arguments.number(name).map(|value| value.unwrap_or(usual));
    let (seed, count, domains, frames) =
        match (number("--seed", 1), number("--count", 10_000), number("--domains", 2), number("--frames", 800)) {
            (Ok(seed), Ok(count), Ok(domains), Ok(frames)) => (seed, count, domains, frames),
            _ => return tool::USAGE,
        };
    let Ok(demand) = arguments.number("--demand") else { return tool::USAGE };
    let is_child = arguments.flag("--child");
    if !arguments.none() {
        return tool::USAGE;
    }
    if is_child {
        child::run(seed, count).lines().iter().for_each(|line| println!("{line}"));
        return 0;
    }
    if !(1..=MAX_DOMAINS).contains(&domains) {
        return arguments.wrong("--domains is 1 to 8");
    }
    let before = inspect::frames();
    let (total, mut status) = match run(seed, count, domains, frames) {
        Ok(done) => done,
        Err(cause) => return arguments.fail("children", cause),
    };
    total.show(&OF_PROGRAMS).iter().for_each(|line| println!("{line}"));
    println!();
    println!("{} calls by {domains} domains, seed {seed}", total.calls());
    if let Some(times) = demand {
        for what in total.missing(times, &OF_PROGRAMS) {
            println!("missing: {what}");
            status = 1;
        }
    }
    match (before, inspect::frames()) {
        (Ok(before), Ok(after)) => {
            println!(
                "frames: {} free before, {} after (with the pages of these counts), {} in all",
                before.free, after.free, after.total
            );
            if after.charged + after.free != after.total {
                println!("charged + free is not the total: {} + {}", after.charged, after.free);
                status = 1;
            }
        }
        (Err(error), _) | (_, Err(error)) => return arguments.fail("frames", error),
    }
    status
}

/// Starts the children, reads their counts, waits for them.
fn run(seed: u64, count: u64, domains: u64, frames: u64) -> Result<(Histogram, u8), String> {
    let mut children = Vec::new();
    for child in 0..domains {
        let pipe = PIPES.create().map_err(|error| error.to_string())?;
        let seed = seed.wrapping_mul(SEEDS).wrapping_add(child);
        match start(seed, count, pipe, frames) {
            Ok(child) => children.push((pipe, child, seed)),
            Err(cause) => {
                let _ = PIPES.close_read(pipe);
                let _ = PIPES.close_write(pipe);
                return Err(cause);
            }
        }
    }
    let mut total = Histogram::empty();
    let mut status = 0;
    for (pipe, child, seed) in children {
        let mut text = Vec::new();
        let mut buffer = [0; 1024];
        let ended = Arc::new(AtomicU64::new(u64::MAX));
        // The reader learns of the end by the pipe.
        let waiter = thread::spawn({
            let ended = ended.clone();
            move || {
                let _ = child.wait().map(|status| ended.store(status, Ordering::Relaxed));
                let _ = PIPES.close_write(pipe);
            }
        })
        .map_err(|error| error.to_string())?;
        let end = pipes::end(pipe, 0).map_err(|error| error.to_string())?;
        let input = Stream::entry(end.entry());
        while let Ok(length @ 1..) = input.read(&mut buffer) {
            text.extend_from_slice(&buffer[..length]);
        }
        waiter.join();
        let ended = ended.load(Ordering::Relaxed);
        let _ = PIPES.close_read(pipe);
        let counted = core::str::from_utf8(&text).is_ok_and(|text| total.read(text));
        if ended != 0 || !counted {
            println!("child with seed {seed}: {}", inspect::status(ended));
            status = 1;
        }
    }
    Ok((total, status))
}

fn start(seed: u64, count: u64, pipe: u64, frames: u64) -> Result<Child, String> {
    let (seed, count) = (seed.to_string(), count.to_string());
    let words = ["/bin/fuzzer", "--child", "--seed", &seed, "--count", &count];
    let command = Command::new(&words).streams(["null", ENTRY, "console"]).frames(frames);
    let child = command.load().map_err(|error| error.to_string())?;
    let domain = child.domain().map_err(|error| error.to_string())?;
    pipes::give(domain.entry(), 0, pipe).map_err(|error| error.to_string())?;
    child.start().map_err(|error| error.to_string())?;
    Ok(child)
}
