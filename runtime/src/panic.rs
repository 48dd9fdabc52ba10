//! A panic: message and place go to the kernel log, and the domain ends with status 101.

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::{log, op};

/// Exit status of a program that panicked.
pub const STATUS: u64 = 101;

static PANICKING: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    // A panic while printing one must not print again.
    if !PANICKING.swap(true, Ordering::Relaxed) {
        log!("{info}");
    }
    let _ = op::domain_kill(crate::Entry::OWN, STATUS);
    op::exit(STATUS)
}
