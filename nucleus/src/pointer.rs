//! Pointers to the objects of the nucleus.
//!
//! Objects live in frames of the direct map from their making until their original entry is removed;
//! whoever removes them first takes them out of every place that names them. The nucleus runs with
//! interrupts off under one lock, so one CPU at a time touches them. Nobody has an object to himself but its maker ([`Fresh`]):
//! what of it changes stands in cells, and all that a [`Ref`] gives is shared.

use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The nucleus lock is this CPU's. It takes no room, and only the way into the nucleus that took the lock makes it; whoever has
/// it, or a pointer that was had with it, gives it on.
#[derive(Clone, Copy)]
pub struct Held(PhantomData<*mut ()>);

impl Held {
    /// # Safety
    /// This CPU has the nucleus lock, and keeps it as long as the value, or what is reached with it, is used.
    pub const unsafe fn new() -> Self {
        Self(PhantomData)
    }
}

/// A pointer to a live object, copied freely; see the module.
#[repr(transparent)]
pub struct Ref<T>(NonNull<T>);

/// A [`Ref`] or nothing, in one word.
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
    /// `pointer` is not null and points to a `T` (or to zeros that are a valid `T`) that lives as the module says.
    pub const unsafe fn new(pointer: *mut T) -> Self {
        // SAFETY: not null by contract.
        Self(unsafe { NonNull::new_unchecked(pointer) })
    }
    /// # Safety
    /// As [`Ref::new`], or `address` is 0.
    pub unsafe fn link(address: usize) -> Link<T> {
        NonNull::new(address as *mut T).map(Self)
    }
    /// Whoever has a pointer has the lock.
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

/// A link that another CPU may change meanwhile, on a fast path, without the lock. What that CPU did before is seen from here on.
#[inline(always)]
pub fn look<T>(link: &Cell<Link<T>>) -> Link<T> {
    // SAFETY: an aligned word, which holds an address of a live object or 0: objects go only with the lock.
    unsafe { Ref::link(AtomicUsize::from_ptr(link.as_ptr().cast()).load(Ordering::Acquire)) }
}

impl<T> Deref for Ref<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the object lives until nothing names it any more, and nobody has it to himself (the module says why).
        unsafe { self.0.as_ref() }
    }
}

/// An object that was just made: only its maker knows it.
pub struct Fresh<T>(Ref<T>);

impl<T> Fresh<T> {
    /// # Safety
    /// As [`Ref::new`], and nobody else has a pointer to it.
    pub unsafe fn new(pointer: *mut T) -> Self {
        // SAFETY: by contract.
        Self(unsafe { Ref::new(pointer) })
    }
    /// Others may know it from here on.
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
        // SAFETY: nobody else knows the object.
        unsafe { &mut *self.0.pointer() }
    }
}

/// A static of the nucleus, reached only with interrupts off under the nucleus lock.
#[repr(transparent)]
pub struct Nucleus<T>(T);

// SAFETY: reached by one CPU at a time: interrupts are off and the nucleus lock is held.
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
    /// The value as an object of the nucleus.
    pub fn reference(&'static self, _: Held) -> Ref<T> {
        // SAFETY: a static lives for ever, and gives out nothing that is not shared.
        unsafe { Ref::new((&raw const self.0).cast_mut()) }
    }
}

/// A static that is written at boot, while one CPU runs, and only read afterwards.
#[repr(transparent)]
pub struct Boot<T>(UnsafeCell<T>);

// SAFETY: written at boot, while one CPU runs, and only read afterwards.
unsafe impl<T> Sync for Boot<T> {}

impl<T> Boot<T> {
    /// The initial value.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
    /// The value.
    #[inline(always)]
    pub fn get(&self) -> &T {
        // SAFETY: nobody writes it any more.
        unsafe { &*self.0.get() }
    }
    /// The value, to be written.
    ///
    /// # Safety
    /// Other CPUs do not run yet, and nothing that [`Boot::get`] or this gave is in use.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn write(&self) -> &mut T {
        // SAFETY: by contract.
        unsafe { &mut *self.0.get() }
    }
}
