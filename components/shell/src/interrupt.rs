//! Ctrl-C: the console reports it, and what runs in the foreground ends.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use abi::rights;
use idl::Delegate;
use runtime::entry::Entry;
use runtime::{op, thread};

use crate::jobs;
use crate::terminal::{CONSOLE, take_back};

/// The semaphore that the console raises at Ctrl-C; 0 = none.
static INTERRUPT: AtomicUsize = AtomicUsize::new(0);
/// Ctrl-C was pressed since [`hand_over`].
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Nanoseconds after which a console that was started while a command runs learns of us.
const LOOK: u64 = 500_000_000;

/// Starts the thread that ends what runs in the foreground when Ctrl-C is pressed.
pub fn watch() -> Result<(), abi::Error> {
    let semaphore = op::semaphore_new(Entry::ACCOUNT, 0)?;
    INTERRUPT.store(semaphore.0, Ordering::Relaxed);
    let watch = move || {
        loop {
            match op::p(semaphore, op::clock() + LOOK) {
                Ok(()) => {
                    INTERRUPTED.store(true, Ordering::Relaxed);
                    jobs::kill_foreground();
                }
                // A console that was started meanwhile knows nothing of us yet.
                Err(abi::Error::Timeout) if jobs::has_foreground() => lend(semaphore),
                Err(abi::Error::Timeout) => {}
                Err(_) => return,
            }
        }
    };
    thread::spawn(watch).map(drop)
}

/// Was Ctrl-C pressed?
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Before commands run: the console works by lines and notifies us of Ctrl-C (also if it was restarted meanwhile).
pub fn hand_over() {
    INTERRUPTED.store(false, Ordering::Relaxed);
    let semaphore = INTERRUPT.load(Ordering::Relaxed);
    if semaphore != 0 {
        lend(Entry(semaphore));
    }
    take_back();
}

/// Gives the console the semaphore that it raises at Ctrl-C.
fn lend(semaphore: Entry) {
    let _ = CONSOLE.set_interrupt_semaphore(Delegate::entry(semaphore.0, rights::COPY | rights::WRITE));
}
