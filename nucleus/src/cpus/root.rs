//! The root of the space that a CPU has loaded.

use super::{cpu, translations};
use crate::arch::paging;
use crate::pointer::{Boot, Held};

/// Root that a CPU loads while it is in no domain.
static NONE: Boot<u64> = Boot::new(0);

/// Sets the root for CPUs that are in no domain, and loads it.
pub fn begin(held: Held, root: u64) {
    // SAFETY: the boot CPU runs alone, and nothing borrows the value.
    unsafe { *NONE.write() = root };
    leave(held);
}

/// Leaves the page tables with which a CPU starts.
pub fn join() {
    paging::load_root(*NONE.get());
}

/// Loads the root of a space.
#[inline(always)]
pub fn load(held: Held, root: u64) {
    cpu::this(held).counts.root_writes.update(|count| count + 1);
    paging::load_root(root);
    if !paging::KEEPS_TRANSLATIONS {
        translations::all_paid(held, None);
    }
}

/// Makes this CPU leave its domain: it is in none afterwards.
pub fn leave(held: Held) {
    let cpu = cpu::this(held);
    cpu.domain.set(None);
    cpu.table.set(0);
    cpu.limit.set(0);
    load(held, *NONE.get());
    paging::publish_entries_here();
}
