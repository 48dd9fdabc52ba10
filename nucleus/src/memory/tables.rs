//! Portal tables, as the system call finds them. Each domain has a range of 16 MiB in the upper half, room for the largest
//! table, in which its table is virtually contiguous. A table has the pages from the start of the range to its limit; it grows
//! at its end, a page at a time.
//!
//! All ranges share their first page, with the kernel operations. Ranges are read-only: the nucleus writes entries through the
//! direct map. Only a CPU that is in a domain reads its range. So a CPU that enters a domain finds the present entries,
//! whatever the range had before.

use super::account;
use super::frames::{self, Use, table};
use super::own::{self, boot_table, boot_walk};
use crate::arch::paging;
use crate::cpus::assembly;
use crate::objects::{
    Account, Domain, Entry, FRAME, Frame, MAX_TABLE_BYTES as BYTES, NEAR_PAGES, Numbers, Operation, Own, PageEntry,
    index,
};
use crate::pointer::{Held, Nucleus, Ref};
use abi::layout::{ENTRY_BYTES, MAX_TABLE_ENTRIES, PAGE_FAULT};
use abi::rights::Kind;
use abi::{Error, MAX_THREADS};
use core::cell::Cell;
use core::sync::atomic::{Ordering, fence};
use structures::quota::Paying;

/// Shares its entry of the root with the image, which is far above.
const START: usize = 0xffff_ff80_0000_0000;
/// The most domains that can run: each has a thread of its own, and an orphan thread.
const COUNT: usize = MAX_THREADS / 2;
/// Pages that a last-level table maps.
const PAGES_OF_TABLE: usize = FRAME / 8;
/// Entries per page.
const PAGE_ENTRIES: usize = FRAME / ENTRY_BYTES;

struct Ranges {
    /// The table below the root's entry: a directory for each 64 ranges.
    upper: Cell<Frame>,
    /// The shared first page.
    operations: Cell<Frame>,
    numbers: Numbers<{ COUNT / 64 }>,
}

static RANGES: Nucleus<Ranges> =
    Nucleus::new(Ranges { upper: Cell::new(0), operations: Cell::new(0), numbers: Numbers::new() });

/// Makes the first page, which all ranges share, with the kernel operations.
#[unsafe(link_section = ".init")]
pub fn init(held: Held, operations: &[Operation]) -> Result<(), &'static str> {
    let ranges = RANGES.get(held);
    ranges.upper.set(boot_walk(held, own::upper(), START, 2)?);
    let frame = boot_table(held)?;
    fill(frame);
    for (number, operation) in operations.iter().enumerate() {
        let place = entry_in(frame, number);
        place.code.set(operation.code as usize);
        place.object.set(operation.function as usize);
        place.node.kind.set(Kind::Operation as u8);
    }
    ranges.operations.set(frame);
    Ok(())
}

/// The entry at this index of the page in a frame.
#[inline(always)]
fn entry_in(frame: Frame, index: usize) -> Ref<Entry> {
    // SAFETY: the frame is a page of entries, in the direct map, which its domain frees last.
    unsafe { Ref::new((frames::address_of(frame) + index % PAGE_ENTRIES * ENTRY_BYTES) as *mut Entry) }
}

/// Entries that [`fill`] writes per iteration.
const FILLED_AT_ONCE: usize = 16;

/// Fills a page with empty entries.
#[inline(never)]
fn fill(frame: Frame) {
    let empty = assembly::entry_empty as *const () as usize;
    for first in (0..PAGE_ENTRIES).step_by(FILLED_AT_ONCE) {
        for index in first..first + FILLED_AT_ONCE {
            // All other fields are written when the entry is filled, and not read before.
            let place = entry_in(frame, index);
            place.code.set(empty);
            place.node.kind.set(Kind::Empty as u8);
            place.node.rights.set(0);
        }
    }
}

/// The page-table entry, read-only, for a page of a portal table.
fn portal_page(frame: Frame) -> u64 {
    paging::own_page((frame as u64) << 12, Own::Constants)
}

