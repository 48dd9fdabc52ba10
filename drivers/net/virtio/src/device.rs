//! The device: two queues of packets (virtio 1.2, 5.1).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::mem::ManuallyDrop;

use bitflags::bitflags;
use idl::{Delegate, Input, Output};
use protocols::bus::BusClient;
use protocols::nic::{self, LENGTH_BYTES, MAX_FRAME, NicError};
use runtime::Direct;
use virtio::{Memory, memory};
use virtio_drivers::PAGE_SIZE;
use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::Transport;
use virtio_drivers::transport::pci::PciTransport;

bitflags! {
    /// The features that we want of the device (virtio 1.2, 5.1.3 and 6). No event indices: without them a queue accepts a request
    /// not to interrupt at all.
    #[derive(Debug, Clone, Copy)]
    struct Features: u64 {
        const MAC = 1 << 5;
        const VERSION_1 = 1 << 32;
    }
}

/// Numbers of the queues.
const RECEIVE: u16 = 0;
const TRANSMIT: u16 = 1;
/// Packets in each queue.
const QUEUE: usize = 32;
/// Frames of the two queues, two each.
const QUEUE_FRAMES: usize = 4;
/// All frames: half a frame for each packet.
const FRAMES: usize = QUEUE_FRAMES + PACKETS / 2;
/// Packets that there is room for.
const PACKETS: usize = 2 * QUEUE;
/// Bytes before each packet (virtio 1.2, 5.1.6): nothing is left to the device, so they are zeros.
const HEADER: usize = 12;
const _: () = assert!(HEADER + MAX_FRAME <= PAGE_SIZE / 2);

type Buffer = &'static mut [u8];

/// See the module.
pub struct Device {
    transport: ManuallyDrop<PciTransport>,
    receiving: VirtQueue<Memory, QUEUE>,
    sending: VirtQueue<Memory, QUEUE>,
    /// With the device, by token; of those that it sends, with their bytes.
    to_fill: [Option<Buffer>; QUEUE],
    to_send: [Option<(Buffer, usize)>; QUEUE],
    /// For sending.
    free: Vec<Buffer>,
    address: u64,
}

// SAFETY: it is reached under one lock; its pointers lead to registers and frames that stay mapped.
unsafe impl Send for Device {}

impl Device {
    /// Gets everything from the bus and starts the device, which works as long as the semaphore `life` exists.
    pub fn new(bus: &BusClient<Direct>, life: Delegate) -> Result<Self, String> {
        let mut transport = virtio::open(bus, FRAMES, life).map_err(|error| error.to_string())?;
        let refused = |error| format!("the device refuses: {error}");
        transport.begin_init(Features::all());
        let mut address = [0; 8];
        for (offset, byte) in address[..6].iter_mut().enumerate() {
            *byte = transport.read_config_space::<u8>(offset).map_err(refused)?;
        }
        let receiving = VirtQueue::new(&mut *transport, RECEIVE, false, false).map_err(refused)?;
        let mut sending = VirtQueue::new(&mut *transport, TRANSMIT, false, false).map_err(refused)?;
        // Sent packets are looked for when there is something to send again.
        sending.set_dev_notify(false);
        transport.finish_init();
        let pages = core::iter::from_fn(memory::page);
        let mut free: Vec<Buffer> =
            pages.flat_map(|page| <[Buffer; 2]>::from(page.split_at_mut(PAGE_SIZE / 2))).collect();
        let filled = free.split_off(free.len().min(PACKETS - QUEUE));
        let address = u64::from_le_bytes(address);
        let (to_fill, to_send) = (core::array::from_fn(|_| None), core::array::from_fn(|_| None));
        let mut device = Self { transport, receiving, sending, to_fill, to_send, free, address };
        for buffer in filled {
            device.give(buffer);
        }
        Ok(device)
    }

