//! Address spaces: a domain's page tables, of four levels with 512 entries each. `arch::paging` knows the format of entries,
//! and which changes need an invalidation or a barrier.
//!
//! The record of a page-table frame counts the used entries. So empty tables are freed at once, and destroying a space takes
//! time in proportion to what is mapped. A last-level table has a shadow of 512 words: the mapping of each used entry,
//! compressed.

use super::frames::{self, Use, table};
use super::own::{self, boot_table};
use super::{account, slab};
use crate::arch::memory::DIRECT;
use crate::arch::paging::{self, root_frame};
use crate::cpus::cpu;
use crate::cpus::translations::{self, Owed};
use crate::objects::{Account, Domain, FRAME, Frame, Mapping, Memory, PageEntry, index};
use crate::pointer::{Held, Link, Nucleus, Ref};
use abi::Error;
use abi::boot::Region;
use abi::layout::{ARCHIVE, FREE_START, USER_END, USER_START, WINDOWS};
use abi::rights::{MAP_EXECUTE, MAP_READ, MAP_WRITE};
use core::cell::Cell;

type Shadow = [Cell<u32>; 512];

/// A last-level entry: the place for one page.
#[derive(Clone, Copy)]
pub struct Slot(&'static PageEntry);

/// The directory of page tables that all domains with the boot archive share.
static ARCHIVE_DIRECTORY: Nucleus<Cell<Frame>> = Nucleus::new(Cell::new(0));

fn shadow(held: Held, frame: Frame) -> &'static Shadow {
    // SAFETY: every last-level table is made with a shadow, which is freed together with it. A shadow is an array of cells,
    // accessed under the nucleus lock.
    unsafe { &*(frames::record(held, frame).shadow() as *const Shadow) }
}

/// Makes the tables for [`show_archive`]. All their entries are used: past the archive's end they repeat its last page and
/// its last table. So nothing else can be mapped there, and none of the tables is ever empty.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn make_archive_directory(held: Held, archive: Region) -> Result<(), &'static str> {
    let pages = (archive.bytes as usize).div_ceil(FRAME);
    if pages == 0 || pages > 512 * 512 || !archive.start.is_multiple_of(FRAME as u64) {
        return Err("the boot archive is empty, larger than a GiB, or not at a page");
    }
    // The frame of zeros serves as a shadow without mappings.
    let shadow = frames::address_of(own::zeros());
    let directory = boot_table(held)?;
    let mut last = 0;
    for (group, entry) in table(held, directory).iter().enumerate() {
        if group * 512 < pages {
            last = boot_table(held)?;
            for (index, entry) in table(held, last).iter().enumerate() {
                let page = (group * 512 + index).min(pages - 1);
                entry.set(paging::user_page((archive.start as usize / FRAME) + page, MAP_READ, Memory::Ram, None));
            }
            frames::record(held, last).set_shadow(shadow);
            frames::record(held, last).count.set(512);
        }
        entry.set(paging::user_table(last));
    }
    frames::record(held, directory).count.set(512);
    ARCHIVE_DIRECTORY.get(held).set(directory);
    Ok(())
}

/// Maps the boot archive into a domain at `layout::ARCHIVE`.
pub fn show_archive(domain: Ref<Domain>) -> Result<(), Error> {
    let held = domain.held();
    let root = root_frame(domain.root);
    let entry = &table(held, root)[index(ARCHIVE, 3)];
    let upper = if entry.get() != 0 { paging::frame_of(entry.get()) } else { make::<3>(domain, ARCHIVE, root, entry)? };
    let entry = &table(held, upper)[index(ARCHIVE, 2)];
    if entry.get() != 0 {
        return Err(Error::Occupied);
    }
    entry.set(paging::user_table(ARCHIVE_DIRECTORY.get(held).get()));
    paging::publish_entries();
    frames::record(held, upper).count.update(|count| count + 1);
    Ok(())
}

