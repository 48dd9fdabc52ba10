//! Page tables: four levels (Intel SDM volume 3, 4.5), the upper half shared by all spaces.
//!
//! The record of a page-table frame counts its live entries, so that empty tables go at once and
//! destroying a space costs what is mapped. A last-level table has a shadow of 512 words: the mapping
//! of each entry that is used, compressed.

use super::memory::{DIRECT, IMAGE, IO_APIC, LOCAL_APIC, physical};
use crate::account::{self, Account};
use crate::domain::Domain;
use crate::frames::{self, FRAME, Frame, Use};
use crate::ledger::{self, Owed};
use crate::mapping::Mapping;
use crate::pointer::{Link, Nucleus, Ref};
use crate::{cpu, info, slab};
use abi::Error;
use abi::boot::{BootInfo, Region};
use abi::layout::ARCHIVE;
use abi::rights::{MAP_EXECUTE, MAP_READ, MAP_WRITE};
use core::arch::asm;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const USER: u64 = 4;
const NOT_CACHED: u64 = 0x18;
const LARGE: u64 = 0x80;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

type Table = [u64; 512];
type Shadow = [u32; 512];

/// Entry of the last level for one page, in the direct map.
#[derive(Clone, Copy)]
pub struct Slot(*mut u64);

/// The nucleus's own tables, and which entries of their root there are in the upper half.
struct UpperHalf {
    root: Frame,
    used: [u16; 8],
    count: usize,
}

static UPPER_HALF: Nucleus<UpperHalf> = Nucleus::new(UpperHalf { root: 0, used: [0; 8], count: 0 });

/// The directory of page tables that every domain which sees the boot archive has in common.
static ARCHIVE_DIRECTORY: Nucleus<Frame> = Nucleus::new(0);

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
pub fn end_init() -> Region {
    // SAFETY: symbols of the link script; only their addresses are used.
    let (init, text) = unsafe { (symbol(&image_init), symbol(&image_text)) };
    for page in (init..text).step_by(FRAME) {
        if let Ok(last) = boot_walk(UPPER_HALF.get().root, page, 0) {
            table(last)[index(page as u64, 0)] = 0;
        }
    }
    load_root((UPPER_HALF.get().root as u64) << 12);
    Region { start: physical(init) as u64, bytes: (text - init) as u64 }
}

fn table(frame: Frame) -> &'static mut Table {
    // SAFETY: the frame is a page table, reached under the nucleus lock.
    unsafe { &mut *(frames::address_of(frame) as *mut Table) }
}

fn frame_of(entry: u64) -> Frame {
    ((entry & ADDRESS) >> 12) as Frame
}

fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * level) & 511) as usize
}

fn shadow(frame: Frame) -> &'static mut Shadow {
    // SAFETY: last-level tables are made with a shadow, which goes with them.
    unsafe { &mut *(frames::record(frame).shadow() as *mut Shadow) }
}

/// Replaces the boot tables by the final upper half: RAM not executable, image text read-only.
pub fn init(info: &BootInfo) -> Result<(), &'static str> {
    let root = boot_table()?;
    // SAFETY: symbols of the link script; only their addresses are used.
    let (init, text) = unsafe { (symbol(&image_init), symbol(&image_text)) };
    // SAFETY: as above.
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
        boot_map(root, page, physical(page) as u64 | rights(page))?;
    }
    boot_map(root, LOCAL_APIC, 0xfee0_0000 | WRITABLE | NO_EXECUTE | NOT_CACHED)?;
    boot_map(root, IO_APIC, 0xfec0_0000 | WRITABLE | NO_EXECUTE | NOT_CACHED)?;
    let top = info.ram[..info.regions].iter().map(|region| region.start + region.bytes).max().unwrap_or(0) as usize;
    let (first, last) = (physical(text), physical(data));
    let mut at = 0;
    while at < top {
        let large = at % (1 << 21) == 0 && (at + (1 << 21) <= first || at >= last);
        let writable = if at >= first && at < last { 0 } else { WRITABLE };
        let entry = at as u64 | writable | NO_EXECUTE;
        if large {
            boot_map_large(root, DIRECT + at, entry)?;
            at += 1 << 21;
        } else {
            boot_map(root, DIRECT + at, entry)?;
            at += FRAME;
        }
    }
    let upper_half = UPPER_HALF.get();
    upper_half.root = root;
    for index in (256..512).filter(|index| table(root)[*index] != 0) {
        *upper_half.used.get_mut(upper_half.count).ok_or("too much RAM for the nucleus's tables")? = index as u16;
        upper_half.count += 1;
    }
    load_root((root as u64) << 12);
    make_archive_directory(info.archive)
}

