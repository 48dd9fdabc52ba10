//! Pointers to the objects of the nucleus.
//!
//! Objects live in frames of the direct map until their original entry is removed. The removal first deletes every reference
//! to the object. The nucleus runs with interrupts off, under one lock, so only one CPU at a time accesses objects. The
//! exception are the fast paths: they change a few fields without the lock ([`look`]). Only the maker of an object has
//! exclusive access ([`Fresh`]). A [`Ref`] gives shared access: mutable fields are cells.

use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

/// A token: this CPU holds the nucleus lock. It has no size. Only code that took the lock makes one; others get it from
/// their caller, or from a [`Ref`].
#[derive(Clone, Copy)]
pub struct Held(PhantomData<*mut ()>);

impl Held {
    /// # Safety
    /// This CPU holds the nucleus lock, and keeps it as long as the value, or what is reached with it, is used.
    pub const unsafe fn new() -> Self {
        Self(PhantomData)
    }
}

/// A pointer to a live object, with shared access; see the module.
#[repr(transparent)]
pub struct Ref<T>(NonNull<T>);

/// An optional [`Ref`], in one word.
pub type Link<T> = Option<Ref<T>>;

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ref<T> {}
impl<T> PartialEq for Ref<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T> Eq for Ref<T> {}

impl<T> Ref<T> {
    /// # Safety
    /// `pointer` is not null and points to a valid `T`, which lives and is accessed as the module says.
    pub const unsafe fn new(pointer: *mut T) -> Self {
        // SAFETY: `pointer` is not null, by contract.
        Self(unsafe { NonNull::new_unchecked(pointer) })
    }
    /// # Safety
    /// As [`Ref::new`], or `address` is 0.
    pub unsafe fn link(address: usize) -> Link<T> {
        NonNull::new(address as *mut T).map(Self)
    }
    /// The token of the nucleus lock: code with a pointer holds it, except where it waits for it.
    pub const fn held(self) -> Held {
        Held(PhantomData)
    }
    /// The pointer.
    pub const fn pointer(self) -> *mut T {
        self.0.as_ptr()
    }
    /// The address as a number.
    pub fn address(self) -> usize {
        self.pointer() as usize
    }
}

/// Reads a link that another CPU may change meanwhile, on a fast path without the lock. Acquire: earlier writes of that CPU
/// are visible afterwards.
#[inline(always)]
pub fn look<T>(link: &Cell<Link<T>>) -> Link<T> {
    // SAFETY: a link is an aligned word, 0 or the address of a live object: objects are freed only under the lock, which is
    // held.
    unsafe { Ref::link(AtomicUsize::from_ptr(link.as_ptr().cast()).load(Ordering::Acquire)) }
}

impl<T> Deref for Ref<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the object lives until nothing refers to it any more, and it is shared: there is no exclusive access (see
        // the module).
        unsafe { self.0.as_ref() }
    }
}

/// An object that was just made: only its maker has access.
pub struct Fresh<T>(Ref<T>);

impl<T> Fresh<T> {
    /// # Safety
    /// As [`Ref::new`], and there is no other pointer to the object.
    pub unsafe fn new(pointer: *mut T) -> Self {
        // SAFETY: by contract, as for `Ref::new`.
        Self(unsafe { Ref::new(pointer) })
    }
    /// Ends the exclusive access.
    pub fn share(self) -> Ref<T> {
        self.0
    }
}

impl<T> Deref for Fresh<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}
impl<T> DerefMut for Fresh<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the only pointer to the object, and it is mutably borrowed.
        unsafe { &mut *self.0.pointer() }
    }
}

/// A static of the nucleus, accessed only under the nucleus lock, with interrupts off.
#[repr(transparent)]
pub struct Nucleus<T>(T);

// SAFETY: only the holder of the nucleus lock can access the value ([`Held`]), with interrupts off: one CPU at a time.
unsafe impl<T> Sync for Nucleus<T> {}

impl<T> Nucleus<T> {
    /// The initial value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }
    /// The value.
    #[inline(always)]
    pub fn get(&self, _: Held) -> &T {
        &self.0
    }
    /// The value, as an object of the nucleus.
    pub fn reference(&'static self, _: Held) -> Ref<T> {
        // SAFETY: a static is never freed, the lock is held, and only shared access to the value exists.
        unsafe { Ref::new((&raw const self.0).cast_mut()) }
    }
}

/// A static that is written at boot, while other CPUs have not started or wait for the nucleus lock, and only read
/// afterwards.
#[repr(transparent)]
pub struct Boot<T>(UnsafeCell<T>);

// SAFETY: the value is written only at boot, while other CPUs have not started or wait for the nucleus lock; afterwards it
// is only read.
unsafe impl<T> Sync for Boot<T> {}

impl<T> Boot<T> {
    /// The initial value.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
    /// The value.
    #[inline(always)]
    pub fn get(&self) -> &T {
        // SAFETY: by the contract of `write`, nothing writes the value while this reference is in use.
        unsafe { &*self.0.get() }
    }
    /// The value, to be written.
    ///
    /// # Safety
    /// No other CPU accesses the value meanwhile, and no reference from [`Boot::get`] or this function is in use.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn write(&self) -> &mut T {
        // SAFETY: by contract.
        unsafe { &mut *self.0.get() }
    }
}
