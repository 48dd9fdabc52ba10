//! A panic: message and place go to the kernel log and to standard error output, and the domain ends.

use abi::info::status::PANICKED;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::startup::{end, name};
use crate::{hooks, log};

static PANICKING: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    // A panic while reporting one must not report again.
    if !PANICKING.swap(true, Ordering::Relaxed) {
        // One line. Compilers always give the place.
        if let Some(place) = info.location() {
            log!("panicked at {place}: {}", info.message());
        }
        hooks::report(format_args!("{}: {info}\n", name()));
    }
    end(PANICKED)
}
