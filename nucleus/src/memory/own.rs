//! The upper half of every address space is the nucleus's: image, all RAM (the *direct map*), device registers in use, areas of
//! CPUs. The direct map is not executable, and no page is writable at an address where it is executable.

use super::frames::{self, table};
use crate::arch::memory::{DIRECT, IMAGE, physical};
use crate::arch::paging;
use crate::cpus::root;
use crate::objects::{FRAME, Frame, Own, PageEntry, index};
use crate::pointer::{Boot, Held};
use abi::boot::{BootInfo, Region};

/// The root of the upper half, a frame of zeros, and the last-level table for [`WRITTEN`].
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

/// A frame that is always full of zeros.
pub fn zeros() -> Frame {
    TABLES.get()[1]
}

/// Parts of the image that are free once the final tables and segments are loaded: the code and tables that led there. The
/// frame of the guard page below the stack is free, too: it is unmapped there.
pub fn boot_parts() -> [Region; 2] {
    let guard = physical(address(&raw const boot_stack_guard)) as u64;
    let init = physical(address(&raw const image_init)) as u64;
    let start = crate::arch::memory::image().start;
    [Region { start, bytes: init - start }, Region { start: guard, bytes: FRAME as u64 }]
}

/// Allocates a cleared frame for the nucleus itself, mostly for page tables.
pub fn boot_table(held: Held) -> Result<Frame, &'static str> {
    let frame = frames::allocate(held, 0).ok_or("no frame for the nucleus's page tables")?;
    frames::clear(frame);
    frames::count_boot(held, 1);
    Ok(frame)
}

/// The table of level `last` for an address, in tables of the nucleus; makes missing ones.
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

/// Bytes that an entry of the level above the last maps.
const LARGE: usize = 1 << 21;

/// Makes the final upper half and loads it in place of the boot tables.
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
    // An overflow of the kernel stack faults on the guard page; the trap, on its own stack, reports it.
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

/// Maps device registers, with 2 MiB entries where possible: interrupt controllers for many CPUs have megabytes of
/// registers, most of them for CPUs that do not exist.
#[unsafe(link_section = ".init")]
#[inline(never)]
fn show_registers(held: Held, root: Frame, address: usize, physical: u64, bytes: usize) -> Result<(), &'static str> {
    let mut done = 0;
    while done < bytes {
        let (at, from) = (address + done, physical + done as u64);
        let there = table(held, boot_walk(held, root, at, 1)?)[index(at as u64, 1)].get();
        let fits = (at | from as usize).is_multiple_of(LARGE) && done + LARGE <= bytes;
        done += match there {
            // Two controllers can lie in the same 2 MiB: then they are mapped already.
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

/// Unmaps the boot code of the image, which no CPU runs any more; gives its frames.
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

/// Panics unless all pages that a table of the upper half and the tables below map are harmless.
fn audit(held: Held, frame: Frame, level: usize) {
    for entry in table(held, frame).iter().map(PageEntry::get).filter(|entry| *entry != 0) {
        if level > 0 && paging::leads_to_table(entry) {
            audit(held, paging::frame_of(entry), level - 1);
        } else {
            assert!(paging::is_harmless(entry), "a page of the nucleus: {entry:#x}");
        }
    }
}

/// The address of the table of threads: in the same 2 MiB as [`WRITTEN`], before it.
pub const THREADS: usize = IMAGE + 0x1e_0000;
/// Bytes of address space for it.
pub const THREADS_BYTES: usize = 0x1_0000;

/// Maps a frame as a page of the table of threads. Other CPUs need no TLB shootdown. On AArch64 the old translation is invalidated
/// on all CPUs; on x86-64 each other CPU loads a scheduler's root, which drops it, before it reads the page.
pub fn show_threads(held: Held, address: usize, frame: Frame) {
    set_near_image(held, address, paging::own_page((frame as u64) << 12, Own::Data));
}

/// Maps the first page of the table of threads. The rest shows the frame of zeros: numbers without a thread.
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

/// Sets the page-table entry of an address that shares the last-level table of [`WRITTEN`].
#[inline(never)]
fn set_near_image(held: Held, address: usize, entry: u64) {
    let place = &table(held, TABLES.get()[2])[index(address as u64, 0)];
    // Break-before-make (Arm ARM): the old entry is cleared and invalidated first, as a processor may have cached it
    // speculatively.
    place.set(0);
    paging::forget_own(address);
    place.set(entry);
    paging::publish_entries_here();
}

/// The alias through which portal code is written: an address past the image, otherwise unmapped.
const WRITTEN: usize = IMAGE + 0x1f_f000;

/// The frame of a page of the image.
pub fn frame_of_image(address: usize) -> Frame {
    (physical(address) / FRAME) as Frame
}

/// Lets `work` write bytes of a code page of the image through the alias [`WRITTEN`], which is unmapped afterwards.
pub fn write<R>(held: Held, address: usize, bytes: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    set_near_image(held, WRITTEN, paging::own_page((frame_of_image(address) * FRAME) as u64, Own::Data));
    // SAFETY: only this function uses the alias, under the nucleus lock; it maps the page, writable, and any bytes are
    // valid.
    let result = work(unsafe { core::slice::from_raw_parts_mut((WRITTEN + address % FRAME) as *mut u8, bytes) });
    set_near_image(held, WRITTEN, 0);
    if cfg!(feature = "checked") {
        audit_code(held, address);
    }
    result
}

/// Panics unless [`WRITTEN`] is unmapped, and a code page of the image is writable neither where it is executed nor in the
/// direct map.
fn audit_code(held: Held, address: usize) {
    for at in [address, DIRECT + physical(address)] {
        let entry = boot_walk(held, upper(), at, 0).map(|last| table(held, last)[index(at as u64, 0)].get());
        assert!(
            entry.is_ok_and(|entry| entry != 0 && !paging::is_writable(entry)),
            "portal code at {at:#x}: {entry:x?}"
        );
    }
    let alias = table(held, TABLES.get()[2])[index(WRITTEN as u64, 0)].get();
    assert!(alias == 0, "portal code stays writable: {alias:#x}");
}

/// Base address of the areas of CPUs, after what the image's last-level tables map.
const AREAS: usize = IMAGE + 0x40_0000;

/// Allocates and maps frames for the area of a CPU at this offset, after an unmapped guard page; gives the address.
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

/// Maps memory of the firmware read-only, for good, where the direct map has no RAM. None if the memory reaches beyond 1
/// TiB, or if there is no frame for tables.
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

/// Makes page tables for CPUs that start: the `code` at its physical address, and the upper half. Gives their root, and that
/// of the upper half.
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

/// Frees the tables that [`begin_start`] made.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn end_start(held: Held, [root, _]: [u64; 2]) {
    paging::drop_all();
    release_tables(held, paging::root_frame(root), 3);
}

/// Frees a table and those below it; of a root, only tables of the lower half.
#[unsafe(link_section = ".init")]
#[inline(never)]
fn release_tables(held: Held, frame: Frame, level: usize) {
    // The upper half of a root is shared.
    let entries = if level == 3 { 0..256 } else { 0..512 };
    let below = table(held, frame)[entries].iter().map(PageEntry::get).filter(|entry| level > 0 && *entry != 0);
    below.for_each(|entry| release_tables(held, paging::frame_of(entry), level - 1));
    frames::release(held, frame, 0);
    frames::uncount_boot(held, 1);
}