/// The tables for [`show_archive`]. All entries of theirs are used, those behind the archive's end by its
/// last page and its last table: so nothing else can be mapped there, and no table of it is ever empty.
#[unsafe(link_section = ".init")]
#[inline(never)]
fn make_archive_directory(archive: Region) -> Result<(), &'static str> {
    let pages = (archive.bytes as usize).div_ceil(FRAME);
    if pages == 0 || pages > 512 * 512 || !archive.start.is_multiple_of(FRAME as u64) {
        return Err("the boot archive is empty, larger than a GiB, or not at a page");
    }
    // Frame 0 belongs to nobody: a shadow in which no page has a mapping.
    frames::clear(0);
    let directory = boot_table()?;
    let mut last = 0;
    for (group, entry) in table(directory).iter_mut().enumerate() {
        if group * 512 < pages {
            last = boot_table()?;
            for (index, entry) in table(last).iter_mut().enumerate() {
                let page = (group * 512 + index).min(pages - 1);
                *entry = (archive.start + (page * FRAME) as u64) | PRESENT | USER | NO_EXECUTE;
            }
            frames::record(last).set_shadow(DIRECT);
            frames::record(last).count = 512;
        }
        *entry = (last as u64) << 12 | PRESENT | USER;
    }
    frames::record(directory).count = 512;
    *ARCHIVE_DIRECTORY.get() = directory;
    Ok(())
}

/// Shows a domain the boot archive at `layout::ARCHIVE`.
pub fn show_archive(domain: Ref<Domain>) -> Result<(), Error> {
    let root = (domain.root >> 12) as Frame;
    let entry = &mut table(root)[index(ARCHIVE, 3)];
    let upper = if *entry != 0 { frame_of(*entry) } else { make::<3>(domain, ARCHIVE, root, entry)? };
    let entry = &mut table(upper)[index(ARCHIVE, 2)];
    if *entry != 0 {
        return Err(Error::Occupied);
    }
    *entry = (*ARCHIVE_DIRECTORY.get() as u64) << 12 | PRESENT | USER;
    frames::record(upper).count += 1;
    Ok(())
}

/// Ends [`show_archive`], in a domain that goes.
fn hide_archive(domain: Ref<Domain>) {
    let upper = table((domain.root >> 12) as Frame)[index(ARCHIVE, 3)];
    if upper == 0 {
        return;
    }
    let upper = frame_of(upper);
    let entry = &mut table(upper)[index(ARCHIVE, 2)];
    if frame_of(*entry) == *ARCHIVE_DIRECTORY.get() {
        *entry = 0;
        frames::record(upper).count -= 1;
        Owed::new(domain, ARCHIVE).invalidate();
        prune(domain, ARCHIVE);
    }
}

fn boot_table() -> Result<Frame, &'static str> {
    let frame = frames::allocate(0).ok_or("no frame for the nucleus's page tables")?;
    frames::clear(frame);
    frames::count_boot(1);
    Ok(frame)
}

fn boot_walk(root: Frame, address: usize, last: u32) -> Result<Frame, &'static str> {
    let mut at = root;
    for level in (last + 1..4).rev() {
        let entry = &mut table(at)[index(address as u64, level)];
        if *entry == 0 {
            *entry = (boot_table()? as u64) << 12 | PRESENT | WRITABLE;
        }
        at = frame_of(*entry);
    }
    Ok(at)
}

