//! Operations on small domains that need `unsafe` because on our own they would be.

use abi::rights::{MAP_EXECUTE, MAP_READ, UNMAP_SELF};
use abi::{Control, Error, PAGE_BYTES};
use runtime::entry::Owned;
use runtime::message::{self, Words};
use runtime::op::{self, Schedule};
use runtime::server::Serve;
use runtime::{Entry, arch};

/// A thread at an address where nothing is.
pub fn start_nowhere(domain: Entry, schedule: Schedule) -> Result<Entry, Error> {
    // SAFETY: it touches nothing, but faults if it ever runs.
    unsafe { op::thread_new(domain, 0x5000_0000, 0, 0, schedule) }
}

/// An activation of another domain.
pub fn activation_in(domain: Entry) -> Result<(), Error> {
    // SAFETY: not in our domain.
    unsafe { op::activation_new(domain, 0x5000_0000, Entry(0)) }.map(drop)
}

/// Maps a page of our code into another domain.
pub fn map_code(domain: Entry, address: u64) -> Result<(), Error> {
    let code = map_code as *const () as u64 & !(PAGE_BYTES as u64 - 1);
    // SAFETY: it may be read and executed.
    unsafe { op::map(domain, code, address, 0, MAP_READ | MAP_EXECUTE) }
}

/// A service of another domain, with these flags and of this shape, at an address at which nothing is.
pub fn service(domain: &Owned, flags: u64, shape: Entry) -> Result<Entry, Error> {
    service_at(domain, abi::layout::PROGRAM_START, flags, shape)
}

/// The same, at an address.
pub fn service_at(domain: &Owned, address: u64, flags: u64, shape: Entry) -> Result<Entry, Error> {
    // SAFETY: another domain's, which has no thread, or code that is made for that.
    unsafe { op::service_new_at(domain.entry(), address, flags, shape, Entry(0)) }
}

/// A service of another domain whose portals have a label.
pub fn service_labelled(domain: &Owned, address: u64, label: Entry) -> Result<Entry, Error> {
    // SAFETY: another domain's, at code that is made for that.
    unsafe { op::service_new_labelled(domain.entry(), address, 0, Entry::OWN, Entry(0), label) }
}

/// A service of ours, of this shape, that is entered as one of messages.
pub fn service_here<S: Serve>(shape: Entry) -> Result<Entry, Error> {
    // SAFETY: the entry is made for services, and takes words where portals of each shape leave them.
    unsafe { op::service_new_shaped(arch::service_entry::<S> as *const () as u64, shape) }
}

/// Any operation on what a test has made for that, and on memory where nothing is.
pub fn call(index: usize, words: [u64; 6]) -> Result<u64, Error> {
    let [word0, word1, word2, word3, word4, word5] = words;
    // SAFETY: the changed object was made for it, or is a thread that waits for ever.
    let (status, words, _) = unsafe { arch::call(index, [word0, word1, word2, word3, word4], Control(word5)) };
    Error::from_status(status).map(|()| words[0])
}

/// Calls with any window. It shows only code, shared memory, or nothing.
pub fn call_showing(entry: Entry, mut words: Words, window: u64) -> Result<Words, Error> {
    words[4] = window;
    // SAFETY: nobody relies on the bytes that can be written there.
    unsafe { message::call_showing(entry, words, Control(Control::WINDOW)) }.map(|(words, _)| words)
}

/// Moves a page of ours to another domain: a thread that touches it here gets another one.
pub fn grant(domain: Entry, page: u64, address: u64) -> Result<(), Error> {
    use abi::rights::{MAP_GRANT, MAP_WRITE};
    // SAFETY: bytes that nobody relies on.
    unsafe { op::map(domain, page, address, 0, MAP_READ | MAP_WRITE | MAP_GRANT) }
}

/// A byte of ours that others write.
pub fn peek(address: u64) -> u8 {
    // SAFETY: of a page that is lent, and lives.
    unsafe { (address as *const u8).read_volatile() }
}

/// Writes a byte of ours that others read.
pub fn poke(address: u64, byte: u8) {
    // SAFETY: of a page that is lent and lives, to which nothing refers meanwhile.
    unsafe { (address as *mut u8).write_volatile(byte) }
}

/// Memory that nobody has.
pub const MEMORY: Entry = Entry(system::MEMORY_INDEX);

/// Gives up a page of ours, if there is one.
pub fn give_up(page: u64) {
    let _ = call(abi::op::UNMAP, [0, page, 0, MAP_READ | UNMAP_SELF, 0, 0]);
}

/// Gives another domain a copy of [`obey`](crate::arch::programs::obey) at an address, in memory of an account that is drawn at a place of ours.
pub fn obedient(domain: Entry, account: Entry, ours: u64, address: u64) -> Result<(), Error> {
    use abi::rights::{MAP_GRANT, MAP_WRITE};
    op::draw(MEMORY, account, Entry::OWN, ours, 0, MAP_READ | MAP_WRITE)?;
    let (code, bytes) = crate::arch::programs::obedient();
    // SAFETY: a page that was just drawn, to which nothing else refers, and code of ours, which is shorter. The page is the other's afterwards.
    unsafe {
        core::ptr::copy_nonoverlapping(code, ours as *mut u8, bytes);
        op::map(domain, ours, address, 0, MAP_READ | MAP_EXECUTE | MAP_GRANT)
    }
}

/// Shows another domain a page.
pub fn show(domain: Entry, page: u64, address: u64) -> Result<(), Error> {
    // SAFETY: it may be read.
    unsafe { op::map(domain, page, address, 0, MAP_READ) }
}

/// Writes a word that others read.
pub fn poke_word(address: u64, word: u64) {
    // SAFETY: of a page that is drawn for it, to which nothing refers meanwhile.
    unsafe { (address as *mut u64).write_volatile(word) }
}

/// The boot archive, where `roottask` says that it is: `ARCHIVE=address,bytes`.
pub fn boot_archive(place: &str) -> Option<&'static [u8]> {
    let (_, bytes) = place.split_once(',')?;
    let bytes: usize = bytes.parse().ok()?;
    if !matches!(op::machine_archive(Entry::SPECIAL, Entry::OWN), Ok(()) | Err(Error::Occupied)) {
        return None;
    }
    // SAFETY: the nucleus shows all of it there, for reading only and as long as we live; `roottask` says how long it is.
    Some(unsafe { core::slice::from_raw_parts(abi::layout::ARCHIVE as *const u8, bytes) })
}
