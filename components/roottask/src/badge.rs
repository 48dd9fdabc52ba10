//! Badges of the service that all components find at `layout::PARENT`: which component asks, and which instance of it.

use core::sync::atomic::{AtomicUsize, Ordering};
use runtime::Entry;

/// Set in badges that are vaults.
pub const VAULT: u64 = 1 << 63;

static PARENT_SERVICE: AtomicUsize = AtomicUsize::new(0);

/// The badge of this instance of a component.
pub fn badge(number: u16, instance: u64) -> u64 {
    instance << 16 | u64::from(number)
}

/// The component that a badge means.
pub fn component_of(badge: u64) -> u16 {
    badge as u16
}

/// The instance that a badge means.
pub fn instance_of(badge: u64) -> u64 {
    (badge & !VAULT) >> 16
}

/// The service that components find at `layout::PARENT`.
pub fn set_parent_service(service: Entry) {
    PARENT_SERVICE.store(service.0, Ordering::Relaxed);
}

/// See [`set_parent_service`].
pub fn parent_service() -> Entry {
    Entry(PARENT_SERVICE.load(Ordering::Relaxed))
}
