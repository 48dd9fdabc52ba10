//! How much of what there can be follows from the memory of the machine: numbers, accounts and vaults.

use crate::numbers::{FEWEST, notes_pages, set_threads, threads, tickets};
use crate::plan::plan;
use crate::{memory, records};
use abi::MAX_THREADS;
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicU64, Ordering};
use protocols::sigma0::FEWEST_TICKETS;
use runtime::Entry;
use runtime::op;
use system::{Component, Special, frames_of_all};

/// Frames of memory for which there is one thread more than the fewest, and those that do not count.
const FRAMES_OF_A_THREAD: u64 = 16;
const FRAMES_OF_FEW: u64 = 16_384;
const FRAMES_OF_A_MIB: u64 = 256;
/// Pages of a vault for whose records a frame of ours is enough: a node for the second mapping, entries of our page tables, and a place in a
/// set.
const PAGES_OF_A_FRAME: u64 = 32;
/// Numbers of threads that no component has for itself and its programs: there are domains for half of all numbers only, and others need some.
const LEFT_FOR_OTHERS: u64 = MAX_THREADS as u64 / 2 + FEWEST;
/// Frames of a page more of the table of threads, at most: that page, the notes of as many schedulers as there can be, and
/// `sigma0`'s for the tickets.
const FRAMES_OF_STEP: i64 = abi::MAX_CPUS as i64 + 16;

/// Frames that the machine has beyond all accounts.
static REST: AtomicU64 = AtomicU64::new(0);

/// Makes room for threads: one more for each 64 KiB of memory beyond the first 64 MiB. Then computes what is left for `rest`.
pub fn make() -> Result<(), String> {
    let frames = records::frames_left().unwrap_or(0);
    let wanted = FEWEST + frames.saturating_sub(FRAMES_OF_FEW) / FRAMES_OF_A_THREAD;
    let wanted = wanted.min(MAX_THREADS as u64);
    // More threads cost frames. They must not use up what the accounts need.
    while threads() + FEWEST <= wanted && balance() >= FRAMES_OF_STEP {
        let threads = op::machine_threads(Entry::SPECIAL).map_err(|error| error.to_string())?;
        set_threads(threads);
    }
    let rest = balance().max(0) as u64;
    // Our account pays for some records of each page of a vault.
    let of_vaults: u64 = plan().system.components().map(|component| u64::from(component.vault_rest)).sum();
    REST.store(rest - (rest * of_vaults / 100).div_ceil(PAGES_OF_A_FRAME), Ordering::Relaxed);
    runtime::log!("room for {} threads", threads());
    Ok(())
}

/// Has `sigma0` make room for its tickets, when its account is what [`account`] says.
pub fn make_tickets() -> Result<(), String> {
    memory::make_room(tickets())
}

/// Frames that an instance of a component has beside those of the description, which are for the fewest threads.
fn frames_of_more(special: Special) -> u64 {
    match special {
        Special::Scheduler => notes_pages() - 1,
        Special::Memory => (tickets() - FEWEST_TICKETS as u64).div_ceil(32),
        _ => 0,
    }
}

/// Frames of all accounts and vaults, and of the pages of the table of threads, which our account pays for.
fn frames_needed(cpus: u32) -> u64 {
    let frames = |component: Component| {
        let of_all = frames_of_all(component.account, component.special, cpus);
        let more = frames_of_more(component.special) * frames_of_all(1, component.special, cpus);
        u64::from(component.vault) + of_all + more
    };
    (threads() - FEWEST) / FEWEST + plan().system.components().map(frames).sum::<u64>()
}

/// Frames that are left beyond all accounts, or that are missing (negative).
pub fn balance() -> i64 {
    let there =
        [records::first(), records::own()].map(|number| records::limit(number).unwrap_or(0)).iter().sum::<u64>();
    there as i64 - frames_needed(records::cpus().0.count_ones()) as i64
}

/// Frames of the account of an instance of a component.
pub fn account(component: &Component) -> u64 {
    u64::from(component.account) + frames_of_more(component.special) + part_of_rest(component.rest)
}

/// Frames of the account of the vault of the component with this number.
pub fn vault(number: u64) -> u64 {
    let component = plan().system.component_number(number as u16);
    component.map_or(0, |component| u64::from(component.vault) + part_of_rest(component.vault_rest))
}

/// So many percent of the frames that the machine has beyond all accounts, in whole MiB.
fn part_of_rest(percent: u8) -> u64 {
    let part = REST.load(Ordering::Relaxed) * u64::from(percent) / 100;
    part - part % FRAMES_OF_A_MIB
}

/// Numbers of threads that a component may have: the share that the description gives it of the fewest there can be, but never so many
/// that domains of it and its programs take all that there can be.
pub fn threads_of(component: &Component) -> u64 {
    (u64::from(component.threads) * threads() / FEWEST).min(MAX_THREADS as u64 - LEFT_FOR_OTHERS)
}
