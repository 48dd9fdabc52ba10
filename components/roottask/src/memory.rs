//! Frames from `sigma0`, the boot archive, and the window in which pages of others are filled.

use abi::layout::{ARCHIVE, FIRST_FREE, WINDOW};
use abi::rights::{ALL, MAP_EXECUTE, MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF};
use abi::sched::LoadTable;
use abi::{Error, PAGE_BYTES};
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicU64, Ordering};
use cpio::Archive;
use idl::{Delegate, Failure};
use protocols::sigma0::{Sigma0Client, Sigma0Error};
use runtime::Direct;
use runtime::{Entry, op, table};

/// `sigma0`'s domain; where its service stands in its table.
pub const SIGMA0_DOMAIN: Entry = Entry(FIRST_FREE);
const SIGMA0_SERVICE: Entry = Entry(FIRST_FREE);

static ARCHIVE_BYTES: AtomicU64 = AtomicU64::new(0);

/// Where we keep the page that all schedulers share.
const LOAD_TABLE: u64 = WINDOW + PAGE_BYTES as u64;

fn sigma0() -> Sigma0Client<Direct> {
    Sigma0Client(Direct(Entry::SIGMA0))
}

/// Gets our portal to `sigma0` and puts our own domain under its care.
pub fn connect() -> Result<(), String> {
    ARCHIVE_BYTES.store(runtime::program::argument(), Ordering::Relaxed);
    table::reserve(SIGMA0_DOMAIN);
    let text = |error: Error| error.to_string();
    let first = table::allocate().map_err(text)?;
    let service = table::allocate().map_err(text)?;
    op::entry_copy(SIGMA0_DOMAIN, SIGMA0_SERVICE, Entry::OWN, service, ALL).map_err(text)?;
    op::portal_new(Entry::OWN, service, 0, first, 0).map_err(text)?;
    let client = Sigma0Client(Direct(first));
    let ticket = client.manage_account(Delegate::entry(Entry::ACCOUNT.0, ALL)).map_err(|error| error.to_string())?;
    client
        .manage_domain(ticket, runtime::program::heap_start(), Delegate::entry(Entry::DOMAIN.0, ALL))
        .map_err(|error| error.to_string())
}

/// The whole boot archive.
pub fn archive() -> &'static [u8] {
    // SAFETY: the nucleus mapped it here before we started, for ever and for reading only.
    unsafe { core::slice::from_raw_parts(ARCHIVE as *const u8, ARCHIVE_BYTES.load(Ordering::Relaxed) as usize) }
}

/// A file of the boot archive.
pub fn file(path: &str) -> Result<&'static [u8], String> {
    match Archive::new(archive()).find(path) {
        Ok(Some(entry)) => Ok(entry.data),
        Ok(None) => Err(alloc::format!("the boot archive has no file {path}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Hands an account to `sigma0`, so that frames can be drawn for it.
pub fn manage_account(account: Entry) -> Result<u64, String> {
    sigma0().manage_account(Delegate::entry(account.0, ALL)).map_err(|error| error.to_string())
}

/// Hands a new domain over: its heap and stacks are paged from now on.
pub fn manage_domain(ticket: u64, heap: u64, domain: Entry) -> Result<(), String> {
    sigma0().manage_domain(ticket, heap, Delegate::entry(domain.0, ALL)).map_err(|error| error.to_string())
}

/// Has `sigma0` make room for so many tickets.
pub fn make_room(tickets: u64) -> Result<(), String> {
    sigma0().make_room(tickets).map_err(|error| error.to_string())
}

/// Takes both back.
pub fn forget(ticket: u64) {
    let _ = sigma0().forget(ticket);
}

/// Draws a page charged to a ticket's account at an address of ours.
pub fn draw_for(ticket: u64, address: u64) -> Result<(), Failure<Sigma0Error>> {
    sigma0().draw_for(ticket, address, 0, MAP_READ | MAP_WRITE)
}

/// Gives `domain` a page charged to the ticket's account, filled by `fill`.
pub fn give_page(
    ticket: u64,
    domain: Entry,
    address: u64,
    rights: u64,
    fill: impl FnOnce(&mut [u8; PAGE_BYTES]),
) -> Result<(), String> {
    draw_for(ticket, WINDOW).map_err(|error| error.to_string())?;
    // SAFETY: the page was just drawn there, for us alone.
    fill(unsafe { &mut *(WINDOW as *mut [u8; PAGE_BYTES]) });
    // SAFETY: the reference is gone; the page leaves our space.
    unsafe { op::map(domain, WINDOW, address, 0, rights | MAP_GRANT) }.map_err(|error| {
        take_back(WINDOW);
        error.to_string()
    })
}

/// Makes the page that the schedulers of these CPUs share.
pub fn make_load_table(cpus: u64) -> Result<(), String> {
    sigma0().draw(LOAD_TABLE, 0, MAP_READ | MAP_WRITE).map_err(|error| error.to_string())?;
    // SAFETY: the page was just drawn there, clear; all of it is atomic.
    unsafe { &*(LOAD_TABLE as *const LoadTable) }.cpus.store(cpus, Ordering::Relaxed);
    Ok(())
}

/// Lets `domain` use that page.
pub fn give_load_table(domain: Entry) -> Result<(), String> {
    // SAFETY: all domains access the page with atomic operations only.
    unsafe { op::map(domain, LOAD_TABLE, WINDOW, 0, MAP_READ | MAP_WRITE) }.map_err(|error| error.to_string())
}

/// Unmaps a page of ours and everything derived from it.
pub fn take_back(address: u64) {
    // SAFETY: callers hold no reference into it.
    let _ = unsafe { op::unmap(Entry::OWN, address, 0, MAP_READ | MAP_WRITE | MAP_EXECUTE | UNMAP_SELF) };
}

/// Gives `domain` the page of the boot archive whose first byte is `byte`, which may be executed but not written.
pub fn give_archive_page(domain: Entry, byte: &u8, address: u64, rights: u64) -> Result<(), String> {
    // SAFETY: nobody can write it, here or there.
    unsafe { op::map(domain, byte as *const u8 as u64, address, 0, rights) }.map_err(|error| error.to_string())
}

/// Lets `domain` read the boot archive at `layout::ARCHIVE`.
pub fn show_archive(domain: Entry) -> Result<(), String> {
    op::machine_archive(Entry::SPECIAL, domain).map_err(|error| error.to_string())
}
