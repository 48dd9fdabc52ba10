//! Entries of page tables, and what is passed to the processor. The tables are `memory::space` and `memory::own`, which expect four levels
//! of 512 entries and pages of 4 KiB.

use crate::objects::{Frame, Memory, Own, Table};
use crate::pointer::Held;
use abi::boot::{BootInfo, Region};
use core::ops::Range;

/// The frame of a table or page.
pub fn frame_of(entry: u64) -> Frame {
    unimplemented!()
}

/// The frame of a root.
pub fn root_frame(root: u64) -> Frame {
    unimplemented!()
}

/// The entry for a table of users.
pub fn user_table(frame: Frame) -> u64 {
    unimplemented!()
}

/// The entry for a table of the nucleus.
pub fn nucleus_table(frame: Frame) -> u64 {
    unimplemented!()
}

/// The last-level entry for a page of users, written if the rights say so (`MAP_WRITE`), executed if its contents are published.
pub fn user_page(frame: Frame, rights: u64, memory: Memory, published: Option<Published>) -> u64 {
    unimplemented!()
}

/// The rights in a last-level entry of users.
pub fn rights_of(entry: u64) -> u64 {
    unimplemented!()
}

/// A last-level entry of users without these rights.
pub fn without(entry: u64, rights: u64) -> u64 {
    unimplemented!()
}

/// The memory that a last-level entry of users maps.
pub fn memory_of(entry: u64) -> Memory {
    unimplemented!()
}

/// Entries that were free and are used now are seen by the processor from here on: it never keeps that one was free.
pub fn publish_entries() {
    unimplemented!()
}

/// As [`publish_entries`], and what this CPU does next finds them.
pub fn publish_entries_here() {
    unimplemented!()
}

/// Proof that code in a frame is visible to instruction fetch: its holder may have the frame executed. Only [`publish`] makes one.
pub struct Published(());

/// Makes newly written code visible to instruction fetch, on all CPUs.
pub fn publish(_: Frame) -> Published {
    unimplemented!()
}

/// The last-level entry for a page of the nucleus.
pub fn own_page(physical: u64, own: Own) -> u64 {
    unimplemented!()
}

/// The entry of the level above for 2 MiB of the nucleus.
pub fn own_large(physical: u64, own: Own) -> u64 {
    unimplemented!()
}

/// A frame that is nobody's, and can be full of zeros, if there is one.
pub const ZEROS: Option<Frame> = None;

/// Whether an entry above the last level leads to a table.
pub fn leads_to_table(entry: u64) -> bool {
    unimplemented!()
}

/// Whether a page of the nucleus is its alone, never executed by users, and either written or executed.
pub fn is_harmless(entry: u64) -> bool {
    unimplemented!()
}

/// Whether the nucleus can write to a page of its own.
pub fn is_writable(entry: u64) -> bool {
    unimplemented!()
}

/// The part of the direct map that shows a region of RAM.
pub fn shown(region: &Region) -> Range<usize> {
    unimplemented!()
}

/// Calls `show` with the registers that the nucleus uses: virtual and physical address and bytes.
pub fn show_registers(
    info: &BootInfo,
    show: impl FnMut(usize, u64, usize) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    unimplemented!()
}

/// Goes over from the boot tables to the upper half in `table`, which is in the frame `root`; gives the root that is loaded where
/// there is no space. `empty` is a frame full of zeros.
pub fn begin(_: Held, root: Frame, table: &Table, empty: Frame) -> Result<u64, &'static str> {
    unimplemented!()
}

/// Loads the root of a space.
pub fn load_root(root: u64) {
    unimplemented!()
}

/// Puts the nucleus's upper half into the table of a root, if roots have one.
pub fn show_upper(table: &Table, upper: &Table) {
    unimplemented!()
}

/// The root of a space in this frame, in which nothing is mapped; None if there are too many spaces.
pub fn new_root(_: Held, frame: Frame) -> Option<u64> {
    unimplemented!()
}

/// Translations of a space are kept while another is loaded.
pub const KEEPS_TRANSLATIONS: bool = false;

/// A root will not be used any more.
pub fn end_root(_: Held, root: u64) {
    unimplemented!()
}

/// Drops the translation of a page in the space with this root: on all CPUs if translations are kept while another space is loaded,
/// or else on this one, where the root is loaded.
pub fn drop_page(root: u64, address: u64) {
    unimplemented!()
}

/// As [`drop_page`], of so many pages one behind the other.
pub fn drop_pages(root: u64, address: u64, count: usize) {
    unimplemented!()
}

/// Another root of the same space.
pub fn root_beside(root: u64, frame: Frame) -> u64 {
    unimplemented!()
}

/// A last-level entry of users for a page that windows may show.
pub fn lent(entry: u64) -> u64 {
    unimplemented!()
}

/// Whether it is for such a page.
pub fn is_lent(entry: u64) -> bool {
    unimplemented!()
}

/// The same for a page that no window will show from now on.
pub fn kept(entry: u64) -> u64 {
    unimplemented!()
}

/// Whether it is for such a page.
pub fn is_kept(entry: u64) -> bool {
    unimplemented!()
}

/// A page of the nucleus that only this CPU used goes.
pub fn forget_own(address: usize) {
    unimplemented!()
}

/// Drops cached translations of a page of a portal table and of the tables that led to it, on every CPU that enters a domain from here on.
pub fn forget_portals(address: usize) {
    unimplemented!()
}

/// Drops all translations, on all CPUs if they are kept while another space is loaded.
pub fn drop_all() {
    unimplemented!()
}
