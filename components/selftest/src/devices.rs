//! Registers, physical addresses and ports: for a holder of the machine, and never anything of RAM.

use core::ops::Range;

use abi::layout::{FREE_START, MESSAGE_START, PROGRAM_START, USER_END, WINDOWS};
use abi::rights::{MAP_EXECUTE, MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF};
use abi::{Error, NEVER, PAGE_BYTES, info};
use runtime::Entry;
use runtime::entry::Owned;
use runtime::op::{self, Schedule};

use crate::arch::children::{ODD, read};
use crate::arch::{
    self,
    devices::{Machine, machine},
};
use crate::check::{Check, frames, hold};
use crate::pagers::status;

pub const CHECKS: &[Check] = &[
    ("no page of RAM is mapped as registers", ram),
    ("a bad page of registers is refused, and so is a bad place for one", refused),
    ("registers are mapped, mapped on, and gone", registers),
    ("the physical address of a page", physical),
    ("odd accesses to registers hurt nobody else", odd),
    ("four ports at once are all the entry's", arch::devices::ports),
];

const PAGE: u64 = PAGE_BYTES as u64;
/// Pages of RAM that are tried, of each range.
const MOST_PAGES: u64 = 1 << 14;
/// Where a page is mapped.
const PLACE: u64 = FREE_START + (1 << 30);

fn text(error: Error) -> &'static str {
    error.text()
}

fn map(physical: u64, address: u64) -> Result<(), Error> {
    op::machine_device(Entry::SPECIAL, physical, address)
}

/// Where [`show`] maps.
pub const SHOWN: u64 = PLACE;

/// Maps registers of a device at [`SHOWN`].
pub fn show() -> Result<(), &'static str> {
    map(machine()?.registers, SHOWN).map_err(text)
}

/// Unmaps registers.
pub fn take_back(address: u64) -> Result<(), &'static str> {
    // SAFETY: nothing refers to what stands there.
    unsafe { op::unmap(Entry::OWN, address, 0, MAP_READ | UNMAP_SELF) }.map_err(text)
}

/// The nucleus, its page tables and records, the boot archive, free frames, everybody's pages, and what firmware keeps.
fn ram() -> Result<(), &'static str> {
    let machine = machine()?;
    let before = frames()?;
    for Range { start, end } in machine.ram {
        // Of much memory some pages, the last among them.
        let step = ((end - start) / MOST_PAGES).next_multiple_of(PAGE).max(PAGE);
        for page in (start..end).step_by(step as usize).chain([end - PAGE]) {
            hold(map(page, PLACE) == Err(Error::Withheld), "a page of RAM was mapped")?;
        }
    }
    hold(frames()? == before, "frames were lost")
}

fn refused() -> Result<(), &'static str> {
    let Machine { registers, nucleus, .. } = machine()?;
    map(registers, PLACE).map_err(text)?;
    let before = frames()?;
    // Beyond what a processor reaches, also where the upper bits would fall off a page-table entry.
    let own = op::machine_physical(Entry::SPECIAL, PROGRAM_START).map_err(text)?;
    let beyond = [40, 46, 47, 48, 51, 52, 63].map(|bit| 1 << bit);
    for high in beyond {
        for low in [0, own, registers] {
            hold(map(high | low, PLACE + PAGE) == Err(Error::BadArgument), "an address that is none was mapped")?;
        }
    }
    for physical in [registers + 1, registers + PAGE / 2, own + 1, NEVER] {
        hold(map(physical, PLACE + PAGE) == Err(Error::NotAligned), "a bad page was mapped")?;
    }
    for physical in nucleus.into_iter().flat_map(|range| range.step_by(PAGE_BYTES)) {
        hold(map(physical, PLACE + PAGE) == Err(Error::Withheld), "the nucleus's own registers were mapped")?;
    }
    let nowhere = [PLACE + 1, USER_END, 1 << 47, 0xffff_8000_0000_0000, NEVER - PAGE + 1, NEVER];
    for address in nowhere {
        hold(map(registers, address) == Err(refusal(address)), "registers at an address that is none")?;
    }
    for address in [PLACE, PROGRAM_START] {
        hold(map(registers, address) == Err(Error::Occupied), "registers over something else")?;
    }
    for address in [MESSAGE_START, WINDOWS] {
        hold(map(registers, address) == Err(Error::Reserved), "registers over message areas or windows")?;
    }
    hold(op::machine_handles(Entry::SPECIAL, [1, 2]) == Err(Error::HasKey), "another key of handles")?;
    hold(op::machine_threads(Entry::SPECIAL) == Err(Error::TooLate), "more threads while schedulers run")?;
    hold(frames()? == before, "frames were lost")?;
    take_back(PLACE)
}

