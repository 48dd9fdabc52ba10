//! What a socket of a client is.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use interfaces::net::{Endpoint, NetError};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::{dns, tcp};

use crate::demux::Key;
use crate::pages::Held;
use crate::slots::Number;

/// A socket.
pub struct Socket {
    /// Whose it is. The session may be gone: then it lingers for the other end's sake.
    pub session: Number,
    /// The client's word for it.
    pub token: u32,
    /// What makes an event.
    pub armed: u32,
    /// What happened and was not told yet.
    pub pending: u32,
    /// What it is.
    pub kind: Kind,
}

/// What it is.
pub enum Kind {
    /// A TCP port that is listened on.
    Listener(Listener),
    /// A TCP connection.
    Flow(Box<Flow>),
    /// A UDP port.
    Datagrams(Datagrams),
    /// ICMP echo.
    Echo(Echo),
    /// A name that is asked for.
    Query(dns::QueryHandle),
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
    /// From here to here.
    pub local: bool,
    /// How far it is.
    pub stage: Stage,
    /// When it began, in nanoseconds since boot.
    pub since: u64,
    /// When the protocol wants to be asked again; never later than that.
    pub deadline: u64,
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
    /// What came from here.
    pub local: Inbox,
}

/// ICMP echo.
pub struct Echo {
    /// The protocol's side, in the common set.
    pub handle: SocketHandle,
    /// Its identifier in packets.
    pub identifier: u16,
    /// Answers from here.
    pub local: Inbox,
}

/// Datagrams that never were on a wire.
#[derive(Default)]
pub struct Inbox(VecDeque<(Endpoint, Vec<u8>)>);

/// Datagrams that an inbox holds; more are lost.
const INBOX: usize = 8;

impl Inbox {
    /// Puts one in; whether there was room.
    pub fn put(&mut self, from: Endpoint, bytes: &[u8]) -> bool {
        if self.0.len() == INBOX {
            return false;
        }
        self.0.push_back((from, bytes.into()));
        true
    }

    /// Takes one out: from whom, and how many of its bytes fit.
    pub fn take(&mut self, into: &mut [u8]) -> Option<(Endpoint, usize)> {
        let (from, bytes) = self.0.pop_front()?;
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        Some((from, count))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
