//! The data that a program was given at the start, and its end.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::PAGE_BYTES;
use abi::layout::{FIRST_FREE, STARTUP_PAGE};
use loader::Startup;
use loader::startup::ENTRY;

use crate::op::{self, Schedule};
use crate::{Entry, table};

/// The startup page, read once before `main`.
struct Reported(UnsafeCell<Option<Startup<'static>>>);

// SAFETY: written by the first thread before there is another, and only read afterwards.
unsafe impl Sync for Reported {}

static REPORTED: Reported = Reported(UnsafeCell::new(None));

static ARGUMENT: AtomicU64 = AtomicU64::new(0);

/// Priority and slice of threads when nothing was said.
const DEFAULT_SCHEDULE: Schedule = Schedule { priority: 16, slice: 10_000 };

/// Exit status of a driver that found no device: it is not started again.
pub const STATUS_OF_NO_DEVICE: u64 = 100;

/// Exit status of a program that printed to a stream which nobody reads any more.
pub const STATUS_OF_CLOSED: u64 = 141;

unsafe extern "C" {
    /// Of the link script: the first byte after the program.
    static __image_end: u8;
}

/// Address after the program, a multiple of 16, in its last page or at the end of that. It can be written; the memory there is 0.
pub fn image_end() -> u64 {
    (&raw const __image_end as u64).next_multiple_of(16)
}

/// Address of the first page after the program: from here on its heap is paged.
pub fn heap_start() -> u64 {
    image_end().next_multiple_of(PAGE_BYTES as u64)
}

/// Word 0 of the first thread: the creator's argument, usually the startup page's address.
pub fn argument() -> u64 {
    ARGUMENT.load(Ordering::Relaxed)
}

/// Takes what the first thread was given.
pub(crate) fn begin(argument: u64) {
    // The two components that the nucleus starts itself have no startup page.
    if argument == STARTUP_PAGE {
        read(argument);
    }
    ARGUMENT.store(argument, Ordering::Relaxed);
}

fn read(page: u64) {
    // SAFETY: the loader of the program mapped this page and says so; nobody writes to it any more.
    let page = unsafe { core::slice::from_raw_parts(page as *const u8, PAGE_BYTES) };
    match Startup::read(page) {
        Ok(startup) => {
            for (_, index) in startup.portals() {
                table::reserve(Entry(index.into()));
            }
            for (number, _) in startup.streams.iter().enumerate().filter(|(_, stream)| **stream == ENTRY) {
                table::reserve(Entry(FIRST_FREE + number));
            }
            // SAFETY: there is no other thread yet.
            unsafe { *REPORTED.0.get() = Some(startup) };
        }
        Err(error) => crate::log!("startup page: {error}"),
    }
}

/// The startup page, if there is one.
pub fn startup() -> Option<&'static Startup<'static>> {
    // SAFETY: written before `main` only.
    unsafe { (*REPORTED.0.get()).as_ref() }
}

/// The program's arguments: an iterator over strings, that of its own name first.
#[derive(Clone)]
pub struct Arguments {
    pub(crate) next: usize,
}

impl Iterator for Arguments {
    type Item = &'static str;

    fn next(&mut self) -> Option<&'static str> {
        let argument = startup()?.arguments().nth(self.next)?;
        self.next += 1;
        Some(argument)
    }
}

/// The environment, strings of the form `NAME=value`.
pub fn environment() -> impl Iterator<Item = &'static str> {
    startup().into_iter().flat_map(|startup| startup.environment())
}

/// The value of an environment variable.
pub fn variable(name: &str) -> Option<&'static str> {
    startup()?.variable(name)
}

/// The number that an environment variable gives. `roottask` gives to components `FRAMES`, those of their account, and `THREADS`, the
/// numbers of threads that they may have (0: as many as there are).
pub fn number(name: &str) -> Option<u64> {
    variable(name)?.parse().ok()
}

/// The name that the program was loaded under.
pub fn name() -> &'static str {
    startup().map_or("", |startup| startup.name)
}

/// The entry that the system description gave under a name.
pub fn portal(name: &str) -> Option<Entry> {
    startup()?.portals().find(|(known, _)| *known == name).map(|(_, index)| Entry(index.into()))
}

/// Priority and slice with which this program was started, and its threads start.
pub fn schedule() -> Schedule {
    match startup() {
        Some(startup) if startup.schedule != 0 => Schedule::from_word(startup.schedule),
        _ => DEFAULT_SCHEDULE,
    }
}

/// Ends the program at once.
pub(crate) fn end(status: u64) -> ! {
    // Of the first thread, EXIT ends the domain; of another, and in a call, it takes a kill.
    if crate::area::on_main_stack() {
        op::exit(status & 0xff);
    }
    let _ = op::domain_kill(Entry::OWN, status & 0xff);
    op::exit(status & 0xff)
}
