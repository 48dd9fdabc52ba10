//! Frames of RAM: a record for each, and the allocator of free frames ([`structures::blocks`]).
//!
//! A frame in use is charged to an account (see `account`): its record holds the account and the use. Frames that the
//! nucleus took at boot have no account.

use crate::arch::memory::{self, DIRECT, physical};
use crate::objects::{Account, Domain, FRAME, Frame, RECORD_BYTES, Table};
use crate::pointer::{Held, Nucleus, Ref};
use abi::boot::{BootInfo, MAX_REGIONS, Region};
use core::cell::Cell;
use structures::blocks::{Blocks, CLEARED, ORDERS, Records};

/// The use of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Use {
    /// No record was written: no RAM, kept at boot, or inside a block that was never split.
    #[allow(dead_code, reason = "the meaning of a cleared record")]
    Reserved = 0,
    /// First frame of a free block.
    Free = 1,
    /// Free but not the first frame of a block, or allocated and charged to nobody.
    Inside = 2,
    /// A page of the nucleus (tables, message areas).
    Kernel = 3,
    /// A page of small objects.
    Slab = 4,
    /// User memory, with a tree of mappings.
    User = 5,
    /// A page of the boot archive or of the device tree.
    Archive = 6,
    /// A last-level page table.
    Table = 7,
    /// A page of a portal table.
    Portals = 8,
}

/// The nucleus's record of a frame.
#[repr(C)]
pub struct Record {
    /// Physical address / 64 of the account that pays. For a last-level page table: of its shadow; for a page of a portal
    /// table: of its domain. In the first two frames of a free block of several: its links.
    owner: Cell<u32>,
    /// Its use.
    pub used: Cell<Use>,
    /// Order of a free block.
    order: Cell<u8>,
    /// Page tables: used entries. Directories of portal tables: used ranges. User memory: see [`set_going`].
    pub count: Cell<u16>,
}

const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

impl Records for Held {
    fn has(self, frame: Frame) -> bool {
        is_ram(self, frame)
    }
    fn set_free(self, frame: Frame, order: usize) {
        let record = record(self, frame);
        record.used.set(Use::Free);
        record.order.set(order as u8);
    }
    fn set_inside(self, frame: Frame) {
        record(self, frame).used.set(Use::Inside);
    }
    fn is_free(self, frame: Frame, order: usize) -> bool {
        let record = record(self, frame);
        record.used.get() == Use::Free && record.order.get() as usize == order
    }
    fn order(self, frame: Frame) -> usize {
        record(self, frame).order.get() as usize
    }
    /// The links of a block are in the records of its first two frames, so that unused memory is not touched. Those of a
    /// single frame are in its first bytes.
    fn links(&self, frame: Frame, order: usize) -> [&Cell<u32>; 2] {
        if order > 0 {
            let [first, second, ..] = records(*self, frame, order) else { outside(frame) };
            return [&first.owner, &second.owner];
        }
        // SAFETY: the frame is free, so only the allocator uses its bytes, and it lies in the direct map.
        unsafe { (*(address_of(frame) as *const [Cell<u32>; 2])).each_ref() }
    }
}

struct Allocator {
    /// One for each of `frames` frames from [`memory::first_frame`] on.
    records: Cell<*mut Record>,
    frames: Cell<usize>,
    blocks: Blocks,
    /// Frames of RAM, those taken at boot included, holes not.
    total: Cell<usize>,
    /// Of these, taken at boot.
    boot: Cell<usize>,
    /// Regions of RAM, as the loader reports them.
    ram: Cell<[Region; MAX_REGIONS]>,
}

/// Frames made loose at boot.
const LOOSE: usize = 256;

static ALLOCATOR: Nucleus<Allocator> = Nucleus::new(Allocator {
    records: Cell::new(core::ptr::null_mut()),
    frames: Cell::new(0),
    blocks: Blocks::empty(),
    total: Cell::new(0),
    boot: Cell::new(0),
    ram: Cell::new([Region { start: 0, bytes: 0 }; MAX_REGIONS]),
});

