//! Code that drivers of virtio devices share: a device that the bus gave, as the crate `virtio-drivers` wants it.
//!
//! [`open`] takes everything from the bus, once in the life of a domain: the device's configuration as a copy,
//! its registers, and frames that the bus keeps. The frames are for the queues ([`Memory`] gives them out) and
//! for what the device reads and writes ([`memory::page`]).
#![cfg_attr(not(test), no_std)]

pub mod configuration;
pub mod memory;

use core::fmt;
use core::mem::ManuallyDrop;

use idl::{Delegate, Failure, Transport};
pub use memory::Memory;
use protocols::bus::{BusClient, BusError, CONFIGURATION_BYTES};
use virtio_drivers::transport::pci::bus::{DeviceFunction, PciRoot};
use virtio_drivers::transport::pci::{PciTransport, VirtioPciError};

use crate::configuration::Copy;
use crate::memory::{FRAMES_AT, MAX_FRAMES};

/// Why there is no device.
#[derive(Debug)]
pub enum OpenError {
    /// The bus refused.
    Bus(Failure<BusError>),
    /// The bus gave fewer frames than were asked for.
    TooFewFrames,
    /// More frames than a driver may have, or `open` was called before.
    Twice,
    /// Its list of capabilities does not end.
    Circle,
    /// The device is not a virtio device of version 1.
    Device(VirtioPciError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bus(failure) => write!(f, "the bus refuses: {failure}"),
            Self::TooFewFrames => f.write_str("the bus gave too few frames"),
            Self::Twice => write!(f, "a device is open already, or it asks for more than {MAX_FRAMES} frames"),
            Self::Circle => f.write_str("the device's list of capabilities does not end"),
            Self::Device(error) => write!(f, "not a virtio device: {error}"),
        }
    }
}

impl core::error::Error for OpenError {}

impl From<Failure<BusError>> for OpenError {
    fn from(failure: Failure<BusError>) -> Self {
        Self::Bus(failure)
    }
}

/// The device that was claimed, made to work, with `frames` frames, cleared. Its registers and frames stand at
/// [`memory::registers_at`] and [`FRAMES_AT`] of this domain, where nothing else may be. It works as long as `life`, a
/// semaphore of the driver's that may be waited for.
///
/// Nobody drops the transport: that would wait for a device that need not answer. The bus resets it when its driver is gone.
pub fn open<T: Transport>(
    bus: &BusClient<T>,
    frames: usize,
    life: Delegate,
) -> Result<ManuallyDrop<PciTransport>, OpenError> {
    if frames > MAX_FRAMES || memory::is_open() {
        return Err(OpenError::Twice);
    }
    let mut bytes = [0; CONFIGURATION_BYTES];
    bus.configuration(&mut bytes)?;
    let copy = Copy::new(&bytes);
    if !copy.capabilities_end() {
        return Err(OpenError::Circle);
    }
    for (number, address) in copy.addresses().into_iter().enumerate().filter(|(_, address)| *address != 0) {
        let size = bus.registers(number as u64, memory::registers_at(number as u64))?;
        memory::set_base(number, address, size);
    }
    let mut physical = [0; 8 * MAX_FRAMES];
    let physical = &mut physical[..8 * frames];
    if bus.frames(frames as u64, FRAMES_AT, physical)? != physical.len() {
        return Err(OpenError::TooFewFrames);
    }
    // SAFETY: the bus has just mapped these frames, and nothing of this program refers to them; the device was
    // reset before it was given to us.
    unsafe { memory::open(physical.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes))) };
    bus.work(life)?;
    let function = DeviceFunction { bus: 0, device: 0, function: 0 };
    let transport = PciTransport::new::<Memory, _>(&mut PciRoot::new(copy), function);
    transport.map(ManuallyDrop::new).map_err(OpenError::Device)
}
