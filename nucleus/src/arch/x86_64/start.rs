//! Starting another CPU (Intel SDM volume 3, 9.4: INIT, then start-up interrupts).

use super::memory::DIRECT;
use super::{firmware, interrupts};
use crate::objects::FRAME;
use abi::boot::{BootInfo, Region};

/// The page below 1 MiB at which CPUs begin.
const PAGE: usize = 0x8000;

core::arch::global_asm!(".set PAGE, {PAGE}", include_str!("start.s"), PAGE = const PAGE);

unsafe extern "C" {
    static start_code: u8;
    static start_words: u8;
    static start_end: u8;
}

/// Microseconds from INIT to the first start-up interrupt, from there to the second.
const AFTER_INIT: u64 = 10_000;
const AFTER_START: u64 = 200;

/// The page where other CPUs begin: RAM reserved for this while the machine boots.
pub fn code() -> Region {
    Region { start: PAGE as u64, bytes: FRAME as u64 }
}

/// Whether [`code`] is a frame that is freed once all CPUs have begun.
pub const KEEPS_CODE: bool = true;

/// Calls `found` with the identity of each usable CPU. Gives the number of CPUs left out; None: the firmware has no list.
pub fn list(info: &BootInfo, show: &dyn Fn(u64, usize) -> Option<()>, found: impl FnMut(u32)) -> Option<u64> {
    firmware::cpus(show, info.firmware, found).then_some(0)
}

/// Copies the code to the page where CPUs begin. They begin with these tables, whose root must fit in 32 bits.
pub fn prepare([root, _]: [u64; 2]) -> Result<(), &'static str> {
    if root >= 1 << 32 {
        return Err("the nucleus's tables lie too high for other CPUs");
    }
    // SAFETY: symbols of `start.s`, and a frame that was reserved for this.
    unsafe {
        let length = &raw const start_end as usize - &raw const start_code as usize;
        core::ptr::copy_nonoverlapping(&raw const start_code, (DIRECT + PAGE) as *mut u8, length);
    }
    Ok(())
}

/// Starts a CPU with these tables and this stack, at `begin(block)`. `wait` waits so many microseconds or until the CPU has
/// begun; true if it has.
pub fn start(
    identity: u32,
    [root, _]: [u64; 2],
    [stack, block, begin]: [usize; 3],
    wait: &dyn Fn(u64) -> bool,
) -> bool {
    // SAFETY: these words lie in the copy, in a reserved frame; only the CPU that is started reads them.
    unsafe {
        let place = DIRECT + PAGE + (&raw const start_words as usize - &raw const start_code as usize);
        (place as *mut [u64; 4]).write_volatile([root, stack as u64, block as u64, begin as u64]);
    }
    interrupts::send_init(identity);
    wait(AFTER_INIT);
    for _ in 0..2 {
        if !wait(0) {
            interrupts::send_start(identity, (PAGE / FRAME) as u32);
            wait(AFTER_START);
        }
    }
    true
}

/// Resets a CPU that did not begin in time: if it comes later, it waits for a start-up interrupt.
pub fn give_up(identity: u32) -> Result<(), &'static str> {
    interrupts::send_init(identity);
    Ok(())
}

/// Called first by a CPU that begins.
pub fn begun() {}
