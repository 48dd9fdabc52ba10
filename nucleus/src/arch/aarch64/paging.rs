//! Page-table entries (Arm ARM D8.3: VMSAv8-64, 4 KiB, four levels), and the operations of the MMU. The tables are in
//! `memory::space` and `memory::own`.
//!
//! Each space has its own identifier (ASID) while it lives. The root of a space contains the ASID, as TTBR0_EL1 takes it;
//! TTBR1_EL1 has the upper half. So loading a root drops no translation. Translations that get weaker are dropped by
//! broadcast on all CPUs, whatever they run.

use super::firmware;
use super::memory::{DIRECT, IMAGE, physical};
use super::processor::read;
use crate::objects::{FRAME, Frame, Memory, Numbers, Own, Table};
use crate::pointer::{Held, Nucleus};
use abi::MAX_THREADS;
use abi::boot::{BootInfo, Region};
use abi::rights::{MAP_EXECUTE, MAP_READ, MAP_WRITE};
use core::arch::asm;
use core::cell::Cell;
use core::ops::Range;
use devicetree::Range as Registers;
use portalgen::aarch64::page;

const VALID: u64 = 1 << page::VALID_BIT;
/// Of levels 0 to 2: a table; of level 3: a page.
const TABLE: u64 = 2;
/// Attribute 1 of MAIR_EL1: device memory, nGnRE; attribute 0 is normal, write-back.
const REGISTERS: u64 = 1 << page::REGISTERS_BIT;
const USER: u64 = 1 << 6;
const READ_ONLY: u64 = 1 << page::READ_ONLY_BIT;
const INNER_SHAREABLE: u64 = 3 << 8;
const ACCESSED: u64 = 1 << 10;
/// Translations are tagged with the ASID.
const NOT_GLOBAL: u64 = 1 << 11;
/// Privileged, unprivileged execute never.
const PXN: u64 = 1 << 53;
const UXN: u64 = 1 << page::UXN_BIT;
const LENT: u64 = 1 << page::LENT_BIT;
/// Software bit: no window will show the page.
const KEPT: u64 = 1 << 56;
const ADDRESS: u64 = 0x0000_ffff_ffff_f000;
/// Bits of every entry for a page of the nucleus.
const OWN: u64 = VALID | ACCESSED | INNER_SHAREABLE | UXN;

/// MAIR_EL1: see [`REGISTERS`].
pub(super) const MAIR: u64 = 0x04ff;
/// TCR_EL1 but for what depends on the processor (`boot.s`): 48 bits each half, write-back, inner shareable, 4 KiB.
pub(super) const TCR: u64 = 16 | 1 << 8 | 1 << 10 | 3 << 12 | 16 << 16 | 1 << 24 | 1 << 26 | 3 << 28 | 2 << 30;

/// The processor keeps translations of a space while another is loaded.
pub const KEEPS_TRANSLATIONS: bool = true;

/// Position of the ASID in a root.
const ASID_SHIFT: u32 = 48;
/// ASIDs in use if the processor has 16 bits for them: enough for all domains, as each has a thread number.
const ASIDS: usize = MAX_THREADS;
/// Bits of a page's number (address / 4096) in the operand of TLBI.
const PAGES: u64 = (1 << 44) - 1;

struct Identifiers {
    /// 0 belongs to no space.
    numbers: Numbers<{ ASIDS / 64 }>,
    /// How many of them can be used.
    count: Cell<usize>,
}

static IDENTIFIERS: Nucleus<Identifiers> = Nucleus::new(Identifiers { numbers: Numbers::new(), count: Cell::new(0) });

unsafe extern "C" {
    static mut boot_level1: [u64; 512];
    fn boot_switch(root: u64);
}

/// The frame of a table or page.
#[inline(always)]
pub fn frame_of(entry: u64) -> Frame {
    ((entry & ADDRESS) >> 12) as Frame
}

/// The frame of a root.
#[inline(always)]
pub fn root_frame(root: u64) -> Frame {
    frame_of(root)
}

/// The entry for a table of users.
#[inline(always)]
pub fn user_table(frame: Frame) -> u64 {
    (frame as u64) << 12 | VALID | TABLE
}

/// The entry for a table of the nucleus.
#[inline(always)]
pub fn nucleus_table(frame: Frame) -> u64 {
    (frame as u64) << 12 | VALID | TABLE
}

/// The last-level entry for a page of users: writable with `MAP_WRITE`, executable if its contents are published.
#[inline(always)]
pub fn user_page(frame: Frame, rights: u64, memory: Memory, published: Option<Published>) -> u64 {
    let writable = if rights & MAP_WRITE != 0 { 0 } else { READ_ONLY };
    let executable = if published.is_some() { 0 } else { UXN };
    let kind = if memory == Memory::Registers { REGISTERS } else { 0 };
    (frame as u64) << 12
        | VALID
        | TABLE
        | USER
        | INNER_SHAREABLE
        | ACCESSED
        | NOT_GLOBAL
        | PXN
        | writable
        | executable
        | kind
}

