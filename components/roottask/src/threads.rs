//! How many threads there can be: the nucleus and each scheduler have room for so many.

use crate::records;
use abi::sched::{NOTE_BYTES, NOTES_AT};
use abi::{MAX_THREADS, PAGE_BYTES, THREADS_OF_A_PAGE};
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicU64, Ordering};
use runtime::Entry;
use runtime::op;

/// Threads for which the nucleus and each scheduler have room.
static THREADS: AtomicU64 = AtomicU64::new(THREADS_OF_A_PAGE as u64);

/// Frames of memory for which there is one thread more than at first, and those that do not count.
const FRAMES_OF_A_THREAD: u64 = 16;
const FRAMES_OF_FEW: u64 = 16_384;

/// Makes room for threads: one for each 64 KiB of memory beyond the first 64 MiB, besides those for which there is room at first.
pub fn make_room() -> Result<(), String> {
    let frames = records::frames_left().unwrap_or(0);
    let wanted = THREADS.load(Ordering::Relaxed) + frames.saturating_sub(FRAMES_OF_FEW) / FRAMES_OF_A_THREAD;
    let wanted = wanted.min(MAX_THREADS as u64);
    while THREADS.load(Ordering::Relaxed) + THREADS_OF_A_PAGE as u64 <= wanted {
        let threads = op::machine_threads(Entry::SPECIAL).map_err(|error| error.to_string())?;
        THREADS.store(threads, Ordering::Relaxed);
    }
    runtime::log!("room for {} threads", THREADS.load(Ordering::Relaxed));
    Ok(())
}

/// Pages that a scheduler writes: those of its notes of threads that there cannot be are left out.
pub fn notes_pages() -> u64 {
    (NOTES_AT as u64 + THREADS.load(Ordering::Relaxed) * NOTE_BYTES as u64).div_ceil(PAGE_BYTES as u64)
}

/// Frames that the account of a scheduler needs beside those of the description, which are for the least number of threads.
pub fn frames_of_more() -> u64 {
    notes_pages() - 1
}
