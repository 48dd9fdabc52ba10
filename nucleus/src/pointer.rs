//! A pointer to an object of the nucleus.
//!
//! Objects live in frames of the direct map from their making until their original entry is removed;
//! whoever removes them first takes them out of every place that names them. The nucleus runs with
//! interrupts off under one lock, so nothing else touches an object while a statement borrows it.

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

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
    /// The pointer.
    pub const fn pointer(self) -> *mut T {
        self.0.as_ptr()
    }
    /// The address as a number.
    pub fn address(self) -> usize {
        self.pointer() as usize
    }
}

impl<T> Deref for Ref<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: see the module: the object lives and nobody else touches it now.
        unsafe { self.0.as_ref() }
    }
}
impl<T> DerefMut for Ref<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { self.0.as_mut() }
    }
}

/// A cell for a static of the nucleus, reached only with interrupts off under the nucleus lock.
#[repr(transparent)]
pub struct Nucleus<T>(core::cell::UnsafeCell<T>);

// SAFETY: reached by one CPU at a time: interrupts are off and the nucleus lock is held.
unsafe impl<T> Sync for Nucleus<T> {}

impl<T> Nucleus<T> {
    /// The initial value.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }
    /// The value; borrow it for one statement at a time.
    #[allow(clippy::mut_from_ref)]
    pub fn get(&self) -> &mut T {
        // SAFETY: see the type.
        unsafe { &mut *self.0.get() }
    }
    /// The value as an object of the nucleus.
    pub fn reference(&self) -> Ref<T> {
        // SAFETY: a static lives for ever.
        unsafe { Ref::new(self.0.get()) }
    }
}
