//! Allocator of small objects, in pages of 64 granules of 64 bytes. Each page is charged to one account and holds only
//! objects of that account, of all sizes. So a small domain needs one such page.
//!
//! The first granule of a page is its [`Header`]: which granules are free, and the links of the list of the account's pages
//! that have free ones. An object is a run of granules; its type determines how many ([`structures::granules`]).

use super::account;
use super::frames::{self, Use};
use crate::objects::{Account, FRAME, Frame};
use crate::pointer::{Fresh, Held, Ref};
use abi::Error;
use core::cell::Cell;
use structures::granules::{self, Granules};

const GRANULE: usize = 64;
/// Pages of an account that are searched before it gets another one.
const TRIES: usize = 3;
#[repr(C, align(64))]
struct Header {
    free: Granules,
    next: Cell<Frame>,
    previous: Cell<Frame>,
}

const _: () = assert!(size_of::<Header>() == GRANULE && FRAME == 64 * GRANULE);

fn header(_: Held, page: Frame) -> &'static Header {
    // SAFETY: a page of objects, in the direct map, begins with its header; it is accessed under the nucleus lock.
    unsafe { &*(frames::address_of(page) as *const Header) }
}

trait Size {
    const GRANULES: u32;
}

impl<T> Size for T {
    const GRANULES: u32 = {
        assert!(size_of::<T>() <= granules::MOST as usize * GRANULE && align_of::<T>() <= GRANULE);
        granules::taken(size_of::<T>().div_ceil(GRANULE) as u32)
    };
}

/// Allocates a cleared object, charged to `account`.
pub fn allocate<T>(account: Ref<Account>) -> Result<Fresh<T>, Error> {
    let mut object: Fresh<T> = allocate_as_it_is(account)?;
    // SAFETY: the granules were just allocated, nothing else refers to them, and they have room for a `T`.
    unsafe { core::ptr::write_bytes(&raw mut *object, 0, 1) };
    Ok(object)
}

/// As [`allocate`], without clearing: the caller writes all that it reads.
pub fn allocate_as_it_is<T>(account: Ref<Account>) -> Result<Fresh<T>, Error> {
    let address = match T::GRANULES {
        1 => take::<1>(account),
        2 => take::<2>(account),
        3 => take::<3>(account),
        4 => take::<4>(account),
        8 => take::<8>(account),
        12 => take::<12>(account),
        granules::HALF => take::<{ granules::HALF }>(account),
        _ => take::<{ granules::MOST }>(account),
    }?;
    // SAFETY: the granules were just allocated, lie in the direct map, and have room for a `T`. `allocate` clears them, and
    // zeros are a valid object of every type here; the other callers need no initial contents: they write an object before
    // they read it.
    Ok(unsafe { Fresh::new(address as *mut T) })
}

fn take<const COUNT: u32>(account: Ref<Account>) -> Result<usize, Error> {
    let held = account.held();
    let mut page = account.partial.get();
    // Large objects: a page with other objects rarely has half a page free.
    for _ in 0..if COUNT < granules::HALF { TRIES } else { 1 } {
        if page == 0 {
            break;
        }
        let header = header(held, page);
        if let Some(first) = header.free.take::<COUNT>() {
            if header.free.is_full() {
                unlist(account, page);
            }
            return Ok(still_poisoned(frames::address_of(page) + first as usize * GRANULE, COUNT));
        }
        page = header.next.get();
    }
    take_in_new(account, COUNT)
}

/// Allocates in a new page of the account.
#[inline(never)]
fn take_in_new(account: Ref<Account>, count: u32) -> Result<usize, Error> {
    let held = account.held();
    let page = account.allocate_one(Use::Slab)?;
    header(held, page).free.begin(count);
    list(account, page);
    poison(frames::address_of(page) + GRANULE, FRAME / GRANULE - 1);
    Ok(frames::address_of(page) + GRANULE)
}

/// Contents of free granules in a checked build.
const POISON: u64 = 0xdead_dead_dead_dead;

/// In a checked build: overwrites free granules.
fn poison(address: usize, granules: usize) {
    if cfg!(feature = "checked") {
        // SAFETY: the granules lie in a page of objects and are free: nothing refers to them.
        unsafe { core::slice::from_raw_parts_mut(address as *mut u64, granules * GRANULE / 8).fill(POISON) };
    }
}

/// In a checked build: panics if these granules were written while they were free.
fn still_poisoned(address: usize, granules: u32) -> usize {
    if cfg!(feature = "checked") {
        // SAFETY: the granules lie in a page of objects, and were just taken: nothing else refers to them.
        let words = unsafe { core::slice::from_raw_parts(address as *const u64, granules as usize * GRANULE / 8) };
        assert!(words.iter().all(|word| *word == POISON), "an object was written after it was freed");
    }
    address
}

#[inline(never)]
fn list(account: Ref<Account>, page: Frame) {
    let held = account.held();
    let head = account.partial.replace(page);
    header(held, page).next.set(head);
    header(held, page).previous.set(0);
    if head != 0 {
        header(held, head).previous.set(page);
    }
}

#[inline(never)]
fn unlist(account: Ref<Account>, page: Frame) {
    let held = account.held();
    let (next, previous) = (header(held, page).next.get(), header(held, page).previous.get());
    if next != 0 {
        header(held, next).previous.set(previous);
    }
    if previous != 0 {
        header(held, previous).next.set(next);
    } else {
        account.partial.set(next);
    }
}

/// Frees an object made by [`allocate`].
pub fn free<T>(object: Ref<T>) {
    let held = object.held();
    give(held, object.address(), granules::mask(T::GRANULES));
}

fn give(held: Held, address: usize, mask: u64) {
    let page = frames::frame_of(address);
    let header = header(held, page);
    let bits = mask << (address % FRAME / GRANULE);
    if cfg!(feature = "checked") {
        assert!(
            frames::record(held, page).used.get() == Use::Slab && !header.free.has_any(bits),
            "an object is freed twice"
        );
        poison(address, mask.count_ones() as usize);
    }
    let account = frames::record(held, page).account();
    if header.free.is_full() {
        list(account, page);
    }
    header.free.give(bits);
    if header.free.is_empty() {
        unlist(account, page);
        account::release(held, page);
    }
}
