//! Entries of page tables (Intel SDM volume 3, 4.5), the upper half, which all spaces share, and what the processor is
//! told. The tables of users are `crate::space`.

use super::memory::{DIRECT, IMAGE, IO_APIC, LOCAL_APIC, physical};
use crate::account::Account;
use crate::domain::Domain;
use crate::frames::{self, FRAME, Frame, Use};
use crate::pointer::{Held, Nucleus, Ref};
use crate::space::{Memory, boot_table, boot_walk, index, make_archive_directory, table};
use crate::{cpu, info, ledger};
use abi::Error;
use abi::boot::{BootInfo, Region};
use abi::rights::{MAP_EXECUTE, MAP_READ, MAP_WRITE};
use core::arch::asm;
use core::cell::Cell;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const USER: u64 = 4;
const NOT_CACHED: u64 = 0x18;
const LARGE: u64 = 0x80;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// The nucleus's own tables, and which entries of their root there are in the upper half.
struct UpperHalf {
    root: Cell<Frame>,
    used: [Cell<u16>; 8],
    count: Cell<usize>,
}

static UPPER_HALF: Nucleus<UpperHalf> =
    Nucleus::new(UpperHalf { root: Cell::new(0), used: [const { Cell::new(0) }; 8], count: Cell::new(0) });

unsafe extern "C" {
    static image_init: u8;
    static image_text: u8;
    static image_rodata: u8;
    static image_data: u8;
    static image_end: u8;
    static boot_stack_guard: u8;
}

fn symbol(place: &u8) -> usize {
    place as *const u8 as usize
}

/// Bytes of the image in physical memory, boot section included.
pub fn image() -> abi::boot::Region {
    // SAFETY: symbols of the link script; only their addresses are used.
    let end = physical(unsafe { symbol(&image_end) });
    abi::boot::Region { start: 0x20_0000, bytes: (end - 0x20_0000) as u64 }
}

/// What of the image is used no more once the final tables and segments are loaded: the code and tables that
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
        if let Ok(last) = boot_walk(held, UPPER_HALF.get(held).root.get(), page, 0) {
            table(held, last)[index(page as u64, 0)].set(0);
        }
    }
    load_root(held, (UPPER_HALF.get(held).root.get() as u64) << 12);
    Region { start: physical(init) as u64, bytes: (text - init) as u64 }
}

/// The frame of a table or page.
#[inline(always)]
pub fn frame_of(entry: u64) -> Frame {
    ((entry & ADDRESS) >> 12) as Frame
}

/// A frame full of zeros, for good.
#[unsafe(link_section = ".init")]
pub fn zeros(_: Held) -> Frame {
    // Frame 0 belongs to nobody.
    frames::clear(0);
    0
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

/// The last-level entry for a page of users with these rights (`MAP_READ` and the like).
#[inline(always)]
pub fn user_page(frame: Frame, rights: u64, memory: Memory) -> u64 {
    let writable = if rights & MAP_WRITE != 0 { WRITABLE } else { 0 };
    let executable = if rights & MAP_EXECUTE != 0 { 0 } else { NO_EXECUTE };
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

/// What a last-level entry of users maps.
#[inline(always)]
pub fn memory_of(entry: u64) -> Memory {
    if entry & NOT_CACHED != 0 { Memory::Registers } else { Memory::Ram }
}

/// Entries that were free and are used now are seen by the processor from here on: it never keeps that one was free.
#[inline(always)]
pub fn settle() {}

/// What was written into a frame is what instructions are fetched from, on all CPUs: caches of instructions follow what is
/// written (volume 3, 12.6).
#[inline(always)]
pub fn publish(_: Frame) {}

/// Replaces the boot tables by the final upper half: RAM not executable, image text read-only.
pub fn init(held: Held, info: &BootInfo) -> Result<(), &'static str> {
    let root = boot_table(held)?;
    // SAFETY: symbols of the link script; only their addresses are used.
    let (init, text) = unsafe { (symbol(&image_init), symbol(&image_text)) };
    // SAFETY: symbols of the link script; only their addresses are used.
    let (rodata, data, end) = unsafe { (symbol(&image_rodata), symbol(&image_data), symbol(&image_end)) };
    let rights = |address: usize| match address {
        address if address < init => NO_EXECUTE,
        address if address < rodata => 0,
        address if address < data => NO_EXECUTE,
        _ => WRITABLE | NO_EXECUTE,
    };
    let guard = &raw const boot_stack_guard as usize;
    // An overflow of the kernel stack meets the guard, and the trap's own stack tells of it.
    for page in (init..end).step_by(FRAME).filter(|page| *page != guard) {
        boot_map(held, root, page, physical(page) as u64 | rights(page))?;
    }
    boot_map(held, root, LOCAL_APIC, 0xfee0_0000 | WRITABLE | NO_EXECUTE | NOT_CACHED)?;
    boot_map(held, root, IO_APIC, 0xfec0_0000 | WRITABLE | NO_EXECUTE | NOT_CACHED)?;
    let (first, last) = (physical(text), physical(data));
    for region in &info.ram[..info.regions] {
        let mut at = region.start as usize & !((1 << 21) - 1);
        while at < (region.start + region.bytes) as usize {
            let large = at.is_multiple_of(1 << 21) && (at + (1 << 21) <= first || at >= last);
            let writable = if at >= first && at < last { 0 } else { WRITABLE };
            let entry = at as u64 | writable | NO_EXECUTE;
            if large {
                boot_map_large(held, root, DIRECT + at, entry)?;
                at += 1 << 21;
            } else {
                boot_map(held, root, DIRECT + at, entry)?;
                at += FRAME;
            }
        }
    }
    let upper_half = UPPER_HALF.get(held);
    upper_half.root.set(root);
    for index in (256..512).filter(|index| table(held, root)[*index].get() != 0) {
        let place = upper_half.used.get(upper_half.count.get()).ok_or("too much RAM for the nucleus's tables")?;
        place.set(index as u16);
        upper_half.count.update(|count| count + 1);
    }
    load_root(held, (root as u64) << 12);
    make_archive_directory(held, info.archive)
}

#[unsafe(link_section = ".init")]
fn boot_map(held: Held, root: Frame, address: usize, entry: u64) -> Result<(), &'static str> {
    table(held, boot_walk(held, root, address, 0)?)[index(address as u64, 0)].set(entry | PRESENT);
    Ok(())
}

