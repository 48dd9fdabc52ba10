//! The source of memory, and the pager of every domain without another one.
//!
//! It alone draws frames, always from an account that was presented to it: by the account's owner
//! (`manage_account`), for itself or for a domain that it makes (`manage_domain`). The badge of a call
//! says which ticket the caller has. Heap and stacks of managed domains are paged here: a fault in them
//! draws a clear page into the faulting domain, charged to its account; guard pages are refused, and
//! the domain dies of its stack overflow.
//!
//! It starts before everything else, without heap, pager or names.
#![no_std]
#![no_main]

mod callers;
mod pager;
mod service;
mod tickets;

use abi::layout::{STACK_BYTES, STACKS_START};
use abi::rights::{MAP_READ, MAP_WRITE};
use abi::{Error, NEVER};
use protocols::sigma0::FEWEST_TICKETS;
use runtime::arch::{service_entry, word_entry};
use runtime::{Entry, op, table};

/// Activations: one call is served at a time, so a ticket cannot change hands under another call.
const ACTIVATIONS: u64 = 1;
runtime::entry!(main);

fn main() -> u8 {
    match start() {
        Ok(()) => 0,
        Err(error) => {
            runtime::log!("cannot start: {error}");
            1
        }
    }
}

fn start() -> Result<(), Error> {
    tickets::make_room(FEWEST_TICKETS)?;
    table::reserve(service::PLACE);
    table::reserve(pager::PLACE);
    for number in 0..ACTIVATIONS {
        let top = STACKS_START + (number + 1) * STACK_BYTES;
        // A call needs some hundred bytes of stack: one page.
        let stack = top - abi::PAGE_BYTES as u64;
        op::draw(Entry::SPECIAL, Entry::OWN, Entry::OWN, stack, 0, MAP_READ | MAP_WRITE)?;
        // SAFETY: the slot was drawn above and is this activation's alone.
        unsafe { op::activation_new(Entry::OWN, top, table::allocate()?)? };
    }
    // SAFETY: both addresses are entries for calls.
    unsafe {
        op::service_new_at(
            Entry::OWN,
            service_entry::<service::Service> as *const () as u64,
            0,
            Entry::OWN,
            service::PLACE,
        )?;
        op::service_new_at(Entry::OWN, word_entry::<pager::Pager> as *const () as u64, 0, Entry::OWN, pager::PLACE)?;
    }
    let never = op::semaphore_new(Entry::OWN, 0)?;
    loop {
        let _ = op::p(never, NEVER);
    }
}
