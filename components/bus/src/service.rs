//! The requests of drivers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use abi::layout::FREE_START;
use abi::rights::{self, Kind, MAP_READ, MAP_WRITE};
use idl::{Delegate, Delegated, Failure, Reply, Request};
use pci::{Activity, Region};
use protocols::bus::{BusError, BusServer, MAX_FRAMES};
use protocols::sigma0::{Sigma0Client, Sigma0Error};
use runtime::entry::Owned;
use runtime::server::Serve;
use runtime::sync::Mutex;
use runtime::{Direct, Entry, op, thread};

use crate::function::Function;
use crate::pci::Found;

const PAGE: u64 = abi::PAGE_BYTES as u64;
/// Registers of one device behind one base register, at most.
const MAX_REGISTER_PAGES: u64 = 16;
/// Virtual space for each device: its registers, then its frames.
const SPACE: u64 = 1 << 20;
const FRAMES_AT: u64 = 6 * MAX_REGISTER_PAGES * PAGE;
const _: () = assert!(FRAMES_AT + MAX_FRAMES as u64 * PAGE <= SPACE);
/// Threads that wait for the end of holders of one device: of the present one, and of the one before, which is ending.
const MOST_WATCHERS: usize = 2;
/// Looks at a device that is being reset, until it counts as reset.
const RESET_LOOKS: usize = 10_000;

struct Device {
    /// Number in [`State::found`].
    number: usize,
    function: Function,
    domain: Owned,
    /// Counts those who had it, and whether a thread waits for the end of the present one.
    holder: u64,
    watched: bool,
    /// Threads that wait for the end of a holder, this one or earlier ones.
    watchers: usize,
    interrupt: Option<Entry>,
    /// Virtual space of ours.
    space: u64,
    /// Base registers (a bit each) whose registers are mapped here.
    mapped: u64,
    /// Physical addresses.
    frames: Vec<u64>,
}

struct State {
    found: Vec<Found>,
    /// By badge.
    taken: BTreeMap<u64, Device>,
}

static STATE: Mutex<State> = Mutex::new(State { found: Vec::new(), taken: BTreeMap::new() });

/// These devices are there.
pub fn offer(found: Vec<Found>) {
    STATE.lock().found = found;
}

/// The service.
pub struct BusService;

impl Serve for BusService {
    fn serve(request: &mut Request<'_>) -> Reply {
        BusService.dispatch(request)
    }
}

/// Does something with the caller's device.
fn with<R>(badge: u64, work: impl FnOnce(&mut Device, &[Found]) -> Result<R, BusError>) -> Result<R, BusError> {
    let mut state = STATE.lock();
    let State { found, taken } = &mut *state;
    work(taken.get_mut(&badge).ok_or(BusError::NotClaimed)?, found)
}

/// The refusal for an error that a driver never meets if all is well. The log has the error.
fn failed(what: &str, error: impl core::fmt::Display) -> BusError {
    runtime::log!("{what}: {error}");
    BusError::Failed
}

/// The refusal for an error of the nucleus that our own account, or the machine, may be to blame for.
fn refused(what: &str, error: abi::Error) -> BusError {
    match error {
        abi::Error::AccountExhausted | abi::Error::NoFrames => BusError::NoMemory,
        error => failed(what, error),
    }
}

/// Maps pages of ours, derived, into a driver.
fn give(domain: Entry, source: u64, address: u64, pages: u64) -> Result<(), BusError> {
    for page in 0..pages {
        let to = address.checked_add(page * PAGE).ok_or(BusError::BadAddress)?;
        // SAFETY: nothing here refers to what stands in these pages.
        unsafe { op::map(domain, source + page * PAGE, to, 0, MAP_READ | MAP_WRITE) }.map_err(|error| match error {
            abi::Error::OtherExhausted => BusError::NoRoom,
            abi::Error::BadAddress | abi::Error::NotAligned | abi::Error::Reserved => BusError::BadAddress,
            abi::Error::Occupied => BusError::Occupied,
            abi::Error::PeerDied | abi::Error::Revoked => BusError::Gone,
            error => refused("memory of a driver", error),
        })?;
    }
    Ok(())
}