fn boot_map(root: Frame, address: usize, entry: u64) -> Result<(), &'static str> {
    table(boot_walk(root, address, 0)?)[index(address as u64, 0)] = entry | PRESENT;
    Ok(())
}

fn boot_map_large(root: Frame, address: usize, entry: u64) -> Result<(), &'static str> {
    table(boot_walk(root, address, 1)?)[index(address as u64, 1)] = entry | PRESENT | LARGE;
    Ok(())
}

/// Loads the root of a space; without address-space identifiers this forgets every user translation.
pub fn load_root(root: u64) {
    info::counters().root_writes += 1;
    // SAFETY: every root has the nucleus's upper half.
    unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack)) }
    ledger::all_paid();
}

/// Loads the nucleus's own root: this CPU is in no domain.
pub fn leave_space() {
    let mut cpu = cpu::this();
    (cpu.domain, cpu.table, cpu.limit) = (None, 0, 0);
    load_root((UPPER_HALF.get().root as u64) << 12);
}

/// Where the areas of CPUs are mapped: behind the image's own tables.
const AREAS: usize = 0xffff_ffff_8040_0000;

/// Maps frames for the area of a CPU at this offset, behind a page that stays empty; gives the address.
pub fn map_area(offset: usize, count: usize) -> Result<usize, &'static str> {
    let start = AREAS + offset + FRAME;
    for page in 0..count {
        let frame = boot_table()?;
        let entry = (frame as u64) << 12 | WRITABLE | NO_EXECUTE;
        boot_map(UPPER_HALF.get().root, start + page * FRAME, entry)?;
    }
    Ok(start)
}

/// Maps firmware memory, for good and for reading, where the direct map has no RAM. Nothing if it lies beyond what can be.
pub fn show_firmware(start: u64, length: usize) -> Option<()> {
    const END: u64 = 1 << 40;
    let end = start.checked_add(length as u64).filter(|end| *end <= END)?;
    let root = UPPER_HALF.get().root;
    for at in ((start & !0x1f_ffff)..end).step_by(1 << 21) {
        let at = at as usize;
        let directory = boot_walk(root, DIRECT + at, 1).ok()?;
        if table(directory)[index((DIRECT + at) as u64, 1)] == 0 {
            boot_map_large(root, DIRECT + at, at as u64 | NO_EXECUTE).ok()?;
        }
    }
    Some(())
}

/// Maps the page at which CPUs begin where it is; gives the root for them, which lies below 4 GiB.
pub fn begin_start(page: usize) -> Result<u64, &'static str> {
    let root = UPPER_HALF.get().root;
    if root >= 1 << 20 {
        return Err("the nucleus's tables lie too high for other CPUs");
    }
    boot_map(root, page, page as u64)?;
    Ok((root as u64) << 12)
}

/// Ends [`begin_start`].
pub fn end_start() {
    let mut at = UPPER_HALF.get().root;
    for level in (1..4).rev() {
        let entry = &mut table(at)[0];
        let next = frame_of(*entry);
        if level == 3 {
            *entry = 0;
        } else {
            boot_release(at);
        }
        at = next;
    }
    boot_release(at);
    load_root((UPPER_HALF.get().root as u64) << 12);
}

fn boot_release(frame: Frame) {
    frames::release(frame, 0);
    frames::uncount_boot(1);
}

/// An empty space charged to `account`.
pub fn new_root(account: Ref<Account>) -> Result<u64, Error> {
    let frame = account.allocate_clear(Use::Kernel)?;
    let upper_half = UPPER_HALF.get();
    for index in &upper_half.used[..upper_half.count] {
        table(frame)[*index as usize] = table(upper_half.root)[*index as usize];
    }
    Ok((frame as u64) << 12)
}

/// Frees the root of a space in which nothing is mapped any more but the boot archive.
pub fn free_root(domain: Ref<Domain>) {
    hide_archive(domain);
    if cpu::this().domain == Some(domain) {
        leave_space();
    }
    account::release((domain.root >> 12) as Frame, 0);
}

