//! Page-table entries (Intel SDM volume 3, 4.5), and the operations of the MMU. The tables are in `memory::space` and
//! `memory::own`.

use super::memory::{DIRECT, IMAGE, IO_APIC, LOCAL_APIC};
use crate::objects::{FRAME, Frame, Memory, Own, Table};
use crate::pointer::{Boot, Held};
use abi::boot::{BootInfo, Region};
use abi::rights::{MAP_EXECUTE, MAP_READ, MAP_WRITE};
use core::arch::asm;
use core::ops::Range;
use portalgen::x86_64::page::{self, LENT, NOT_CACHED, PRESENT, WRITABLE};

const USER: u64 = 4;
const LARGE: u64 = 0x80;
const NO_EXECUTE: u64 = 1 << page::NO_EXECUTE_BIT;
/// Software bit: no window will show the page.
const KEPT: u64 = 1 << 10;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Root entries of the upper half, at most.
const UPPER: usize = 8;

/// Indices of the root entries of the upper half, which all spaces share, and their count.
static USED: Boot<([u16; UPPER], usize)> = Boot::new(([0; UPPER], 0));

/// The frame of a table or page.
#[inline(always)]
pub fn frame_of(entry: u64) -> Frame {
    ((entry & ADDRESS) >> 12) as Frame
}

/// The frame of a root.
#[inline(always)]
pub fn root_frame(root: u64) -> Frame {
    (root >> 12) as Frame
}

/// The entry for a table of users.
#[inline(always)]
pub fn user_table(frame: Frame) -> u64 {
    (frame as u64) << 12 | PRESENT | WRITABLE | USER
}

/// The entry for a table of the nucleus.
#[inline(always)]
pub fn nucleus_table(frame: Frame) -> u64 {
    (frame as u64) << 12 | PRESENT | WRITABLE
}

/// The last-level entry for a page of users: writable with `MAP_WRITE`, executable if its contents are published.
#[inline(always)]
pub fn user_page(frame: Frame, rights: u64, memory: Memory, published: Option<Published>) -> u64 {
    let writable = if rights & MAP_WRITE != 0 { WRITABLE } else { 0 };
    let executable = if published.is_some() { 0 } else { NO_EXECUTE };
    let caching = if memory == Memory::Registers { NOT_CACHED } else { 0 };
    (frame as u64) << 12 | PRESENT | USER | writable | executable | caching
}

/// The rights in a last-level entry of users.
#[inline(always)]
pub fn rights_of(entry: u64) -> u64 {
    MAP_READ | if entry & WRITABLE != 0 { MAP_WRITE } else { 0 } | if entry & NO_EXECUTE == 0 { MAP_EXECUTE } else { 0 }
}

/// A last-level entry of users without these rights.
#[inline(always)]
pub fn without(mut entry: u64, rights: u64) -> u64 {
    if rights & MAP_WRITE != 0 {
        entry &= !WRITABLE;
    }
    if rights & MAP_EXECUTE != 0 {
        entry |= NO_EXECUTE;
    }
    entry
}

/// Marks a last-level entry of users: windows may show the page. Portal code leaves pages without this mark to the nucleus.
pub fn lent(entry: u64) -> u64 {
    entry | LENT
}

/// Whether an entry has that mark.
pub fn is_lent(entry: u64) -> bool {
    entry & LENT != 0
}

/// Replaces that mark by another: no window will show the page any more.
#[inline(always)]
pub fn kept(entry: u64) -> u64 {
    entry & !LENT | KEPT
}

/// Whether an entry has the mark of [`kept`].
pub fn is_kept(entry: u64) -> bool {
    entry & KEPT != 0
}

/// The kind of memory that a last-level entry of users maps.
#[inline(always)]
pub fn memory_of(entry: u64) -> Memory {
    if entry & NOT_CACHED != 0 { Memory::Registers } else { Memory::Ram }
}

/// Makes newly used entries visible to page walks: nothing to do, as the processor never caches free entries.
#[inline(always)]
pub fn publish_entries() {}

/// As [`publish_entries`], for the next accesses of this CPU.
pub fn publish_entries_here() {}

/// Proof that a frame's contents are visible to instruction fetch, so that it may be mapped executable. Only [`publish`]
/// makes one.
#[must_use = "published code is to be executed"]
pub struct Published(());

/// Makes the contents of a frame visible to instruction fetch, on all CPUs: instruction caches follow writes (volume 3,
/// 12.6).
#[inline(always)]
pub fn publish(_: Frame) -> Published {
    Published(())
}

