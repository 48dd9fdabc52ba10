//! Entries of page tables (Arm ARM D8.3: VMSAv8-64, 4 KiB, four levels), the upper half, which all spaces share through
//! TTBR1_EL1, and what the processor is told. The tables of users are `crate::space`.
//!
//! Each space has an identifier (ASID) of its own while it lives; it stands in its root, as TTBR0_EL1 takes it. So loading
//! a root drops no translation, and what gets weaker is dropped by broadcast on all CPUs, whatever they run.

use super::firmware;
use super::memory::{DIRECT, IMAGE, physical};
use super::processor::read;
use crate::account::{self, Account};
use crate::domain::Domain;
use crate::frames::{self, FRAME, Frame, Use};
use crate::pointer::{Held, Nucleus, Ref};
use crate::space::{Memory, PageEntry, boot_table, boot_walk, index, make_archive_directory, table};
use crate::{cpu, info, ledger};
use abi::Error;
use abi::boot::{BootInfo, Region};
use abi::rights::{MAP_EXECUTE, MAP_READ, MAP_WRITE};
use core::arch::asm;
use core::cell::Cell;
use devicetree::Range;

const VALID: u64 = 1;
/// Of levels 0 to 2: a table; of level 3: a page.
const TABLE: u64 = 2;
/// Attribute 1 of MAIR_EL1: device memory, nGnRE; attribute 0 is normal, write-back.
const REGISTERS: u64 = 1 << 2;
const USER: u64 = 1 << 6;
const READ_ONLY: u64 = 1 << 7;
const INNER_SHAREABLE: u64 = 3 << 8;
const ACCESSED: u64 = 1 << 10;
/// Translations are those of the ASID.
const NOT_GLOBAL: u64 = 1 << 11;
/// Privileged, unprivileged execute never.
const PXN: u64 = 1 << 53;
const UXN: u64 = 1 << 54;
const ADDRESS: u64 = 0x0000_ffff_ffff_f000;
/// What every entry of the nucleus's for memory has.
const OWN: u64 = VALID | ACCESSED | INNER_SHAREABLE | UXN;

/// MAIR_EL1: see [`REGISTERS`].
pub(super) const MAIR: u64 = 0x04ff;
/// TCR_EL1 but for what depends on the processor (`boot.s`): 48 bits each half, write-back, inner shareable, 4 KiB.
pub(super) const TCR: u64 = 16 | 1 << 8 | 1 << 10 | 3 << 12 | 16 << 16 | 1 << 24 | 1 << 26 | 3 << 28 | 2 << 30;

/// Translations of a space are kept while another is loaded.
pub const KEEPS_TRANSLATIONS: bool = true;

/// Where the ASID stands in a root.
const ASID_SHIFT: u32 = 48;
const ASIDS: usize = 1 << 16;

struct Own {
    /// Root of the upper half.
    upper: Cell<Frame>,
    /// The root of no space.
    empty: Cell<Frame>,
    /// Bits of ASIDs that are taken. 0 is that of no space.
    taken: [Cell<u64>; ASIDS / 64],
    /// How many the processor has.
    asids: Cell<usize>,
    /// Where the search for a free one begins.
    next: Cell<usize>,
}

static OWN_TABLES: Nucleus<Own> = Nucleus::new(Own {
    upper: Cell::new(0),
    empty: Cell::new(0),
    taken: [const { Cell::new(0) }; ASIDS / 64],
    asids: Cell::new(256),
    next: Cell::new(1),
});

unsafe extern "C" {
    static image_start: u8;
    static image_init: u8;
    static image_text: u8;
    static image_rodata: u8;
    static image_data: u8;
    static image_end: u8;
    static boot_stack_guard: u8;
    static mut boot_level1: [u64; 512];
    fn boot_switch(root: u64);
}

fn symbol(place: &u8) -> usize {
    place as *const u8 as usize
}

/// Bytes of the image in physical memory, boot section included.
pub fn image() -> Region {
    // SAFETY: symbols of the link script; only their addresses are used.
    let (start, end) = unsafe { (symbol(&image_start), symbol(&image_end)) };
    Region { start: physical(start) as u64, bytes: (end - start) as u64 }
}

/// What of the image is used no more once the final tables are loaded: the code and tables that
/// led there, and the page below the stack, which is not mapped as such.
pub fn boot_parts() -> [Region; 2] {
    let guard = physical(&raw const boot_stack_guard as usize) as u64;
    // SAFETY: a symbol of the link script; only its address is used.
    let init = physical(unsafe { symbol(&image_init) }) as u64;
    let start = image().start;
    [Region { start, bytes: init - start }, Region { start: guard, bytes: FRAME as u64 }]
}

