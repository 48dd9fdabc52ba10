//! Rings of domains: each passes on to the next, by a yield, a semaphore or a byte in a pipe.
//!
//! As in the paper on Pebble, each domain of a ring has one thread, and this program is one of them. Each row measures one
//! hop. Each ring goes round until there were [`HOPS`], so that a hop of a long ring is not measured by fewer.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use idl::Delegate;
use protocols::pipes::PipeEndClient;
use runtime::abi::{NEVER, PAGE_BYTES, rights};
use runtime::connection::Direct;
use runtime::entry::Owned;
use runtime::op;
use runtime::pipes::{self, PIPES};
use runtime::window::Page;

use crate::crossings::{new_semaphore, refused};
use crate::measure::{Row, dispatches, per_round, timed};
use crate::peer::{self, End};

/// Hops that are counted, of each ring.
const HOPS: u64 = 16_000;
/// Rounds before counting starts.
const WARM_UP: u64 = 20;

/// Measures a ring of so many domains: what a hop takes.
type Ring = fn(usize) -> Result<Row, String>;

/// A yield from one domain to the next.
pub fn yields<const DOMAINS: usize>() -> Result<Row, String> {
    yield_ring(DOMAINS)
}

/// V for the next domain, P for the one before.
pub fn semaphores<const DOMAINS: usize>() -> Result<Row, String> {
    semaphore_ring(DOMAINS)
}

/// A byte through a pipe to the next domain.
pub fn bytes<const DOMAINS: usize>() -> Result<Row, String> {
    pipe_ring(DOMAINS)
}

/// The largest ring of yields over the smallest.
pub fn yields_flat() -> Result<Row, String> {
    flat(yield_ring, 32)
}

/// The largest ring of semaphores over the smallest.
pub fn semaphores_flat() -> Result<Row, String> {
    flat(semaphore_ring, 32)
}

/// The largest ring of pipes over the smallest.
pub fn bytes_flat() -> Result<Row, String> {
    flat(pipe_ring, MOST_PIPES)
}

/// A page that is written to a pipe and read from it, by this program alone: nobody waits.
pub fn page() -> Result<Row, String> {
    let mut all = Pipes(Vec::new());
    let pipe = PIPES.create().map_err(|error| error.to_string())?;
    all.0.push(pipe);
    let own = pipes::end(pipe, pipe).map_err(|error| error.to_string())?;
    let (end, mut page) = (PipeEndClient(Direct(own.entry())), Box::new(Page::ZERO));
    let mut round = || {
        let written = end.write(&page.0);
        if written != Ok(PAGE_BYTES) || end.read(&mut page.0) != written {
            refused();
        }
    };
    (0..WARM_UP).for_each(|_| round());
    const PAGES: u64 = 1_000;
    let ticks = timed(|| (0..PAGES).for_each(|_| round()));
    Ok(Row::instructions(per_round(ticks, PAGES)).of(PAGES))
}

/// A hop of a ring of so many domains, in per cent of a hop between two.
fn flat(ring: Ring, most: usize) -> Result<Row, String> {
    let (two, many) = (ring(2)?.value(), ring(most)?.value());
    Ok(Row::percent(many, two)?.with("of_two", two).with("of_most", many))
}

/// The other domains of a ring, in order.
fn others(domains: usize) -> Result<Vec<&'static End>, String> {
    (0..domains - 1).map(peer::start_number).collect()
}

/// Goes round, and gives what a hop took. `round` is this program's part of one.
fn go_round(domains: usize, mut round: impl FnMut()) -> Result<Row, String> {
    let rounds = HOPS / domains as u64;
    let hops = rounds * domains as u64;
    (0..WARM_UP).for_each(|_| round());
    let (ticks, switches) = dispatches(|| timed(|| (0..rounds).for_each(|_| round())))?;
    if switches < hops {
        return Err(alloc::format!("{switches} switches in {hops} hops"));
    }
    // Each of the domains runs a loop of its own.
    Ok(Row::instructions(per_round(ticks, hops)).with("switches_of_100_hops", 100 * switches / hops).of(hops))
}

/// Rounds of a ring, those before counting starts included.
const fn rounds(domains: usize) -> u64 {
    HOPS / domains as u64 + WARM_UP
}

fn yield_ring(domains: usize) -> Result<Row, String> {
    for other in others(domains)? {
        // They are still there when we count our last round, and then yield to nobody.
        other.give_way(rounds(domains) + 2 * WARM_UP).map_err(|error| error.to_string())?;
    }
    let row = go_round(domains, op::yield_now)?;
    // Nobody of this ring yields in the next one.
    (0..3 * WARM_UP).for_each(|_| op::yield_now());
    Ok(row)
}

fn semaphore_ring(domains: usize) -> Result<Row, String> {
    // That with number n is what domain n waits for; this program is domain 0.
    let semaphores = (0..domains).map(|_| new_semaphore()).collect::<Result<Vec<_>, _>>()?;
    for (number, other) in others(domains)?.into_iter().enumerate() {
        let [heard, said] = [number + 1, (number + 2) % domains].map(|place| semaphores[place].entry());
        for (place, semaphore) in [heard, said].into_iter().enumerate() {
            let delegate = Delegate::entry(semaphore.0, rights::WRITE | rights::USE);
            other.take(place as u64, delegate).map_err(|error| error.to_string())?;
        }
        other.answer(rounds(domains), 0).map_err(|error| error.to_string())?;
    }
    let (own, next) = (semaphores[0].entry(), semaphores[1].entry());
    go_round(domains, || {
        op::v(next).unwrap_or_else(|_| refused());
        op::p(own, NEVER).unwrap_or_else(|_| refused());
    })
}

/// Domains of the largest ring of pipes: a program can have so many pipes, and all programs together so many waits in them.
const MOST_PIPES: usize = 8;

/// Pipes of a ring, which are closed with it.
struct Pipes(Vec<u64>);

impl Drop for Pipes {
    fn drop(&mut self) {
        for &pipe in &self.0 {
            let _ = PIPES.close_read(pipe).and_then(|()| PIPES.close_write(pipe));
        }
    }
}

fn pipe_ring(domains: usize) -> Result<Row, String> {
    let mut all = Pipes(Vec::new());
    for _ in 0..domains {
        all.0.push(PIPES.create().map_err(|error| error.to_string())?);
    }
    let end = |number: usize| -> Result<Owned, String> {
        // Domain n reads pipe n.
        pipes::end(all.0[number], all.0[(number + 1) % domains]).map_err(|error| error.to_string())
    };
    for (number, other) in others(domains)?.into_iter().enumerate() {
        give(end(number + 1)?, other, rounds(domains))?;
    }
    let own = end(0)?;
    let mut sent = 0;
    go_round(domains, || {
        sent = !sent;
        if peer::write_byte(own.entry(), sent).and_then(|()| peer::read_byte(own.entry())) != Some(sent) {
            refused();
        }
    })
}

/// Gives a peer an end of pipes, from which it is to relay so many bytes.
fn give(end: Owned, peer: &End, count: u64) -> Result<(), String> {
    let text = |error: protocols::Failure<_>| error.to_string();
    let domain = Owned::new(peer.domain().map_err(text)?.into());
    let place = peer.place().map_err(text)?;
    let handed = Delegate::entry(domain.entry().0, rights::COPY | rights::WRITE);
    PipeEndClient(Direct(end.entry())).give(handed, place).map_err(|error| error.to_string())?;
    peer.relay(count, place).map_err(text)
}
