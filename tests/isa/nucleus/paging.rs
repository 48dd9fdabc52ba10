//! Entries of page tables, the upper half, which all spaces share, and what the processor is told. The tables of users are
//! `crate::space`, which expects four levels of 512 entries and pages of 4 KiB.

use crate::account::Account;
use crate::domain::Domain;
use crate::frames::Frame;
use crate::pointer::{Held, Ref};
use crate::space::Memory;
use abi::Error;
use abi::boot::{BootInfo, Region};

/// Bytes of the image in physical memory, boot section included.
pub fn image() -> Region {
    unimplemented!()
}

/// What of the image is used no more once the final tables and segments are loaded: the code and tables that
/// led there, and the page below the stack, which is not mapped as such.
pub fn boot_parts() -> [Region; 2] {
    unimplemented!()
}

/// Unmaps what of the image only boots, which nobody runs any more.
pub fn end_init(_: Held) -> Region {
    unimplemented!()
}

/// The frame of a table or page.
pub fn frame_of(entry: u64) -> Frame {
    unimplemented!()
}

/// A frame full of zeros, for good.
pub fn zeros(_: Held) -> Frame {
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

/// The last-level entry for a page of users with these rights (`MAP_READ` and the like).
pub fn user_page(frame: Frame, rights: u64, memory: Memory) -> u64 {
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

/// What a last-level entry of users maps.
pub fn memory_of(entry: u64) -> Memory {
    unimplemented!()
}

/// Entries that were free and are used now are seen by the processor from here on: it never keeps that one was free.
pub fn settle() {
    unimplemented!()
}

/// What was written into a frame is what instructions are fetched from, on all CPUs: caches of instructions follow what is
/// written (volume 3, 12.6).
pub fn publish(_: Frame) {
    unimplemented!()
}

/// Replaces the boot tables by the final upper half: RAM not executable, image text read-only.
pub fn init(_: Held, info: &BootInfo) -> Result<(), &'static str> {
    unimplemented!()
}

/// Loads the root of a space; without address-space identifiers this forgets every user translation.
pub fn load_root(_: Held, root: u64) {
    unimplemented!()
}

/// Loads the nucleus's own root: this CPU is in no domain.
pub fn leave_space(_: Held) {
    unimplemented!()
}

/// An empty space charged to `account`.
pub fn new_root(account: Ref<Account>) -> Result<u64, Error> {
    unimplemented!()
}

/// Translations of a space are kept while another is loaded.
pub const KEEPS_TRANSLATIONS: bool = false;

/// A root will not be used any more.
pub fn forget_root(_: Held, _: u64) {
    unimplemented!()
}

/// Drops the translation of a page of a domain wherever a processor can have it.
pub fn invalidate_page(domain: Ref<Domain>, address: u64) {
    unimplemented!()
}
