//! Negative tests that the nucleus refuses: each reports with which error.

use runtime::abi::{Control, Error, MAX_DERIVATION, MESSAGE_BYTES, layout, rights};
use runtime::{Entry, arch, op as operation};

use crate::arch::{KERNEL, NON_CANONICAL};
use crate::case::Case;

type Outcome = Result<(), Error>;

/// An index that a program of this size never uses.
const NEVER_USED: usize = layout::TABLE_ENTRIES - 2;

/// All of them, with what they are and the error that is right.
pub const ALL: &[Case] = &[
    Case::refusal("bad-index", "portal index beyond all tables", Error::BadIndex, || {
        traverse(layout::MAX_TABLE_ENTRIES)
    }),
    Case::refusal("not-grown", "portal index to which the table has not grown", Error::Empty, || {
        traverse(layout::MAX_TABLE_ENTRIES - 1)
    }),
    Case::refusal("fill-beyond", "an entry beyond all tables", Error::BadIndex, || fill(layout::MAX_TABLE_ENTRIES)),
    Case::refusal("fill-reserved", "an entry among the kernel operations", Error::ReservedIndex, || {
        fill(layout::PAGE_FAULT[0] - 1)
    }),
    Case::refusal("huge-index", "portal index that overflows when multiplied", Error::BadIndex, || {
        traverse(usize::MAX / layout::ENTRY_BYTES)
    }),
    Case::refusal("empty", "portal index where nothing stands", Error::Empty, || traverse(NEVER_USED)),
    Case::refusal("stale", "entry in use after it was removed", Error::Empty, || {
        let semaphore = operation::semaphore_new(Entry::ACCOUNT, 1)?;
        operation::entry_remove(Entry::OWN, semaphore)?;
        operation::p(semaphore, 0)
    }),
    Case::refusal("revoked", "copy in use after the original was removed", Error::Revoked, || {
        let semaphore = operation::semaphore_new(Entry::ACCOUNT, 1)?;
        let copy = operation::entry_duplicate(semaphore, rights::ALL)?;
        operation::entry_remove(Entry::OWN, semaphore)?;
        operation::p(copy, 0)
    }),
    Case::refusal("wrong-kind", "a semaphore taken for a domain", Error::WrongKind, || {
        let semaphore = operation::semaphore_new(Entry::ACCOUNT, 1)?;
        operation::domain_kill(semaphore, 0)
    }),
    Case::refusal("no-right", "P on a semaphore that may only be raised", Error::NoRight, || {
        let semaphore = operation::semaphore_new(Entry::ACCOUNT, 1)?;
        let copy = operation::entry_duplicate(semaphore, rights::WRITE)?;
        operation::p(copy, 0)
    }),
    Case::refusal("self-map", "memory mapped to the own domain", Error::SameDomain, || {
        map(Entry::DOMAIN, layout::PROGRAM_START, 0x5000_0000, 0, op_rights(1))
    }),
    Case::refusal("map-kernel", "mapping of a nucleus address", Error::BadAddress, || {
        with_child(|child| map(child, KERNEL, 0x5000_0000, 0, op_rights(1)))
    }),
    Case::refusal("map-non-canonical", "mapping to a non-canonical address", Error::BadAddress, || {
        with_child(|child| map(child, layout::PROGRAM_START, NON_CANONICAL, 0, op_rights(1)))
    }),
    Case::refusal("map-unaligned", "mapping of an address that is not that of a page", Error::NotAligned, || {
        with_child(|child| map(child, layout::PROGRAM_START + 8, 0x5000_0000, 0, op_rights(1)))
    }),
    Case::refusal("map-huge", "mapping larger than the address space", Error::BadArgument, || {
        with_child(|child| map(child, layout::PROGRAM_START, 0x5000_0000, 60, op_rights(1)))
    }),
    Case::refusal("map-unmapped", "mapping of a page that is not there", Error::NotMapped, || {
        with_child(|child| map(child, 0x4000_0000, 0x5000_0000, 0, op_rights(1)))
    }),
    Case::refusal("map-writable-code", "own code mapped writable elsewhere", Error::PageRights, || {
        with_child(|child| map(child, layout::PROGRAM_START, 0x5000_0000, 0, op_rights(3)))
    }),
    Case::refusal("map-occupied", "mapping where something is mapped", Error::Occupied, || {
        with_child(|child| {
            map(child, layout::PROGRAM_START, 0x5000_0000, 0, op_rights(1))?;
            map(child, layout::PROGRAM_START, 0x5000_0000, 0, op_rights(1))
        })
    }),
    Case::refusal("no-account", "an account larger than its parent", Error::AccountExhausted, || {
        operation::account_new(Entry::ACCOUNT, 1 << 40).map(drop)
    }),
    Case::refusal("no-caller", "return without a call", Error::NoCaller, || {
        // SAFETY: nobody called, so nothing returns.
        Error::from_status(unsafe { arch::leave([0; 5], Control(0)) })
    }),
    Case::refusal("timeout", "waiting for what never comes, with a deadline", Error::Timeout, || {
        let semaphore = operation::semaphore_new(Entry::ACCOUNT, 0)?;
        operation::p(semaphore, operation::clock() + 1_000_000)
    }),
    Case::refusal("long-message", "message longer than the message area", Error::BadArgument, || {
        // SAFETY: a call to the name service with a control word that no server ever sees.
        Error::from_status(unsafe { arch::call(layout::NAMES, [0; 5], Control(MESSAGE_BYTES as u64 + 1)) }.0)
    }),
    Case::refusal("bad-control", "control word with bits that mean nothing", Error::BadControl, || {
        // SAFETY: a call to the name service with a control word that no server ever sees.
        Error::from_status(unsafe { arch::call(layout::NAMES, [0; 5], Control(1 << 63)) }.0)
    }),
    Case::refusal("deep-copy", "a copy of a copy of a copy …", Error::TooDerived, deep_copy),
    Case::refusal("schedule", "a priority above the highest allowed", Error::BadArgument, || {
        operation::thread_schedule(Entry::OWN, operation::Schedule { priority: 255, slice: 1_000 }).map(drop)
    }),
    Case::refusal("machine", "stopping the machine without the right", Error::Empty, || {
        operation::machine_stop(Entry(NEVER_USED), 0)
    }),
];

