//! The unsafe part: a page of our address space through which the pages of programs are filled.

use abi::rights::{MAP_GRANT, MAP_READ, UNMAP_SELF};
use abi::{Error, PAGE_BYTES, info, layout};
use interfaces::process::ProcessError;
use runtime::entry::Entry;
use runtime::op::{self, Schedule};
use runtime::sync::Mutex;

/// Where the page is mapped while it is filled.
const WINDOW: u64 = layout::FREE_START;

static BUSY: Mutex<()> = Mutex::new(());

/// Draws a page at an address of ours, has it filled, and moves it to `address` of `domain`.
pub fn with_page(
    draw: impl FnOnce(u64) -> Result<(), ProcessError>,
    fill: impl FnOnce(&mut [u8; PAGE_BYTES]) -> Result<(), ProcessError>,
    refused: impl FnOnce(Error) -> ProcessError,
    domain: Entry,
    address: u64,
    rights: u64,
) -> Result<(), ProcessError> {
    let _busy = BUSY.lock();
    draw(WINDOW)?;
    // SAFETY: the page was just mapped here, writable and clear, and the lock keeps others away.
    let filled = fill(unsafe { &mut *(WINDOW as *mut [u8; PAGE_BYTES]) });
    let moved = filled.and_then(|()| {
        // SAFETY: the reference to the page is gone.
        unsafe { op::map(domain, WINDOW, address, 0, rights | MAP_GRANT) }.map_err(refused)
    });
    if moved.is_err() {
        // SAFETY: as above.
        let _ = unsafe { op::unmap(Entry::OWN, WINDOW, 0, MAP_READ | UNMAP_SELF) };
    }
    moved
}

/// Starts the first thread of another domain.
pub fn start_thread(
    domain: Entry,
    instruction: u64,
    stack_top: u64,
    argument: u64,
    schedule: Schedule,
) -> Result<Entry, Error> {
    // SAFETY: nothing of ours runs there.
    unsafe { op::thread_new(domain, instruction, stack_top, argument, schedule) }
}

/// The record at the start of these bytes.
pub fn domain_record(bytes: &[u8]) -> Option<info::Domain> {
    let bytes = bytes.get(..size_of::<info::Domain>())?;
    // SAFETY: the bytes are there, and a record consists of numbers: every pattern of bits is one.
    Some(unsafe { bytes.as_ptr().cast::<info::Domain>().read_unaligned() })
}