/// The rights in a last-level entry of users.
#[inline(always)]
pub fn rights_of(entry: u64) -> u64 {
    MAP_READ | if entry & READ_ONLY == 0 { MAP_WRITE } else { 0 } | if entry & UXN == 0 { MAP_EXECUTE } else { 0 }
}

/// A last-level entry of users without these rights.
#[inline(always)]
pub fn without(mut entry: u64, rights: u64) -> u64 {
    if rights & MAP_WRITE != 0 {
        entry |= READ_ONLY;
    }
    if rights & MAP_EXECUTE != 0 {
        entry |= UXN;
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
    if entry & REGISTERS != 0 { Memory::Registers } else { Memory::Ram }
}

/// Makes newly used entries visible to page walks (Arm ARM D8.2.6). The walks that need them come after the nucleus is left,
/// which synchronises.
#[inline(always)]
pub fn publish_entries() {
    // SAFETY: a barrier.
    unsafe { asm!("dsb ishst", options(nostack, preserves_flags)) }
}

/// Proof that a frame's contents are visible to instruction fetch, so that it may be mapped executable. Only [`publish`]
/// makes one.
#[must_use = "published code is to be executed"]
pub struct Published(());

/// Makes the contents of a frame visible to instruction fetch, on all CPUs (Arm ARM B2.4.4, D7.5): cleans the data cache to
/// the point of unification, and invalidates the instruction caches. It invalidates these whole, as they may hold a line
/// under several addresses.
pub fn publish(frame: Frame) -> Published {
    const CTR_EL0_IDC: u64 = 1 << 28;
    let kind = read!("ctr_el0");
    let line = 4usize << (kind >> 16 & 0xf);
    let start = DIRECT + frame * FRAME;
    // SAFETY: cache maintenance only costs time.
    unsafe {
        if kind & CTR_EL0_IDC == 0 {
            for at in (start..start + FRAME).step_by(line) {
                asm!("dc cvau, {}", in(reg) at, options(nostack, preserves_flags));
            }
        }
        asm!("dsb ish", "ic ialluis", "dsb ish", "isb", options(nostack, preserves_flags));
    }
    Published(())
}

/// The last-level entry for a page of the nucleus.
#[inline(always)]
pub fn own_page(physical: u64, own: Own) -> u64 {
    own_large(physical, own) | TABLE
}

/// The entry of the level above for 2 MiB of the nucleus.
pub fn own_large(physical: u64, own: Own) -> u64 {
    let rights = match own {
        Own::Code => READ_ONLY,
        Own::Constants => READ_ONLY | PXN,
        Own::Data => PXN,
        Own::Registers => REGISTERS | PXN,
    };
    physical | OWN | rights
}

/// A frame that is never allocated, and can be filled with zeros: there is none.
pub const ZEROS: Option<Frame> = None;

/// Whether an entry above the last level leads to a table.
pub fn leads_to_table(entry: u64) -> bool {
    entry & VALID != 0 && entry & TABLE != 0
}

/// Whether users can neither access nor execute this page of the nucleus, and it is not both writable and executable.
pub fn is_harmless(entry: u64) -> bool {
    entry & USER == 0 && entry & UXN != 0 && (entry & READ_ONLY != 0 || entry & PXN != 0)
}

/// Whether the nucleus can write to this page.
pub fn is_writable(entry: u64) -> bool {
    entry & READ_ONLY == 0
}

/// The part of the direct map for a region of RAM, rounded inwards to whole frames.
pub fn shown(region: &Region) -> Range<usize> {
    (region.start as usize).next_multiple_of(FRAME)..(region.start + region.bytes) as usize / FRAME * FRAME
}

/// Maps the GiB with the serial port's registers in the boot tables' direct map, unless that GiB is mapped already.
pub(super) fn show_serial() {
    let Some(serial) = firmware::get().serial.filter(|serial| serial.start < 1 << 39) else { return };
    let place = (serial.start >> 30) as usize;
    // SAFETY: a table of `boot.s`, and an entry in it that is free (0).
    unsafe {
        let entry = (&raw mut boot_level1).cast::<u64>().add(place);
        if entry.read() != 0 {
            return;
        }
        entry.write_volatile((place as u64) << 30 | REGISTERS | PXN | OWN);
        asm!("dsb ishst", "isb", options(nostack));
    }
    super::serial::init(DIRECT + serial.start as usize);
}

/// Calls `show` with each range of registers that the nucleus uses: virtual and physical address, bytes. The serial port
/// comes first, so that errors in the others can be reported.
pub fn show_registers(
    info: &BootInfo,
    mut show: impl FnMut(usize, u64, usize) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let firmware = firmware::get();
    super::serial::init(0);
    if let Some(serial) = firmware.serial {
        show_range(info, serial, &mut show)?;
        super::serial::init(DIRECT + serial.start as usize);
    }
    let used = firmware.controller.iter().filter(|range| range.bytes != 0);
    used.copied().try_for_each(|range| show_range(info, range, &mut show))
}

fn show_range(
    info: &BootInfo,
    range: Registers,
    mut show: impl FnMut(usize, u64, usize) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let (start, end) = (range.start / FRAME as u64 * FRAME as u64, range.end());
    let is_ram = |region: &Region| start < region.start + region.bytes && region.start < end;
    if end > 1 << 40 || end - start > 1 << 26 || info.ram[..info.regions].iter().any(is_ram) {
        return Err("the device tree has registers at an impossible place");
    }
    show(DIRECT + start as usize, start, (end - start) as usize)?;
    publish_entries_here();
    Ok(())
}

/// As [`publish_entries`], for the next accesses of this CPU.
pub fn publish_entries_here() {
    publish_entries();
    // SAFETY: a barrier.
    unsafe { asm!("isb", options(nostack)) }
}

/// Switches from the boot tables to the upper half in the frame `root`; gives the root to load while no space runs: the one
/// in the frame `empty`.
pub fn begin(held: Held, root: Frame, _: &Table, empty: Frame) -> Result<u64, &'static str> {
    let identifiers = IDENTIFIERS.get(held);
    // ID_AA64MMFR0_EL1.ASIDBits.
    identifiers.count.set(if read!("id_aa64mmfr0_el1") >> 4 & 0xf == 2 { ASIDS } else { 256 });
    identifiers.numbers.take(ASIDS);
    let function = physical(boot_switch as *const () as usize);
    // SAFETY: the boot tables map that function at its physical address, and the final ones map all that is used afterwards.
    unsafe {
        let switch: extern "C" fn(u64) = core::mem::transmute(function);
        switch((root as u64) << 12);
    }
    Ok((empty as u64) << 12)
}

