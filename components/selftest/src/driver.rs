//! Requests that the bus refuses, and batches of frames that are none, for the driver of the network interface.

use alloc::boxed::Box;

use idl::{Delegate, Failure};
use protocols::bus::{BusClient, BusError, CONFIGURATION_BYTES, MAX_FRAMES};
use protocols::names::{NamesClient, NamesError};
use protocols::nic::{LENGTH_BYTES, MAX_FRAME, MIN_FRAME, NicClient, NicError};
use runtime::abi::layout::{self, FREE_START};
use runtime::abi::{MAX_COUNT, PAGE_BYTES, rights};
use runtime::connection::{Connection, NameService};
use runtime::entry::Owned;
use runtime::window::Page;
use runtime::{Direct, Entry, op, program, thread};

use crate::check::{Check, hold};
use crate::services::say;

pub const CHECKS: &[Check] = &[
    ("the bus refuses each request that cannot be, and gives a device to one driver", bus),
    ("batches that hold no whole frames are refused, and the driver goes on", batches),
    ("the driver has no name", name),
];

/// Vendor and product of the devices (virtio 1.2, 5.1 and 5.4): the network's, which has a driver, and the source of entropy, which has none.
const NETWORK: u64 = 0x1041_1af4;
const ENTROPY: u64 = 0x1044_1af4;
/// Where nothing is mapped.
const FREE: u64 = FREE_START + (1 << 30);

fn bus() -> Result<(), &'static str> {
    let bus = BusClient(Direct(program::portal("bus").ok_or("no portal")?));
    let domain = Delegate::entry(Entry::DOMAIN.0, rights::WRITE);
    let semaphore = op::semaphore_new(Entry::OWN, 0).map_err(|error| error.text())?;
    let life = Delegate::entry(semaphore.0, rights::USE);
    let mut bytes = [0; CONFIGURATION_BYTES];
    let refused = |error: BusError| Err(Failure::Refused(error));

    let early = "a request without a device";
    hold(bus.configuration(&mut bytes).map(|_| ()) == refused(BusError::NotClaimed), early)?;
    hold(bus.registers(0, FREE).map(|_| ()) == refused(BusError::NotClaimed), early)?;
    hold(bus.interrupt().map(|_| ()) == refused(BusError::NotClaimed), early)?;
    hold(bus.frames(1, FREE, &mut [0; 8]).map(|_| ()) == refused(BusError::NotClaimed), early)?;
    hold(bus.work(life) == refused(BusError::NotClaimed), early)?;

    hold(bus.claim(0, domain) == refused(BusError::NotFound), "a device that there is not")?;
    hold(bus.claim(NETWORK, domain) == refused(BusError::Taken), "another driver's device")?;
    let reader = Delegate::entry(Entry::DOMAIN.0, rights::READ);
    hold(bus.claim(ENTROPY, reader) == refused(BusError::NotADomain), "a domain that may not be written")?;
    hold(bus.claim(ENTROPY, life) == refused(BusError::NotADomain), "a semaphore for a domain")?;
    successors(&bus)?;
    bus.claim(ENTROPY, domain).map_err(say)?;
    hold(bus.claim(ENTROPY, domain) == refused(BusError::HasDevice), "the same device once more")?;
    hold(bus.claim(NETWORK, domain) == refused(BusError::HasDevice), "a second device")?;

    let count = bus.configuration(&mut bytes).map_err(say)?;
    hold(count == CONFIGURATION_BYTES && bytes[..4] == (ENTROPY as u32).to_le_bytes(), "another device")?;
    let has = |base: &u64| bus.registers(*base, 1).map(|_| ()) != refused(BusError::NoRegion);
    let base = (0..6).find(has).ok_or("no registers")?;
    let own = BATCHES.as_ptr() as u64 & !(PAGE_BYTES as u64 - 1);
    for (address, error) in [
        (FREE + 1, BusError::BadAddress),
        (u64::MAX << 12, BusError::BadAddress),
        (layout::MESSAGE_START, BusError::BadAddress),
        (own, BusError::Occupied),
    ] {
        hold(bus.registers(base, address).map(|_| ()) == refused(error), "an address for registers")?;
        hold(bus.frames(2, address, &mut [0; 16]).map(|_| ()) == refused(error), "an address for frames")?;
    }
    for base in [6, 63, 64, u64::MAX] {
        hold(bus.registers(base, FREE).map(|_| ()) == refused(BusError::NoRegion), "registers that there are not")?;
    }
    hold(bus.registers(base, FREE).map(|bytes| bytes > 0) == Ok(true), "no registers are mapped")?;

    let mut all = [0; 8 * (MAX_FRAMES + 1)];
    hold(bus.frames(u64::MAX, FREE + (1 << 20), &mut all) == Ok(8 * MAX_FRAMES), "more frames, or fewer")?;

    hold(bus.work(domain) == refused(BusError::NotASemaphore), "a domain for a semaphore")?;
    let silent = Delegate::entry(semaphore.0, 0);
    hold(bus.work(silent) == refused(BusError::NotASemaphore), "a semaphore without a right")?;
    // Its watcher would never wait.
    let raised = op::semaphore_new(Entry::OWN, MAX_COUNT).map_err(|error| error.text())?;
    for _ in 0..2 * WATCHERS {
        work_soon(&bus, Delegate::entry(raised.0, rights::USE))?;
    }
    work_soon(&bus, life)
}

