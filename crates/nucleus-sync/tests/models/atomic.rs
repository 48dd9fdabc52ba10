//! The atomic types of `loom`, for the files of the crate, with one place in them whose memory order can be taken away.

pub use loom::sync::atomic::Ordering;
use std::cell::Cell;
use std::panic::Location;

/// A line of a file of the crate.
pub type Place = (&'static str, u32);

thread_local! {
    /// The CPUs of a model all run on the thread that runs the model.
    static WEAK: Cell<Option<Place>> = const { Cell::new(None) };
}

/// From now on what stands in this line is relaxed, in models run by this thread.
pub fn weaken(place: Option<Place>) {
    WEAK.set(place);
}

#[track_caller]
fn order(written: Ordering) -> Ordering {
    let location = Location::caller();
    match WEAK.get() {
        Some((file, line)) if location.line() == line && location.file().ends_with(file) => Ordering::Relaxed,
        _ => written,
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        /// As in `core`.
        pub struct $name(loom::sync::atomic::$name);

        #[allow(dead_code)]
        impl $name {
            pub fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }
            #[track_caller]
            pub fn load(&self, written: Ordering) -> $value {
                self.0.load(order(written))
            }
            #[track_caller]
            pub fn store(&self, value: $value, written: Ordering) {
                self.0.store(value, order(written))
            }
            #[track_caller]
            pub fn swap(&self, value: $value, written: Ordering) -> $value {
                self.0.swap(value, order(written))
            }
            #[track_caller]
            pub fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange(old, new, order(success), order(failure))
            }
        }
    };
}

macro_rules! counting {
    ($name:ident, $value:ty) => {
        atomic!($name, $value);

        #[allow(dead_code)]
        impl $name {
            #[track_caller]
            pub fn fetch_add(&self, value: $value, written: Ordering) -> $value {
                self.0.fetch_add(value, order(written))
            }
            #[track_caller]
            pub fn fetch_sub(&self, value: $value, written: Ordering) -> $value {
                self.0.fetch_sub(value, order(written))
            }
        }
    };
}

atomic!(AtomicBool, bool);
counting!(AtomicI32, i32);
counting!(AtomicI64, i64);
counting!(AtomicU32, u32);
