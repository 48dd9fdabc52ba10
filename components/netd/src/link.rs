//! What smoltcp sends through: the driver of the network interface, and the way from here to here.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use interfaces::nic::{MAX_BATCH, MAX_FRAME, NicClient};
use runtime::connection::{Connection, Name};
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// The driver, by name: it may be started again at any time.
static DRIVER: Connection<Name<'static>> = Connection::named("nic");

/// Calls to the driver. A driver that is not there now is not waited for.
pub fn driver() -> NicClient<runtime::connection::Once<'static, Name<'static>>> {
    NicClient(DRIVER.once())
}

use crate::checksum;

/// Bytes of the longest packet from here to here.
const LOCAL_MTU: usize = 4096;
/// Packets on their way from here to here, at most; more are lost.
const LOCAL_PACKETS: usize = 128;

/// A packet that came.
pub struct Arrived<'a>(&'a [u8]);

impl RxToken for Arrived<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, work: F) -> R {
        work(self.0)
    }
}

/// What came from the driver, and room for what goes there.
pub struct Ethernet {
    /// What the driver gave: frames, each behind its length.
    pub batch: Box<[u8]>,
    /// Where the frame stands in it that came and was not looked at yet; empty = there is none.
    pub arrived: Range<usize>,
    outgoing: Box<[u8]>,
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that the driver did not take.
    pub lost: u64,
}

/// A buffer for what the driver gives at once.
pub fn batch() -> Box<[u8]> {
    vec![0; MAX_BATCH].into_boxed_slice()
}

impl Ethernet {
    /// The frame that came.
    pub fn frame(&self) -> &[u8] {
        self.batch.get(self.arrived.clone()).unwrap_or_default()
    }

    /// The next of the frames in the first `bytes` of the batch is the one that came; `at` is where its length stands.
    /// Gives where that of the next one does.
    pub fn advance(&mut self, at: usize, bytes: usize) -> Option<usize> {
        let (length, rest) = self.batch.get(at..bytes)?.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_le_bytes(*length));
        self.arrived = at + 2..at + 2 + length.min(rest.len());
        Some(self.arrived.end)
    }

    /// With nothing in it.
    pub fn new() -> Self {
        Self { batch: batch(), arrived: 0..0, outgoing: vec![0; MAX_FRAME].into_boxed_slice(), sent: 0, lost: 0 }
    }
}

/// Room for a frame that goes out.
pub struct Outgoing<'a> {
    frame: &'a mut [u8],
    sent: &'a mut u64,
    lost: &'a mut u64,
}

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, work: F) -> R {
        let frame = &mut self.frame[..length];
        let outcome = work(frame);
        checksum::fill(frame);
        // What the driver cannot send is lost, as on any wire.
        match driver().send(frame) {
            Ok(()) => *self.sent += 1,
            Err(_) => *self.lost += 1,
        }
        outcome
    }
}

impl Device for Ethernet {
    type RxToken<'a> = Arrived<'a>;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived<'_>, Outgoing<'_>)> {
        let arrived = core::mem::take(&mut self.arrived);
        let Self { batch, outgoing, sent, lost, .. } = self;
        let frame = batch.get(arrived).filter(|frame| !frame.is_empty())?;
        Some((Arrived(frame), Outgoing { frame: outgoing, sent, lost }))
    }

    fn transmit(&mut self, _: Instant) -> Option<Outgoing<'_>> {
        Some(Outgoing { frame: &mut self.outgoing, sent: &mut self.sent, lost: &mut self.lost })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = MAX_FRAME;
        // Of what is sent they are made here, eight bytes at a time.
        (capabilities.checksum.tcp, capabilities.checksum.udp) = (Checksum::Rx, Checksum::Rx);
        capabilities
    }
}

/// The way from here to here. Nothing is damaged on it, so nothing is summed up.
pub struct Local {
    /// Packets on their way.
    pub queue: VecDeque<Vec<u8>>,
    arrived: Vec<u8>,
}

impl Local {
    /// With nothing on it.
    pub const fn new() -> Self {
        Self { queue: VecDeque::new(), arrived: Vec::new() }
    }

    /// The next packet is the one to be received.
    pub fn advance(&mut self) -> Option<&[u8]> {
        self.arrived = self.queue.pop_front()?;
        Some(&self.arrived)
    }
}

/// The queue to put a packet into.
pub struct Putting<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Putting<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, work: F) -> R {
        let mut packet = vec![0; length];
        let outcome = work(&mut packet);
        if self.0.len() < LOCAL_PACKETS {
            self.0.push_back(packet);
        }
        outcome
    }
}

impl Device for Local {
    type RxToken<'a> = Arrived<'a>;
    type TxToken<'a> = Putting<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived<'_>, Putting<'_>)> {
        let Self { queue, arrived } = self;
        (!arrived.is_empty()).then(|| (Arrived(arrived), Putting(queue)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Putting<'_>> {
        Some(Putting(&mut self.queue))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = LOCAL_MTU;
        capabilities.checksum = smoltcp::phy::ChecksumCapabilities::ignored();
        capabilities
    }
}