impl State {
    /// A device for a driver that has none: the first of these that nobody has.
    fn take(&mut self, badge: u64, device: u64, domain: Owned) -> Result<(), BusError> {
        let is_taken = |number: usize| self.taken.values().any(|device| device.number == number);
        let all = self.found.iter().enumerate();
        let mut wanted = all.filter(|(_, found)| u64::from(found.configuration.id()) == device).peekable();
        wanted.peek().ok_or(BusError::NotFound)?;
        let free = wanted.find(|(number, _)| !is_taken(*number));
        let (number, Found { function, configuration }) = free.ok_or(BusError::Taken)?;
        function.set(Activity::Answers);
        let line = function.line(configuration);
        let interrupt = line.and_then(|line| {
            let made = op::machine_interrupt(Entry::SPECIAL, line);
            made.inspect_err(|error| runtime::log!("{}: interrupt line {line}: {error}", function.place())).ok()
        });
        let space = FREE_START + self.taken.len() as u64 * SPACE;
        let mut frames = Vec::new();
        frames.try_reserve_exact(MAX_FRAMES).map_err(|_| BusError::NoMemory)?;
        let device = Device {
            number,
            function: *function,
            domain,
            holder: 0,
            watched: false,
            watchers: 0,
            interrupt,
            space,
            mapped: 0,
            frames,
        };
        self.taken.insert(badge, device);
        Ok(())
    }
}

impl BusServer for BusService {
    fn claim(&self, badge: u64, device: u64, domain: Delegated) -> Result<(), BusError> {
        let domain = Owned::new(domain.into());
        if badge == 0 {
            // Opened by name: only a holder of a portal by the system description gets a device.
            return Err(BusError::NotAllowed);
        }
        if !domain.entry().is(Kind::Domain, rights::WRITE) {
            return Err(BusError::NotADomain);
        }
        let mut state = STATE.lock();
        let State { found, taken } = &mut *state;
        let Some(old) = taken.get_mut(&badge) else { return state.take(badge, device, domain) };
        let id = found.get(old.number).map(|found| u64::from(found.configuration.id()));
        // A domain that is gone has left a revoked entry.
        if id != Some(device) || old.domain.entry().is(Kind::Domain, rights::WRITE) {
            return Err(BusError::HasDevice);
        }
        old.take_back(found);
        old.function.set(Activity::Answers);
        old.domain = domain;
        old.holder += 1;
        old.watched = false;
        Ok(())
    }

    fn configuration(&self, badge: u64, into: &mut [u8]) -> Result<usize, BusError> {
        with(badge, |device, found| {
            let found = found.get(device.number).ok_or(BusError::NotFound)?;
            let words = into.as_chunks_mut::<4>().0.iter_mut().zip(found.configuration.all());
            Ok(4 * words.map(|(bytes, word)| *bytes = word.to_le_bytes()).count())
        })
    }

    fn registers(&self, badge: u64, base: u64, address: u64) -> Result<u64, BusError> {
        with(badge, |device, found| {
            let region = device.region(found, base).ok_or(BusError::NoRegion)?;
            if !region.alone(others(found, device.number, region)) {
                return Err(BusError::SharedPage);
            }
            let pages = region.bytes.div_ceil(PAGE).min(MAX_REGISTER_PAGES);
            let own = device.space + base * MAX_REGISTER_PAGES * PAGE;
            for page in 0..pages {
                match op::machine_device(Entry::SPECIAL, region.start + page * PAGE, own + page * PAGE) {
                    Ok(()) | Err(abi::Error::Occupied) => {}
                    Err(abi::Error::Withheld) => return Err(BusError::Withheld),
                    Err(error) => return Err(refused("registers", error)),
                }
            }
            device.mapped |= 1 << base;
            give(device.domain.entry(), own, address, pages)?;
            Ok(region.bytes.min(pages * PAGE))
        })
    }

    fn interrupt(&self, badge: u64) -> Result<Delegate, BusError> {
        let rights = rights::READ | rights::WRITE;
        with(badge, |device, _| device.interrupt.ok_or(BusError::NoInterrupt))
            .map(|line| Delegate::entry(line.0, rights))
    }

