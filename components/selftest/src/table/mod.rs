//! The table of what happens between CPUs: `selftest table [--seed N] [--rounds R] [--case WORDS] [--list]`.
//!
//! Each [`Case`] is something that is done to somebody: a call is cut off, a page is taken away, a thread is removed. It is
//! tried with the actor and the victim on the CPUs (0, 0), (0, 1) and (1, 0), at each instant ([`When`]) that makes sense
//! for it. A *variant* is case, CPUs and instant; a round tries all of them in an order, and with small delays, drawn from
//! the seed. Each asserts the exact result (of a race, that it is one of those that one of the two orders has), and after each
//! round no frame may be lost. With one CPU there are only the variants (0, 0).

mod asking;
mod calls;
mod case;
#[allow(unsafe_code)]
pub mod child;
mod floating;
mod labels;
mod late;
pub mod places;
pub mod programs;
mod revoked;
mod running;
mod schedulers;
mod waits;
mod windows;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use runtime::op;

use case::{Case, text};
use places::{Prng, Turn, When};

use crate::check::frames;

type Variant = (&'static Case, (usize, usize), When);

fn cases() -> impl Iterator<Item = &'static Case> {
    let others = floating::CASES
        .iter()
        .chain(revoked::CASES)
        .chain(schedulers::CASES)
        .chain(windows::CASES)
        .chain(labels::AMID)
        .chain(&labels::LOWER)
        .chain(labels::CASES.iter().flatten());
    calls::CASES.iter().chain(waits::CASES).chain(running::CASES).chain(asking::CASES).chain(others)
}

/// The choice of cases.
pub struct Wanted<'a> {
    pub seed: u64,
    pub rounds: u64,
    /// Part of the names of the cases to try.
    pub case: &'a str,
}

/// One line for each case: its name and its instants.
pub fn list(say: impl Fn(&str)) {
    for case in cases() {
        let whens: Vec<&str> = case.whens.iter().map(|when| when.name()).collect();
        say(&format!("{}: {}\n", case.name, whens.join(", ")));
    }
}

/// Tries everything; gives the number of failures.
pub fn run(wanted: &Wanted<'_>, say: impl Fn(&str)) -> u64 {
    match try_all(wanted, &say) {
        Ok(()) => 0,
        Err(what) => {
            say(&what);
            1
        }
    }
}

fn try_all(wanted: &Wanted<'_>, say: &impl Fn(&str)) -> Result<(), String> {
    let places: &[(usize, usize)] = match places::cpus()? {
        1 => &[(0, 0)],
        _ => &[(0, 0), (0, 1), (1, 0)],
    };
    let mut variants: Vec<Variant> = Vec::new();
    for case in cases().filter(|case| case.name.contains(wanted.case)) {
        for place in places {
            variants.extend(case.whens.iter().map(|when| (case, *place, *when)));
        }
    }
    // Some lines say that they are ready, which cases wait for, only after they have sent something.
    say(&format!("table: {} variants, {} rounds, seed {}\n", variants.len(), wanted.rounds, wanted.seed));
    let mut random = Prng::new(wanted.seed);
    let mut base = 0;
    let mut took: BTreeMap<&str, u64> = BTreeMap::new();
    for round in 1..=wanted.rounds {
        // Fisher and Yates.
        for last in (1..variants.len()).rev() {
            variants.swap(last, random.below(last as u64 + 1) as usize);
        }
        for variant in &variants {
            let (case, (actor, victim), when) = variant;
            let mut turn =
                Turn { actor: *actor, victim: *victim, when: *when, random: Prng::new(random.below(1 << 31)) };
            let start = op::clock();
            places::pin(turn.actor).map_err(text).and_then(|()| (case.run)(&mut turn)).map_err(|what| {
                format!(
                    "{}, actor on {actor}, victim on {victim}, {}, round {round}: FAILED: {what}\n",
                    case.name,
                    when.name()
                )
            })?;
            *took.entry(case.name).or_default() += op::clock() - start;
        }
        match round {
            1 => base = frames()?,
            _ => all_back(base).map_err(|what| format!("table, round {round}: FAILED: {what}\n"))?,
        }
        if round % 20 == 0 {
            say(&format!("table: {round} rounds\n"));
        }
    }
    if wanted.rounds == 0 || variants.is_empty() {
        return Err("table: FAILED: nothing to try\n".into());
    }
    for case in cases().filter(|case| case.name.contains(wanted.case)) {
        let count = variants.iter().filter(|(of, ..)| core::ptr::eq(*of, case)).count();
        let mean = took.get(case.name).copied().unwrap_or(0) / wanted.rounds / count.max(1) as u64 / 1000;
        say(&format!("{}: {count} variants ok, {mean} us each\n", case.name));
    }
    say(&format!("table: {} variants, {} rounds, seed {}: ok\n", variants.len(), wanted.rounds, wanted.seed));
    Ok(())
}

/// Frames that rounds after the first may take for good: stacks and the heap grow to the most that was ever needed.
const GROWTH: u64 = 16;

/// A call that was left goes on for a while; then all frames must be back.
fn all_back(base: u64) -> Result<(), &'static str> {
    places::until(|| frames().is_ok_and(|now| now + GROWTH >= base), "frames were lost")
}