/// Makes the root of an empty space, charged to `account`.
pub fn new_root(account: Ref<Account>) -> Result<u64, Error> {
    let held = account.held();
    let frame = account.allocate_clear_apart(Use::Kernel)?;
    paging::show_upper(table(held, frame), table(held, own::upper()));
    paging::new_root(held, frame).ok_or_else(|| {
        account::release_table(account, frame);
        Error::NoDomains
    })
}

/// Portal code opens windows itself only on pages of the lowest GiB, which one directory of last-level tables maps.
const LOW_END: u64 = 1 << 30;

/// Copies the root entry for an address from the domain's first root to all others.
#[cold]
#[inline(never)]
fn set_everywhere(domain: Ref<Domain>, address: u64) {
    let held = domain.held();
    let place = index(address, 3);
    let entry = table(held, root_frame(domain.root))[place].get();
    for per_cpu in domain.per_cpus().filter(|per_cpu| per_cpu.root.get() != domain.root) {
        table(held, root_frame(per_cpu.root.get()))[place].set(entry);
    }
}

/// Updates what depends on the entry for an address in a table of this level. The entry now leads to the table `below`, or
/// to none ([`own::zeros`]).
#[inline(always)]
fn note_upper(domain: Ref<Domain>, address: u64, level: u32, below: Frame) {
    match level {
        3 if domain.scrap.get() != 0 => set_everywhere(domain, address),
        2 if address < LOW_END => domain.low.set(frames::address_of(below)),
        _ => {}
    }
}

/// Makes a cleared frame another root of the space, for one CPU: without the entry for windows.
pub fn copy_root(domain: Ref<Domain>, frame: Frame) {
    let held = domain.held();
    let (from, to) = (table(held, root_frame(domain.root)), table(held, frame));
    // SAFETY: both tables have 512 entries of a word, more than are copied. Nothing else uses the new one yet, and the old
    // one is written only under the nucleus lock, which is held.
    unsafe {
        let [from, to] = [&raw const *from, &raw const *to].map(|table| table as *mut u64);
        core::ptr::copy_nonoverlapping(from, to, index(USER_END, 3) + 1);
    }
    to[index(WINDOWS, 3)].set(0);
    paging::show_upper(to, table(held, own::upper()));
    paging::publish_entries();
}

/// Frees the root of a space that no CPU has loaded, and in which nothing is mapped any more except the boot archive.
pub fn free_root(domain: Ref<Domain>) {
    let held = domain.held();
    hide_archive(domain);
    if cfg!(feature = "checked") {
        let upper = table(held, root_frame(domain.root));
        if let Some(place) =
            (0..=index(USER_END, 3)).find(|place| *place != index(WINDOWS, 3) && upper[*place].get() != 0)
        {
            panic!("domain {} leaves tables at {place} of its root", domain.number);
        }
    }
    paging::end_root(held, domain.root);
    if paging::KEEPS_TRANSLATIONS {
        translations::all_paid(held, Some(domain.root));
    }
    account::release(held, root_frame(domain.root));
}

/// The table with the entry by which the domain sees the boot archive at `layout::ARCHIVE`, if it does. Others may have pages of
/// their own there.
pub fn shown_archive(domain: Ref<Domain>) -> Option<Frame> {
    let held = domain.held();
    let upper = table(held, root_frame(domain.root))[index(ARCHIVE, 3)].get();
    let upper = (upper != 0).then(|| paging::frame_of(upper))?;
    let directory = table(held, upper)[index(ARCHIVE, 2)].get();
    (paging::frame_of(directory) == ARCHIVE_DIRECTORY.get(held).get()).then_some(upper)
}

/// Undoes [`show_archive`], in a domain that is being removed.
fn hide_archive(domain: Ref<Domain>) {
    let Some(upper) = shown_archive(domain) else { return };
    let held = domain.held();
    table(held, upper)[index(ARCHIVE, 2)].set(0);
    frames::record(held, upper).count.update(|count| count - 1);
    Owed::new(domain, ARCHIVE).invalidate();
    prune(domain, ARCHIVE);
}

