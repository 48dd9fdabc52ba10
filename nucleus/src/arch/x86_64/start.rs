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

/// Where other CPUs begin: RAM that is kept for this while the machine boots.
pub fn code() -> Region {
    Region { start: PAGE as u64, bytes: FRAME as u64 }
}

/// Whether [`code`] is a frame that comes back when all have begun.
pub const KEEPS_CODE: bool = true;

/// Calls `found` with the machine's identifier of each CPU that can be used. Gives the number of CPUs for which it is not called; None:
/// the firmware has no list of CPUs.
pub fn list(info: &BootInfo, show: &dyn Fn(u64, usize) -> Option<()>, found: impl FnMut(u32)) -> Option<u64> {
    firmware::cpus(show, info.firmware, found).then_some(0)
}

/// Puts the code where CPUs begin, which is RAM; they begin with these tables.
pub fn prepare([root, _]: [u64; 2]) -> Result<(), &'static str> {
    if root >= 1 << 32 {
        return Err("the nucleus's tables lie too high for other CPUs");
    }
    // SAFETY: symbols of `start.s`, and a frame that was kept for this.
    unsafe {
        let length = &raw const start_end as usize - &raw const start_code as usize;
        core::ptr::copy_nonoverlapping(&raw const start_code, (DIRECT + PAGE) as *mut u8, length);
    }
    Ok(())
}

/// Has a CPU begin with these tables, this stack, and `begin(block)`. `wait` waits for microseconds, or until the CPU is there, and
/// says so.
pub fn start(
    identity: u32,
    [root, _]: [u64; 2],
    [stack, block, begin]: [usize; 3],
    wait: &dyn Fn(u64) -> bool,
) -> bool {
    // SAFETY: the words of the copy, which the CPU reads when it begins.
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

/// A CPU that did not come: from here on it waits to be started, should it come at last.
pub fn give_up(identity: u32) -> Result<(), &'static str> {
    interrupts::send_init(identity);
    Ok(())
}

/// The first thing that a CPU does of its own.
pub fn begun() {}