/// Unmaps what of the image only boots, which nobody runs any more.
pub fn end_init(held: Held) -> Region {
    // SAFETY: symbols of the link script; only their addresses are used.
    let (init, text) = unsafe { (symbol(&image_init), symbol(&image_text)) };
    for page in (init..text).step_by(FRAME) {
        if let Ok(last) = boot_walk(held, OWN_TABLES.get(held).upper.get(), page, 0) {
            table(held, last)[index(page as u64, 0)].set(0);
        }
    }
    forget_all();
    if cfg!(feature = "checked") {
        audit(held, OWN_TABLES.get(held).upper.get(), 3);
    }
    Region { start: physical(init) as u64, bytes: (text - init) as u64 }
}

/// Panics unless everything in a table of the upper half, and below, is the nucleus's alone, never executed by users, and either written
/// or executed.
fn audit(held: Held, frame: Frame, level: usize) {
    for entry in table(held, frame).iter().map(PageEntry::get).filter(|entry| entry & VALID != 0) {
        if level > 0 && entry & TABLE != 0 {
            audit(held, frame_of(entry), level - 1);
        } else {
            let is_harmless = entry & READ_ONLY != 0 || entry & PXN != 0;
            assert!(entry & USER == 0 && entry & UXN != 0 && is_harmless, "a page of the nucleus: {entry:#x}");
        }
    }
}

/// The frame of a table or page.
#[inline(always)]
pub fn frame_of(entry: u64) -> Frame {
    ((entry & ADDRESS) >> 12) as Frame
}

/// A frame full of zeros, for good.
pub fn zeros(held: Held) -> Frame {
    OWN_TABLES.get(held).empty.get()
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

/// The last-level entry for a page of users with these rights (`MAP_READ` and the like).
#[inline(always)]
pub fn user_page(frame: Frame, rights: u64, memory: Memory) -> u64 {
    let writable = if rights & MAP_WRITE != 0 { 0 } else { READ_ONLY };
    let executable = if rights & MAP_EXECUTE != 0 { 0 } else { UXN };
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

/// What a last-level entry of users maps.
#[inline(always)]
pub fn memory_of(entry: u64) -> Memory {
    if entry & REGISTERS != 0 { Memory::Registers } else { Memory::Ram }
}

/// Entries that were free and are used now are seen by the processor from here on (Arm ARM D8.2.6): the walks of who uses
/// them come after leaving the nucleus, which synchronises.
#[inline(always)]
pub fn settle() {
    // SAFETY: a barrier.
    unsafe { asm!("dsb ishst", options(nostack, preserves_flags)) }
}

/// What was written into a frame is what instructions are fetched from, on all CPUs (Arm ARM B2.4.4, D7.5): the data is cleaned
/// to where both meet, and what was fetched before is dropped. Of that all is, as caches of instructions may have several
/// names for one place.
pub fn publish(frame: Frame) {
    const DATA_NEEDS_NOTHING: u64 = 1 << 28;
    let kind = read!("ctr_el0");
    let line = 4usize << (kind >> 16 & 0xf);
    let start = frames::address_of(frame);
    // SAFETY: maintenance of caches only costs time.
    unsafe {
        if kind & DATA_NEEDS_NOTHING == 0 {
            for at in (start..start + FRAME).step_by(line) {
                asm!("dc cvau, {}", in(reg) at, options(nostack, preserves_flags));
            }
        }
        asm!("dsb ish", "ic ialluis", "dsb ish", "isb", options(nostack, preserves_flags));
    }
}

/// Replaces the boot tables by the final upper half: RAM not executable, image text read-only.
pub fn init(held: Held, info: &BootInfo) -> Result<(), &'static str> {
    let root = boot_table(held)?;
    // SAFETY: symbols of the link script; only their addresses are used.
    let (init, text) = unsafe { (symbol(&image_init), symbol(&image_text)) };
    // SAFETY: symbols of the link script; only their addresses are used.
    let (rodata, data, end) = unsafe { (symbol(&image_rodata), symbol(&image_data), symbol(&image_end)) };
    let rights = |address: usize| match address {
        address if address < rodata => READ_ONLY,
        address if address < data => READ_ONLY | PXN,
        _ => PXN,
    };
    let guard = &raw const boot_stack_guard as usize;
    // An overflow of the kernel stack meets the guard, and the vectors leave it before they tell of it.
    for page in (init..end).step_by(FRAME).filter(|page| *page != guard) {
        map(held, root, page, physical(page) as u64 | rights(page))?;
    }
    let (first, last) = (physical(text), physical(data));
    for region in &info.ram[..info.regions] {
        let mut at = (region.start as usize).next_multiple_of(FRAME);
        let top = (region.start + region.bytes) as usize / FRAME * FRAME;
        while at < top {
            let large = at.is_multiple_of(1 << 21) && at + (1 << 21) <= top && (at + (1 << 21) <= first || at >= last);
            let read_only = if at >= first && at < last { READ_ONLY } else { 0 };
            let entry = at as u64 | read_only | PXN;
            if large {
                let directory = boot_walk(held, root, DIRECT + at, 1)?;
                table(held, directory)[index((DIRECT + at) as u64, 1)].set(entry | OWN);
                at += 1 << 21;
            } else {
                map(held, root, DIRECT + at, entry)?;
                at += FRAME;
            }
        }
    }
    let own = OWN_TABLES.get(held);
    own.upper.set(root);
    own.empty.set(boot_table(held)?);
    // ID_AA64MMFR0_EL1.ASIDBits.
    own.asids.set(if read!("id_aa64mmfr0_el1") >> 4 & 0xf == 2 { ASIDS } else { 256 });
    own.taken[0].set(1);
    let function = physical(boot_switch as *const () as usize);
    // SAFETY: the boot tables map that function where it is, and the final ones map all that is used from here on.
    unsafe {
        let switch: extern "C" fn(u64) = core::mem::transmute(function);
        switch((root as u64) << 12);
    }
    leave_space(held);
    map_registers(held, info)?;
    make_archive_directory(held, info.archive)
}

fn map(held: Held, root: Frame, address: usize, entry: u64) -> Result<(), &'static str> {
    table(held, boot_walk(held, root, address, 0)?)[index(address as u64, 0)].set(entry | OWN | TABLE);
    Ok(())
}

