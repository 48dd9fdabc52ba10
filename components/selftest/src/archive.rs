//! The boot archive in a domain's space: seen, passed on, executed, never written; and gone with the domain.

use abi::layout::ARCHIVE;
use abi::rights::{MAP_EXECUTE, MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF};
use abi::{Error, PAGE_BYTES};
use runtime::Entry;
use runtime::entry::Owned;
use runtime::op::{self, Schedule};

use crate::arch::children;
use crate::check::{Check, frames, hold};

pub const CHECKS: &[Check] = &[
    ("the boot archive is shown once, and no frame stays with a domain that saw it", shown),
    ("a page of the boot archive goes on for reading and executing, never for writing", passed_on),
    ("a domain that writes to the boot archive dies", written),
];

const PAGE: u64 = PAGE_BYTES as u64;
/// The space that the archive takes.
const SPACE: u64 = 1 << 30;
/// Where others get pages.
const PLACE: u64 = 0x5000_0000;

fn domain() -> Result<Owned, &'static str> {
    op::domain_new(Entry::OWN, 0, "reader").map(Owned::new).map_err(|error| error.text())
}

fn show(domain: Entry) -> Result<(), Error> {
    op::machine_archive(Entry::SPECIAL, domain)
}

/// Maps a page of ours into a domain.
fn map(domain: Entry, from: u64, to: u64, rights: u64) -> Result<(), Error> {
    // SAFETY: the archive or code of ours, to others.
    unsafe { op::map(domain, from, to, 0, rights) }
}

fn refused(outcome: Result<(), Error>, error: Error, what: &'static str) -> Result<(), &'static str> {
    hold(outcome == Err(error), what)
}

/// Shows us the archive, unless a check before has done so.
fn show_us() -> Result<(), &'static str> {
    match show(Entry::OWN) {
        Ok(()) | Err(Error::Occupied) => Ok(()),
        Err(error) => Err(error.text()),
    }
}

fn shown() -> Result<(), &'static str> {
    drop(domain()?);
    let before = frames()?;
    let reader = domain()?;
    show(reader.entry()).map_err(|error| error.text())?;
    refused(show(reader.entry()), Error::Occupied, "shown twice")?;
    let code = shown as *const () as u64 & !(PAGE - 1);
    for taken in [ARCHIVE, ARCHIVE + SPACE / 2, ARCHIVE + SPACE - PAGE] {
        refused(map(reader.entry(), code, taken, MAP_READ), Error::Occupied, "something was mapped over it")?;
    }
    map(reader.entry(), code, ARCHIVE + SPACE, MAP_READ).map_err(|_| "nothing can be mapped after it")?;
    refused(op::machine_archive(Entry::DOMAIN, reader.entry()), Error::WrongKind, "shown without the machine")?;
    drop(reader);
    hold(frames()? == before, "frames were lost")
}

fn passed_on() -> Result<(), &'static str> {
    show_us()?;
    // SAFETY: just mapped, for reading and for ever.
    let magic = unsafe { core::slice::from_raw_parts(ARCHIVE as *const u8, 6) };
    hold(magic == b"070701", "it is not the archive")?;
    drop(domain()?);
    let before = frames()?;
    let reader = domain()?;
    for rights in [MAP_WRITE, MAP_GRANT, MAP_GRANT | MAP_WRITE, MAP_GRANT | MAP_EXECUTE] {
        refused(map(reader.entry(), ARCHIVE, PLACE, rights), Error::ArchivePage, "it went on with too many rights")?;
    }
    map(reader.entry(), ARCHIVE, PLACE, MAP_READ).map_err(|_| "it does not go on for reading")?;
    map(reader.entry(), ARCHIVE, PLACE + PAGE, MAP_READ | MAP_EXECUTE).map_err(|_| "nor for executing")?;
    // SAFETY: nothing changes: the archive stays.
    let kept = unsafe { op::unmap(Entry::OWN, ARCHIVE, 0, MAP_READ | UNMAP_SELF) };
    hold(kept.is_ok() && magic == b"070701", "it can be unmapped")?;
    drop(reader);
    hold(frames()? == before, "frames were lost")
}

fn written() -> Result<(), &'static str> {
    show_us()?;
    let text = |error: Error| error.text();
    let code = children::write as *const () as u64;
    for (place, shown) in [(ARCHIVE, true), (PLACE, false)] {
        let reader = domain()?;
        let died = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
        op::domain_set_death_semaphore(reader.entry(), died.entry()).map_err(text)?;
        map(reader.entry(), code & !(PAGE - 1), code & !(PAGE - 1), MAP_READ | MAP_EXECUTE).map_err(text)?;
        let seen = if shown { show(reader.entry()) } else { map(reader.entry(), ARCHIVE, place, MAP_READ) };
        seen.map_err(text)?;
        // SAFETY: the code is made for this and uses no stack.
        let thread = unsafe { op::thread_new(reader.entry(), code, 0, place, Schedule { priority: 8, slice: 1_000 }) };
        let _thread = Owned::new(thread.map_err(text)?);
        hold(op::p(died.entry(), op::clock() + 100_000_000).is_ok(), "it did not die")?;
    }
    // SAFETY: `show_us` mapped the archive here, for reading and for ever.
    hold(unsafe { core::slice::from_raw_parts(ARCHIVE as *const u8, 6) } == b"070701", "it was written")
}
