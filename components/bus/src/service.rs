//! What drivers ask for.

use abi::layout::FREE_START;
use abi::rights::{self, MAP_READ, MAP_WRITE};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use interface::{Delegate, Delegated, Reply, Request};
use interfaces::bus::{BusError, BusServer, CONFIGURATION_BYTES, MAX_FRAMES};
use interfaces::sigma0::Sigma0Client;
use runtime::entry::Owned;
use runtime::server::Serve;
use runtime::sync::Mutex;
use runtime::{Direct, Entry, op};

use crate::pci::Function;

const PAGE: u64 = abi::PAGE_BYTES as u64;
/// Registers of one device behind one base register, at most.
const MAX_REGISTER_PAGES: u64 = 16;
/// Virtual space for each device: its registers, then its frames.
const SPACE: u64 = 1 << 20;
const FRAMES_AT: u64 = 6 * MAX_REGISTER_PAGES * PAGE;

struct Device {
    function: Function,
    domain: Owned,
    interrupt: Option<Entry>,
    /// Virtual space of ours.
    space: u64,
    /// Base registers (a bit each) whose registers are mapped here.
    mapped: u64,
    /// Physical addresses.
    frames: Vec<u64>,
    masks: [u32; 6],
    configuration: [u32; 64],
}

struct State {
    free: Vec<Function>,
    /// By badge.
    taken: BTreeMap<u64, Device>,
}

static STATE: Mutex<State> = Mutex::new(State { free: Vec::new(), taken: BTreeMap::new() });

/// These devices are there.
pub fn offer(found: Vec<Function>) {
    STATE.lock().free = found;
}

/// The service.
pub struct BusService;

impl Serve for BusService {
    fn serve(request: &mut Request<'_>) -> Reply {
        BusService.dispatch(request)
    }
}

fn with<R>(badge: u64, work: impl FnOnce(&mut Device) -> Result<R, BusError>) -> Result<R, BusError> {
    STATE.lock().taken.get_mut(&badge).ok_or(BusError::NotClaimed).and_then(work)
}

/// Maps pages of ours, derived, into a driver.
fn give(domain: Entry, source: u64, address: u64, pages: u64) -> Result<(), BusError> {
    for page in 0..pages {
        let (from, to) = (source + page * PAGE, address + page * PAGE);
        // SAFETY: nothing here refers to what stands in these pages.
        unsafe { op::map(domain, from, to, 0, MAP_READ | MAP_WRITE) }.map_err(|_| BusError::BadAddress)?;
    }
    Ok(())
}

impl BusServer for BusService {
    fn claim(&self, badge: u64, device: u64, domain: Delegated) -> Result<(), BusError> {
        let domain = Owned::new(domain.into());
        let mut state = STATE.lock();
        if badge == 0 {
            // Opened by name: only who has a portal by the system description gets a device.
            return Err(BusError::NotFound);
        }
        if let Some(device) = state.taken.get_mut(&badge) {
            device.take_back();
            device.domain = domain;
            device.function.start();
            return Ok(());
        }
        let place = state.free.iter().position(|function| u64::from(function.id()) == device);
        let function = state.free.swap_remove(place.ok_or(BusError::NotFound)?);
        let space = FREE_START + state.taken.len() as u64 * SPACE;
        function.answer();
        let masks = function.masks();
        let configuration = core::array::from_fn(|word| function.read(4 * word as u8));
        let interrupt = function.line().and_then(|line| op::machine_interrupt(Entry::SPECIAL, line).ok());
        function.start();
        let device = Device { function, domain, interrupt, space, mapped: 0, frames: Vec::new(), masks, configuration };
        state.taken.insert(badge, device);
        Ok(())
    }

    fn configuration(&self, badge: u64, into: &mut [u8]) -> Result<usize, BusError> {
        with(badge, |device| {
            let words = device.configuration.iter().chain(&device.masks);
            for (bytes, word) in into.chunks_exact_mut(4).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            Ok(into.len().min(CONFIGURATION_BYTES))
        })
    }

    fn registers(&self, badge: u64, base: u64, address: u64) -> Result<u64, BusError> {
        with(badge, |device| {
            let (physical, bytes) = device.function.memory(base).ok_or(BusError::NotFound)?;
            let pages = bytes.div_ceil(PAGE).min(MAX_REGISTER_PAGES);
            let own = device.space + base * MAX_REGISTER_PAGES * PAGE;
            for page in 0..pages {
                match op::machine_device(Entry::SPECIAL, physical + page * PAGE, own + page * PAGE) {
                    Ok(()) | Err(abi::Error::Occupied) => {}
                    Err(_) => return Err(BusError::NoMemory),
                }
            }
            device.mapped |= 1 << base;
            give(device.domain.entry(), own, address, pages)?;
            Ok(bytes)
        })
    }

    fn interrupt(&self, badge: u64) -> Result<Delegate, BusError> {
        let rights = rights::READ | rights::WRITE;
        with(badge, |device| device.interrupt.ok_or(BusError::NoInterrupt)).map(|line| Delegate::entry(line.0, rights))
    }

    fn frames(&self, badge: u64, count: u64, address: u64, into: &mut [u8]) -> Result<usize, BusError> {
        with(badge, |device| {
            let count = count.min(MAX_FRAMES as u64).min(into.len() as u64 / 8);
            let own = device.space + FRAMES_AT;
            let memory = Sigma0Client(Direct(Entry::SIGMA0));
            for number in device.frames.len() as u64..count {
                let page = own + number * PAGE;
                memory.draw(page, 0, MAP_READ | MAP_WRITE).map_err(|_| BusError::NoMemory)?;
                let physical = op::machine_physical(Entry::SPECIAL, page).map_err(|_| BusError::NoMemory)?;
                device.frames.push(physical);
            }
            give(device.domain.entry(), own, address, count)?;
            for (bytes, frame) in into.chunks_exact_mut(8).zip(&device.frames[..count as usize]) {
                bytes.copy_from_slice(&frame.to_le_bytes());
            }
            Ok(8 * count as usize)
        })
    }
}

impl Device {
    /// The device does nothing to memory any more and forgets what it was told; nobody but us sees its
    /// registers and frames.
    fn take_back(&mut self) {
        self.function.stop();
        let pages = FRAMES_AT / PAGE + self.frames.len() as u64;
        for page in 0..pages {
            // SAFETY: only what was derived from our mappings goes.
            let _ = unsafe { op::unmap(Entry::OWN, self.space + page * PAGE, 0, MAP_READ) };
        }
        if let Some((base, offset)) = self.function.virtio_status()
            && offset < MAX_REGISTER_PAGES * PAGE
            && self.mapped & 1 << base != 0
        {
            let status = (self.space + base * MAX_REGISTER_PAGES * PAGE + offset) as *mut u8;
            // SAFETY: the device's status register (virtio 1.2, 4.1.4.3), mapped by `registers`; 0 resets it.
            unsafe { status.write_volatile(0) };
        }
    }
}
