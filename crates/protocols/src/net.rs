//! The network: sessions, and sockets that belong to them.
//!
//! # Nobody waits in the network
//! A client of the network opens a `Session`, which pays for the memory of its sockets, and hands over a
//! semaphore. Every socket is a call entry of its own and never waits: a request that cannot be done at once is refused
//! with `WouldBlock`. When it can be done later, an [event](EVENT_BYTES) with the socket's token is noted,
//! and the semaphore raised when the first one is.
//!
//! # When events come
//! A socket is *armed* for reading by each attempt to read (or accept, or take a result) and at its making, for
//! writing by a write that took less than it was offered. A condition of an armed socket makes one event and
//! disarms it. So a reader reads until it gets less than it asked for, then waits.
//!
//! # Who pays, and how much there is
//! The account of a session pays for the pages that its sockets keep bytes in: `NoMemory` when it is exhausted. Besides, a
//! program has 4 sessions, 128 connections (those that nobody accepted yet and those that linger included), 8 listeners, 8
//! UDP ports and echo sockets together, and 4 queries: one more is refused with `Full`. However many sessions, accounts and
//! domains it makes, they count as its own. All programs together leave a part for components.
//!
//! # Addresses
//! Two words, high and low half of an IPv6 address; IPv4 addresses are mapped (RFC 4291, 2.5.5.2). Zero stands
//! for any. See [`Endpoint`].

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

use idl::{codes, interface, returns_struct};

codes! {
    /// Why the network refused.
    pub enum NetError {
        1 InUse "somebody has this port"
        2 Closed "the socket is closed"
        3 Full "all that programs can have of these are taken: end one (netstat shows whose)"
        4 BadAddress "not an address that this can be done with"
        5 Reset "the other side broke the connection off"
        6 WouldBlock "not possible now; an event follows"
        7 Unreachable "no way there"
        8 TimedOut "the other side does not answer"
        9 Refused "the other side refused"
        10 NoMemory "the session's account is exhausted: close sockets, or give it more (`account`)"
        11 TooLong "more than a datagram holds"
        12 NotFound "no such name"
        13 NotAllowed "this entry of the socket may not do it"
        14 BadName "not a name that can be asked for"
        15 BadSize "the buffers of a connection have 1 to 4 pages each way"
        16 Failed "it could not be done: dmesg says why"
        17 NoPort "no free port was found"
        18 TooMany "the caller has as many of these as it may have: close one"
        19 NotAnAccount "not an account that can be charged"
        20 NotASemaphore "not a semaphore that may be raised"
        21 BadPort "a port is a number from 1 to 65535"
        22 Kept "the port is kept for components"
        23 AllGiven "others have handed over all accounts that there can be: end a program (ps, kill)"
        24 NoNameServer "no name server is known: ifconfig shows what DHCP gave"
        25 NoSession "the session is closed: open another one"
        26 NoRandom "no random numbers are left for a connection: dmesg says why `randomd` gives none"
    }
}

/// An address and a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Endpoint {
    /// IPv4 addresses mapped.
    pub address: u128,
    /// 0 = any, or none.
    pub port: u16,
}