/// The page-table entry for the directory of the 64 ranges in which an address lies.
fn to_directory(held: Held, address: usize) -> &'static PageEntry {
    &table(held, RANGES.get(held).upper.get())[index(address as u64, 2)]
}

/// The page-table entry for the last-level table of an address, whose range is allocated.
fn to_last(held: Held, address: usize) -> &'static PageEntry {
    &table(held, paging::frame_of(to_directory(held, address).get()))[index(address as u64, 1)]
}

/// Allocates an empty range. The account pays for the directory of 64 ranges if this is the first of them in use, until the
/// last of them is freed.
fn take(account: Ref<Account>) -> Result<usize, Error> {
    let held = account.held();
    let number = RANGES.get(held).numbers.take(COUNT).ok_or(Error::NoDomains)?;
    let address = START + number * BYTES;
    let entry = to_directory(held, address);
    if entry.get() == 0 {
        match account.allocate_clear_apart(Use::Kernel) {
            Ok(frame) => entry.set(paging::nucleus_table(frame)),
            Err(error) => {
                RANGES.get(held).numbers.give_back(number);
                return Err(error);
            }
        }
    }
    frames::record(held, paging::frame_of(entry.get())).count.update(|count| count + 1);
    Ok(address)
}

/// Frees an empty range.
fn give_back(held: Held, address: usize) {
    let entry = to_directory(held, address);
    let frame = paging::frame_of(entry.get());
    let count = &frames::record(held, frame).count;
    count.update(|count| count - 1);
    if count.get() == 0 {
        entry.set(0);
        paging::forget_portals(address);
        account::release(held, frame);
    }
    RANGES.get(held).numbers.give_back((address - START) / BYTES);
}