/// Maps the GiB with the serial port's registers in the boot tables' direct map, if no RAM that is used by then lies in it.
pub(super) fn show_serial() {
    let Some(serial) = firmware::get().serial.filter(|serial| serial.start < 1 << 39) else { return };
    let place = (serial.start >> 30) as usize;
    // SAFETY: a table of `boot.s`, whose entries that are 0 lead nowhere.
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

/// Maps registers that the nucleus uses, where the direct map has no RAM: first those with which it can say what is wrong with
/// others.
fn map_registers(held: Held, info: &BootInfo) -> Result<(), &'static str> {
    let firmware = firmware::get();
    super::serial::init(0);
    if let Some(serial) = firmware.serial {
        map_range(held, info, serial)?;
        super::serial::init(DIRECT + serial.start as usize);
    }
    firmware.controller.iter().filter(|range| range.bytes != 0).try_for_each(|range| map_range(held, info, *range))
}

fn map_range(held: Held, info: &BootInfo, range: Range) -> Result<(), &'static str> {
    let (start, end) = (range.start / FRAME as u64 * FRAME as u64, range.end());
    let is_ram = |region: &Region| start < region.start + region.bytes && region.start < end;
    if end > 1 << 40 || end - start > 1 << 26 || info.ram[..info.regions].iter().any(is_ram) {
        return Err("the device tree has registers at an impossible place");
    }
    for page in (start..end).step_by(FRAME) {
        map(held, OWN_TABLES.get(held).upper.get(), DIRECT + page as usize, page | REGISTERS | PXN)?;
    }
    settle();
    // SAFETY: what was mapped can be used from here on.
    unsafe { asm!("isb", options(nostack)) }
    Ok(())
}

/// Where the areas of CPUs are mapped: behind the image's own tables.
const AREAS: usize = IMAGE + 0x40_0000;

/// Maps frames for the area of a CPU at this offset, behind a page that stays empty; gives the address.
pub(super) fn map_area(held: Held, offset: usize, count: usize) -> Result<usize, &'static str> {
    let start = AREAS + offset + FRAME;
    for page in 0..count {
        let frame = boot_table(held)?;
        map(held, OWN_TABLES.get(held).upper.get(), start + page * FRAME, (frame as u64) << 12 | PXN)?;
    }
    settle();
    // SAFETY: what was mapped can be used from here on.
    unsafe { asm!("isb", options(nostack)) }
    Ok(start)
}

