//! The nucleus's own half of every space: its image, all RAM (the *direct map*), the registers that it uses, the areas of CPUs.
//! RAM is never executed, and no page of the image is written at the address where it is executed.

use super::frames::{self, table};
use crate::arch::memory::{DIRECT, IMAGE, physical};
use crate::arch::paging;
use crate::cpus::root;
use crate::objects::{FRAME, Frame, Own, PageEntry, index};
use crate::pointer::{Boot, Held};
use abi::boot::{BootInfo, Region};

/// The root of the upper half, a frame full of zeros, and the table that leads to [`WRITTEN`].
static TABLES: Boot<[Frame; 3]> = Boot::new([0; 3]);

unsafe extern "C" {
    static image_init: u8;
    static image_text: u8;
    static image_rodata: u8;
    static image_portals: u8;
    static image_data: u8;
    static image_end: u8;
    static boot_stack_guard: u8;
}

fn address(symbol: *const u8) -> usize {
    symbol as usize
}

/// The root of the upper half.
#[inline(always)]
pub fn upper() -> Frame {
    TABLES.get()[0]
}

/// A frame full of zeros, for good.
pub fn zeros() -> Frame {
    TABLES.get()[1]
}

/// What of the image is used no more once the final tables and segments are loaded: the code and tables that
/// led there, and the page below the stack, which is not mapped as such.
pub fn boot_parts() -> [Region; 2] {
    let guard = physical(address(&raw const boot_stack_guard)) as u64;
    let init = physical(address(&raw const image_init)) as u64;
    let start = crate::arch::memory::image().start;
    [Region { start, bytes: init - start }, Region { start: guard, bytes: FRAME as u64 }]
}

/// A clear table for the nucleus.
pub fn boot_table(held: Held) -> Result<Frame, &'static str> {
    let frame = frames::allocate(held, 0).ok_or("no frame for the nucleus's page tables")?;
    frames::clear(frame);
    frames::count_boot(held, 1);
    Ok(frame)
}

/// The table of level `last + 1`'s entry for an address, in tables of the nucleus; missing ones are made.
#[inline(never)]
pub fn boot_walk(held: Held, root: Frame, address: usize, last: u32) -> Result<Frame, &'static str> {
    let mut at = root;
    for level in (last + 1..4).rev() {
        let entry = &table(held, at)[index(address as u64, level)];
        if entry.get() == 0 {
            entry.set(paging::nucleus_table(boot_table(held)?));
        }
        at = paging::frame_of(entry.get());
    }
    Ok(at)
}

#[unsafe(link_section = ".init")]
#[inline(never)]
fn show(held: Held, root: Frame, address: usize, entry: u64) -> Result<(), &'static str> {
    table(held, boot_walk(held, root, address, 0)?)[index(address as u64, 0)].set(entry);
    Ok(())
}

#[unsafe(link_section = ".init")]
#[inline(never)]
fn show_large(held: Held, root: Frame, address: usize, entry: u64) -> Result<(), &'static str> {
    table(held, boot_walk(held, root, address, 1)?)[index(address as u64, 1)].set(entry);
    Ok(())
}

/// Bytes of an entry of the level above the last.
const LARGE: usize = 1 << 21;

