//! Starts the other CPUs, one at a time.

use crate::arch::memory::DIRECT;
use crate::arch::{interrupts, processor, special, start};
use crate::control::dispatch;
use crate::cpus::{cpu, lock, root, timer};
use crate::memory::{frames, own};
use crate::objects::{Cpu, FRAME};
use crate::pointer::{Held, Ref};
use crate::report::log::{self, Part};
use abi::MAX_CPUS;
use abi::boot::BootInfo;

/// Memory of a CPU other than the first, mapped after an unmapped guard page.
#[repr(C)]
struct Area {
    stack: [u8; 2 * FRAME],
    /// Above the stack: AArch64's `entry.s` clears registers by loading them.
    zeros: [u64; 2],
    cpu: Cpu,
    tables: processor::Tables,
}

/// Bytes of address space for an area, guard page included.
const AREA_BYTES: usize = 8 * FRAME;
const AREA_FRAMES: usize = size_of::<Area>().div_ceil(FRAME);
const _: () = assert!((AREA_FRAMES + 1) * FRAME <= AREA_BYTES);

/// Microseconds within which a CPU must have started.
const PATIENCE: u64 = 200_000;

/// Waits so long, or until the condition holds; gives whether it holds.
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

/// Starts all CPUs that the firmware reports; logs those that do not start, and does without them.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn start_others(held: Held, info: &BootInfo) -> Result<(), &'static str> {
    let first = interrupts::identity();
    let mut left_out = 0;
    let show = |start, length| own::show_firmware(held, start, length);
    let more = start::list(info, &show, |identity| {
        if identity != first && cpu::announce(held, identity).is_none() {
            left_out += 1;
        }
    });
    if more.is_none() {
        log::line(held, &[Part::Text("nucleus: the firmware has no list of CPUs (ACPI MADT): only the first is used")]);
    }
    left_out += more.unwrap_or(0);
    if left_out != 0 {
        let (count, most) = (Part::Number(left_out), Part::Number(MAX_CPUS as u64));
        let text = Part::Text("nucleus: CPUs left out, more than the most there may be: ");
        log::line(held, &[text, count, Part::Text(" over "), most]);
    }
    if cpu::present(held) == 1 {
        return Ok(());
    }
    if !frames::is_ram(held, start::code().start as usize / FRAME) {
        log::line(held, &[Part::Text("nucleus: no RAM where CPUs begin: only the first is used")]);
        return Ok(());
    }
    let tables = own::begin_start(held, start::code())?;
    start::prepare(tables)?;
    for number in 1..cpu::present(held) {
        let identity = cpu::identity_of(held, number);
        let block = make_area(held, number, identity)?;
        // A CPU that has started is quiescent: it waits for the nucleus lock, which this CPU holds.
        let is_there = |microseconds| wait(microseconds, || block.quiescent.is_quiescent());
        let words = [block.stack.get(), block.address(), begin as *const () as usize];
        let is_begun = start::start(identity, tables, words, &is_there);
        if is_begun && is_there(PATIENCE) {
            cpu::join(block);
            continue;
        }
        let (number, identity_part) = (Part::Number(number as u64), Part::Hex(identity as u64));
        let parts =
            [Part::Text("nucleus: CPU "), number, Part::Text(" ("), identity_part, Part::Text(") did not start")];
        log::line(held, &parts);
        if is_begun {
            start::give_up(identity)?;
        }
    }
    own::end_start(held, tables);
    log::line(held, &[Part::Text("nucleus: CPUs "), Part::Number(cpu::mask(held).count_ones() as u64)]);
    Ok(())
}

#[unsafe(link_section = ".init")]
#[inline(never)]
fn make_area(held: Held, number: usize, identity: u32) -> Result<Ref<Cpu>, &'static str> {
    let area = own::show_area(held, number * AREA_BYTES, AREA_FRAMES)? as *mut Area;
    // SAFETY: the area was just mapped, is large enough and cleared, and nothing else uses it yet. It is never freed, so
    // neither is the block in it.
    let block: Ref<Cpu> = unsafe {
        (&raw mut (*area).tables).write(processor::Tables::new());
        (&raw mut (*area).cpu).write(Cpu::new(number as u8, identity, &raw const (*area).zeros as usize, DIRECT));
        Ref::new(&raw mut (*area).cpu)
    };
    block.own.set(Some(block));
    Ok(block)
}

/// Entered from `start.s` by a CPU that starts, on its own stack.
extern "C" fn begin(block: Ref<Cpu>) -> ! {
    root::join();
    processor::load_block(block);
    let area = (block.address() - core::mem::offset_of!(Area, cpu)) as *mut Area;
    // SAFETY: `block` is the field `cpu` of an area that is never freed, so `area` points to that area; only this CPU uses
    // its tables.
    processor::load(block, unsafe { &mut (*area).tables });
    start::begun();
    special::turn_off();
    interrupts::init_local();
    let held = lock::join();
    // The wait for the end of the boot does not count as a wait for the lock.
    cpu::this(held).counts.reset();
    root::leave(held);
    dispatch::begin(held)
}