/// The record of a frame of RAM.
#[inline(always)]
pub fn record(held: Held, frame: Frame) -> &'static Record {
    let allocator = ALLOCATOR.get(held);
    let place = frame.wrapping_sub(memory::first_frame());
    if place >= allocator.frames.get() {
        outside(frame)
    }
    // SAFETY: the array has `frames` records, `place` is below that, and the array is never freed.
    unsafe { &*allocator.records.get().add(place) }
}

/// The records of 2^order frames of RAM from `frame` on.
#[inline(always)]
pub fn records(held: Held, frame: Frame, order: usize) -> &'static [Record] {
    let allocator = ALLOCATOR.get(held);
    let count = 1 << order;
    let place = frame.wrapping_sub(memory::first_frame());
    if place + count > allocator.frames.get() {
        outside(frame)
    }
    // SAFETY: the array has `frames` records, which these do not exceed, and is never freed.
    unsafe { core::slice::from_raw_parts(allocator.records.get().add(place), count) }
}

/// Whether a frame has a record: it lies between the start and the end of RAM, perhaps in a hole.
pub fn is_ram(held: Held, frame: Frame) -> bool {
    frame.wrapping_sub(memory::first_frame()) < ALLOCATOR.get(held).frames.get()
}

/// Whether a frame lies in a MiB that has some RAM. Firmware may keep memory next to the RAM that it reports; only other
/// holes can be device registers.
pub fn may_be_ram(held: Held, frame: Frame) -> bool {
    const FIRMWARE: u64 = 1 << 20;
    let at = (frame * FRAME) as u64 / FIRMWARE;
    let has = |ram: &Region| (ram.start / FIRMWARE..(ram.start + ram.bytes).div_ceil(FIRMWARE)).contains(&at);
    ALLOCATOR.get(held).ram.as_array_of_cells().iter().any(|ram| has(&ram.get()))
}

/// Whether a frame is RAM with this use.
#[inline(always)]
pub fn is_of(held: Held, frame: Frame, used: Use) -> bool {
    is_ram(held, frame) && record(held, frame).used.get() == used
}

/// Marks the frame of an original mapping that is being unmapped everywhere, until it is charged again.
pub fn set_going(held: Held, frame: Frame) {
    if is_of(held, frame, Use::User) {
        record(held, frame).count.set(1);
    }
}

/// Whether [`set_going`] marked the frame.
pub fn is_going(held: Held, frame: Frame) -> bool {
    is_of(held, frame, Use::User) && record(held, frame).count.get() != 0
}

#[cold]
fn outside(frame: Frame) -> ! {
    panic!("frame {frame:#x} is outside RAM")
}

/// The frame of an address in the direct map.
pub fn frame_of(address: usize) -> Frame {
    (physical(address) / FRAME) as Frame
}

/// The address of a frame in the direct map.
pub fn address_of(frame: Frame) -> usize {
    DIRECT + frame * FRAME
}

/// The table in a frame.
pub fn table(_: Held, frame: Frame) -> &'static Table {
    // SAFETY: the frame is a page table, in the direct map, accessed under the nucleus lock. Tables are arrays of cells.
    unsafe { &*(address_of(frame) as *const Table) }
}

impl Record {
    /// The account that pays. Not for frames that are `Table` or `Portals`.
    pub fn account(&self) -> Ref<Account> {
        // SAFETY: the frame is charged and neither a `Table` nor one of `Portals`, so `owner` names an account, which outlives what is charged to it.
        unsafe { Ref::new((DIRECT + ((self.owner.get() as usize) << 6)) as *mut Account) }
    }
    /// Records that `account` pays for the frame from now on.
    #[inline(always)]
    pub fn charge(&self, account: Ref<Account>, used: Use) {
        // Truncation removes the upper bits of the direct map: the rest is the physical address / 64.
        self.owner.set((account.address() >> 6) as u32);
        self.used.set(used);
        self.count.set(0);
    }
    /// For a last-level page table: the address of its shadow.
    pub fn shadow(&self) -> usize {
        DIRECT + ((self.owner.get() as usize) << 6)
    }
    /// For a page of a portal table: its domain.
    pub fn domain(&self) -> Ref<Domain> {
        // SAFETY: the record of such a page names its domain, which frees the page before it is freed itself.
        unsafe { Ref::new((DIRECT + ((self.owner.get() as usize) << 6)) as *mut Domain) }
    }
    /// Stores the domain of a page that is charged as one of its portal table; the account is found through the domain.
    pub fn set_domain(&self, domain: Ref<Domain>) {
        self.owner.set((domain.address() >> 6) as u32);
    }
    /// Makes the frame a last-level page table with this shadow. `owner` then holds the shadow; the account is that of the domain.
    pub fn set_shadow(&self, address: usize) {
        self.owner.set((address >> 6) as u32);
        self.used.set(Use::Table);
    }
}

