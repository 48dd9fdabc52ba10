//! Counts that several threads, and domains to which the page is mapped, add to at the same time.

use core::sync::atomic::{AtomicU64, Ordering};

use fuzzer::histogram::{COLUMNS, Histogram, ROWS};

/// Pages of its own: a domain that may count can change nothing else.
#[repr(C, align(4096))]
pub struct Counts([[AtomicU64; COLUMNS]; ROWS]);

/// Where storms count.
pub static COUNTS: Counts = Counts([const { [const { AtomicU64::new(0) }; COLUMNS] }; ROWS]);

impl Counts {
    /// Counts an answer. Touches nothing but these pages.
    #[inline(always)]
    pub fn count(&self, row: usize, status: u64) {
        if let Some(place) = self.0.get(row).and_then(|row| row.get((status as usize).min(COLUMNS - 1))) {
            place.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Addresses of the pages.
    pub fn pages() -> core::ops::Range<u64> {
        let start = &raw const COUNTS as u64;
        start..start + size_of::<Counts>() as u64
    }

    /// Adds all of it to a histogram.
    pub fn add_to(&self, histogram: &mut Histogram) {
        for (row, counts) in self.0.iter().enumerate() {
            for (status, count) in counts.iter().enumerate() {
                histogram.add(row, status as u64, count.load(Ordering::Relaxed));
            }
        }
    }
}
