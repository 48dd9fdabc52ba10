//! Pointers to the objects of the nucleus, and the proof that its lock is held.
//!
//! The file is a module of the nucleus, `nucleus/src/pointer.rs`, because its objects add methods to [`Ref`]; this crate compiles
//! the same file for the tests, and for Miri (`./x test --miri`).
//!
//! The compiler's refusals are part of the contract. A static is not reached without the lock:
//! ```compile_fail
//! use core::cell::Cell;
//! static COUNT: pointer::Nucleus<Cell<u64>> = pointer::Nucleus::new(Cell::new(0));
//! COUNT.get().set(1);
//! ```
//! Its holder shows the proof:
//! ```
//! use core::cell::Cell;
//! static COUNT: pointer::Nucleus<Cell<u64>> = pointer::Nucleus::new(Cell::new(0));
//! // SAFETY: this program has one thread.
//! let held = unsafe { pointer::Held::new() };
//! COUNT.get(held).set(1);
//! assert_eq!(COUNT.get(held).get(), 1);
//! ```
//! The proof is not made from nothing,
//! ```compile_fail
//! let held = pointer::Held::new();
//! ```
//! ```compile_fail
//! let held = pointer::Held(core::marker::PhantomData);
//! ```
//! not kept where another CPU finds it,
//! ```compile_fail
//! static HELD: Option<pointer::Held> = None;
//! ```
//! and not given to another one; nor is a pointer:
//! ```compile_fail
//! // SAFETY: this program has one thread.
//! let held = unsafe { pointer::Held::new() };
//! std::thread::spawn(move || drop(held));
//! ```
//! ```compile_fail
//! static mut PLACE: u64 = 0;
//! // SAFETY: a static lives for ever.
//! let place = unsafe { pointer::Ref::new(&raw mut PLACE) };
//! std::thread::spawn(move || drop(place));
//! ```
//! Nobody has an object to himself through a pointer that others may have, too:
//! ```compile_fail
//! static mut PLACE: u64 = 0;
//! // SAFETY: a static lives for ever.
//! let mut place = unsafe { pointer::Ref::new(&raw mut PLACE) };
//! *place = 1;
//! ```
//! There is no exclusive access to the content of a static either:
//! ```compile_fail
//! static PLACE: pointer::Nucleus<u64> = pointer::Nucleus::new(0);
//! // SAFETY: this program has one thread.
//! let held = unsafe { pointer::Held::new() };
//! *PLACE.get(held) = 1;
//! ```
//! The maker of an object has exclusive access until others may know it:
//! ```compile_fail
//! static mut PLACE: u64 = 0;
//! // SAFETY: a static lives for ever, and nobody else has this one.
//! let mut fresh = unsafe { pointer::Fresh::new(&raw mut PLACE) };
//! let place = fresh.share();
//! *fresh = 1;
//! ```
//! Values written at boot are only read afterwards:
//! ```compile_fail
//! static PLACE: pointer::Boot<u64> = pointer::Boot::new(0);
//! *PLACE.write() = 1;
//! ```
#![no_std]

#[cfg(test)]
extern crate std;

#[path = "../../../nucleus/src/pointer.rs"]
mod objects;

pub use objects::{Boot, Fresh, Held, Link, Nucleus, Ref, look};

#[cfg(test)]
mod tests {
    use super::{Boot, Fresh, Held, Link, Nucleus, Ref, look};
    use core::cell::Cell;
    use std::boxed::Box;

    struct Node {
        number: u64,
        count: Cell<u64>,
        next: Cell<Link<Node>>,
    }

    fn node(number: u64) -> Fresh<Node> {
        let node = Box::leak(Box::new(Node { number, count: Cell::new(0), next: Cell::new(None) }));
        // SAFETY: just made, and never freed.
        unsafe { Fresh::new(node) }
    }

    #[test]
    fn a_new_object_is_filled_in_then_shared() {
        let mut fresh = node(1);
        fresh.number = 7;
        let node = fresh.share();
        assert_eq!(node.number, 7);
    }

    #[test]
    fn two_pointers_to_one_object_see_what_either_changes() {
        let one = node(1).share();
        let (other, count) = (one, &one.count);
        other.count.set(5);
        count.update(|count| count + 1);
        assert_eq!((one.count.get(), one == other, one.address()), (6, true, other.address()));
    }

    #[test]
    fn a_link_is_one_word_and_nothing_is_zero() {
        assert_eq!(size_of::<Link<Node>>(), size_of::<usize>());
        // SAFETY: 0 is no address.
        assert!(unsafe { Ref::<Node>::link(0) }.is_none());
        let node = node(3).share();
        // SAFETY: the address of an object that lives.
        let same = unsafe { Ref::<Node>::link(node.pointer().expose_provenance()) };
        assert!(same == Some(node));
    }

    #[test]
    fn objects_lead_to_each_other_in_a_ring() {
        let (one, two) = (node(1).share(), node(2).share());
        one.next.set(Some(two));
        two.next.set(Some(one));
        let back = one.next.get().and_then(|next| next.next.get());
        assert!(back == Some(one) && look(&one.next) == Some(two));
        one.next.set(None);
        assert!(look(&one.next).is_none());
        assert_eq!(size_of::<Held>(), 0);
    }

    #[test]
    fn a_static_is_an_object_like_others() {
        static COUNT: Nucleus<Cell<u64>> = Nucleus::new(Cell::new(1));
        // SAFETY: no other test knows this static.
        let held = unsafe { Held::new() };
        COUNT.reference(held).set(4);
        assert_eq!(COUNT.get(held).get(), 4);
    }

    #[test]
    fn values_written_at_boot_are_read_afterwards() {
        static NUMBERS: Boot<[u64; 3]> = Boot::new([0; 3]);
        // SAFETY: no other test knows this static.
        let numbers = unsafe { NUMBERS.write() };
        numbers[1] = 9;
        assert_eq!(NUMBERS.get(), &[0, 9, 0]);
    }
}