/// The slot of a user address, if its table is there.
#[inline]
pub fn find(domain: Ref<Domain>, address: u64) -> Option<Slot> {
    let mut at = (domain.root >> 12) as Frame;
    for level in (1..4).rev() {
        let entry = table(at)[index(address, level)];
        if entry == 0 {
            return None;
        }
        at = frame_of(entry);
    }
    Some(slot(at, address))
}

/// Pages from `address` on for which there is no last-level table; 0 if there is one.
pub fn unmapped_pages(domain: Ref<Domain>, address: u64) -> u64 {
    let mut at = (domain.root >> 12) as Frame;
    for level in (1..4).rev() {
        let entry = table(at)[index(address, level)];
        if entry == 0 {
            let pages = 1 << (9 * level);
            return pages - (address >> 12) % pages;
        }
        at = frame_of(entry);
    }
    0
}

fn slot(frame: Frame, address: u64) -> Slot {
    Slot(&raw mut table(frame)[index(address, 0)])
}

/// The slot of a user address; missing tables are made and charged to the domain's account. After an
/// error, or when nothing is put into the slot, [`prune`] takes empty tables away again.
#[inline]
pub fn find_or_make(domain: Ref<Domain>, address: u64) -> Result<Slot, Error> {
    let at = below::<3>(domain, address, (domain.root >> 12) as Frame)?;
    let at = below::<2>(domain, address, at)?;
    Ok(slot(below::<1>(domain, address, at)?, address))
}

/// The table below one of `LEVEL`.
#[inline(always)]
fn below<const LEVEL: u32>(domain: Ref<Domain>, address: u64, at: Frame) -> Result<Frame, Error> {
    let entry = &mut table(at)[index(address, LEVEL)];
    if *entry != 0 { Ok(frame_of(*entry)) } else { make::<LEVEL>(domain, address, at, entry) }
}

/// A table for an empty `entry`, which is in the table `above`.
fn make<const LEVEL: u32>(domain: Ref<Domain>, address: u64, above: Frame, entry: &mut u64) -> Result<Frame, Error> {
    let made = if LEVEL == 1 { new_last(domain.account) } else { domain.account.allocate_clear(Use::Kernel) };
    match made {
        Ok(frame) => {
            *entry = (frame as u64) << 12 | PRESENT | WRITABLE | USER;
            frames::record(above).count += 1;
            Ok(frame)
        }
        Err(error) => {
            prune(domain, address);
            Err(error)
        }
    }
}

fn new_last(account: Ref<Account>) -> Result<Frame, Error> {
    let frame = account.allocate_clear(Use::Kernel)?;
    match slab::allocate_as_it_is::<Shadow>(account) {
        Ok(shadow) => frames::record(frame).set_shadow(shadow.address()),
        Err(error) => {
            account::release(frame, 0);
            return Err(error);
        }
    }
    Ok(frame)
}

/// Frees the tables on the way to `address` that have no entries.
pub fn prune(domain: Ref<Domain>, address: u64) {
    let mut path = [0 as Frame; 4];
    path[3] = (domain.root >> 12) as Frame;
    let mut lowest = 3;
    while lowest > 0 {
        let entry = table(path[lowest])[index(address, lowest as u32)];
        if entry == 0 {
            break;
        }
        lowest -= 1;
        path[lowest] = frame_of(entry);
    }
    for level in lowest..3 {
        if frames::record(path[level]).count != 0 {
            return;
        }
        if level == 0 {
            // SAFETY: the shadow was made with the table.
            slab::free(unsafe { Ref::<Shadow>::new(shadow(path[0])) });
        }
        table(path[level + 1])[index(address, level as u32 + 1)] = 0;
        frames::record(path[level + 1]).count -= 1;
        // The processor may keep entries of upper levels: an invalidation of any page they led to drops
        // them (Intel SDM volume 3, 4.10.4.1).
        Owed::new(domain, address).invalidate();
        // It has no entry any more: all of it is zero.
        account::release_table(domain.account, path[level]);
    }
}