/// The slot of a user address; None if it has no last-level table.
#[inline]
pub fn find(domain: Ref<Domain>, address: u64) -> Option<Slot> {
    let held = domain.held();
    let mut at = root_frame(domain.root);
    for level in (1..4).rev() {
        let entry = table(held, at)[index(address, level)].get();
        if entry == 0 {
            return None;
        }
        at = paging::frame_of(entry);
    }
    Some(slot(held, at, address))
}

/// As [`find`], not inlined: for callers whose size counts more than their speed.
#[inline(never)]
pub fn find_apart(domain: Ref<Domain>, address: u64) -> Option<Slot> {
    find(domain, address)
}

/// The slot of a page of RAM, if the address lies where programs, heaps and stacks do.
#[inline(never)]
fn own_page(domain: Ref<Domain>, address: u64) -> Option<Slot> {
    let slot = (USER_START..FREE_START).contains(&address).then(|| find_apart(domain, address))??;
    (slot.is_used() && slot.memory() == Memory::Ram).then_some(slot)
}

/// The word of a stack at this address, rounded down to a multiple of 8; None if no RAM is mapped there.
pub fn stack_word(domain: Ref<Domain>, address: u64) -> Option<u64> {
    let frame = own_page(domain, address)?.frame();
    let word = frames::address_of(frame) + (address & 0xff8) as usize;
    // SAFETY: an aligned word of a mapped page of RAM, in the direct map. A user may write it meanwhile: then either value
    // is read.
    Some(unsafe { (word as *const u64).read_volatile() })
}

/// Whether the domain may execute code at this address of a program.
pub fn is_code(domain: Ref<Domain>, address: u64) -> bool {
    own_page(domain, address).is_some_and(|slot| slot.rights() & MAP_EXECUTE != 0)
}

/// The number of pages from `address` on that surely are unmapped, as a page table is missing; 0 if none is.
pub fn unmapped_pages(domain: Ref<Domain>, address: u64) -> u64 {
    let held = domain.held();
    let mut at = root_frame(domain.root);
    for level in (1..4).rev() {
        let entry = table(held, at)[index(address, level)].get();
        if entry == 0 {
            let pages = 1 << (9 * level);
            return pages - (address >> 12) % pages;
        }
        at = paging::frame_of(entry);
    }
    0
}

fn slot(held: Held, frame: Frame, address: u64) -> Slot {
    Slot(&table(held, frame)[index(address, 0)])
}

/// The slot of a user address; makes missing tables, charged to the domain's account. If the caller leaves the slot empty,
/// it must [`prune`] or note the tables ([`may_be_empty`]); after an error here, that is done.
#[inline]
pub fn find_or_make(domain: Ref<Domain>, address: u64) -> Result<Slot, Error> {
    let held = domain.held();
    let at = below::<3>(domain, address, root_frame(domain.root))?;
    let at = below::<2>(domain, address, at)?;
    Ok(slot(held, below::<1>(domain, address, at)?, address))
}

/// The table to which the entry for an address leads in `at`, a table of `LEVEL`; made if missing.
#[inline(always)]
fn below<const LEVEL: u32>(domain: Ref<Domain>, address: u64, at: Frame) -> Result<Frame, Error> {
    let held = domain.held();
    let entry = &table(held, at)[index(address, LEVEL)];
    if entry.get() != 0 { Ok(paging::frame_of(entry.get())) } else { make::<LEVEL>(domain, address, at, entry) }
}

/// Makes a table for the empty `entry` in the table `above`, which is of `LEVEL`.
fn make<const LEVEL: u32>(domain: Ref<Domain>, address: u64, above: Frame, entry: &PageEntry) -> Result<Frame, Error> {
    let held = domain.held();
    let made = if LEVEL == 1 { new_last(domain.account) } else { domain.account.allocate_clear(Use::Kernel) };
    match made {
        Ok(frame) => {
            entry.set(paging::user_table(frame));
            note_upper(domain, address, LEVEL, frame);
            frames::record(held, above).count.update(|count| count + 1);
            Ok(frame)
        }
        Err(error) => {
            prune(domain, address);
            Err(error)
        }
    }
}

