//! The device: two queues of packets.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use interface::Delegate;
use interfaces::bus::BusClient;
use interfaces::nic::MAX_FRAME;
use runtime::Direct;
use virtio::{Memory, memory};
use virtio_drivers::PAGE_SIZE;
use virtio_drivers::device::net::VirtIONetRaw;
use virtio_drivers::transport::pci::PciTransport;

/// Packets in each queue.
const QUEUE: usize = 32;
/// Frames of the two queues, two each.
const QUEUE_FRAMES: usize = 4;
/// All frames: half a frame for each packet.
const FRAMES: usize = QUEUE_FRAMES + PACKETS / 2;
/// Packets that there is room for.
const PACKETS: usize = 2 * QUEUE;
type Buffer = &'static mut [u8];

/// See the module.
pub struct Device {
    net: VirtIONetRaw<Memory, PciTransport, QUEUE>,
    /// With the device, by token.
    receiving: [Option<Buffer>; QUEUE],
    sending: [Option<Buffer>; QUEUE],
    free: Vec<Buffer>,
    header: usize,
}

// SAFETY: it is reached under one lock; its pointers lead to registers and frames that stay mapped.
unsafe impl Send for Device {}

impl Device {
    /// Gets everything from the bus and starts the device, which works as long as the semaphore `life` exists.
    pub fn new(bus: &BusClient<Direct>, life: Delegate) -> Result<Self, String> {
        let transport = virtio::open(bus, FRAMES, life).map_err(|error| error.to_string())?;
        let net = VirtIONetRaw::new(transport).map_err(|error| format!("the device refuses: {error}"))?;
        let pages = core::iter::from_fn(memory::page);
        let free = pages.flat_map(|page| <[Buffer; 2]>::from(page.split_at_mut(PAGE_SIZE / 2))).collect();
        let none = || core::array::from_fn(|_| None);
        let mut device = Self { net, receiving: none(), sending: none(), free, header: 0 };
        let mut header = [0; 32];
        device.header = device.net.fill_buffer_header(&mut header).map_err(|error| error.to_string())?;
        while device.give_one() {}
        Ok(device)
    }

    /// Gives the device a buffer to receive into, of half of all.
    fn give_one(&mut self) -> bool {
        if self.free.len() <= PACKETS / 2 {
            return false;
        }
        let Some(buffer) = self.free.pop() else { return false };
        self.give(buffer)
    }

    fn give(&mut self, buffer: Buffer) -> bool {
        // SAFETY: the buffer is kept until `receive_complete`.
        match unsafe { self.net.receive_begin(buffer) } {
            Ok(token) => {
                self.receiving[usize::from(token)] = Some(buffer);
                true
            }
            Err(_) => {
                self.free.push(buffer);
                false
            }
        }
    }

    /// The hardware address, lowest byte first.
    pub fn address(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.net.mac_address());
        u64::from_le_bytes(bytes)
    }

    /// The interrupt was seen.
    pub fn acknowledge(&mut self) {
        self.net.ack_interrupt();
    }

    /// Takes a frame that came.
    pub fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        let token = self.net.poll_receive()?;
        let buffer = self.receiving.get_mut(usize::from(token))?.take()?;
        // SAFETY: the buffer that was given with this token.
        let outcome = unsafe { self.net.receive_complete(token, buffer) };
        let taken = outcome.ok().and_then(|(header, bytes)| {
            let frame = buffer.get(header..header + bytes)?;
            into.get_mut(..bytes)?.copy_from_slice(frame);
            Some(bytes)
        });
        self.give(buffer);
        taken
    }

    /// Sends a frame, if there is room.
    pub fn send(&mut self, frame: &[u8]) {
        while let Some(token) = self.net.poll_transmit() {
            let Some(buffer) = self.sending.get_mut(usize::from(token)).and_then(Option::take) else { break };
            let length = self.header + usize::from(u16::from_le_bytes([buffer[LENGTH_AT], buffer[LENGTH_AT + 1]]));
            // SAFETY: the bytes that were given with this token.
            let _ = unsafe { self.net.transmit_complete(token, &buffer[..length]) };
            self.free.push(buffer);
        }
        let Some(buffer) = self.free.pop() else { return };
        let length = self.header + frame.len();
        let filled = self.net.fill_buffer_header(buffer).is_ok();
        buffer[self.header..length].copy_from_slice(frame);
        buffer[LENGTH_AT..LENGTH_AT + 2].copy_from_slice(&(frame.len() as u16).to_le_bytes());
        // SAFETY: the buffer is kept until `transmit_complete`.
        match unsafe { self.net.transmit_begin(&buffer[..length]) } {
            Ok(token) if filled => self.sending[usize::from(token)] = Some(buffer),
            _ => self.free.push(buffer),
        }
    }
}

/// Behind the longest frame each buffer keeps how long its frame is.
const LENGTH_AT: usize = 2046;
const _: () = assert!(MAX_FRAME + 32 < LENGTH_AT);
