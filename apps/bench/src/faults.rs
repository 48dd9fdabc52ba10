//! Page faults in the heap's range, served by `sigma0`: in another domain, woken by an upcall.
//!
//! Touched are pages that the allocator of this program never reaches. Afterwards they are given back.

use alloc::string::{String, ToString};

use runtime::abi::layout::HEAP_END;
use runtime::abi::{Error, PAGE_BYTES};
use runtime::arch::ticks;
use runtime::thread;

use crate::measure::{Counted, Row, counted, per_round};
use crate::pages;

const PAGE: u64 = PAGE_BYTES as u64;
/// Bytes that a page table maps.
const TABLE: u64 = 512 * PAGE;
/// Where pages are touched: the upper half of the heap's range.
const PLACE: u64 = HEAP_END - 64 * TABLE;
/// Times that each is repeated.
const REPETITIONS: u64 = 20;
/// Clear frames that the nucleus keeps at hand, at most.
const AT_HAND: u64 = 64;
/// Pages touched while clear frames are at hand.
const WARM: u64 = 32;
/// Pages touched in places without a page table.
const COLD: u64 = 32;
/// Time in which the idle machine clears frames, in nanoseconds.
const REST: u64 = 10_000_000;

/// Page table present, clear frame at hand.
pub fn warm() -> Result<Row, String> {
    let text = |error: Error| error.to_string();
    // One page stays, and with it the table.
    pages::touch(PLACE, 1, PAGE);
    let mut sum = 0;
    let mut work = || {
        for _ in 0..REPETITIONS {
            thread::sleep(REST)?;
            let start = ticks();
            pages::touch(PLACE + PAGE, WARM, PAGE);
            sum += ticks() - start;
            (1..=WARM).try_for_each(|page| pages::give_back(PLACE + page * PAGE))?;
        }
        Ok(())
    };
    let (done, _) = counted(&mut work)?;
    done.map_err(text)?;
    pages::give_back(PLACE).map_err(text)?;
    Ok(Row::instructions(per_round(sum, REPETITIONS * WARM)))
}

/// A page comes, is written and read word by word, and is given back: as Table 6.2 of the paper Asbestos on ARM has it.
pub fn used() -> Result<Row, String> {
    let text = |error: Error| error.to_string();
    // The table stays.
    pages::touch(PLACE, 1, PAGE);
    let mut sum = 0;
    let mut right = true;
    let mut work = || {
        for _ in 0..REPETITIONS {
            thread::sleep(REST)?;
            let start = ticks();
            for page in 1..=WARM {
                right &= pages::fill(PLACE + page * PAGE) == pages::FILLED;
                pages::give_back(PLACE + page * PAGE)?;
            }
            sum += ticks() - start;
        }
        Ok(())
    };
    let (done, counts): (Result<(), Error>, Counted) = counted(&mut work)?;
    done.map_err(text)?;
    pages::give_back(PLACE).map_err(text)?;
    let row = Row::instructions(per_round(sum, REPETITIONS * WARM));
    if right { Ok(counts.per_operation(row, REPETITIONS * WARM)) } else { Err("a page lost what was written".into()) }
}

/// Page table absent, frame cleared in the fault.
pub fn cold() -> Result<Row, String> {
    let mut sum = 0;
    let mut work = || {
        for _ in 0..REPETITIONS {
            // Uses up what is clear.
            pages::touch(PLACE, 2 * AT_HAND, PAGE);
            let start = ticks();
            pages::touch(PLACE + TABLE, COLD, TABLE);
            sum += ticks() - start;
            (1..=COLD).try_for_each(|table| pages::give_back(PLACE + table * TABLE))?;
            (0..2 * AT_HAND).try_for_each(|page| pages::give_back(PLACE + page * PAGE))?;
        }
        Ok(())
    };
    let (done, counts): (Result<(), Error>, Counted) = counted(&mut work)?;
    done.map_err(|error| error.to_string())?;
    let _ = counts;
    Ok(Row::instructions(per_round(sum, REPETITIONS * COLD)))
}