fn new_last(account: Ref<Account>) -> Result<Frame, Error> {
    let held = account.held();
    let frame = account.allocate_clear(Use::Kernel)?;
    match slab::allocate_as_it_is::<Shadow>(account) {
        Ok(shadow) => frames::record(held, frame).set_shadow(shadow.share().address()),
        Err(error) => {
            account::release(held, frame);
            return Err(error);
        }
    }
    Ok(frame)
}

/// Frees the empty tables on the walk to `address`, from the last level up; never the root.
pub fn prune(domain: Ref<Domain>, address: u64) {
    let held = domain.held();
    let mut path = [0 as Frame; 4];
    path[3] = root_frame(domain.root);
    let mut lowest = 3;
    while lowest > 0 {
        let entry = table(held, path[lowest])[index(address, lowest as u32)].get();
        if entry == 0 {
            break;
        }
        lowest -= 1;
        path[lowest] = paging::frame_of(entry);
    }
    for level in lowest..3 {
        if frames::record(held, path[level]).count.get() != 0 {
            return;
        }
        if level == 0 {
            // SAFETY: a last-level table was made with its shadow, and the record holds its address; nothing maps through it
            // any more.
            slab::free(unsafe { Ref::<Shadow>::new(frames::record(held, path[0]).shadow() as *mut Shadow) });
        }
        table(held, path[level + 1])[index(address, level as u32 + 1)].set(0);
        note_upper(domain, address, level as u32 + 1, own::zeros());
        frames::record(held, path[level + 1]).count.update(|count| count - 1);
        // Processors may cache entries of upper levels; invalidating any page below drops them (Intel SDM volume 3,
        // 4.10.4.1).
        Owed::new(domain, address).invalidate();
        if domain.lends.get() {
            // Portal code on another CPU may be reading this table, for a page to lend.
            cpu::stop_where(held, |other| other.domain_there() == Some(domain));
        }
        // An empty table is full of zeros.
        account::release_table(domain.account, path[level]);
    }
}

/// Bits of an address below the part that selects a last-level table.
const LAST_LEVEL: u32 = 21;

/// Notes that the tables for `address` may be empty: their last page moved away, or they were made for a page that may not
/// come.
pub fn may_be_empty(domain: Ref<Domain>, address: u64) {
    domain.emptied.set(last_table(address));
}

const fn last_table(address: u64) -> u32 {
    (address >> LAST_LEVEL) as u32 + 1
}

/// As [`prune_emptied`], unless the noted tables are those for `address`. Callers do this before they move the page at
/// `address` away.
#[inline(always)]
pub fn prune_others(domain: Ref<Domain>, address: u64) -> bool {
    let number = domain.emptied.get();
    number != 0 && number != last_table(address) && prune_emptied(domain)
}

/// Frees the tables that [`may_be_empty`] noted, if they are empty. A domain notes one place only: callers do this before
/// they leave tables at another. True if it freed tables, which is a step; false if there was nothing to do.
#[inline(never)]
pub fn prune_emptied(domain: Ref<Domain>) -> bool {
    let Some(number) = domain.emptied.take().checked_sub(1) else { return false };
    let address = u64::from(number) << LAST_LEVEL;
    let is_empty = |slot: Slot| frames::record(domain.held(), slot.table()).count.get() == 0;
    let prunes = find_apart(domain, address).is_some_and(is_empty);
    if prunes {
        prune(domain, address);
    }
    prunes
}

/// The last-level entry for a frame. With the right to execute, first makes the frame's contents visible to instruction
/// fetch.
#[inline(always)]
pub fn entry(frame: Frame, rights: u64, memory: Memory) -> u64 {
    let published = (rights & MAP_EXECUTE != 0).then(|| paging::publish(frame));
    paging::user_page(frame, rights, memory, published)
}

