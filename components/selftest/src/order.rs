//! The scheduling policy: the order in which threads of three priorities run, printed.
//!
//! Nothing here expects an order. Two systems run this, one with a scheduler whose priorities are
//! reversed; their boot tests expect opposite orders of the same program.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abi::Error;
use runtime::Entry;
use runtime::op::{self, Schedule};
use runtime::sync::Mutex;
use runtime::thread::Thread;

/// Not above our own: so the nucleus, which only compares with the running thread, never makes it yield, and
/// what runs next is the scheduler's choice alone.
const PRIORITIES: [u8; 4] = [6, 3, 12, 9];

/// Priorities in the order in which their threads ran.
static RAN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn schedule(priority: u8) -> Schedule {
    Schedule { priority, slice: 10_000 }
}

fn take() -> String {
    let ran: Vec<String> = core::mem::take(&mut *RAN.lock()).iter().map(|priority| format!("{priority}")).collect();
    ran.join(" ")
}

/// Threads that were started while we ran.
fn started() -> Result<String, Error> {
    let threads = PRIORITIES
        .map(|priority| Thread::start_with(|argument| RAN.lock().push(argument), priority.into(), schedule(priority)));
    for thread in threads {
        thread?.join();
    }
    Ok(take())
}

/// Threads that wait for one semaphore each and are woken while we run.
fn woken() -> Result<String, Error> {
    let mut waiting = Vec::new();
    for priority in PRIORITIES {
        let semaphore = op::semaphore_new(Entry::ACCOUNT, 0)?;
        let wait = |argument: usize| {
            let (semaphore, priority) = (Entry(argument >> 8), argument & 0xff);
            if op::p(semaphore, abi::NEVER).is_ok() {
                RAN.lock().push(priority);
            }
        };
        let thread = Thread::start_with(wait, semaphore.0 << 8 | usize::from(priority), schedule(priority))?;
        waiting.push((thread, semaphore));
    }
    // Long enough that each of them waits.
    runtime::thread::sleep(5_000_000)?;
    for (_, semaphore) in &waiting {
        op::v(*semaphore)?;
    }
    for (thread, _) in waiting {
        thread.join();
    }
    Ok(take())
}

/// The lines to print, and the errors.
pub fn lines() -> [Result<String, Error>; 2] {
    [started().map(|order| format!("started: {order}\n")), woken().map(|order| format!("woken: {order}\n"))]
}
