//! The devices that smoltcp sends through: the driver of the network interface, and loopback.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use protocols::nic::{LENGTH_BYTES, MAX_FRAME, NicClient, NicError};
use runtime::connection::{Connection, Given, Once};
use runtime::idl::Failure;
use runtime::server;
use runtime::window::Page;
use smoltcp::iface::{Config, Interface, PollResult, SocketSet};
use smoltcp::phy::{self, Checksum, Device, DeviceCapabilities, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::HardwareAddress;

/// The driver: it may be started again at any time.
static DRIVER: Connection<Given> = Connection::new(Given("nic"));

/// Calls to the driver. A driver that is not there now is not waited for.
pub fn driver() -> NicClient<Once<'static, Given>> {
    NicClient(DRIVER.once())
}

use crate::{checksum, random};

/// Bytes of the longest loopback packet.
const LOOPBACK_MTU: usize = 4096;
/// Loopback packets that wait to be received, at most; more are lost.
const LOOPBACK_PACKETS: usize = 128;
/// Bytes that they take, with the one that arrived and a spare one.
pub const LOOPBACK_BYTES: usize = (LOOPBACK_PACKETS + 2) * (LOOPBACK_MTU + 64);

/// The link that packets take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// The driver.
    Ethernet,
    /// Nothing: they stay in the machine.
    Loopback,
}

/// An interface and its device.
pub struct Link<D> {
    /// Its addresses, routes and neighbours.
    pub interface: Interface,
    /// Where packets come from and go to.
    pub device: D,
}

impl<D: Device> Link<D> {
    /// The packet that came is for these sockets.
    #[inline]
    fn ingress(&mut self, time: Instant, sockets: &mut SocketSet<'_>) {
        self.interface.poll_ingress_single(time, &mut self.device, sockets);
    }

    /// These sockets send one packet each; gives whether one did something.
    #[inline]
    pub fn egress(&mut self, time: Instant, sockets: &mut SocketSet<'_>) -> PollResult {
        self.interface.poll_egress(time, &mut self.device, sockets)
    }

    /// Another interface with the same addresses, and a seed of its own.
    fn newborn(&mut self, hardware: HardwareAddress, time: Instant) -> Option<Interface> {
        let mut config = Config::new(hardware);
        config.random_seed = random::number()?;
        let mut newborn = Interface::new(config, &mut self.device, time);
        newborn.update_ip_addrs(|addresses| {
            for address in self.interface.ip_addrs() {
                let _ = addresses.push(*address);
            }
        });
        Some(newborn)
    }
}

/// All that there are.
pub struct Links {
    /// Through the driver.
    pub ethernet: Link<Ethernet>,
    /// Loopback.
    pub loopback: Link<Loopback>,
}

impl Links {
    /// The packet that came over a medium is for these sockets.
    #[inline]
    pub fn ingress(&mut self, medium: Medium, time: Instant, sockets: &mut SocketSet<'_>) {
        match medium {
            Medium::Ethernet => self.ethernet.ingress(time, sockets),
            Medium::Loopback => self.loopback.ingress(time, sockets),
        }
    }

    /// These sockets send one packet each; gives whether one did something, and when they want to be asked again.
    #[inline]
    pub fn egress(
        &mut self,
        medium: Medium,
        time: Instant,
        sockets: &mut SocketSet<'_>,
    ) -> (PollResult, Option<Instant>) {
        let Self { ethernet, loopback } = self;
        match medium {
            Medium::Ethernet => (ethernet.egress(time, sockets), ethernet.interface.poll_at(time, sockets)),
            Medium::Loopback => (loopback.egress(time, sockets), loopback.interface.poll_at(time, sockets)),
        }
    }

    /// An interface that is used once, for the first packet of a connection: smoltcp takes sequence numbers from
    /// a generator that can be followed once some of its numbers are seen, so each connection has a seed of its own. None if no random
    /// number is left for that.
    pub fn newborn(&mut self, medium: Medium, time: Instant) -> Option<Interface> {
        match medium {
            Medium::Ethernet => self.ethernet.newborn(self.ethernet.interface.hardware_addr(), time),
            Medium::Loopback => self.loopback.newborn(HardwareAddress::Ip, time),
        }
    }