/// Ends of one driver that the bus waits for at once.
const WATCHERS: usize = 2;

/// Drivers of a device that end one after the other while a semaphore that they all gave stays.
fn successors(bus: &BusClient<Direct>) -> Result<(), &'static str> {
    let life = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(|error| error.text())?);
    for round in 0..40 {
        let driver = Owned::new(op::domain_new(Entry::ACCOUNT, 0, "driver").map_err(|error| error.text())?);
        bus.claim(ENTROPY, Delegate::entry(driver.entry().0, rights::WRITE)).map_err(say)?;
        let right = if round < WATCHERS { Ok(()) } else { Err(Failure::Refused(BusError::Watched)) };
        hold(bus.work(Delegate::entry(life.entry().0, rights::USE)) == right, "too many watchers, or too few")?;
    }
    Ok(())
}

/// Lets the device work, once the watchers that are about to end have ended.
fn work_soon(bus: &BusClient<Direct>, life: Delegate) -> Result<(), &'static str> {
    for _ in 0..100 {
        match bus.work(life) {
            Err(Failure::Refused(BusError::Watched)) => {}
            outcome => return outcome.map_err(say),
        }
        thread::sleep(1_000_000).map_err(|error| error.text())?;
    }
    Err("a watcher does not end")
}

/// The frames of a batch by their lengths: those that are said, and those that stand there.
type Lengths = &'static [(usize, usize)];

const BATCHES: [(Lengths, Result<u64, NicError>); 10] = [
    (&[], Ok(0)),
    (&[(MIN_FRAME, MIN_FRAME)], Ok(1)),
    (&[(MAX_FRAME, MAX_FRAME), (60, 60)], Ok(2)),
    (&[(0, 0)], Ok(0)),
    (&[(60, 60), (0, 60)], Ok(1)),
    (&[(MIN_FRAME - 1, MIN_FRAME - 1)], Err(NicError::TooShort)),
    (&[(MAX_FRAME + 1, MAX_FRAME + 1)], Err(NicError::TooLong)),
    (&[(60, 59)], Err(NicError::Incomplete)),
    (&[(usize::MAX, 60)], Err(NicError::TooLong)),
    (&[(60, 60), (60, 0)], Err(NicError::Incomplete)),
];

/// The same in a window of a page, up to whose end there are zeros.
const PAGES: [(Lengths, Result<u64, NicError>); 6] = [
    (&[], Ok(0)),
    (&[(60, 60), (MIN_FRAME, MIN_FRAME)], Ok(2)),
    (&[(60, 60), (MIN_FRAME - 1, MIN_FRAME - 1)], Err(NicError::TooShort)),
    (&[(MAX_FRAME, MAX_FRAME), (MAX_FRAME, MAX_FRAME), (1062, 1062)], Ok(3)),
    (&[(MAX_FRAME, MAX_FRAME), (MAX_FRAME, MAX_FRAME), (1063, 1062)], Err(NicError::Incomplete)),
    (&[(MAX_FRAME, MAX_FRAME), (MAX_FRAME, MAX_FRAME), (1061, 1061)], Err(NicError::Incomplete)),
];

/// Puts frames into a buffer of zeros, each after its length. Gives their bytes.
fn put(buffer: &mut [u8], lengths: Lengths) -> usize {
    buffer.fill(0);
    let mut bytes = 0;
    for (said, there) in lengths {
        buffer[bytes..bytes + LENGTH_BYTES].copy_from_slice(&(*said as u16).to_le_bytes());
        bytes += LENGTH_BYTES + there;
    }
    bytes
}

fn batches() -> Result<(), &'static str> {
    let driver = NicClient(Direct(program::portal("nic").ok_or("no portal")?));
    let mut buffer = [0; 2 * MAX_FRAME];
    // Twice: after what was refused, frames are sent as before.
    for (lengths, right) in BATCHES.iter().chain(&BATCHES) {
        let bytes = put(&mut buffer, lengths);
        let right = right.map_err(Failure::Refused);
        hold(driver.send(&buffer[..bytes]).map(|(_, sent)| sent) == right, "another answer")?;
    }
    let mut page = Box::new(Page::ZERO);
    for (lengths, right) in PAGES.iter().chain(&PAGES) {
        put(&mut page.0, lengths);
        let answer = driver.send(&page.0).map(|(_, sent)| sent);
        hold(answer == right.map_err(Failure::Refused), "another answer to a page")?;
    }
    hold(driver.send(&[0]) == Err(Failure::Refused(NicError::Incomplete)), "one byte is not refused")
}

fn name() -> Result<(), &'static str> {
    // The name service may start after us.
    let names = NamesClient(Connection::new(NameService));
    match names.open("nic") {
        Err(Failure::Refused(NamesError::NotFound)) => Ok(()),
        Ok(_) => Err("it has one"),
        Err(failure) => Err(say(failure)),
    }
}
