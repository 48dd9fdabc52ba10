//! Numbers that grow with the memory of the machine.

use abi::sched::{NOTE_BYTES, NOTES_AT};
use abi::{PAGE_BYTES, THREADS_OF_A_PAGE};
use core::sync::atomic::{AtomicU64, Ordering};
use protocols::names::{FEWEST_OF_PROGRAMS, MOST_OF_PROGRAMS};
use protocols::sigma0::{FEWEST_TICKETS, MOST_TICKETS};

/// The fewest numbers of threads: those for which descriptions are written.
pub const FEWEST: u64 = THREADS_OF_A_PAGE as u64;
/// More numbers of threads than the fewest for which there is one more ticket of `sigma0`: a domain has two at least.
const THREADS_OF_A_TICKET: u64 = 2;
/// The same for one more name of a program.
const THREADS_OF_A_NAME: u64 = 16;
/// Numbers of threads for which the nucleus and each scheduler have room.
static THREADS: AtomicU64 = AtomicU64::new(FEWEST);

/// Numbers of threads there are.
pub fn threads() -> u64 {
    THREADS.load(Ordering::Relaxed)
}

/// The nucleus has room for so many.
pub fn set_threads(threads: u64) {
    THREADS.store(threads, Ordering::Relaxed);
}

/// Tickets there are.
pub fn tickets() -> u64 {
    (FEWEST_TICKETS as u64 + (threads() - FEWEST) / THREADS_OF_A_TICKET).min(MOST_TICKETS as u64)
}

/// Names that all programs can have together.
pub fn program_names() -> usize {
    (FEWEST_OF_PROGRAMS + ((threads() - FEWEST) / THREADS_OF_A_NAME) as usize).min(MOST_OF_PROGRAMS)
}

/// Pages that a scheduler writes: those of its notes of threads that there cannot be are left out.
pub fn notes_pages() -> u64 {
    (NOTES_AT as u64 + threads() * NOTE_BYTES as u64).div_ceil(PAGE_BYTES as u64)
}