/// Replaces the boot tables by the final upper half.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn init(held: Held, info: &BootInfo) -> Result<(), &'static str> {
    let root = boot_table(held)?;
    let (init, end) = (address(&raw const image_init), address(&raw const image_end));
    let (text, rodata, data) =
        (address(&raw const image_text), address(&raw const image_rodata), address(&raw const image_data));
    let own = |page: usize| match page {
        page if page < rodata => Own::Code,
        page if page < address(&raw const image_portals) => Own::Constants,
        page if page < data => Own::Code,
        _ => Own::Data,
    };
    let guard = address(&raw const boot_stack_guard);
    // An overflow of the kernel stack meets the guard, and the trap's own stack reports it.
    for page in (init..end).step_by(FRAME).filter(|page| *page != guard) {
        show(held, root, page, paging::own_page(physical(page) as u64, own(page)))?;
    }
    let image = physical(text)..physical(data);
    for region in &info.ram[..info.regions] {
        let shown = paging::shown(region);
        let mut at = shown.start;
        while at < shown.end {
            let own = if image.contains(&at) { Own::Constants } else { Own::Data };
            let is_apart = at + LARGE <= image.start || at >= image.end;
            if at.is_multiple_of(LARGE) && at + LARGE <= shown.end && is_apart {
                show_large(held, root, DIRECT + at, paging::own_large(at as u64, own))?;
                at += LARGE;
            } else {
                show(held, root, DIRECT + at, paging::own_page(at as u64, own))?;
                at += FRAME;
            }
        }
    }
    let zeros = match paging::ZEROS {
        Some(frame) => {
            frames::clear(frame);
            frame
        }
        None => boot_table(held)?,
    };
    // SAFETY: the first CPU runs alone.
    unsafe { *TABLES.write() = [root, zeros, boot_walk(held, root, WRITTEN, 0)?] };
    root::begin(held, paging::begin(held, root, table(held, root), zeros)?);
    paging::show_registers(info, |address, physical, bytes| show_registers(held, root, address, physical, bytes))
}

/// Maps registers: the controllers of interrupts of many CPUs have megabytes of them, most of which no CPU has.
#[unsafe(link_section = ".init")]
#[inline(never)]
fn show_registers(held: Held, root: Frame, address: usize, physical: u64, bytes: usize) -> Result<(), &'static str> {
    let mut done = 0;
    while done < bytes {
        let (at, from) = (address + done, physical + done as u64);
        let there = table(held, boot_walk(held, root, at, 1)?)[index(at as u64, 1)].get();
        let fits = (at | from as usize).is_multiple_of(LARGE) && done + LARGE <= bytes;
        done += match there {
            // Of two controllers at the same place the other one is mapped already.
            _ if there != 0 && !paging::leads_to_table(there) => LARGE - at % LARGE,
            0 if fits => {
                show_large(held, root, at, paging::own_large(from, Own::Registers))?;
                LARGE
            }
            _ => {
                show(held, root, at, paging::own_page(from, Own::Registers))?;
                FRAME
            }
        };
    }
    Ok(())
}

/// Unmaps what of the image only boots, which nobody runs any more.
pub fn end_init(held: Held) -> Region {
    let (init, text) = (address(&raw const image_init), address(&raw const image_text));
    for page in (init..text).step_by(FRAME) {
        if let Ok(last) = boot_walk(held, upper(), page, 0) {
            table(held, last)[index(page as u64, 0)].set(0);
        }
    }
    paging::drop_all();
    if cfg!(feature = "checked") {
        audit(held, upper(), 3);
    }
    Region { start: physical(init) as u64, bytes: (text - init) as u64 }
}

/// Panics unless everything in a table of the upper half, and below, is harmless.
fn audit(held: Held, frame: Frame, level: usize) {
    for entry in table(held, frame).iter().map(PageEntry::get).filter(|entry| *entry != 0) {
        if level > 0 && paging::leads_to_table(entry) {
            audit(held, paging::frame_of(entry), level - 1);
        } else {
            assert!(paging::is_harmless(entry), "a page of the nucleus: {entry:#x}");
        }
    }
}

/// Where the table of threads is: in the same 2 MiB as [`WRITTEN`], before it.
pub const THREADS: usize = IMAGE + 0x1e_0000;
/// Bytes that it has room for.
pub const THREADS_BYTES: usize = 0x1_0000;

/// Maps a frame as a page of the table of threads. The CPUs that look there load a scheduler's root before.
pub fn show_threads(held: Held, address: usize, frame: Frame) {
    set_near_image(held, address, paging::own_page((frame as u64) << 12, Own::Data));
}

/// Maps a first page, and zeros for the rest: no threads.
#[unsafe(link_section = ".init")]
pub fn begin_threads(held: Held) -> Result<(), &'static str> {
    let no_threads = paging::own_page((zeros() as u64) << 12, Own::Constants);
    let first = index(THREADS as u64, 0);
    for entry in &table(held, TABLES.get()[2])[first + 1..first + THREADS_BYTES / FRAME] {
        entry.set(no_threads);
    }
    show_threads(held, THREADS, boot_table(held)?);
    Ok(())
}

