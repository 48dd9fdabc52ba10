//! Chains of calls through portals of the specification `npciii>i`: this program calls a domain, which calls the next one before it
//! answers, and so on.
//!
//! A leg is one way, there or back: a chain of n domains has 2 (n - 1) of them. With the portal a leg has the stub of the caller and
//! what a domain in the middle does, which is to look for the next one's entry, and to add its constant.

use alloc::string::{String, ToString};

use runtime::entry::Owned;
use runtime::message;

use crate::crossings::refused;
use crate::measure::{Row, per_round, timed};
use crate::peer;

/// Domains of the longest chain.
const MOST: usize = 8;
/// Calls that are counted, and those before.
const ROUNDS: u64 = 10_000;
const WARM_UP: u64 = 100;

/// A chain of so many domains.
pub fn chain<const DOMAINS: usize>() -> Result<Row, String> {
    legs(DOMAINS)
}

/// A leg of the longest chain, in per cent of one between two domains.
pub fn flat() -> Result<Row, String> {
    let (two, many) = (legs(2)?.value(), legs(MOST)?.value());
    Ok(Row::percent(many, two)?.with("of_two", two).with("of_most", many))
}

fn legs(domains: usize) -> Result<Row, String> {
    let first = link(domains - 1)?;
    // The last domain adds the words and its constant; each before it adds another one.
    let expected = peer::SHORT_BADGE + 1 + 2 + 3 + (domains as u64 - 2) * peer::LINK_BADGE;
    let call = || message::call_short(first.entry(), [1, 2, 3]).unwrap_or_else(|_| refused());
    if (0..WARM_UP).any(|_| call() != expected) {
        return Err("a wrong answer".into());
    }
    let mut sum = 0;
    let ticks = timed(|| (0..ROUNDS).for_each(|_| sum += call()));
    if sum != expected * ROUNDS {
        return Err("a wrong answer".into());
    }
    let legs = 2 * (domains as u64 - 1);
    Ok(Row::instructions(per_round(ticks, ROUNDS).div_ceil(legs))
        .with("call", per_round(ticks, ROUNDS))
        .of(legs * ROUNDS))
}

/// A call entry to the last of so many peers: the first calls nobody, and each other one the peer before it.
fn link(count: usize) -> Result<Owned, String> {
    (0..count).try_for_each(|number| peer::start_number(number).map(drop))?;
    let last = count - 1;
    let link = peer::start_number(last)?.link(last as u64).map_err(|error| error.to_string())?;
    Ok(Owned::new(link.into()))
}