    /// As [`Self::ingress`], through an interface that was made for it.
    pub fn first_ingress(
        &mut self,
        medium: Medium,
        newborn: &mut Interface,
        time: Instant,
        sockets: &mut SocketSet<'_>,
    ) {
        match medium {
            Medium::Ethernet => newborn.poll_ingress_single(time, &mut self.ethernet.device, sockets),
            Medium::Loopback => newborn.poll_ingress_single(time, &mut self.loopback.device, sockets),
        };
    }
}

/// A packet that came.
pub struct Arrived<'a>(&'a [u8]);

impl RxToken for Arrived<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, work: F) -> R {
        work(self.0)
    }
}

/// Packets that came from the driver, and room for those that go there.
pub struct Ethernet {
    /// Frames from the driver, each behind its length.
    pub batch: Box<Page>,
    /// Where the frame stands in it that came and was not looked at yet; empty = there is none.
    pub arrived: Range<usize>,
    /// Frames for the driver.
    pub outgoing: Outgoing,
}

/// A batch with fewer bytes goes in the message: a window would save little, and shows a whole page.
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
/// about as much as a frame. Frames for which the device has no room stay in the batch; while that is full, smoltcp sends nothing.
pub struct Outgoing {
    batch: Box<Page>,
    /// The number of bytes in it.
    bytes: usize,
    frames: u64,
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that the driver did not take.
    pub lost: u64,
}

impl Outgoing {
    /// Gives the driver what was gathered, as far as the device has room; whether it took all.
    #[inline]
    pub fn flush(&mut self) -> bool {
        self.bytes == 0 || self.send()
    }

    /// Whether there is room for a frame of this length, perhaps since what was gathered has gone.
    fn makes_room(&mut self, length: usize) -> bool {
        let needed = LENGTH_BYTES + length;
        if self.batch.0.len() - self.bytes < needed {
            self.flush();
        }
        self.batch.0.len() - self.bytes >= needed
    }

    fn send(&mut self) -> bool {
        let mut bytes = self.bytes;
        if bytes >= SHOWN_BYTES {
            // The whole page, in which a length of 0 ends the batch.
            if let Some(end) = self.batch.0.get_mut(bytes..).and_then(<[u8]>::first_chunk_mut::<LENGTH_BYTES>) {
                *end = [0; LENGTH_BYTES];
            }
            bytes = self.batch.0.len();
        }
        match driver().send(&self.batch.0[..bytes]) {
            Ok((taken, sent)) if taken < self.bytes => {
                self.sent += sent;
                self.frames = self.frames.saturating_sub(sent);
                self.batch.0.copy_within(taken..self.bytes, 0);
                self.bytes -= taken;
            }
            Err(Failure::Refused(NicError::Busy)) => {}
            // A driver that died loses frames, as any wire does.
            other => {
                let sent = other.map_or(0, |(_, sent)| sent);
                self.sent += sent;
                self.lost += self.frames.saturating_sub(sent);
                self.bytes = 0;
                self.frames = 0;
            }
        }
        self.bytes == 0
    }
}

impl TxToken for &mut Outgoing {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, work: F) -> R {
        if !self.makes_room(length) {
            // An answer that nobody waits for: others are not begun without room.
            self.lost += 1;
            return work(&mut [0; MAX_FRAME][..length]);
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
        self.outgoing.makes_room(MAX_FRAME).then_some(&mut self.outgoing)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = phy::Medium::Ethernet;
        capabilities.max_transmission_unit = MAX_FRAME;
        // Of what is sent they are made here, eight bytes at a time.
        capabilities.checksum.tcp = Checksum::Rx;
        capabilities.checksum.udp = Checksum::Rx;
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
        // No more than that: the waiting packets are counted in bytes.
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
        // While memory is short nothing is sent: sending is tried again.
        (!server::is_short()).then_some(&mut self.sending)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = phy::Medium::Ip;
        capabilities.max_transmission_unit = LOOPBACK_MTU;
        capabilities.checksum = smoltcp::phy::ChecksumCapabilities::ignored();
        capabilities
    }
}
