//! Driver of virtio network devices (virtio 1.2, 5.1) over PCI, with the crate `virtio-drivers`.
//!
//! It has what the bus gave it: the device's registers, its interrupt, and frames that the bus keeps. Frames
//! of Ethernet come and go by calls ([`protocols::nic`]); a receiver waits here for the interrupt, so
//! there is no thread of its own. A machine without such a device is no mistake: the driver says so and ends.
#![no_std]
#![no_main]

extern crate alloc;

mod device;

use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use device::Device;
use idl::{Delegate, Failure, Input, Output, Reply, Request};
use protocols::bus::{BusClient, BusError};
use protocols::nic::{NicError, NicServer};
use runtime::server::{self, Serve};
use runtime::sync::Mutex;
use runtime::{Direct, Entry, op, program};

runtime::entry!(main);

/// Network device of virtio 1: vendor, and product above it.
const DEVICE: u64 = 0x1041_1af4;
/// One waits in `receive`, others send.
const ACTIVATIONS: usize = 3;

/// Batches so far.
#[cfg(feature = "busy")]
static CALLS: AtomicU64 = AtomicU64::new(0);

static DEVICE_STATE: Mutex<Option<Device>> = Mutex::new(None);
/// V by the interrupt, and by `wake`.
static EVENT: AtomicUsize = AtomicUsize::new(0);
static LINE: AtomicUsize = AtomicUsize::new(0);
/// Number of the last call that receives.
static RECEIVER: AtomicU64 = AtomicU64::new(0);
/// Calls that wait for a frame.
static WAITING: AtomicUsize = AtomicUsize::new(0);

fn event() -> Entry {
    Entry(EVENT.load(Ordering::Relaxed))
}

fn main() -> u8 {
    server::park_if(start())
}

fn start() -> Result<(), String> {
    let bus = program::portal("bus").ok_or("no portal to the bus")?;
    let bus = BusClient(Direct(bus));
    let domain = Delegate::entry(Entry::DOMAIN.0, abi::rights::WRITE);
    match bus.claim(DEVICE, domain) {
        Ok(()) => {}
        Err(Failure::Refused(BusError::NotFound)) => {
            runtime::log!("this machine has no virtio network device");
            program::exit(program::STATUS_OF_NO_DEVICE);
        }
        Err(error) => return Err(error.to_string()),
    }
    let line: Entry = bus.interrupt().map_err(|error| error.to_string())?.into();
    // Nobody raises it: its end shows ours to the bus.
    let life = op::semaphore_new(Entry::OWN, 0).map_err(|error| error.to_string())?;
    let device = Device::new(&bus, Delegate::entry(life.0, abi::rights::USE))?;
    let semaphore = op::semaphore_new(Entry::OWN, 0).map_err(|error| error.to_string())?;
    EVENT.store(semaphore.0, Ordering::Relaxed);
    LINE.store(line.0, Ordering::Relaxed);
    op::interrupt_bind(line, semaphore).map_err(|error| error.to_string())?;
    *DEVICE_STATE.lock() = Some(device);
    server::activations(ACTIVATIONS).map_err(|error| error.to_string())?;
    let service = server::window_service::<Nic>().map_err(|error| error.to_string())?;
    server::publish_service("nic", service).map_err(|error| error.to_string())
}

fn with<R>(work: impl FnOnce(&mut Device) -> R) -> Result<R, NicError> {
    DEVICE_STATE.lock().as_mut().map(work).ok_or(NicError::Failed)
}

struct Nic;

impl Serve for Nic {
    fn serve(request: &mut Request<'_>) -> Reply {
        Nic.dispatch(request)
    }
}

impl NicServer for Nic {
    fn address(&self, _badge: u64) -> Result<u64, NicError> {
        with(|device| device.address())
    }

    fn send(&self, _badge: u64, batch: Input<'_>) -> Result<(usize, u64), NicError> {
        #[cfg(feature = "busy")]
        if CALLS.fetch_add(1, Ordering::Relaxed) % 3 == 0 {
            return Err(NicError::Busy);
        }
        let mut at = 0;
        let sent = with(|device| device.send_all(&batch, &mut at))??;
        if at == 0 && !batch.is_empty() { Err(NicError::Busy) } else { Ok((at, sent)) }
    }

    fn receive(&self, _badge: u64, deadline: u64, mut into: Output<'_>) -> Result<usize, NicError> {
        // A client that died may have left a call that waits: it must take no frame from the one after it.
        let receiver = RECEIVER.fetch_add(1, Ordering::Relaxed) + 1;
        if WAITING.load(Ordering::Relaxed) != 0 {
            let _ = op::v(event());
        }
        let mut waited = false;
        loop {
            let taken = with(|device| {
                if RECEIVER.load(Ordering::Relaxed) != receiver {
                    return Err(());
                }
                if waited {
                    device.acknowledge();
                }
                Ok(device.receive_all(&mut into))
            })?;
            match taken {
                Ok(0) if !waited => {}
                Ok(bytes) => return Ok(bytes),
                Err(()) => {
                    // The V that woke this one may have been meant for the other.
                    let _ = op::v(event());
                    return Ok(0);
                }
            }
            let _ = op::interrupt_enable(Entry(LINE.load(Ordering::Relaxed)));
            WAITING.fetch_add(1, Ordering::Relaxed);
            let _ = op::p(event(), deadline);
            WAITING.fetch_sub(1, Ordering::Relaxed);
            waited = true;
        }
    }

    fn wake(&self, _badge: u64) -> Result<(), NicError> {
        op::v(event()).map_err(|_| NicError::Failed)
    }
}
