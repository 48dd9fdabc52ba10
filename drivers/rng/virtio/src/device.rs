//! The device: one queue of buffers that it fills.

use alloc::format;
use alloc::string::{String, ToString};
use core::mem::ManuallyDrop;

use idl::Delegate;
use protocols::bus::BusClient;
use protocols::entropy::EntropyError;
use runtime::Direct;
use virtio::{Memory, memory};
use virtio_drivers::device::common::Feature;
use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::Transport;
use virtio_drivers::transport::pci::PciTransport;

/// The only queue.
const REQUESTS: u16 = 0;
/// Its buffers; one is used.
const QUEUE: usize = 2;
/// Two for the queue, one that the device fills.
const FRAMES: usize = 3;
/// Bytes asked for at once: the size of a seed and a bit more, since the device may draw on a scarce source.
pub const CHUNK: usize = 64;

/// See the module.
pub struct Device {
    transport: ManuallyDrop<PciTransport>,
    queue: VirtQueue<Memory, QUEUE>,
    buffer: &'static mut [u8],
    /// The device has the buffer, by this token.
    asked: Option<u16>,
}

// SAFETY: it is reached under one lock; its pointers lead to registers and frames that stay mapped.
unsafe impl Send for Device {}

impl Device {
    /// Gets everything from the bus and starts the device, which works as long as the semaphore `life` exists.
    pub fn new(bus: &BusClient<Direct>, life: Delegate) -> Result<Self, String> {
        let mut transport = virtio::open(bus, FRAMES, life).map_err(|error| error.to_string())?;
        transport.begin_init(Feature::VERSION_1);
        let queue = VirtQueue::new(&mut *transport, REQUESTS, false, false);
        let queue = queue.map_err(|error| format!("the device refuses: {error}"))?;
        transport.finish_init();
        let buffer = memory::page().and_then(|page| page.get_mut(..CHUNK)).ok_or("no frame is left for the buffer")?;
        Ok(Self { transport, queue, buffer, asked: None })
    }

    /// Asks for bytes, unless it was asked before and has not answered yet.
    pub fn ask(&mut self) -> Result<(), EntropyError> {
        if self.asked.is_some() {
            return Ok(());
        }
        // SAFETY: the buffer is not touched until `pop_used` took it back.
        let token = unsafe { self.queue.add(&[], &mut [&mut *self.buffer]) };
        self.asked = Some(token.map_err(|_| EntropyError::Failed)?);
        if self.queue.should_notify() {
            self.transport.notify(REQUESTS);
        }
        Ok(())
    }

    /// Takes what the device gave, and wipes it from where it stood; gives how many bytes. `None` = nothing yet.
    pub fn take(&mut self, into: &mut [u8]) -> Result<Option<usize>, EntropyError> {
        let Some(token) = self.asked.filter(|_| self.queue.can_pop()) else { return Ok(None) };
        // SAFETY: the buffer that was added with this token.
        let count = unsafe { self.queue.pop_used(token, &[], &mut [&mut *self.buffer]) };
        let count = count.map_err(|_| EntropyError::Failed)? as usize;
        self.asked = None;
        let count = count.min(self.buffer.len()).min(into.len());
        into[..count].copy_from_slice(&self.buffer[..count]);
        self.buffer.fill(0);
        if count == 0 { Err(EntropyError::Failed) } else { Ok(Some(count)) }
    }

    /// The interrupt was seen.
    pub fn acknowledge(&mut self) {
        self.transport.ack_interrupt();
    }
}
