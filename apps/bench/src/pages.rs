//! The unsafe part: pages that are touched, moved and given back.

use alloc::string::{String, ToString};
use core::hint::black_box;

use runtime::abi::layout::STACKS_START;
use runtime::abi::op::ACTIVATION_TEAR;
use runtime::abi::rights::{self, MAP_EXECUTE, MAP_READ, UNMAP_SELF};
use runtime::abi::{Error, PAGE_BYTES};
use runtime::entry::{Entry, Owned};
use runtime::server::{self, ServeShort};
use runtime::{message, op, table};

use crate::arch::adds;

/// An empty round of a loop that the compiler keeps.
#[inline(always)]
pub fn nothing() {
    // SAFETY: no instructions.
    unsafe { core::arch::asm!("", options(nomem, nostack, preserves_flags)) };
}

/// Writes a word into each of `count` pages from `start` on. They lie in a range that nothing else of
/// this program uses ([`crate::faults`]).
#[inline(always)]
pub fn touch(start: u64, count: u64, stride: u64) {
    for page in 0..count {
        // SAFETY: the pager brings the page, and no Rust object lies there.
        unsafe { core::ptr::write_volatile((start + page * stride) as *mut u64, 1) };
    }
}

/// Words of four bytes in a page.
const WORDS: usize = PAGE_BYTES / 4;
/// The sum that [`fill`] returns.
pub const FILLED: u32 = (WORDS * (WORDS - 1) / 2) as u32;

/// Writes each word of a page, and reads them again; gives their sum.
#[inline(never)]
pub fn fill(page: u64) -> u32 {
    // SAFETY: the pager brings the page, no Rust object lies there, and any bytes are words.
    let words = unsafe { core::slice::from_raw_parts_mut(page as *mut u32, WORDS) };
    for (number, word) in words.iter_mut().enumerate() {
        *word = number as u32;
    }
    black_box(words).iter().sum()
}

/// Reads a word of a page that is there.
#[inline(always)]
pub fn look(address: u64) {
    // SAFETY: the caller says that the page is there; no Rust object lies there.
    unsafe { core::ptr::read_volatile(address as *const u64) };
}

/// Gives the page at an address back.
pub fn give_back(address: u64) -> Result<(), Error> {
    // SAFETY: addresses come from the ranges of this program in which no Rust object lies.
    unsafe { op::unmap(Entry::OWN, address, 0, MAP_READ | UNMAP_SELF) }
}

/// A service that gives back the pages that come.
pub fn torn_service() -> Result<Entry, String> {
    // SAFETY: they lie where no Rust object lies.
    unsafe { server::torn_service::<GivesBack>() }.map_err(|error| error.to_string())
}

struct GivesBack;

impl ServeShort for GivesBack {
    fn serve(_: u64, torn: u64, place: u64, _: u64) -> u64 {
        if place != 0 {
            touch(place + PAGE_BYTES as u64, 1, 0);
            if op::activation_set(ACTIVATION_TEAR, place).is_err() {
                server::abandon();
            }
        }
        torn
    }
}

/// Calls such a service with the pages that `torn` names; gives the word for those that come back.
#[inline(always)]
pub fn tear(entry: Entry, torn: u64, place: u64) -> Result<u64, Error> {
    // SAFETY: addresses come from the ranges of this program in which no Rust object lies.
    unsafe { message::call_torn(entry, torn, place) }
}

/// Maps (or, with `MAP_GRANT`, moves) the page at an address of ours into another domain.
pub fn map(domain: Entry, from: u64, to: u64, rights: u64) -> Result<(), Error> {
    debug_assert!(from.is_multiple_of(PAGE_BYTES as u64));
    // SAFETY: addresses come from the ranges of this program in which no Rust object lies: nothing refers to the page.
    unsafe { op::map(domain, from, to, 0, rights) }
}

/// A domain made with these flags of `domain_new` in which nothing is but [`adds`], its service of this shape, and a portal to that with
/// this constant.
pub fn adder(flags: u64, shape: Entry, constant: u64) -> Result<[Owned; 3], Error> {
    let domain = Owned::new(op::domain_new(Entry::OWN, flags, "bench-adder")?);
    let code = adds as *const () as u64;
    look(code);
    let page = code - code % PAGE_BYTES as u64;
    // SAFETY: code, which is shared to be read and executed.
    unsafe { op::map(domain.entry(), page, page, 0, MAP_READ | MAP_EXECUTE) }?;
    // SAFETY: another domain's; its code is made to be entered by calls of this shape, and uses no stack.
    let service = unsafe {
        op::activation_new(domain.entry(), STACKS_START + PAGE_BYTES as u64, Entry::OWN)?;
        op::service_new_at(domain.entry(), code, 0, shape, Entry::OWN)?
    };
    let ours = Owned::new(table::allocate()?);
    op::entry_copy(domain.entry(), service, Entry::OWN, ours.entry(), rights::ALL)?;
    let portal = Owned::new(table::allocate()?);
    op::portal_new(Entry::OWN, ours.entry(), constant, portal.entry(), 0)?;
    Ok([domain, ours, portal])
}