impl Ref<Domain> {
    /// Bytes of the table, the first page included.
    fn table_bytes(self) -> usize {
        self.limit.get() + 1
    }
    /// Entries of the table.
    pub fn table_entries(self) -> usize {
        self.table_bytes() / ENTRY_BYTES
    }
    /// The entry at an index, of any kind. Beyond the end of the table it is a shared empty entry, which must not be written.
    #[inline(always)]
    pub fn place(self, index: usize) -> Result<Ref<Entry>, Error> {
        match self.near_pages.get(index / PAGE_ENTRIES) {
            // SAFETY: `page` is the direct-map address of a page of entries, less its offset: this is one of them.
            Some(page) => Ok(unsafe { Ref::new((page.get().wrapping_add(index * ENTRY_BYTES)) as *mut Entry) }),
            None => self.place_far(index),
        }
    }
    /// As [`Self::place`], not inlined: for callers whose size counts more than their speed.
    #[inline(never)]
    pub fn place_of(self, index: usize) -> Result<Ref<Entry>, Error> {
        self.place(index)
    }
    /// As [`Self::place`], beyond the near pages.
    #[inline(never)]
    fn place_far(self, index: usize) -> Result<Ref<Entry>, Error> {
        let held = self.held();
        if index >= MAX_TABLE_ENTRIES {
            return Err(Error::BadIndex);
        }
        let frame = if index < self.table_entries() {
            let address = self.table.get() + index * ENTRY_BYTES;
            let last = table(held, paging::frame_of(to_last(held, address).get()));
            paging::frame_of(last[crate::objects::index(address as u64, 0)].get())
        } else {
            own::zeros()
        };
        Ok(entry_in(frame, index))
    }
    /// Sets where [`Self::place`] finds the page at this offset, if it is a near one.
    fn set_near(self, offset: usize, frame: Frame) {
        if let Some(page) = self.near_pages.get(offset / FRAME) {
            page.set(frames::address_of(frame).wrapping_sub(offset));
        }
    }
    /// Makes the smallest table, in a new range.
    pub fn begin_table(self) -> Result<(), Error> {
        let held = self.held();
        self.table.set(take(self.account)?);
        self.limit.set(FRAME - 1);
        for page in 0..NEAR_PAGES {
            self.set_near(page * FRAME, own::zeros());
        }
        self.set_near(0, RANGES.get(held).operations.get());
        self.grow_table()
    }
    /// Adds a page of empty entries to the table. CPUs in the domain notice when they use one of them.
    pub fn grow_table(self) -> Result<(), Error> {
        let held = self.held();
        let bytes = self.table_bytes();
        if bytes == BYTES {
            return Err(Error::TableFull);
        }
        let address = self.table.get() + bytes;
        let frame = self.account.allocate_apart(Use::Portals)?;
        let above = to_last(held, address);
        if above.get() == 0 {
            match self.account.allocate_clear_apart(Use::Kernel) {
                Ok(last) => above.set(paging::nucleus_table(last)),
                Err(error) => {
                    account::release(held, frame);
                    return Err(error);
                }
            }
        }
        let last = table(held, paging::frame_of(above.get()));
        if bytes == FRAME {
            last[0].set(portal_page(RANGES.get(held).operations.get()));
        }
        fill(frame);
        self.set_near(bytes, frame);
        frames::record(held, frame).set_domain(self);
        last[index(address as u64, 0)].set(portal_page(frame));
        paging::publish_entries();
        self.free_hint.set((bytes / ENTRY_BYTES) as u32);
        // Release: a reader of the limit finds the page.
        fence(Ordering::Release);
        self.limit.set(bytes + FRAME - 1);
        Ok(())
    }
    /// Whether the account can pay for growing the table to `index`, beyond its end.
    pub fn check_growth(self, index: usize) -> Result<(), Error> {
        let (last, new_last) = (self.table_bytes() / FRAME - 1, index / PAGE_ENTRIES);
        self.account.check(new_last - last + new_last / PAGES_OF_TABLE - last / PAGES_OF_TABLE)
    }
    /// A step of [`Self::grow_table`]: prepares frames for it, or does it.
    #[inline(never)]
    pub fn grow_table_step(self) -> Result<(), Error> {
        let held = self.held();
        if frames::prepare(held) || frames::clear_ahead(held, 1) { Ok(()) } else { self.grow_table() }
    }
    /// Frees the last page of the table of a domain that no CPU is in; false if only the page of operations is left.
    pub fn shrink_table(self) -> bool {
        let held = self.held();
        let Some(bytes) = self.table_bytes().checked_sub(FRAME).filter(|bytes| *bytes != 0) else { return false };
        self.limit.set(bytes - 1);
        self.set_near(bytes, own::zeros());
        let address = self.table.get() + bytes;
        let above = to_last(held, address);
        let last = paging::frame_of(above.get());
        let (pages, place) = (table(held, last), index(address as u64, 0));
        let frame = paging::frame_of(pages[place].get());
        pages[place].set(0);
        // The domain's first own page follows that with the operations.
        let is_last = bytes == FRAME || place == 0;
        if is_last {
            pages[0].set(0);
            above.set(0);
        }
        paging::forget_portals(address);
        account::release_for(self.account, frame);
        if is_last {
            account::release_table(self.account, last);
        }
        true
    }
    /// The entries from an index on, up to the end of their page.
    #[inline(always)]
    pub fn rest_of_page(self, index: usize) -> &'static [Entry] {
        let Ok(first) = self.place_of(index) else { return &[] };
        // SAFETY: the rest of a page of entries in the direct map, which the domain frees last.
        unsafe { core::slice::from_raw_parts(first.pointer(), PAGE_ENTRIES - index % PAGE_ENTRIES) }
    }
    /// The number of empty entries in a row from an index on, within their page.
    pub fn empty_from(self, index: usize) -> usize {
        self.rest_of_page(index).iter().take_while(|entry| entry.node.kind.get() == Kind::Empty as u8).count()
    }
    /// Frees the table, which has few pages, and the range of a domain that no CPU is in.
    #[inline(never)]
    pub fn free_table(self) {
        if self.table.get() != 0 {
            while self.shrink_table() {}
            give_back(self.held(), self.table.get());
        }
    }
}

const _: () = assert!(abi::op::COUNT < PAGE_ENTRIES && PAGE_ENTRIES == PAGE_FAULT[0]);
// A page of zeros reads as empty entries.
const _: () = assert!(Kind::Empty as u8 == 0);
