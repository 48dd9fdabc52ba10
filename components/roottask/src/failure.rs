//! The end of the machine, when nothing can go on.

use crate::{records, services};
use core::sync::atomic::{AtomicBool, Ordering};
use runtime::{Entry, op, server};

/// Exit status of the machine when the system cannot be started or go on.
const FAILED: u64 = 101;

/// Stops the machine because nothing can go on; the reason goes to the log and, with the end of the log, to
/// the console, as far as there is one. The first reason is the one that is reported.
pub fn fail(reason: &str) -> ! {
    static FAILS: AtomicBool = AtomicBool::new(false);
    if FAILS.swap(true, Ordering::Relaxed) {
        server::park();
    }
    runtime::log!("cannot go on: {reason}");
    records::with_log_tail(|log| {
        services::report_to_console(&[
            b"The machine stops: ",
            reason.as_bytes(),
            b". The end of the kernel log:\n",
            log,
        ]);
    });
    let _ = op::machine_stop(Entry::SPECIAL, FAILED);
    runtime::program::exit(1)
}
