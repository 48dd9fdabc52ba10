//! Driver of virtio entropy devices (virtio 1.2, 5.4) over PCI, with the crate `virtio-drivers`.
//!
//! A caller waits here for the interrupt, so there is no thread of its own. A machine without such a device
//! is no mistake: the driver says so and ends.
#![no_std]
#![no_main]

extern crate alloc;

mod device;

use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicUsize, Ordering};

use device::{CHUNK, Device};
use idl::{Delegate, Failure, Reply, Request};
use protocols::bus::{BusClient, BusError};
use protocols::entropy::{EntropyError, EntropyServer, MAX_ENTROPY};
use runtime::server::{self, Serve};
use runtime::sync::Mutex;
use runtime::{Direct, Entry, op, program};

runtime::entry!(main);

/// Entropy device of virtio 1: vendor, and product above it.
const DEVICE: u64 = 0x1044_1af4;
/// One waits for the device, the others for it.
const ACTIVATIONS: usize = 1;
/// How long the device may take, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;
/// How often it is looked at when no interrupt comes, in nanoseconds.
const LOOK: u64 = 10_000_000;

static DEVICE_STATE: Mutex<Option<Device>> = Mutex::new(None);
/// V by the interrupt.
static EVENT: AtomicUsize = AtomicUsize::new(0);
/// 0 = the device has no interrupt line of its own: it is looked at.
static LINE: AtomicUsize = AtomicUsize::new(0);

fn main() -> u8 {
    server::park_if(start())
}

fn start() -> Result<(), String> {
    let bus = BusClient(Direct(program::portal("bus").ok_or("no portal to the bus")?));
    match bus.claim(DEVICE, Delegate::entry(Entry::DOMAIN.0, abi::rights::WRITE)) {
        Ok(()) => {}
        Err(Failure::Refused(BusError::NotFound)) => {
            runtime::log!("this machine has no virtio entropy device");
            program::exit(program::STATUS_OF_NO_DEVICE);
        }
        Err(error) => return Err(error.to_string()),
    }
    // Nobody raises it: its end shows ours to the bus.
    let life = op::semaphore_new(Entry::OWN, 0).map_err(|error| error.to_string())?;
    let device = Device::new(&bus, Delegate::entry(life.0, abi::rights::USE))?;
    let semaphore = op::semaphore_new(Entry::OWN, 0).map_err(|error| error.to_string())?;
    EVENT.store(semaphore.0, Ordering::Relaxed);
    match bus.interrupt() {
        Ok(line) => {
            let line: Entry = line.into();
            op::interrupt_bind(line, semaphore).map_err(|error| error.to_string())?;
            LINE.store(line.0, Ordering::Relaxed);
        }
        Err(Failure::Refused(BusError::NoInterrupt)) => {
            runtime::log!("the device has no interrupt line: it is looked at every {} ms", LOOK / 1_000_000);
        }
        Err(error) => return Err(error.to_string()),
    }
    *DEVICE_STATE.lock() = Some(device);
    server::publish::<Entropy>("entropy", ACTIVATIONS).map(drop).map_err(|error| error.to_string())
}

/// Waits until the device may have done something, at most until `deadline`.
fn wait(deadline: u64) {
    match LINE.load(Ordering::Relaxed) {
        0 => {}
        line => drop(op::interrupt_enable(Entry(line))),
    }
    let _ = op::p(Entry(EVENT.load(Ordering::Relaxed)), deadline.min(op::clock() + LOOK));
}

struct Entropy;

impl Serve for Entropy {
    fn serve(request: &mut Request<'_>) -> Reply {
        Entropy.dispatch(request)
    }
}

impl EntropyServer for Entropy {
    fn fill(&self, _badge: u64, into: &mut [u8]) -> Result<usize, EntropyError> {
        let mut device = DEVICE_STATE.lock();
        let device = device.as_mut().ok_or(EntropyError::Failed)?;
        let into_bytes = into.len().min(MAX_ENTROPY).min(CHUNK);
        let into = &mut into[..into_bytes];
        if into.is_empty() {
            return Ok(0);
        }
        let deadline = op::clock().saturating_add(PATIENCE);
        device.ask()?;
        loop {
            match device.take(into)? {
                Some(count) => return Ok(count),
                None if op::clock() >= deadline => return Err(EntropyError::TooSlow),
                None => wait(deadline),
            }
            device.acknowledge();
        }
    }
}