    /// Gives the device a buffer to fill.
    fn give(&mut self, buffer: Buffer) {
        // SAFETY: the buffer is kept and not touched until `pop_used` takes it back.
        if let Ok(token) = unsafe { self.receiving.add(&[], &mut [buffer]) } {
            self.to_fill[usize::from(token)] = Some(buffer);
            if self.receiving.should_notify() {
                self.transport.notify(RECEIVE);
            }
        }
    }

    /// The hardware address, lowest byte first.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The interrupt was seen.
    pub fn acknowledge(&mut self) {
        self.transport.ack_interrupt();
    }

    /// Takes frames that came, each after its length, as long as there is room for the longest; gives their bytes.
    pub fn receive_all(&mut self, into: &mut Output<'_>) -> usize {
        let mut bytes = 0;
        while into.len() - bytes >= LENGTH_BYTES + MAX_FRAME
            && let Some(count) = self.receive(into, bytes)
        {
            bytes += count;
        }
        bytes
    }

    /// Takes a frame that came, and puts it there after its length; gives the bytes of both. One that is longer than a frame may be is lost.
    /// It looks at as many as there are buffers: a device may say that more and more came.
    fn receive(&mut self, into: &mut Output<'_>, at: usize) -> Option<usize> {
        for _ in 0..QUEUE {
            let token = self.receiving.peek_used()?;
            // A device that names a buffer it does not have is not served any more.
            let buffer = self.to_fill.get_mut(usize::from(token))?.take()?;
            // SAFETY: the buffer that was added with this token.
            let filled = unsafe { self.receiving.pop_used(token, &[], &mut [&mut *buffer]) };
            let taken = filled.ok().and_then(|bytes| {
                let frame = buffer.get(HEADER..bytes as usize)?;
                if !(1..=MAX_FRAME).contains(&frame.len()) {
                    return None;
                }
                into.copy_from(at, &(frame.len() as u16).to_le_bytes());
                into.copy_from(at + LENGTH_BYTES, frame);
                Some(LENGTH_BYTES + frame.len())
            });
            self.give(buffer);
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// Takes back what was sent.
    fn reclaim(&mut self) {
        for _ in 0..QUEUE {
            let Some(token) = self.sending.peek_used() else { return };
            let Some((buffer, bytes)) = self.to_send.get_mut(usize::from(token)).and_then(Option::take) else { return };
            // SAFETY: the bytes that were added with this token.
            let _ = unsafe { self.sending.pop_used(token, &[&buffer[..bytes]], &mut []) };
            self.free.push(buffer);
        }
    }

    /// Sends the frames of a batch from byte `at` on, as long as there is room; gives how many. `at` is then where the next one stands, or the
    /// end of the batch.
    pub fn send_all(&mut self, batch: &Input<'_>, at: &mut usize) -> Result<u64, NicError> {
        let mut sent = 0;
        let outcome = nic::send_each(batch, at, |at, length| {
            let takes = (!cfg!(feature = "busy") || sent == 0) && self.send(batch, at, length);
            sent += u64::from(takes);
            takes
        });
        if sent > 0 && self.sending.should_notify() {
            self.transport.notify(TRANSMIT);
        }
        outcome
    }

    /// Puts a frame of at most [`MAX_FRAME`] bytes, which begins at byte `at` of the batch, into the queue; whether there was room.
    fn send(&mut self, batch: &Input<'_>, at: usize, length: usize) -> bool {
        if self.free.is_empty() || self.sending.available_desc() == 0 {
            self.reclaim();
        }
        let Some(buffer) = self.free.pop() else { return false };
        let bytes = HEADER + length;
        buffer[..HEADER].fill(0);
        batch.copy_to(at, &mut buffer[HEADER..bytes]);
        // SAFETY: the buffer is kept and not touched until `pop_used` takes it back.
        match unsafe { self.sending.add(&[&buffer[..bytes]], &mut []) } {
            Ok(token) => self.to_send[usize::from(token)] = Some((buffer, bytes)),
            Err(_) => {
                self.free.push(buffer);
                return false;
            }
        }
        true
    }
}