fn registers() -> Result<(), &'static str> {
    let Machine { registers, first_word, .. } = machine()?;
    // The page tables that it needs stay for the next time.
    map(registers, PLACE).map_err(text)?;
    take_back(PLACE)?;
    let before = frames()?;
    map(registers, PLACE).map_err(text)?;
    // SAFETY: a page was mapped there.
    let found = unsafe { (PLACE as *const u32).read_volatile() };
    hold(found == first_word, "not the registers that were asked for")?;
    let account = Owned::new(op::account_new(Entry::OWN, 32).map_err(text)?);
    let other = Owned::new(op::domain_new(account.entry(), 0, "other").map_err(text)?);
    // SAFETY: nothing here refers to the page.
    let given = |rights| unsafe { op::map(other.entry(), PLACE, PLACE, 0, rights) };
    hold(given(MAP_READ | MAP_EXECUTE) == Err(Error::PageRights), "registers were mapped executable")?;
    hold(given(MAP_READ | MAP_EXECUTE | MAP_GRANT) == Err(Error::Registers), "registers were made executable")?;
    given(MAP_READ | MAP_WRITE).map_err(text)?;
    hold(given(MAP_READ) == Err(Error::Occupied), "it is not there")?;
    take_back(PLACE)?;
    given(MAP_READ).err().filter(|error| *error == Error::NotMapped).ok_or("the page is still there")?;
    drop((other, account));
    hold(frames()? == before, "frames were lost")
}

/// A child that runs `code`, at an offset of a page of registers; gives the status of its death, if it died.
fn touches(page: u64, code: unsafe extern "C" fn() -> !, offset: u64) -> Result<u64, &'static str> {
    map(page, PLACE).map_err(text)?;
    let domain = Owned::new(op::domain_new(Entry::OWN, 0, "victim").map_err(text)?);
    let died = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    op::domain_set_death_semaphore(domain.entry(), died.entry()).map_err(text)?;
    let code = code as *const () as u64;
    let first = code & !(PAGE - 1);
    for page in [first, first + PAGE] {
        // SAFETY: code of ours, which may be read and executed.
        unsafe {
            (page as *const u8).read_volatile();
            op::map(domain.entry(), page, page, 0, MAP_READ | MAP_EXECUTE).map_err(text)?;
        }
    }
    // SAFETY: nothing here refers to the page.
    unsafe { op::map(domain.entry(), PLACE, PLACE, 0, MAP_READ | MAP_WRITE) }.map_err(text)?;
    let schedule = Schedule { priority: 8, slice: 1_000 };
    // SAFETY: another domain; the code is made for this and uses no stack.
    let thread = unsafe { op::thread_new(domain.entry(), code, 0, PLACE + offset, schedule) };
    let thread = Owned::new(thread.map_err(text)?);
    op::p(died.entry(), op::clock() + 1_000_000_000).map_err(|_| "the child does not end")?;
    let status = status()?;
    drop((thread, domain, died));
    take_back(PLACE)?;
    Ok(status)
}

/// Accesses that are not aligned, reach over the page's end, or are of a kind that no device knows: if the processor cannot make
/// them, a domain that tries dies alone.
fn odd() -> Result<(), &'static str> {
    let Machine { registers, nothing, .. } = machine()?;
    let try_all = || {
        for (code, offset) in ODD {
            let status = touches(registers, *code, *offset)?;
            // Of the page's last four bytes the next four are missing.
            let reaches_over = offset + 8 > PAGE;
            hold(!reaches_over || status == info::status::PAGE_FAULT, "it read beyond the page")?;
        }
        let Some(nothing) = nothing else { return Ok(()) };
        let died = touches(nothing, read, 0)? & !0xff;
        hold(died == info::status::EXCEPTION, "it read what is not there")
    };
    try_all()?;
    let before = frames()?;
    try_all()?;
    hold(frames()? == before, "frames were lost")
}

/// Of an address that is none of a page of user space.
fn refusal(address: u64) -> Error {
    if address.is_multiple_of(PAGE) { Error::BadAddress } else { Error::NotAligned }
}

fn physical() -> Result<(), &'static str> {
    let Machine { ram, registers, .. } = machine()?;
    let of = |address| op::machine_physical(Entry::SPECIAL, address);
    let own = of(PROGRAM_START).map_err(text)?;
    hold(own.is_multiple_of(PAGE) && own != 0 && ram.iter().any(|ram| ram.contains(&own)), "not a page of RAM")?;
    map(registers + PAGE, PLACE).map_err(text)?;
    hold(of(PLACE) == Ok(registers + PAGE), "not where the registers are")?;
    take_back(PLACE)?;
    hold(of(PLACE) == Err(Error::NotMapped), "the address of nothing")?;
    hold(of(FREE_START + (2 << 30)) == Err(Error::NotMapped), "the address of nothing, without a table")?;
    for address in [PROGRAM_START + 1, USER_END, 1 << 47, 0xffff_8000_0000_0000, NEVER] {
        hold(of(address) == Err(refusal(address)), "the address of what is no page")?;
    }
    Ok(())
}