/// Sets what is mapped at an address under the last-level table of [`WRITTEN`].
#[inline(never)]
fn set_near_image(held: Held, address: usize, entry: u64) {
    let place = &table(held, TABLES.get()[2])[index(address as u64, 0)];
    // Nothing is there before something else is (Arm ARM, break-before-make); a processor may have looked there ahead.
    place.set(0);
    paging::forget_own(address);
    place.set(entry);
    paging::publish_entries_here();
}

/// Where portal code is written: an address behind the image, of which nothing is mapped otherwise.
const WRITTEN: usize = IMAGE + 0x1f_f000;

/// The frame of a page of the image.
pub fn frame_of_image(address: usize) -> Frame {
    (physical(address) / FRAME) as Frame
}

/// Writes bytes of a page of the image in which there is code, at another address, which leads nowhere afterwards.
pub fn write<R>(held: Held, address: usize, bytes: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    set_near_image(held, WRITTEN, paging::own_page((frame_of_image(address) * FRAME) as u64, Own::Data));
    // SAFETY: nobody else refers to that address, and what is there are bytes.
    let result = work(unsafe { core::slice::from_raw_parts_mut((WRITTEN + address % FRAME) as *mut u8, bytes) });
    set_near_image(held, WRITTEN, 0);
    result
}

/// Where the areas of CPUs are mapped: behind the image's own tables.
const AREAS: usize = IMAGE + 0x40_0000;

/// Maps frames for the area of a CPU at this offset, behind a page that stays empty; gives the address.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn show_area(held: Held, offset: usize, count: usize) -> Result<usize, &'static str> {
    let start = AREAS + offset + FRAME;
    for page in 0..count {
        let frame = boot_table(held)?;
        show(held, upper(), start + page * FRAME, paging::own_page((frame as u64) << 12, Own::Data))?;
    }
    paging::publish_entries_here();
    Ok(start)
}

/// Maps what the firmware left in memory, for good and for reading, where the direct map has no RAM. Nothing if it lies beyond what can
/// be.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn show_firmware(held: Held, start: u64, length: usize) -> Option<()> {
    const END: u64 = 1 << 40;
    let end = start.checked_add(length as u64).filter(|end| *end <= END)? as usize;
    for at in (start as usize & !(LARGE - 1)..end).step_by(LARGE) {
        let directory = boot_walk(held, upper(), DIRECT + at, 1).ok()?;
        if table(held, directory)[index((DIRECT + at) as u64, 1)].get() == 0 {
            show_large(held, upper(), DIRECT + at, paging::own_large(at as u64, Own::Constants)).ok()?;
        }
    }
    Some(())
}

/// Tables in which what CPUs begin with is mapped where it is, beside the upper half; and those of the upper half.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn begin_start(held: Held, code: Region) -> Result<[u64; 2], &'static str> {
    let root = boot_table(held)?;
    paging::show_upper(table(held, root), table(held, upper()));
    let first = code.start as usize / FRAME * FRAME;
    for page in (first..(code.start + code.bytes) as usize).step_by(FRAME) {
        show(held, root, page, paging::own_page(page as u64, Own::Code))?;
    }
    paging::publish_entries_here();
    Ok([root, upper()].map(|root| (root as u64) << 12))
}

/// Ends [`begin_start`].
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn end_start(held: Held, [root, _]: [u64; 2]) {
    paging::drop_all();
    release_tables(held, paging::root_frame(root), 3);
}

/// Gives a table of the lower half back, and those below.
#[unsafe(link_section = ".init")]
#[inline(never)]
fn release_tables(held: Held, frame: Frame, level: usize) {
    // Of a root, what maps the lower half.
    let entries = if level == 3 { 0..256 } else { 0..512 };
    let below = table(held, frame)[entries].iter().map(PageEntry::get).filter(|entry| level > 0 && *entry != 0);
    below.for_each(|entry| release_tables(held, paging::frame_of(entry), level - 1));
    frames::release(held, frame, 0);
    frames::uncount_boot(held, 1);
}