    fn frames(&self, badge: u64, count: u64, address: u64, into: &mut [u8]) -> Result<usize, BusError> {
        with(badge, |device, _| {
            let count = count.min(MAX_FRAMES as u64).min(into.len() as u64 / 8);
            let own = device.space + FRAMES_AT;
            let memory = Sigma0Client(Direct(Entry::SIGMA0));
            for number in device.frames.len() as u64..count {
                let page = own + number * PAGE;
                memory.draw(page, 0, MAP_READ | MAP_WRITE).map_err(|error| match error {
                    Failure::Refused(Sigma0Error::AccountExhausted | Sigma0Error::NoFrames) => BusError::NoMemory,
                    error => failed("sigma0", error),
                })?;
                let physical = op::machine_physical(Entry::SPECIAL, page).map_err(|error| failed("a frame", error))?;
                device.frames.push(physical);
            }
            give(device.domain.entry(), own, address, count)?;
            for (bytes, frame) in into.as_chunks_mut::<8>().0.iter_mut().zip(&device.frames[..count as usize]) {
                *bytes = frame.to_le_bytes();
            }
            Ok(8 * count as usize)
        })
    }

    fn work(&self, badge: u64, life: Delegated) -> Result<(), BusError> {
        let life = Owned::new(life.into());
        if !life.entry().is(Kind::Semaphore, rights::USE) {
            return Err(BusError::NotASemaphore);
        }
        with(badge, |device, _| {
            let holder = device.holder;
            if !device.watched {
                if device.watchers >= MOST_WATCHERS {
                    return Err(BusError::Watched);
                }
                // The thread ends by itself.
                drop(thread::spawn(move || watch(badge, holder, &life)).map_err(|error| refused("a thread", error))?);
                device.watched = true;
                device.watchers += 1;
            }
            device.function.set(Activity::Works);
            Ok(())
        })
    }
}

/// Memory of functions other than this one, and of this one besides the region.
fn others(found: &[Found], number: usize, region: Region) -> impl Iterator<Item = Region> {
    let all =
        found.iter().enumerate().flat_map(|(other, found)| found.configuration.regions().map(move |r| (other, r)));
    all.filter(move |(other, other_region)| *other != number || *other_region != region).map(|(_, region)| region)
}

/// Waits until the holder of a device is gone, or raises its semaphore, and stops the device.
fn watch(badge: u64, holder: u64, life: &Owned) {
    while op::p(life.entry(), abi::NEVER) == Err(abi::Error::Cancelled) {}
    let mut state = STATE.lock();
    let State { found, taken } = &mut *state;
    let Some(device) = taken.get_mut(&badge) else { return };
    device.watchers -= 1;
    if device.holder == holder {
        device.take_back(found);
    }
}

impl Device {
    fn region(&self, found: &[Found], base: u64) -> Option<Region> {
        found.get(self.number)?.configuration.region(base)
    }

    /// The device does nothing to memory any more and forgets its orders; nobody but us sees its
    /// registers and frames.
    fn take_back(&mut self, found: &[Found]) {
        self.function.set(Activity::Answers);
        self.reset(found);
        self.function.set(Activity::Off);
        let pages = FRAMES_AT / PAGE + self.frames.len() as u64;
        for page in 0..pages {
            // SAFETY: only what was derived from our mappings goes.
            let _ = unsafe { op::unmap(Entry::OWN, self.space + page * PAGE, 0, MAP_READ) };
        }
        if core::mem::take(&mut self.watched) {
            runtime::log!("{}: stopped, its driver is gone", self.function.place());
        }
    }

    /// Resets a virtio device, if its driver got as far as its registers.
    fn reset(&self, found: &[Found]) {
        let status = found.get(self.number).and_then(|found| found.configuration.virtio_status());
        let Some(status) = status else { return };
        if status.offset >= MAX_REGISTER_PAGES * PAGE || self.mapped & 1 << status.base == 0 {
            return;
        }
        let status = (self.space + status.base as u64 * MAX_REGISTER_PAGES * PAGE + status.offset) as *mut u8;
        // SAFETY: the device's status register (virtio 1.2, 4.1.4.3), within the memory behind its base register and
        // mapped by `registers`; 0 resets the device.
        unsafe { status.write_volatile(0) };
        // SAFETY: the status register, within the memory that `registers` mapped; reading it changes nothing.
        let is_reset = (0..RESET_LOOKS).any(|_| unsafe { status.read_volatile() } == 0);
        if !is_reset {
            runtime::log!("{}: does not let itself be reset", self.function.place());
        }
    }
}