fn blocks(held: Held) -> &'static Blocks {
    &ALLOCATOR.get(held).blocks
}

/// Allocates a frame, without clearing it.
#[inline(always)]
pub fn allocate_one(held: Held) -> Option<Frame> {
    if blocks(held).has_any_loose() { blocks(held).take_one(held) } else { allocate(held, 0) }
}

/// Allocates 2^order frames, without clearing them.
pub fn allocate(held: Held, order: usize) -> Option<Frame> {
    blocks(held).take(held, order)
}

/// A step towards loose frames, so that the next allocations need not split a block; false if there is nothing to do: see [`Blocks::prepare`].
pub fn prepare(held: Held) -> bool {
    blocks(held).prepare(held, 0)
}

/// Allocates a cleared frame: one cleared ahead, or else one that is cleared now.
#[inline(always)]
pub fn allocate_clear(held: Held) -> Option<Frame> {
    if let Some(frame) = blocks(held).take_clear() {
        if cfg!(feature = "checked") {
            // SAFETY: the frame was just allocated, so nothing else uses it, and it lies in the direct map.
            let words = unsafe { core::slice::from_raw_parts(address_of(frame) as *const u64, FRAME / 8) };
            assert!(words.iter().all(|word| *word == 0), "frame {frame:#x} is not clear");
        }
        return Some(frame);
    }
    allocate_and_clear(held)
}

#[cold]
fn allocate_and_clear(held: Held) -> Option<Frame> {
    let frame = blocks(held).take_one(held)?;
    clear(frame);
    Some(frame)
}

/// Clears a frame that only the caller uses.
#[inline(always)]
pub fn clear(frame: Frame) {
    // SAFETY: only the caller uses the frame, and it lies in the direct map.
    unsafe { memory::clear_page(address_of(frame)) }
}

/// Clears one more frame for later, on an idle CPU; false when there is nothing to do.
pub fn clear_one_ahead(held: Held) -> bool {
    clear_ahead(held, CLEARED)
}

/// Clears one more frame for later; false when `count` are clear or memory is scarce.
#[inline(always)]
pub fn clear_ahead(held: Held, count: usize) -> bool {
    blocks(held).clear_ahead(held, count, clear)
}

/// Frees a frame that is full of zeros.
pub fn release_clear(held: Held, frame: Frame) {
    blocks(held).give_clear(held, frame);
}

/// Frees 2^order frames.
pub fn release(held: Held, frame: Frame, order: usize) {
    blocks(held).give(held, frame, order);
}

/// Frames of RAM, free ones, and those taken at boot.
pub fn numbers(held: Held) -> (usize, usize, usize) {
    let allocator = ALLOCATOR.get(held);
    (allocator.total.get(), allocator.blocks.free(), allocator.boot.get())
}

/// Sets up the records, in free RAM, and hands the usable frames that the boot page tables map to the allocator. The boot
/// archive, the device tree and `kept` (the image, and where CPUs start) stay reserved.
pub fn init(held: Held, info: &BootInfo, kept: [Region; 2]) -> Result<(), &'static str> {
    let ram = &info.ram[..info.regions];
    let top = ram.iter().map(|region| region.start + region.bytes).max().ok_or("the loader names no RAM")?;
    let first = memory::first_frame();
    let frames = (top as usize / FRAME).checked_sub(first).ok_or("RAM ends before it begins")?;
    let bytes = (frames * size_of::<Record>()).next_multiple_of(FRAME);
    let start = place(ram, bytes as u64, &[kept[0], info.archive, memory::device_tree()])
        .ok_or("no room for the frame records")?;
    let records = Region { start, bytes: bytes as u64 };
    let allocator = ALLOCATOR.get(held);
    allocator.records.set((DIRECT + start as usize) as *mut Record);
    allocator.frames.set(frames);
    allocator.ram.set(info.ram);
    // SAFETY: `place` found these bytes in RAM, apart from image, archive and device tree: nothing uses them yet.
    unsafe { core::ptr::write_bytes(allocator.records.get() as *mut u8, 0, bytes) };
    take_ram(held, info, kept, records, first..first + memory::BOOT_MAPPED / FRAME);
    Ok(())
}

