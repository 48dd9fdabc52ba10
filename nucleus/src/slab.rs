//! Small objects: pages of equal slots, each page charged to one account and holding only its objects.
//!
//! The record of a page has the index of its first free slot and how many are free; the first byte of
//! a free slot has the distance from the slot behind it to the next free one, modulo 256: 0 in all slots of
//! a new page. Slots are cleared when they are handed out.

use crate::account::{self, Account};
use crate::frames::{self, FRAME, Frame, Use};
use crate::pointer::Ref;
use abi::Error;

/// Sizes of slots in bytes, multiples of 64.
const SIZES: [usize; CLASSES] = [64, 128, 192, 320, 448, 576, 1024, 2048];
/// How many sizes there are.
pub const CLASSES: usize = 8;

const fn class_of(bytes: usize) -> usize {
    let mut class = 0;
    while SIZES[class] < bytes {
        class += 1;
    }
    class
}

/// A cleared object charged to `account`.
pub fn allocate<T>(account: Ref<Account>) -> Result<Ref<T>, Error> {
    let object: Ref<T> = allocate_as_it_is(account)?;
    // SAFETY: the slot is ours alone, and has room for a `T`.
    unsafe { core::ptr::write_bytes(object.pointer(), 0, 1) };
    Ok(object)
}

/// As [`allocate`], with whatever the memory holds.
pub fn allocate_as_it_is<T>(account: Ref<Account>) -> Result<Ref<T>, Error> {
    let address = take(account, const { class_of(size_of::<T>()) })?;
    // SAFETY: the slot is ours alone, in the direct map, and large enough; every object of the nucleus is
    // valid when all its bytes are zero, and a shadow whatever they are.
    Ok(unsafe { Ref::new(address as *mut T) })
}

fn take(mut account: Ref<Account>, class: usize) -> Result<usize, Error> {
    let mut frame = account.partial[class];
    if frame == 0 {
        frame = new_page(account, class)?;
    }
    let record = frames::record(frame);
    let page = frames::address_of(frame);
    let address = page + record.order as usize * SIZES[class];
    // SAFETY: a free slot of a slab page, in the direct map.
    record.order = unsafe { *(address as *const u8) }.wrapping_add(record.order + 1);
    record.count -= 1;
    if record.count & 0xfff == 0 {
        account.partial[class] = record.next;
        if record.next != 0 {
            frames::record(record.next).previous = 0;
        }
    }
    Ok(address)
}

fn new_page(mut account: Ref<Account>, class: usize) -> Result<Frame, Error> {
    let frame = account.allocate(0, Use::Slab)?;
    let slots = FRAME / SIZES[class];
    let (mut slot, size) = (frames::address_of(frame) as *mut u8, SIZES[class]);
    for _ in 0..slots {
        // SAFETY: inside the new page.
        unsafe {
            *slot = 0;
            slot = slot.add(size);
        }
    }
    let record = frames::record(frame);
    (record.order, record.count) = (0, slots as u16 | (class as u16) << 12);
    (record.next, record.previous) = (0, 0);
    account.partial[class] = frame;
    Ok(frame)
}

/// Frees an object made by [`allocate`].
pub fn free<T>(object: Ref<T>) {
    let address = object.address();
    let frame = frames::frame_of(address);
    let record = frames::record(frame);
    let class = (record.count >> 12) as usize;
    let page = frames::address_of(frame);
    let slot = ((address - page) / SIZES[class]) as u8;
    // SAFETY: the slot is free from here on.
    unsafe { *(address as *mut u8) = record.order.wrapping_sub(slot + 1) };
    record.order = slot;
    record.count += 1;
    let mut account = record.account();
    let free = (record.count & 0xfff) as usize;
    if free == 1 {
        let head = account.partial[class];
        (record.next, record.previous) = (head, 0);
        if head != 0 {
            frames::record(head).previous = frame;
        }
        account.partial[class] = frame;
    }
    if free == FRAME / SIZES[class] {
        let (next, previous) = (record.next, record.previous);
        if next != 0 {
            frames::record(next).previous = previous;
        }
        if previous != 0 {
            frames::record(previous).next = next;
        } else {
            account.partial[class] = next;
        }
        account::release(frame, 0);
    }
}