/// Tables in which the GiB of the image is mapped where it is, for CPUs that begin; and those of the upper half.
pub(super) fn begin_start(held: Held) -> Result<[u64; 2], &'static str> {
    let (root, below) = (boot_table(held)?, boot_table(held)?);
    let at = physical(IMAGE) as u64;
    table(held, root)[index(at, 3)].set(nucleus_table(below));
    // Not global: it is of no space, and forgotten with it.
    table(held, below)[index(at, 2)]
        .set(at >> 30 << 30 | VALID | ACCESSED | INNER_SHAREABLE | READ_ONLY | NOT_GLOBAL | UXN);
    settle();
    Ok([(root as u64) << 12, (OWN_TABLES.get(held).upper.get() as u64) << 12])
}

/// Ends [`begin_start`].
pub(super) fn end_start(held: Held, [root, _]: [u64; 2]) {
    forget_all();
    let root = frame_of(root);
    let below = table(held, root).iter().map(PageEntry::get).find(|entry| *entry != 0).map(frame_of);
    for frame in [Some(root), below].into_iter().flatten() {
        frames::release(held, frame, 0);
        frames::uncount_boot(held, 1);
    }
}

/// Drops all translations, on all CPUs.
fn forget_all() {
    // SAFETY: only costs time.
    unsafe { asm!("dsb ishst", "tlbi vmalle1is", "dsb ish", "isb", options(nostack)) }
}

/// Loads the root of a space.
#[inline(always)]
pub fn load_root(held: Held, root: u64) {
    cpu::this(held).counts.root_writes.update(|count| count + 1);
    // SAFETY: a root has nothing but what is the space's. Nothing of users is touched before the nucleus is left, which
    // synchronises.
    unsafe { asm!("msr ttbr0_el1, {}", in(reg) root, options(nostack)) }
}

/// Loads the root of no space: this CPU is in no domain.
pub fn leave_space(held: Held) {
    let cpu = cpu::this(held);
    cpu.domain.set(None);
    cpu.table.set(0);
    cpu.limit.set(0);
    load_root(held, (OWN_TABLES.get(held).empty.get() as u64) << 12);
    // SAFETY: a barrier.
    unsafe { asm!("isb", options(nostack)) }
}

/// An empty space charged to `account`.
pub fn new_root(account: Ref<Account>) -> Result<u64, Error> {
    let held = account.held();
    let frame = account.allocate_clear(Use::Kernel)?;
    match take_asid(held) {
        Some(asid) => {
            settle();
            Ok((frame as u64) << 12 | (asid as u64) << ASID_SHIFT)
        }
        None => {
            account::release(held, frame, 0);
            Err(Error::LimitReached)
        }
    }
}

/// A free ASID: the first from `next` on, looked for word by word.
fn take_asid(held: Held) -> Option<usize> {
    let own = OWN_TABLES.get(held);
    let words = own.asids.get() / 64;
    let first = own.next.get() / 64;
    let word = (0..words).map(|step| (first + step) % words).find(|word| own.taken[*word].get() != u64::MAX)?;
    let asid = word * 64 + (!own.taken[word].get()).trailing_zeros() as usize;
    own.taken[word].update(|taken| taken | 1 << (asid % 64));
    own.next.set(asid);
    Some(asid)
}

/// A root will not be used any more: what the processors have of it is dropped, and its ASID is free.
pub fn forget_root(held: Held, root: u64) {
    let asid = (root >> ASID_SHIFT) as usize;
    // SAFETY: only costs time.
    unsafe {
        asm!("dsb ishst", "tlbi aside1is, {}", "dsb ish", "isb", in(reg) (asid as u64) << ASID_SHIFT, options(nostack))
    }
    ledger::all_paid(held, Some(root));
    OWN_TABLES.get(held).taken[asid / 64].update(|taken| taken & !(1 << (asid % 64)));
}

/// Drops the translation of a page of a domain wherever a processor can have it, entries of upper levels that led there
/// included (Arm ARM D8.14).
pub fn invalidate_page(domain: Ref<Domain>, address: u64) {
    let held = domain.held();
    const PAGES: u64 = (1 << 44) - 1;
    info::counters(held).invalidations.up();
    let what = domain.root >> ASID_SHIFT << ASID_SHIFT | (address >> 12 & PAGES);
    // SAFETY: only costs time.
    unsafe { asm!("dsb ishst", "tlbi vae1is, {}", "dsb ish", "isb", in(reg) what, options(nostack)) }
    ledger::paid(held, domain.root, address);
}

const _: () = assert!(IMAGE > DIRECT);