impl Slot {
    /// Whether a page is mapped.
    pub fn is_used(&self) -> bool {
        self.read() != 0
    }
    fn table(&self) -> Frame {
        frames::frame_of(self.0 as usize)
    }
    /// What the table's shadow says of it.
    fn shadow(&self) -> &'static mut u32 {
        &mut shadow(self.table())[self.0 as usize / size_of::<u64>() % 512]
    }
    fn read(&self) -> u64 {
        // SAFETY: an entry of a live table.
        unsafe { *self.0 }
    }
    fn write(&self, value: u64) {
        // SAFETY: an entry of a live table; the processor reads it at any time.
        unsafe { self.0.write_volatile(value) }
    }
    /// The frame mapped.
    pub fn frame(&self) -> Frame {
        frame_of(self.read())
    }
    /// `MAP_READ` and the like.
    pub fn rights(&self) -> u64 {
        let entry = self.read();
        MAP_READ
            | if entry & WRITABLE != 0 { MAP_WRITE } else { 0 }
            | if entry & NO_EXECUTE == 0 { MAP_EXECUTE } else { 0 }
    }
    /// The mapping, unless the page is the nucleus's own.
    pub fn mapping(&self) -> Link<Mapping> {
        if !self.is_used() {
            return None;
        }
        let compressed = *self.shadow() as usize;
        // SAFETY: the entry is used, so this is zero or a live mapping.
        unsafe { Ref::link(if compressed == 0 { 0 } else { DIRECT + (compressed << 6) }) }
    }
    /// Maps a frame in this free slot.
    pub fn set(&self, frame: Frame, rights: u64, mapping: Link<Mapping>) {
        let writable = if rights & MAP_WRITE != 0 { WRITABLE } else { 0 };
        let executable = if rights & MAP_EXECUTE != 0 { 0 } else { NO_EXECUTE };
        *self.shadow() = mapping.map_or(0, |mapping| (mapping.address() >> 6) as u32);
        frames::record(self.table()).count += 1;
        self.write((frame as u64) << 12 | PRESENT | USER | writable | executable);
    }
    /// What is mapped here are registers: nothing of them is cached.
    pub fn forbid_caching(&self) {
        self.write(self.read() | NOT_CACHED);
    }
    /// Whether [`Self::forbid_caching`] was said.
    pub fn is_uncached(&self) -> bool {
        self.read() & NOT_CACHED != 0
    }
    /// Ends what is mapped here.
    pub fn clear(&self, domain: Ref<Domain>, address: u64) {
        self.write(0);
        frames::record(self.table()).count -= 1;
        Owed::new(domain, address).invalidate();
        prune(domain, address);
    }
    /// Takes rights away.
    pub fn reduce(&self, domain: Ref<Domain>, address: u64, rights: u64) {
        let mut entry = self.read();
        if rights & MAP_WRITE != 0 {
            entry &= !WRITABLE;
        }
        if rights & MAP_EXECUTE != 0 {
            entry |= NO_EXECUTE;
        }
        if entry != self.read() {
            self.write(entry);
            Owed::new(domain, address).invalidate();
        }
    }
}

/// Maps a page that stays the nucleus's (a message area), writable.
pub fn map_nucleus_page(domain: Ref<Domain>, address: u64, frame: Frame) -> Result<(), Error> {
    find_or_make(domain, address)?.set(frame, MAP_READ | MAP_WRITE, None);
    Ok(())
}

/// Ends [`map_nucleus_page`].
pub fn unmap_nucleus_page(domain: Ref<Domain>, address: u64) {
    if let Some(slot) = find(domain, address).filter(Slot::is_used) {
        slot.clear(domain, address);
    }
}

/// Drops the translation of a page of a domain wherever a processor can have it.
pub fn invalidate_page(domain: Ref<Domain>, address: u64) {
    if cpu::this().domain == Some(domain) {
        info::counters().invalidations += 1;
        // SAFETY: only costs time.
        unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack)) }
        ledger::paid(address);
    }
    cpu::shoot_down(domain);
}

const _: () = assert!(IMAGE > DIRECT);