impl Slot {
    /// Whether a page is mapped.
    pub fn is_used(&self) -> bool {
        self.0.get() != 0
    }
    fn address(&self) -> usize {
        &raw const *self.0 as usize
    }
    fn table(&self) -> Frame {
        frames::frame_of(self.address())
    }
    /// The word of the table's shadow for this slot.
    fn shadow(&self, held: Held) -> &'static Cell<u32> {
        &shadow(held, self.table())[self.address() / size_of::<u64>() % 512]
    }
    /// The mapped frame.
    pub fn frame(&self) -> Frame {
        paging::frame_of(self.0.get())
    }
    /// `MAP_READ` and the like.
    pub fn rights(&self) -> u64 {
        paging::rights_of(self.0.get())
    }
    /// The mapping, unless the page is the nucleus's own.
    pub fn mapping(&self, held: Held) -> Link<Mapping> {
        if !self.is_used() {
            return None;
        }
        let compressed = self.shadow(held).get() as usize;
        // SAFETY: the entry is used, so its word in the shadow is 0 or the compressed address of a live mapping.
        unsafe { Ref::link(if compressed == 0 { 0 } else { DIRECT + (compressed << 6) }) }
    }
    /// Writes an [`entry`] into this free slot.
    pub fn set(&self, held: Held, entry: u64, mapping: Link<Mapping>) {
        self.shadow(held).set(mapping.map_or(0, |mapping| (mapping.address() >> 6) as u32));
        frames::record(held, self.table()).count.update(|count| count + 1);
        self.0.set(entry);
        paging::publish_entries();
    }
    /// The next slot, which is in the same table.
    pub fn next(&self, held: Held) -> Self {
        Self(&table(held, self.table())[(self.address() / size_of::<u64>() + 1) % 512])
    }
    /// Lets windows show the page.
    pub fn lend(&self) {
        self.0.set(paging::lent(self.0.get()));
    }
    /// Whether windows may show the page.
    pub fn is_lent(&self) -> bool {
        paging::is_lent(self.0.get())
    }
    /// Prevents windows from showing the page from now on.
    pub fn keep(&self) {
        self.0.set(paging::kept(self.0.get()));
    }
    /// Whether windows are prevented from showing the page.
    pub fn is_kept(&self) -> bool {
        paging::is_kept(self.0.get())
    }
    /// The entry for a window that shows the page, to be written or not.
    pub fn in_window(&self, writes: bool) -> u64 {
        let entry = paging::without(self.0.get(), MAP_EXECUTE);
        if writes { entry } else { paging::without(entry, MAP_WRITE) }
    }
    /// The kind of memory mapped here.
    pub fn memory(&self) -> Memory {
        paging::memory_of(self.0.get())
    }
    /// Unmaps the page, and frees tables that are then empty.
    pub fn clear(&self, domain: Ref<Domain>, address: u64) {
        self.empty(domain, address);
        prune(domain, address);
    }
    /// Unmaps the page, but keeps the tables for the next page there. [`prune_others`] must have returned false before.
    pub fn leave(&self, domain: Ref<Domain>, address: u64) {
        self.empty(domain, address);
        may_be_empty(domain, address);
    }
    fn empty(&self, domain: Ref<Domain>, address: u64) {
        self.0.set(0);
        frames::record(domain.held(), self.table()).count.update(|count| count - 1);
        Owed::new(domain, address).invalidate();
    }
    /// Takes rights away.
    pub fn reduce(&self, domain: Ref<Domain>, address: u64, rights: u64) {
        let entry = paging::without(self.0.get(), rights);
        if entry != self.0.get() {
            self.0.set(entry);
            Owed::new(domain, address).invalidate();
        }
    }
}

/// Maps a page of the nucleus (a message area), writable, which no window may show.
pub fn map_nucleus_page(domain: Ref<Domain>, address: u64, frame: Frame) -> Result<(), Error> {
    let held = domain.held();
    find_or_make(domain, address)?.set(held, paging::kept(entry(frame, MAP_READ | MAP_WRITE, Memory::Ram)), None);
    Ok(())
}

/// Undoes [`map_nucleus_page`].
pub fn unmap_nucleus_page(domain: Ref<Domain>, address: u64) {
    if let Some(slot) = find(domain, address).filter(Slot::is_used) {
        slot.clear(domain, address);
    }
}