/// Hands over the frames that only the final page tables map, and makes [`LOOSE`] frames loose.
pub fn init_rest(held: Held, info: &BootInfo, kept: [Region; 2]) {
    let allocator = ALLOCATOR.get(held);
    let bytes = (allocator.frames.get() * size_of::<Record>()).next_multiple_of(FRAME);
    let records = Region { start: physical(allocator.records.get() as usize) as u64, bytes: bytes as u64 };
    let first = memory::first_frame();
    take_ram(held, info, kept, records, first + memory::BOOT_MAPPED / FRAME..first + allocator.frames.get());
    for frame in (0..LOOSE).map_while(|_| allocator.blocks.take_block(held, 0)) {
        allocator.blocks.give(held, frame, 0);
    }
}

/// Hands over the RAM `within`, in the largest possible blocks; counts what is kept.
#[unsafe(link_section = ".init")]
#[inline(never)]
fn take_ram(
    held: Held,
    info: &BootInfo,
    [image, begin]: [Region; 2],
    records: Region,
    within: core::ops::Range<usize>,
) {
    let allocator = ALLOCATOR.get(held);
    let kept = [info.archive, memory::device_tree(), image, records, begin];
    let kept = kept.map(|kept| kept.start as usize / FRAME..((kept.start + kept.bytes) as usize).div_ceil(FRAME));
    for region in &info.ram[..info.regions] {
        let mut frame = (region.start as usize).div_ceil(FRAME).max(1).max(within.start);
        let last = ((region.start + region.bytes) as usize / FRAME).min(within.end);
        while frame < last {
            let order = match kept.iter().position(|kept| kept.contains(&frame)) {
                Some(place) => {
                    // The archive or the device tree.
                    if place < 2 {
                        record(held, frame).used.set(Use::Archive);
                    }
                    allocator.boot.update(|count| count + 1);
                    0
                }
                None => {
                    let end = kept.iter().map(|kept| kept.start).filter(|start| *start > frame).fold(last, usize::min);
                    let order = frame.trailing_zeros().min((end - frame).ilog2()).min(ORDERS as u32 - 1);
                    allocator.blocks.give_block(held, frame, order as usize);
                    order
                }
            };
            frame += 1 << order;
            allocator.total.update(|count| count + (1 << order));
        }
    }
}

/// Hands over a part of the image that is no longer used; gives the number of frames.
pub fn give_image_part(held: Held, part: Region) -> usize {
    let allocator = ALLOCATOR.get(held);
    let (first, count) = (part.start as usize / FRAME, part.bytes as usize / FRAME);
    for frame in first..first + count {
        allocator.blocks.give_block(held, frame as Frame, 0);
        allocator.boot.update(|count| count - 1);
    }
    count
}

/// Counts frames that the nucleus takes at boot and keeps (such as page tables of the direct map).
pub fn count_boot(held: Held, count: usize) {
    ALLOCATOR.get(held).boot.update(|boot| boot + count);
}

/// Undoes [`count_boot`].
pub fn uncount_boot(held: Held, count: usize) {
    ALLOCATOR.get(held).boot.update(|boot| boot - count);
}

fn overlaps(a: Region, b: Region) -> bool {
    a.start < b.start + b.bytes && b.start < a.start + a.bytes
}

/// The first place from 1 MiB on for `bytes` in `ram` that overlaps none of `taken`.
fn place(ram: &[Region], bytes: u64, taken: &[Region]) -> Option<u64> {
    for region in ram {
        let mut start = region.start.max(0x10_0000).next_multiple_of(FRAME as u64);
        while start + bytes <= region.start + region.bytes {
            match taken.iter().find(|other| overlaps(Region { start, bytes }, **other)) {
                Some(other) => start = (other.start + other.bytes).next_multiple_of(FRAME as u64),
                None => return Some(start),
            }
        }
    }
    None
}
