//! Starting the other CPUs (PSCI CPU_ON, DEN 0022, 5.6), one after the other.

use super::memory::{physical, psci};
use super::{firmware, interrupts, paging, processor, special, timer};
use crate::cpu::{self, Cpu};
use crate::frames::FRAME;
use crate::log::{self, Part};
use crate::pointer::{Held, Ref};
use crate::{lock, schedule};
use abi::MAX_CPUS;
use abi::boot::{BootInfo, Region};
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

const CPU_ON: u64 = 0xc400_0003;

/// What each CPU but the first has, mapped for it alone behind a page that is never mapped.
#[repr(C)]
struct Area {
    stack: [u8; 2 * FRAME],
    /// See `entry.s`.
    zeros: [u64; 2],
    cpu: Cpu,
}

/// Bytes of an area in the nucleus's space, with the page before it.
const AREA_BYTES: usize = 8 * FRAME;
const AREA_FRAMES: usize = size_of::<Area>().div_ceil(FRAME);
const _: () = assert!((AREA_FRAMES + 1) * FRAME <= AREA_BYTES);

/// What the first CPU's counter of cycles said when another was started.
static CYCLES: AtomicU64 = AtomicU64::new(0);

/// Microseconds until a CPU must be there.
const PATIENCE: u64 = 200_000;

unsafe extern "C" {
    fn start_entry();
    static mut start_words: [u64; 5];
}

/// What the first CPU keeps from the boot loader's memory for the others: nothing, they begin in the image.
pub fn page() -> Region {
    Region { start: 0, bytes: 0 }
}

fn wait(until: impl Fn() -> bool) -> bool {
    let end = timer::now() + timer::from_microseconds(PATIENCE);
    while timer::now() < end {
        if until() {
            return true;
        }
        processor::relax();
    }
    until()
}

/// Starts all CPUs that the device tree names; those that do not start are reported and left out.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn start_others(held: Held, _: &BootInfo) -> Result<(), &'static str> {
    let firmware = firmware::get();
    let first = interrupts::identity();
    let mut left_out = firmware.left_out;
    for identity in firmware.cpus[..firmware.cpu_count].iter().map(|identity| interrupts::short(*identity)) {
        if identity != first && cpu::announce(held, identity).is_none() {
            left_out += 1;
        }
    }
    if left_out != 0 {
        let (count, most) = (Part::Number(left_out), Part::Number(MAX_CPUS as u64));
        let text = Part::Text("nucleus: CPUs left out, more than the most there may be: ");
        log::line(held, &[text, count, Part::Text(" over "), most]);
    }
    if cpu::present(held) == 1 {
        return Ok(());
    }
    let tables = paging::begin_start(held)?;
    for number in 1..cpu::present(held) {
        let identity = cpu::identity_of(held, number);
        let block = make_area(held, number, identity)?;
        write_words([
            tables[0],
            tables[1],
            block.stack.get() as u64,
            block.address() as u64,
            begin as *const () as u64,
        ]);
        // The affinities as MPIDR_EL1 has them.
        let target = (identity & 0xff_ffff) as u64 | (identity as u64 >> 24) << 32;
        CYCLES.store(processor::cycles(), Ordering::Relaxed);
        let answer = psci(CPU_ON, [target, physical(start_entry as *const () as usize) as u64, 0]);
        // Quiet: it waits for the lock, which we have.
        if answer == Some(0) && wait(|| block.quiet.is_quiet()) {
            cpu::join(block);
        } else {
            let (number, identity) = (Part::Number(number as u64), Part::Hex(identity as u64));
            let parts =
                [Part::Text("nucleus: CPU "), number, Part::Text(" ("), identity, Part::Text(") did not start")];
            log::line(held, &parts);
            if answer == Some(0) {
                return Err("a CPU that was started did not come: it could come later, when its tables are gone");
            }
        }
    }
    paging::end_start(held, tables);
    log::line(held, &[Part::Text("nucleus: CPUs "), Part::Number(cpu::mask(held).count_ones() as u64)]);
    Ok(())
}

/// Writes what a CPU reads when it begins, past its caches, which are off.
fn write_words(words: [u64; 5]) {
    // SAFETY: no CPU reads them now; they lie in one line of a cache.
    unsafe {
        let place = &raw mut start_words;
        place.write_volatile(words);
        asm!("dsb ish", "dc civac, {}", "dsb sy", in(reg) place, options(nostack));
    }
}

#[unsafe(link_section = ".init")]
#[inline(never)]
fn make_area(held: Held, number: usize, identity: u32) -> Result<Ref<Cpu>, &'static str> {
    let address = paging::map_area(held, number * AREA_BYTES, AREA_FRAMES)?;
    // SAFETY: just mapped, large enough, clear, and used by nobody yet; the block is a field of an object that lives for ever.
    let block: Ref<Cpu> = unsafe {
        let area = address as *mut Area;
        (&raw mut (*area).cpu).write(Cpu::new(number as u8, identity, address + 2 * FRAME));
        Ref::new(&raw mut (*area).cpu)
    };
    block.own.set(Some(block));
    Ok(block)
}

/// Where a CPU comes from `start.s`, on its own stack.
extern "C" fn begin(block: Ref<Cpu>) -> ! {
    processor::load_block(block);
    processor::load();
    processor::set_cycles(CYCLES.load(Ordering::Relaxed));
    special::init();
    interrupts::init_local();
    let held = lock::join();
    // Waiting to be begun with is no waiting for the lock.
    cpu::this(held).counts.restart();
    paging::leave_space(held);
    schedule::begin(held)
}