#[unsafe(link_section = ".init")]
fn boot_map_large(held: Held, root: Frame, address: usize, entry: u64) -> Result<(), &'static str> {
    table(held, boot_walk(held, root, address, 1)?)[index(address as u64, 1)].set(entry | PRESENT | LARGE);
    Ok(())
}

/// Loads the root of a space; without address-space identifiers this forgets every user translation.
pub fn load_root(held: Held, root: u64) {
    cpu::this(held).counts.root_writes.update(|count| count + 1);
    // SAFETY: every root has the nucleus's upper half.
    unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack)) }
    ledger::all_paid(held, None);
}

/// Loads the nucleus's own root: this CPU is in no domain.
pub fn leave_space(held: Held) {
    let cpu = cpu::this(held);
    cpu.domain.set(None);
    cpu.table.set(0);
    cpu.limit.set(0);
    load_root(held, (UPPER_HALF.get(held).root.get() as u64) << 12);
}

/// Where the areas of CPUs are mapped: behind the image's own tables.
const AREAS: usize = 0xffff_ffff_8040_0000;

/// Maps frames for the area of a CPU at this offset, behind a page that stays empty; gives the address.
pub(super) fn map_area(held: Held, offset: usize, count: usize) -> Result<usize, &'static str> {
    let start = AREAS + offset + FRAME;
    for page in 0..count {
        let frame = boot_table(held)?;
        let entry = (frame as u64) << 12 | WRITABLE | NO_EXECUTE;
        boot_map(held, UPPER_HALF.get(held).root.get(), start + page * FRAME, entry)?;
    }
    Ok(start)
}

/// Maps firmware memory, for good and for reading, where the direct map has no RAM. Nothing if it lies beyond what can be.
#[unsafe(link_section = ".init")]
pub(super) fn show_firmware(held: Held, start: u64, length: usize) -> Option<()> {
    const END: u64 = 1 << 40;
    let end = start.checked_add(length as u64).filter(|end| *end <= END)?;
    let root = UPPER_HALF.get(held).root.get();
    for at in ((start & !0x1f_ffff)..end).step_by(1 << 21) {
        let at = at as usize;
        let directory = boot_walk(held, root, DIRECT + at, 1).ok()?;
        if table(held, directory)[index((DIRECT + at) as u64, 1)].get() == 0 {
            boot_map_large(held, root, DIRECT + at, at as u64 | NO_EXECUTE).ok()?;
        }
    }
    Some(())
}

/// Maps the page at which CPUs begin where it is; gives the root for them, which lies below 4 GiB.
pub(super) fn begin_start(held: Held, page: usize) -> Result<u64, &'static str> {
    let root = UPPER_HALF.get(held).root.get();
    if root >= 1 << 20 {
        return Err("the nucleus's tables lie too high for other CPUs");
    }
    boot_map(held, root, page, page as u64)?;
    Ok((root as u64) << 12)
}

/// Ends [`begin_start`].
pub(super) fn end_start(held: Held) {
    let mut at = UPPER_HALF.get(held).root.get();
    for level in (1..4).rev() {
        let entry = &table(held, at)[0];
        let next = frame_of(entry.get());
        if level == 3 {
            entry.set(0);
        } else {
            boot_release(held, at);
        }
        at = next;
    }
    boot_release(held, at);
    load_root(held, (UPPER_HALF.get(held).root.get() as u64) << 12);
}

fn boot_release(held: Held, frame: Frame) {
    frames::release(held, frame, 0);
    frames::uncount_boot(held, 1);
}

/// An empty space charged to `account`.
pub fn new_root(account: Ref<Account>) -> Result<u64, Error> {
    let held = account.held();
    let frame = account.allocate_clear(Use::Kernel)?;
    let upper_half = UPPER_HALF.get(held);
    for index in &upper_half.used[..upper_half.count.get()] {
        let index = index.get() as usize;
        table(held, frame)[index].set(table(held, upper_half.root.get())[index].get());
    }
    Ok((frame as u64) << 12)
}

/// Loading a root drops the translations of all others: nothing of users is global.
pub const KEEPS_TRANSLATIONS: bool = false;

/// A root will not be used any more.
pub fn forget_root(_: Held, _: u64) {}

/// Drops the translation of a page of a domain wherever a processor can have it.
pub fn invalidate_page(domain: Ref<Domain>, address: u64) {
    let held = domain.held();
    if cpu::this(held).domain.get() == Some(domain) {
        info::counters(held).invalidations.up();
        // SAFETY: only costs time.
        unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack)) }
        ledger::paid(held, domain.root, address);
    }
    shoot_down(domain);
}

/// Translations of `domain` got weaker: other CPUs that may have them forget them before they use any.
#[inline(always)]
fn shoot_down(domain: Ref<Domain>) {
    let held = domain.held();
    for other in cpu::others(held) {
        if other.domain_there() == Some(domain) {
            cpu::hold_up(other);
            other.flush.set(true);
        }
    }
}

const _: () = assert!(IMAGE > DIRECT);
