//! What smoltcp sends through: the driver of the network interface, and loopback.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use protocols::nic::{LENGTH_BYTES, MAX_FRAME, NicClient};
use runtime::connection::{Connection, Given, Once};
use runtime::server;
use runtime::window::Page;
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// The driver: it may be started again at any time.
static DRIVER: Connection<Given> = Connection::new(Given("nic"));

/// Calls to the driver. A driver that is not there now is not waited for.
pub fn driver() -> NicClient<Once<'static, Given>> {
    NicClient(DRIVER.once())
}

use crate::checksum;

/// Bytes of the longest loopback packet.
const LOOPBACK_MTU: usize = 4096;
/// Loopback packets that wait to be received, at most; more are lost.
const LOOPBACK_PACKETS: usize = 128;
/// Bytes that they take, with the one that arrived and a spare one.
pub const LOOPBACK_BYTES: usize = (LOOPBACK_PACKETS + 2) * (LOOPBACK_MTU + 64);

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
    pub batch: Box<Page>,
    /// Where the frame stands in it that came and was not looked at yet; empty = there is none.
    pub arrived: Range<usize>,
    /// What goes to the driver.
    pub outgoing: Outgoing,
}

/// A batch with fewer bytes goes in the message: to copy them twice costs less than to open a window.
const SHOWN_BYTES: usize = 512;

impl Ethernet {
    /// The frame that came.
    pub fn frame(&self) -> &[u8] {
        self.batch.0.get(self.arrived.clone()).unwrap_or_default()
    }

    /// The next of the frames in the first `bytes` of the batch is the one that came; `at` is where its length stands.
    /// Gives where that of the next one does.
    pub fn advance(&mut self, at: usize, bytes: usize) -> Option<usize> {
        let (length, rest) = self.batch.0.get(at..bytes)?.split_first_chunk::<LENGTH_BYTES>()?;
        let frame = rest.get(..u16::from_le_bytes(*length).into())?;
        let start = at + LENGTH_BYTES;
        let end = start + frame.len();
        self.arrived = start..end;
        Some(end)
    }

    /// With nothing in it.
    pub fn new() -> Self {
        Self {
            batch: Box::new(Page::ZERO),
            arrived: 0..0,
            outgoing: Outgoing { batch: Box::new(Page::ZERO), bytes: 0, frames: 0, sent: 0, lost: 0 },
        }
    }
}

/// Frames that go out, gathered until the batch is full or the work that makes them is done: a call to the driver costs
/// about as much as a frame.
pub struct Outgoing {
    batch: Box<Page>,
    /// What is in it.
    bytes: usize,
    frames: u64,
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that the driver did not take.
    pub lost: u64,
}

impl Outgoing {
    /// Gives the driver what was gathered.
    #[inline]
    pub fn flush(&mut self) {
        if self.bytes > 0 {
            self.send();
        }
    }

    fn send(&mut self) {
        let mut bytes = self.bytes;
        if bytes >= SHOWN_BYTES {
            // The whole page, in which a length of 0 ends the batch.
            if let Some(end) = self.batch.0.get_mut(bytes..).and_then(<[u8]>::first_chunk_mut::<LENGTH_BYTES>) {
                *end = [0; LENGTH_BYTES];
            }
            bytes = self.batch.0.len();
        }
        // What the driver cannot send is lost, as on any wire.
        let (_, sent) = driver().send(&self.batch.0[..bytes]).unwrap_or((0, 0));
        self.sent += sent;
        self.lost += self.frames.saturating_sub(sent);
        (self.bytes, self.frames) = (0, 0);
    }
}

impl TxToken for &mut Outgoing {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, work: F) -> R {
        if self.batch.0.len() - self.bytes < LENGTH_BYTES + length {
            self.flush();
        }
        let (before, frame) = self.batch.0[self.bytes..][..LENGTH_BYTES + length].split_at_mut(LENGTH_BYTES);
        before.copy_from_slice(&(length as u16).to_le_bytes());
        let outcome = work(frame);
        checksum::fill(frame);
        self.bytes += LENGTH_BYTES + length;
        self.frames += 1;
        outcome
    }
}

impl Device for Ethernet {
    type RxToken<'a> = Arrived<'a>;
    type TxToken<'a> = &'a mut Outgoing;

    fn receive(&mut self, _: Instant) -> Option<(Arrived<'_>, &mut Outgoing)> {
        let arrived = core::mem::take(&mut self.arrived);
        let frame = self.batch.0.get(arrived).filter(|frame| !frame.is_empty())?;
        Some((Arrived(frame), &mut self.outgoing))
    }

    fn transmit(&mut self, _: Instant) -> Option<&mut Outgoing> {
        Some(&mut self.outgoing)
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

/// The loopback device. Nothing damages its packets, so they have no checksums.
pub struct Loopback {
    arrived: Vec<u8>,
    /// Where packets are put.
    pub sending: Sending,
}

impl Loopback {
    /// With nothing on it.
    pub const fn new() -> Self {
        Self { arrived: Vec::new(), sending: Sending { queue: VecDeque::new(), spare: Vec::new() } }
    }

    /// The next packet is the one to be received.
    pub fn advance(&mut self) -> Option<&[u8]> {
        let next = self.sending.queue.pop_front()?;
        self.sending.spare = core::mem::replace(&mut self.arrived, next);
        Some(&self.arrived)
    }
}

/// Loopback packets that were sent and not received yet.
pub struct Sending {
    queue: VecDeque<Vec<u8>>,
    /// The memory of a packet that was received, for the next one.
    spare: Vec<u8>,
}

impl TxToken for &mut Sending {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, work: F) -> R {
        let mut packet = core::mem::take(&mut self.spare);
        packet.clear();
        // No more than that: what waits here is counted in bytes.
        packet.reserve_exact(length);
        packet.resize(length, 0);
        let outcome = work(&mut packet);
        if self.queue.len() < LOOPBACK_PACKETS {
            self.queue.push_back(packet);
        }
        outcome
    }
}

impl Device for Loopback {
    type RxToken<'a> = Arrived<'a>;
    type TxToken<'a> = &'a mut Sending;

    fn receive(&mut self, _: Instant) -> Option<(Arrived<'_>, &mut Sending)> {
        let Self { arrived, sending } = self;
        (!arrived.is_empty() && !server::is_short()).then(|| (Arrived(arrived), sending))
    }

    fn transmit(&mut self, _: Instant) -> Option<&mut Sending> {
        // While memory is short nothing is sent: what is to be is tried again.
        (!server::is_short()).then_some(&mut self.sending)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = LOOPBACK_MTU;
        capabilities.checksum = smoltcp::phy::ChecksumCapabilities::ignored();
        capabilities
    }
}
