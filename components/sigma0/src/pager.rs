//! Page faults of managed domains.

use crate::callers::report;
use crate::tickets;
use abi::info::status::{NO_ROOM, STACK_OVERFLOW};
use abi::layout::{
    FIRST_FREE, HEAP_END, MAIN_STACK_START, MORE_STACKS_END, MORE_STACKS_START, STACK_BYTES, STACKS_START,
    STARTUP_PAGE, WINDOW,
};
use abi::rights::{MAP_READ, MAP_WRITE};
use abi::{Error, PAGE_BYTES};
use runtime::message::Words;
use runtime::server::ServeWord;
use runtime::{Entry, op};

const PAGE: u64 = PAGE_BYTES as u64;

/// Where `roottask` finds the service in this domain's table.
pub const PLACE: Entry = Entry(FIRST_FREE + 1);

/// Ranges whose faults come here: slots of `DOMAIN_SET`. The heap begins at `heap`.
pub const fn ranges(heap: u64) -> [(u64, u64); 3] {
    [(heap, HEAP_END), (STACKS_START, STARTUP_PAGE), (MORE_STACKS_START, MORE_STACKS_END)]
}

/// The fault was served: try again.
const RESUME: u64 = 0;
/// It cannot be served: the domain dies.
const GIVE_UP: u64 = 1;

/// In the processor's error code: the page is there, a right is missing.
const PROTECTION: u64 = 1;

/// The upcall's service: word 0 is the address that was touched, word 2 the processor's error code.
pub struct Pager;

impl ServeWord for Pager {
    fn serve(badge: u64, words: Words) -> u64 {
        let address = words[0] & !(PAGE - 1);
        if words[2] & PROTECTION != 0 {
            return GIVE_UP;
        }
        if is_guard(address) {
            return STACK_OVERFLOW;
        }
        let Some(domain) = tickets::managed(badge) else { return give_up("its domain's ticket was given back") };
        match op::draw(Entry::SPECIAL, domain, domain, address, 0, MAP_READ | MAP_WRITE) {
            // Another thread of the domain may have been faster.
            Ok(()) | Err(Error::Occupied) => RESUME,
            Err(Error::AccountExhausted | Error::OtherExhausted) => NO_ROOM,
            Err(error) => give_up(error.text()),
        }
    }
}

/// The answer to a fault that is not handled for a cause that never comes if all is well. The log has it.
#[cold]
#[inline(never)]
fn give_up(cause: &str) -> u64 {
    report("a page fault", cause);
    GIVE_UP
}

/// Whether this is a page below a stack, which stays empty so that an overflow is noticed.
fn is_guard(page: u64) -> bool {
    let in_slots = (STACKS_START..WINDOW).contains(&page) || (MORE_STACKS_START..MORE_STACKS_END).contains(&page);
    (WINDOW..=MAIN_STACK_START).contains(&page) || in_slots && page.is_multiple_of(STACK_BYTES)
}
