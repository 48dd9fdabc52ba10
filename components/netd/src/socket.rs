//! A client's socket.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use protocols::net::{Endpoint, NetError};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::{dns, tcp, udp};
use smoltcp::storage::{PacketBuffer, PacketMetadata};
use smoltcp::time::Instant;

use crate::client::Client;
use crate::demux::Key;
use crate::link::Medium;
use crate::pages::{Buffers, Held};
use crate::slots::Number;

/// A socket.
pub struct Socket {
    /// Its session. The session may be gone: then the socket lingers for the other end's sake.
    pub session: Number,
    /// The client for whose limits it counts.
    pub client: Client,
    /// The client's word for it.
    pub token: u32,
    /// The conditions that make an event.
    pub armed: u32,
    /// The conditions that occurred and were not reported yet.
    pub pending: u32,
    /// Its kind.
    pub kind: Kind,
}

/// The kind of a socket.
pub enum Kind {
    /// A TCP port that is listened on.
    Listener(Box<Listener>),
    /// A TCP connection.
    Flow(Box<Flow>),
    /// A UDP port.
    Datagrams(Box<Datagrams>),
    /// ICMP echo.
    Echo(Box<Echo>),
    /// A name that is asked for, since that time.
    Query(dns::QueryHandle, Instant),
}

/// The kinds of objects that are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Sessions.
    Session,
    /// TCP connections, also those that are not accepted yet, and those that linger.
    Flow,
    /// Of these, connections that linger: more end the oldest one.
    Lingering,
    /// TCP ports that are listened on.
    Listener,
    /// UDP ports and ICMP echo.
    Port,
    /// Names that are asked for.
    Query,
}

impl Kind {
    /// Which limit it counts for.
    pub const fn what(&self) -> What {
        match self {
            Self::Listener(_) => What::Listener,
            Self::Flow(_) => What::Flow,
            Self::Datagrams(_) | Self::Echo(_) => What::Port,
            Self::Query(..) => What::Query,
        }
    }
}

/// A TCP port that is listened on.
pub struct Listener {
    /// The port.
    pub port: u16,
    /// Connections that wait, at most.
    pub backlog: usize,
    /// Pages to receive into and to send from.
    pub pages: (u64, u64),
    /// Connections that are not there yet, oldest first.
    pub opening: VecDeque<Number>,
    /// Connections to accept.
    pub ready: VecDeque<Number>,
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It is being made, by us.
    Connecting,
    /// It belongs to a listener: not accepted yet.
    Arriving(Number),
    /// A client has it.
    Open,
    /// Its client closed it.
    Lingering,
}

/// A TCP connection.
pub struct Flow {
    /// The protocol's side, alone in a set, with its buffers.
    pub held: Held<SocketSet<'static>>,
    /// Its place there.
    pub handle: SocketHandle,
    /// Both ends.
    pub key: Key,
    /// The link that its packets take.
    pub medium: Medium,
    /// How far it is.
    pub stage: Stage,
    /// When it began, in nanoseconds since boot.
    pub since: u64,
    /// When the protocol wants to be asked again; never later than that.
    pub deadline: u64,
    /// Bytes that its client took since the protocol's side was last asked whether to advertise the room to the other end.
    pub taken: u32,
    /// After so many bytes it is asked.
    pub enough: u32,
    /// Why it ended, once it did.
    pub failure: Option<NetError>,
}

impl Flow {
    /// The protocol's side.
    #[inline]
    pub fn tcp(&mut self) -> &mut tcp::Socket<'static> {
        self.held.socket.get_mut(self.handle)
    }
}

/// A UDP port.
pub struct Datagrams {
    /// The protocol's side, in the common set.
    pub handle: SocketHandle,
    /// The port.
    pub port: u16,
    /// Packets from this machine.
    pub local: Inbox,
}

/// Datagrams that wait in each direction, if their bytes fit into a page.
pub const PACKETS: usize = 16;
/// The metadata that the protocol's side keeps of them, in both directions.
pub const METADATA_BYTES: usize = 2 * PACKETS * size_of::<udp::PacketMetadata>();

/// ICMP echo.
pub struct Echo {
    /// The protocol's side, in the common set.
    pub handle: SocketHandle,
    /// Its identifier in packets.
    pub identifier: u16,
    /// Answers from here.
    pub local: Inbox,
}

/// Datagrams that never were on a wire, in a page of the client's.
pub struct Inbox(Held<PacketBuffer<'static, Endpoint>>);

/// Datagrams that an inbox holds, if their bytes fit; more are lost.
pub const INBOX: usize = 8;

impl Inbox {
    /// An empty one, paid for by the account of this ticket.
    pub fn draw(ticket: u64) -> Result<Self, NetError> {
        let make = |receive, _| PacketBuffer::new(vec![PacketMetadata::EMPTY; INBOX], receive);
        Ok(Self(Held::new(Buffers::draw(ticket, 1, 0)?, make)))
    }

    /// Puts one in; whether there was room.
    pub fn put(&mut self, from: Endpoint, bytes: &[u8]) -> bool {
        let room = self.0.socket.enqueue(bytes.len(), from);
        room.map(|room| room.copy_from_slice(bytes)).is_ok()
    }

    /// Takes one out: from whom, and how many of its bytes fit.
    pub fn take(&mut self, into: &mut [u8]) -> Option<(Endpoint, usize)> {
        let (from, bytes) = self.0.socket.dequeue().ok()?;
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        Some((from, count))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.socket.is_empty()
    }
}