/// Loads the root of a space.
#[inline(always)]
pub fn load_root(root: u64) {
    // SAFETY: a root maps only the space. No user memory is accessed before the nucleus is left, which synchronises.
    unsafe { asm!("msr ttbr0_el1, {}", in(reg) root, options(nostack)) }
}

/// Copies the nucleus's upper half into the table of a root: nothing to do, as it has a root of its own.
#[inline(always)]
pub fn show_upper(_: &Table, _: &Table) {}

/// The root of a space in this frame, in which nothing is mapped, with a free ASID.
pub fn new_root(held: Held, frame: Frame) -> Option<u64> {
    let identifiers = IDENTIFIERS.get(held);
    let asid = identifiers.numbers.take(identifiers.count.get())?;
    publish_entries();
    Some((frame as u64) << 12 | (asid as u64) << ASID_SHIFT)
}

/// Another root of the same space.
pub fn root_beside(root: u64, frame: Frame) -> u64 {
    (frame as u64) << 12 | root >> ASID_SHIFT << ASID_SHIFT
}

/// A root will not be used any more: drops its translations on all CPUs and frees its ASID.
pub fn end_root(held: Held, root: u64) {
    let asid = (root >> ASID_SHIFT) as usize;
    // SAFETY: only costs time.
    unsafe {
        asm!("dsb ishst", "tlbi aside1is, {}", "dsb ish", "isb", in(reg) (asid as u64) << ASID_SHIFT, options(nostack))
    }
    IDENTIFIERS.get(held).numbers.give_back(asid);
}

/// Drops the translation of a page in the space with this root on all CPUs, entries of upper levels that led there included
/// (Arm ARM D8.14).
pub fn drop_page(root: u64, address: u64) {
    let what = root >> ASID_SHIFT << ASID_SHIFT | (address >> 12 & PAGES);
    // SAFETY: only costs time.
    unsafe { asm!("dsb ishst", "tlbi vae1is, {}", "dsb ish", "isb", in(reg) what, options(nostack)) }
}

/// As [`drop_page`], for `count` pages.
pub fn drop_pages(root: u64, address: u64, count: usize) {
    let first = root >> ASID_SHIFT << ASID_SHIFT | (address >> 12 & PAGES);
    // SAFETY: only costs time.
    unsafe {
        asm!("dsb ishst", options(nostack, preserves_flags));
        for page in 0..count as u64 {
            asm!("tlbi vae1is, {}", in(reg) first + page, options(nostack, preserves_flags));
        }
        asm!("dsb ish", "isb", options(nostack, preserves_flags));
    }
}

/// A page of a portal table is unmapped, with the tables that led to it: drops its translations on all CPUs, entries of
/// upper levels included.
pub fn forget_portals(address: usize) {
    // SAFETY: only costs time.
    unsafe {
        asm!("dsb ishst", "tlbi vaae1is, {}", "dsb ish", "isb", in(reg) address as u64 >> 12 & PAGES, options(nostack))
    }
}

/// Drops the translation of a page of the nucleus that is unmapped, and that only this CPU used.
pub fn forget_own(address: usize) {
    forget_portals(address);
}

/// Drops all translations, on all CPUs.
pub fn drop_all() {
    // SAFETY: only costs time.
    unsafe { asm!("dsb ishst", "tlbi vmalle1is", "dsb ish", "isb", options(nostack)) }
}

const _: () = assert!(IMAGE > DIRECT);