impl Endpoint {
    /// From the words of a call.
    pub fn from_words(high: u64, low: u64, port: u64) -> Option<Self> {
        Some(Self { address: u128::from(high) << 64 | u128::from(low), port: port.try_into().ok()? })
    }
    /// Words of a call: high, low, port.
    pub const fn words(self) -> (u64, u64, u64) {
        ((self.address >> 64) as u64, self.address as u64, self.port as u64)
    }
    /// From an address.
    #[inline]
    pub fn new(address: IpAddr, port: u16) -> Self {
        let address = match address {
            // As `to_ipv6_mapped`, which writes byte by byte.
            IpAddr::V4(address) => 0xffff << 32 | u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        Self { address, port }
    }
    /// The address.
    pub fn ip(self) -> IpAddr {
        Ipv6Addr::from_bits(self.address).to_canonical()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip() {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

/// Bytes of an event: the socket's token, then what happened, four bytes each, lowest first.
pub const EVENT_BYTES: usize = 8;
/// Something can be read, accepted or taken.
pub const READABLE: u32 = 1 << 0;
/// Something can be written.
pub const WRITABLE: u32 = 1 << 1;

/// `Connection::part`: an entry that may read.
pub const MAY_READ: u64 = 1 << 0;
/// `Connection::part`: an entry that may write.
pub const MAY_WRITE: u64 = 1 << 1;
/// `Connection::part`: an entry that may close.
pub const MAY_CLOSE: u64 = 1 << 2;

/// Bytes of the longest datagram that is sent or received whole.
pub const MAX_DATAGRAM: usize = 1472;

returns_struct! {
    /// The sender of a datagram, and its bytes.
    pub struct Received {
        /// Bytes of it that were taken.
        pub bytes: usize,
        /// The sender's address, high half.
        pub high: u64,
        /// The sender's address, low half.
        pub low: u64,
        /// The sender's port; of an echo, its sequence number.
        pub port: u64,
    }
}

/// The network.
#[interface]
pub trait Net {
    /// Opens a session: a call entry of `Session`. The account pays for the pages of its sockets, and must be writable;
    /// when it vanishes with its owner, so does the session. It counts for the program whose thread calls.
    #[repeatable]
    fn open(&self, account: Delegate) -> Result<Delegated, NetError>;
    /// Interfaces, addresses, counters, in text: a piece from a position on.
    #[repeatable]
    fn interfaces(&self, position: u64, into: &mut [u8]) -> Result<usize, NetError>;
    /// Sockets, in text, a line each, from a position on. Gives bytes and the next position, 0 after the last. A line ends with
    /// number and name of the program or component that opened the session, `-` once that is over. Those of clients that are gone
    /// end before the first line.
    #[repeatable]
    fn sockets(&self, position: u64, into: &mut [u8]) -> Result<(usize, u64), NetError>;
}

/// A client's part of the network.
#[interface]
pub trait Session {
    /// The semaphore to raise when there are events.
    fn notify(&self, semaphore: Delegate) -> Result<(), NetError>;
    /// Takes events; gives their bytes.
    fn events(&self, into: &mut [u8]) -> Result<usize, NetError>;
    /// Listens on a TCP port: a call entry of `Listener`. At most `backlog` (1 to 256) connections wait to be accepted; a
    /// further one is lost, and its maker tries again after a second. Each
    /// has `receive` and `send` pages of buffers, 1 to 4 (else `BadSize`), or one if the client has 16 connections already. Port 80 is
    /// the web server's, also while that is away: for programs it is `InUse`.
    fn listen(&self, token: u32, port: u64, backlog: u64, receive: u64, send: u64) -> Result<Delegated, NetError>;
    /// Begins a TCP connection: a call entry of `Connection`, writable once it is there.
    fn connect(&self, token: u32, high: u64, low: u64, port: u64) -> Result<Delegated, NetError>;
    /// A UDP port (0: the network chooses): a call entry of `Datagrams`.
    fn datagrams(&self, token: u32, port: u64) -> Result<Delegated, NetError>;
    /// ICMP echo: a call entry of `Echo`.
    fn echo(&self, token: u32) -> Result<Delegated, NetError>;
    /// Asks for the addresses of a name (`six`: IPv6): a call entry of `Query`.
    fn resolve(&self, token: u32, name: &str, six: bool) -> Result<Delegated, NetError>;
    /// Closes the session and all of its sockets.
    fn close(&self) -> Result<(), NetError>;
}

/// A port that is listened on.
#[interface]
pub trait Listener {
    /// Takes a connection: a call entry of `Connection`, whose events have this token.
    fn accept(&self, token: u32) -> Result<Delegated, NetError>;
    /// Listens no more; connections not accepted yet are reset.
    fn close(&self) -> Result<(), NetError>;
}

/// A TCP connection.
#[interface]
pub trait Connection {
    /// Takes bytes that came; 0 = the other side sends no more.
    fn read(&self, into: &mut [u8]) -> Result<usize, NetError>;
    /// Gives bytes to send; gives how many were taken, at least one.
    fn write(&self, #[window] bytes: &[u8]) -> Result<usize, NetError>;
    /// Sends what was written, then the end; reading goes on.
    fn finish(&self) -> Result<(), NetError>;
    /// Sends what was written, then the end. The socket is gone.
    fn close(&self) -> Result<(), NetError>;
    /// Breaks the connection off. The socket is gone.
    fn abort(&self) -> Result<(), NetError>;
    /// The address of the other end: high, low, port.
    fn peer(&self) -> Result<(u64, u64, u64), NetError>;
    /// An entry of this socket that may do less: `MAY_READ`, `MAY_WRITE`, `MAY_CLOSE`.
    fn part(&self, may: u64) -> Result<Delegated, NetError>;
}

/// A UDP port.
#[interface]
pub trait Datagrams {
    /// Sends a datagram. One that cannot be routed is lost, as on any wire.
    fn send(&self, high: u64, low: u64, port: u64, bytes: &[u8]) -> Result<(), NetError>;
    /// Takes a datagram that came; the rest beyond the buffer is cut off.
    fn receive(&self, into: &mut [u8]) -> Result<Received, NetError>;
    /// The port.
    fn port(&self) -> Result<u64, NetError>;
    /// The socket is gone.
    fn close(&self) -> Result<(), NetError>;
}

/// Echo requests (RFC 792, RFC 4443) and their answers.
#[interface]
pub trait Echo {
    /// Sends a request.
    fn send(&self, high: u64, low: u64, sequence: u64, bytes: &[u8]) -> Result<(), NetError>;
    /// Takes an answer: `port` is its sequence number.
    fn receive(&self, into: &mut [u8]) -> Result<Received, NetError>;
    /// The socket is gone.
    fn close(&self) -> Result<(), NetError>;
}

/// A name that is asked for.
#[interface]
pub trait Query {
    /// Takes the addresses, 16 bytes each, highest first. The query is gone then, unless `WouldBlock`.
    fn addresses(&self, into: &mut [u8]) -> Result<usize, NetError>;
}
