//! Starting another CPU (PSCI CPU_ON, DEN 0022, 5.6).

use super::memory::{physical, psci};
use super::{firmware, interrupts, processor};
use abi::boot::{BootInfo, Region};
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

const CPU_ON: u64 = 0xc400_0003;

/// The first CPU's cycle counter when it started another CPU.
static CYCLES: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn start_entry();
    static start_end: u8;
    static mut start_words: [u64; 5];
}

/// Where other CPUs begin: code of the image.
pub fn code() -> Region {
    let (start, end) = (start_entry as *const () as usize, &raw const start_end as usize);
    Region { start: physical(start) as u64, bytes: (end - start) as u64 }
}

/// Whether [`code`] is a frame that is freed once all CPUs have begun.
pub const KEEPS_CODE: bool = false;

/// Calls `found` with the identity of each usable CPU. Gives the number of CPUs left out; None: the firmware has no list.
pub fn list(_: &BootInfo, _: &dyn Fn(u64, usize) -> Option<()>, found: impl FnMut(u32)) -> Option<u64> {
    let firmware = firmware::get();
    firmware.cpus[..firmware.cpu_count].iter().map(|identity| interrupts::short(*identity)).for_each(found);
    Some(firmware.left_out)
}

/// Nothing to prepare: CPUs begin in code of the image.
pub fn prepare(_: [u64; 2]) -> Result<(), &'static str> {
    Ok(())
}

/// Starts a CPU with these tables and this stack, at `begin(block)`; false if the firmware refuses.
pub fn start(
    identity: u32,
    [root, upper]: [u64; 2],
    [stack, block, begin]: [usize; 3],
    _: &dyn Fn(u64) -> bool,
) -> bool {
    // SAFETY: no CPU reads the words now. They lie in one cache line, which is cleaned to memory: a CPU that begins reads
    // them with its caches off.
    unsafe {
        let place = &raw mut start_words;
        place.write_volatile([root, upper, stack as u64, block as u64, begin as u64]);
        asm!("dsb ish", "dc civac, {}", "dsb sy", in(reg) place, options(nostack));
    }
    // The affinities, placed as in MPIDR_EL1.
    let target = (identity & 0xff_ffff) as u64 | (identity as u64 >> 24) << 32;
    CYCLES.store(processor::cycles(), Ordering::Relaxed);
    psci(CPU_ON, [target, physical(start_entry as *const () as usize) as u64, 0]) == Some(0)
}

/// An error, as a CPU that did not begin in time cannot be reset.
pub fn give_up(_: u32) -> Result<(), &'static str> {
    // It could begin later, when its tables are gone.
    Err("a CPU that was started did not come in time")
}

/// Called first by a CPU that begins: sets its cycle counter.
pub fn begun() {
    processor::set_cycles(CYCLES.load(Ordering::Relaxed));
}
