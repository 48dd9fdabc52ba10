//! Page faults in the heap's range, served by `sigma0`: in another domain, woken by an upcall.
//!
//! Touched are pages that the allocator of this program never reaches. Afterwards they are given back.

use alloc::string::{String, ToString};

use runtime::abi::layout::HEAP_END;
use runtime::abi::{Error, PAGE_BYTES};
use runtime::thread;

use crate::measure::{Row, per_round, timed};
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
            sum += timed(|| pages::touch(PLACE + PAGE, WARM, PAGE));
            (1..=WARM).try_for_each(|page| pages::give_back(PLACE + page * PAGE))?;
        }
        Ok(())
    };
    work().map_err(text)?;
    pages::give_back(PLACE).map_err(text)?;
    Ok(Row::instructions(per_round(sum, REPETITIONS * WARM)).of(REPETITIONS * WARM))
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
            let mut given = Ok(());
            sum += timed(|| {
                for page in 1..=WARM {
                    right &= pages::fill(PLACE + page * PAGE) == pages::FILLED;
                    given = given.and(pages::give_back(PLACE + page * PAGE));
                }
            });
            given?;
        }
        Ok(())
    };
    work().map_err(text)?;
    pages::give_back(PLACE).map_err(text)?;
    let row = Row::instructions(per_round(sum, REPETITIONS * WARM));
    if right { Ok(row.of(REPETITIONS * WARM)) } else { Err("a page lost what was written".into()) }
}

/// Page table absent, frame cleared in the fault.
pub fn cold() -> Result<Row, String> {
    let mut sum = 0;
    let mut work = || {
        for _ in 0..REPETITIONS {
            // Uses up what is clear.
            pages::touch(PLACE, 2 * AT_HAND, PAGE);
            sum += timed(|| pages::touch(PLACE + TABLE, COLD, TABLE));
            (1..=COLD).try_for_each(|table| pages::give_back(PLACE + table * TABLE))?;
            (0..2 * AT_HAND).try_for_each(|page| pages::give_back(PLACE + page * PAGE))?;
        }
        Ok(())
    };
    work().map_err(|error: Error| error.to_string())?;
    Ok(Row::instructions(per_round(sum, REPETITIONS * COLD)).of(REPETITIONS * COLD))
}
