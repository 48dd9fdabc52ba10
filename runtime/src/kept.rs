//! Whether the part of the heap that is kept is used.

use core::sync::atomic::{AtomicPtr, Ordering};

/// Set while the kept part of the heap is used: the function that keeps it again, if it can. The heap sets it, so that
/// servers without one do not carry it.
pub(crate) static SHORT: AtomicPtr<fn() -> bool> = AtomicPtr::new(core::ptr::null_mut());

/// Whether the kept part of the heap is used and cannot be kept again.
#[inline]
pub fn is_short() -> bool {
    // SAFETY: null, or a static of the heap's.
    unsafe { SHORT.load(Ordering::Relaxed).as_ref() }.is_some_and(|keep_again| !keep_again())
}