/// Negative tests that change nothing: bits that the nucleus must not look at.
pub const HARMLESS: &[Case] = &[Case::harmless("odd-index", "index register that is no multiple of an entry", || {
    Error::from_status(crate::arch::odd_index())
})];

/// Rights of a mapping.
fn op_rights(bits: u64) -> u64 {
    bits & (op_rights_all())
}

const fn op_rights_all() -> u64 {
    rights::MAP_READ | rights::MAP_WRITE | rights::MAP_EXECUTE
}

fn traverse(index: usize) -> Outcome {
    // SAFETY: nothing stands at these indices.
    Error::from_status(unsafe { arch::call(index, [0; 5], Control(0)) }.0)
}

fn map(to: Entry, source: u64, destination: u64, order: u64, rights: u64) -> Outcome {
    // SAFETY: mappings elsewhere are code, readable, or refused.
    unsafe { operation::map(to, source, destination, order, rights) }
}

fn with_child(work: impl FnOnce(Entry) -> Outcome) -> Outcome {
    let child = operation::domain_new(Entry::ACCOUNT, 0, "victim")?;
    let outcome = work(child);
    operation::entry_remove(Entry::OWN, child)?;
    outcome
}

/// Copies in the table of a victim, each of the one before.
fn deep_copy() -> Outcome {
    let victim = operation::domain_new(Entry::ACCOUNT, 0, "victim")?;
    let original = operation::semaphore_new(Entry::ACCOUNT, 0)?;
    let mut last = (Entry::OWN, original);
    let mut outcome = Ok(());
    for index in layout::FIRST_FREE..layout::FIRST_FREE + 2 * MAX_DERIVATION {
        let place = Entry(index);
        if let Err(error) = operation::entry_copy(last.0, last.1, victim, place, rights::ALL) {
            outcome = Err(error);
            break;
        }
        last = (victim, place);
    }
    operation::entry_remove(Entry::OWN, original)?;
    operation::entry_remove(Entry::OWN, victim)?;
    outcome
}

fn fill(index: usize) -> Outcome {
    operation::entry_copy(Entry::OWN, Entry::ACCOUNT, Entry::OWN, Entry(index), rights::READ).map(drop)
}