/// The last-level entry for a page of the nucleus.
#[inline(always)]
pub fn own_page(physical: u64, own: Own) -> u64 {
    let rights = match own {
        Own::Code => 0,
        Own::Constants => NO_EXECUTE,
        Own::Data => WRITABLE | NO_EXECUTE,
        Own::Registers => WRITABLE | NO_EXECUTE | NOT_CACHED,
    };
    physical | PRESENT | rights
}

/// The entry of the level above for 2 MiB of the nucleus.
pub fn own_large(physical: u64, own: Own) -> u64 {
    own_page(physical, own) | LARGE
}

/// A frame that is never allocated, and can be filled with zeros.
pub const ZEROS: Option<Frame> = Some(0);

/// Whether an entry leads to a table of the level below.
pub fn leads_to_table(entry: u64) -> bool {
    entry & PRESENT != 0 && entry & LARGE == 0
}

/// Whether users cannot access this page of the nucleus, and it is not both writable and executable.
pub fn is_harmless(entry: u64) -> bool {
    entry & USER == 0 && (entry & WRITABLE == 0 || entry & NO_EXECUTE != 0)
}

/// Whether the nucleus can write to this page.
pub fn is_writable(entry: u64) -> bool {
    entry & WRITABLE != 0
}

/// The part of the direct map for a region of RAM, rounded outwards to 2 MiB: firmware keeps tables beside the RAM that it
/// reports.
pub fn shown(region: &Region) -> Range<usize> {
    const LARGE_BYTES: u64 = 1 << 21;
    let end = (region.start + region.bytes).next_multiple_of(LARGE_BYTES);
    (region.start & !(LARGE_BYTES - 1)) as usize..end as usize
}

/// Calls `show` with each range of registers that the nucleus uses: virtual and physical address, bytes.
pub fn show_registers(
    _: &BootInfo,
    mut show: impl FnMut(usize, u64, usize) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    show(LOCAL_APIC, 0xfee0_0000, FRAME)?;
    show(IO_APIC, 0xfec0_0000, FRAME)
}

/// Switches from the boot tables to the upper half in `table`, which is in the frame `root`; gives the root to load while no
/// space runs.
pub fn begin(_: Held, root: Frame, table: &Table, _: Frame) -> Result<u64, &'static str> {
    // SAFETY: the first CPU runs alone.
    let (places, count) = unsafe { USED.write() };
    for index in (256..512).filter(|index| table[*index].get() != 0) {
        *places.get_mut(*count).ok_or("too much RAM for the nucleus's tables")? = index as u16;
        *count += 1;
    }
    let root = (root as u64) << 12;
    load_root(root);
    Ok(root)
}

/// Loads the root of a space. Without address-space identifiers this drops all user translations.
#[inline(always)]
pub fn load_root(root: u64) {
    // SAFETY: every root has the nucleus's upper half.
    unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack)) }
}

/// Copies the nucleus's upper half into the table of a root.
#[inline(always)]
pub fn show_upper(table: &Table, upper: &Table) {
    let (places, count) = USED.get();
    for index in &places[..*count] {
        table[*index as usize].set(upper[*index as usize].get());
    }
}

/// The root of a space in this frame, in which nothing is mapped.
pub fn new_root(_: Held, frame: Frame) -> Option<u64> {
    Some((frame as u64) << 12)
}

/// Another root of the same space.
pub fn root_beside(_: u64, frame: Frame) -> u64 {
    (frame as u64) << 12
}

/// Loading a root drops the translations of all others: no page of users is global.
pub const KEEPS_TRANSLATIONS: bool = false;

/// A root will not be used any more: nothing to do.
pub fn end_root(_: Held, _: u64) {}

/// Drops this CPU's translation of a page in the space whose root is loaded.
#[inline(always)]
pub fn drop_page(_: u64, address: u64) {
    // SAFETY: only costs time.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack)) }
}

/// As [`drop_page`], for `count` pages.
pub fn drop_pages(root: u64, address: u64, count: usize) {
    (0..count).for_each(|page| drop_page(root, address + (page * FRAME) as u64));
}

/// Drops the translation of a page of the nucleus that is unmapped, and that only this CPU used.
pub fn forget_own(address: usize) {
    // SAFETY: only costs time.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack)) }
}

/// A page of a portal table is unmapped, with the tables that led to it: nothing to do. CPUs that used the page have loaded
/// another root since, or do so before they use what is mapped there next: that drops their translations.
pub fn forget_portals(_: usize) {}

/// Drops all translations of this CPU.
pub fn drop_all() {
    // SAFETY: reloads the loaded root.
    unsafe { asm!("mov {0}, cr3", "mov cr3, {0}", out(reg) _, options(nostack)) }
}

const _: () = assert!(IMAGE > DIRECT && FRAME == 4096);
