//! Which space a CPU has loaded.

use super::{cpu, translations};
use crate::arch::paging;
use crate::pointer::{Boot, Held};

/// The root that is loaded where there is no space.
static NONE: Boot<u64> = Boot::new(0);

/// From here on CPUs load this root where there is no space.
pub fn begin(held: Held, root: u64) {
    // SAFETY: the first CPU runs alone.
    unsafe { *NONE.write() = root };
    leave(held);
}

/// A CPU leaves the tables with which it began.
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

/// This CPU is in no domain.
pub fn leave(held: Held) {
    let cpu = cpu::this(held);
    cpu.domain.set(None);
    cpu.table.set(0);
    cpu.limit.set(0);
    load(held, *NONE.get());
    paging::publish_entries_here();
}
