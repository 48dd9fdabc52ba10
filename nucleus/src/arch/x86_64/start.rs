//! Starting the other CPUs (Intel SDM volume 3, 9.4: INIT, then start-up interrupts), one after the other.

use super::memory::DIRECT;
use super::processor::{self, Tables};
use super::{firmware, interrupts, paging, special, timer};
use crate::cpu::{self, Cpu};
use crate::frames::{self, FRAME};
use crate::log::{self, Part};
use crate::pointer::{Held, Ref};
use crate::{lock, schedule};
use abi::MAX_CPUS;
use abi::boot::{BootInfo, Region};

/// The page below 1 MiB at which CPUs begin.
const PAGE: usize = 0x8000;

core::arch::global_asm!(".set PAGE, {PAGE}", include_str!("start.s"), PAGE = const PAGE);

unsafe extern "C" {
    static start_code: u8;
    static start_words: u8;
    static start_end: u8;
}

/// What each CPU but the first has, mapped for it alone behind a page that is never mapped.
#[repr(C)]
struct Area {
    stack: [u8; 2 * FRAME],
    cpu: Cpu,
    tables: Tables,
}

/// Bytes of an area in the nucleus's space, with the page before it.
const AREA_BYTES: usize = 8 * FRAME;
const AREA_FRAMES: usize = size_of::<Area>().div_ceil(FRAME);
const _: () = assert!((AREA_FRAMES + 1) * FRAME <= AREA_BYTES);

/// Microseconds from INIT to the first start-up interrupt, from there to the second, and until it must be there.
const AFTER_INIT: u64 = 10_000;
const AFTER_START: u64 = 200;
const PATIENCE: u64 = 200_000;

/// What the first CPU keeps from the boot loader's memory for the others.
pub fn page() -> Region {
    Region { start: PAGE as u64, bytes: FRAME as u64 }
}

fn wait(microseconds: u64, until: impl Fn() -> bool) -> bool {
    let end = timer::now() + timer::from_microseconds(microseconds);
    while timer::now() < end {
        if until() {
            return true;
        }
        processor::relax();
    }
    until()
}

/// Starts all CPUs that the firmware tells of; those that do not start are reported and left out.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn start_others(held: Held, info: &BootInfo) -> Result<(), &'static str> {
    let first = interrupts::identity();
    let mut left_out = 0;
    let is_list = firmware::cpus(held, info.firmware, |identity| {
        if identity != first && cpu::announce(held, identity).is_none() {
            left_out += 1;
        }
    });
    if !is_list {
        log::line(held, &[Part::Text("nucleus: the firmware has no list of CPUs (ACPI MADT): only the first is used")]);
    }
    if left_out != 0 {
        let (count, most) = (Part::Number(left_out), Part::Number(MAX_CPUS as u64));
        log::line(
            held,
            &[
                Part::Text("nucleus: CPUs left out, more than the most there may be: "),
                count,
                Part::Text(" over "),
                most,
            ],
        );
    }
    if cpu::present(held) == 1 {
        return Ok(());
    }
    let page = DIRECT + PAGE;
    if !frames::is_ram(held, PAGE / FRAME) {
        log::line(held, &[Part::Text("nucleus: no RAM where CPUs begin: only the first is used")]);
        return Ok(());
    }
    // SAFETY: symbols of `start.s`, and a frame that was kept for this.
    let words = unsafe {
        let length = &raw const start_end as usize - &raw const start_code as usize;
        core::ptr::copy_nonoverlapping(&raw const start_code, page as *mut u8, length);
        (page + (&raw const start_words as usize - &raw const start_code as usize)) as *mut [u64; 4]
    };
    let root = paging::begin_start(held, PAGE)?;
    for number in 1..cpu::present(held) {
        let identity = cpu::identity_of(held, number);
        let area = make_area(held, number, identity)?;
        let stack = area.address() + size_of_val(&area.stack);
        let block = cpu_of(area);
        // SAFETY: the words of the copy, which the CPU reads when it begins.
        unsafe { words.write_volatile([root, stack as u64, block.address() as u64, begin as *const () as u64]) };
        interrupts::send_init(identity);
        wait(AFTER_INIT, || false);
        // Quiet: it waits for the lock, which we have.
        let is_there = || block.quiet.is_quiet();
        for _ in 0..2 {
            if !is_there() {
                interrupts::send_start(identity, (PAGE / FRAME) as u32);
                wait(AFTER_START, is_there);
            }
        }
        if wait(PATIENCE, is_there) {
            cpu::join(block);
        } else {
            // It waits to be started from now on, should it come at last.
            interrupts::send_init(identity);
            let (number, identity) = (Part::Number(number as u64), Part::Number(identity as u64));
            log::line(
                held,
                &[Part::Text("nucleus: CPU "), number, Part::Text(" (APIC "), identity, Part::Text(") did not start")],
            );
        }
    }
    paging::end_start(held);
    let count = Part::Number(cpu::mask(held).count_ones() as u64);
    log::line(held, &[Part::Text("nucleus: CPUs "), count]);
    Ok(())
}

#[unsafe(link_section = ".init")]
#[inline(never)]
fn make_area(held: Held, number: usize, identity: u32) -> Result<Ref<Area>, &'static str> {
    let address = paging::map_area(held, number * AREA_BYTES, AREA_FRAMES)?;
    // SAFETY: just mapped, and large enough.
    let area: Ref<Area> = unsafe { Ref::new(address as *mut Area) };
    let block = cpu_of(area);
    // SAFETY: both lie in the area that was just mapped, and nobody uses either yet.
    unsafe {
        block.pointer().write(Cpu::new(number as u8, identity, address + size_of_val(&area.stack)));
        tables_of(area).write(Tables::new());
    }
    block.own.set(Some(block));
    Ok(area)
}

fn cpu_of(area: Ref<Area>) -> Ref<Cpu> {
    // SAFETY: a field of an object that lives for ever.
    unsafe { Ref::new(&raw mut (*area.pointer()).cpu) }
}

fn tables_of(area: Ref<Area>) -> *mut Tables {
    // SAFETY: a field of an object that lives for ever.
    unsafe { &raw mut (*area.pointer()).tables }
}

/// Where a CPU comes from `start.s`, on its own stack.
extern "C" fn begin(block: Ref<Cpu>) -> ! {
    processor::load_block(block);
    // SAFETY: the block is in an area, and knows where it lies there.
    let area: Ref<Area> = unsafe { Ref::new((block.address() - core::mem::offset_of!(Area, cpu)) as *mut Area) };
    // SAFETY: nobody else has the tables of this CPU.
    processor::load(block, unsafe { &mut *tables_of(area) });
    special::init();
    interrupts::init_local();
    let held = lock::join();
    // Waiting to be begun with is no waiting for the lock.
    cpu::this(held).counts.restart();
    paging::leave_space(held);
    schedule::begin(held)
}
