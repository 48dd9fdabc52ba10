//! The unsafe part: pages of our address space through which the pages of programs are filled.

use abi::rights::{MAP_GRANT, MAP_READ, UNMAP_SELF};
use abi::{Error, PAGE_BYTES, layout};
use protocols::process::ProcessError;
use runtime::entry::Entry;
use runtime::op::{self, Schedule};
use runtime::sync::Mutex;

/// Where the pages are mapped while they are filled.
const WINDOW: u64 = layout::WINDOW;
/// At most 2^this pages at once.
pub const MAX_ORDER: u32 = 4;

const _: () = assert!(WINDOW + ((PAGE_BYTES as u64) << MAX_ORDER) <= layout::MAIN_STACK_START);

static BUSY: Mutex<()> = Mutex::new(());

/// Draws 2^order pages at an address of ours, has them filled, and moves them to `address` of `domain`.
pub fn with_pages(
    order: u32,
    draw: impl FnOnce(u64) -> Result<(), ProcessError>,
    fill: impl FnOnce(&mut [[u8; PAGE_BYTES]]) -> Result<(), ProcessError>,
    refused: impl FnOnce(Error) -> ProcessError,
    domain: Entry,
    address: u64,
    rights: u64,
) -> Result<(), ProcessError> {
    debug_assert!(order <= MAX_ORDER);
    let _busy = BUSY.lock();
    let moved = draw(WINDOW).and_then(|()| {
        // SAFETY: the pages were just mapped here, writable and clear, and the lock keeps others away.
        fill(unsafe { core::slice::from_raw_parts_mut(WINDOW as *mut [u8; PAGE_BYTES], 1 << order) })?;
        // SAFETY: the reference to the pages is gone.
        unsafe { op::map(domain, WINDOW, address, order.into(), rights | MAP_GRANT) }.map_err(refused)
    });
    if moved.is_err() {
        // Also what was drawn or left before the failure.
        // SAFETY: the reference to the pages was `fill`'s and is gone.
        let _ = unsafe { op::unmap(Entry::OWN, WINDOW, order.into(), MAP_READ | UNMAP_SELF) };
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
