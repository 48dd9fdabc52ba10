//! Starting the other CPUs, one after the other.

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

/// What each CPU but the first has, mapped for it alone behind a page that is never mapped.
#[repr(C)]
struct Area {
    stack: [u8; 2 * FRAME],
    /// See `entry.s` of AArch64.
    zeros: [u64; 2],
    cpu: Cpu,
    tables: processor::Tables,
}

/// Bytes of an area in the nucleus's space, with the page before it.
const AREA_BYTES: usize = 8 * FRAME;
const AREA_FRAMES: usize = size_of::<Area>().div_ceil(FRAME);
const _: () = assert!((AREA_FRAMES + 1) * FRAME <= AREA_BYTES);

/// Microseconds until a CPU must be there.
const PATIENCE: u64 = 200_000;

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

/// Starts all CPUs that the firmware reports; those that do not start are reported and left out.
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
        // Quiescent: it waits for the lock, which we have.
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
    // SAFETY: just mapped, large enough, clear, and used by nobody yet; the block is a field of an object that lives for ever.
    let block: Ref<Cpu> = unsafe {
        (&raw mut (*area).tables).write(processor::Tables::new());
        (&raw mut (*area).cpu).write(Cpu::new(number as u8, identity, &raw const (*area).zeros as usize, DIRECT));
        Ref::new(&raw mut (*area).cpu)
    };
    block.own.set(Some(block));
    Ok(block)
}

/// Where a CPU comes from `start.s`, on its own stack.
extern "C" fn begin(block: Ref<Cpu>) -> ! {
    root::join();
    processor::load_block(block);
    let area = (block.address() - core::mem::offset_of!(Area, cpu)) as *mut Area;
    // SAFETY: the block is in an area, and knows where it lies there; nobody else has the tables of this CPU.
    processor::load(block, unsafe { &mut (*area).tables });
    start::begun();
    special::turn_off();
    interrupts::init_local();
    let held = lock::join();
    // Waiting to be begun with is no waiting for the lock.
    cpu::this(held).counts.restart();
    root::leave(held);
    dispatch::begin(held)
}
