//! The client side of the network: a session, its sockets, and waiting for them.
//!
//! Sockets never wait ([`protocols::net`]). A server asks for [events](Session::events) and goes on with
//! the owner of one; a tool that does one thing at a time says what it wants [until](Session::until) it is done.
#![no_std]
#![forbid(unsafe_code)]

pub mod target;

use abi::{Error, rights};
use core::net::IpAddr;
use idl::{Delegate, Delegated, Failure};
use protocols::net::{
    ConnectionClient, DatagramsClient, EVENT_BYTES, EchoClient, ListenerClient, NetClient, QueryClient, SessionClient,
};
pub use protocols::net::{Endpoint, MAY_CLOSE, MAY_READ, MAY_WRITE, NetError, READABLE, Received, WRITABLE};
use runtime::connection::{Connection, Name};
use runtime::entry::Owned;
use runtime::{Direct, Entry, op};

/// The network, by name.
pub static NET: NetClient<Connection<Name<'static>>> = NetClient(Connection::named("net"));

/// Why something was refused.
pub type Refusal = Failure<NetError>;

/// Bytes of a write that leave in segments which are full: two of them, over Ethernet and IPv4. A sender of much data
/// does best with writes of so many.
pub const WHOLE_SEGMENTS: usize = 2 * 1460;

/// How soon a waiter notices the end of the network, in nanoseconds.
const LOOK: u64 = 150_000_000;
/// Events taken at once.
const EVENTS: usize = 32;

/// A socket's entry, closed by its owner; its index goes with it.
#[derive(Debug)]
struct Held(Owned);

impl Held {
    fn new(delegated: Delegated) -> Self {
        Self(Owned::new(delegated.into()))
    }
    fn direct(&self) -> Direct {
        Direct(self.0.entry())
    }
}

/// The events of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Event {
    /// The socket's token.
    pub token: u32,
    /// `READABLE`, `WRITABLE`.
    pub what: u32,
}

/// A client's part of the network. It goes when it is dropped, with all of its sockets.
#[derive(Debug)]
pub struct Session {
    held: Held,
    semaphore: Owned,
}

impl Drop for Session {
    fn drop(&mut self) {
        // A network that died has forgotten it.
        let _ = self.client().close();
    }
}

impl Session {
    /// Opens a session that our account pays for.
    pub fn open() -> Result<Self, Refusal> {
        Self::paid_by(Entry::ACCOUNT)
    }

    /// Opens a session that this account pays for.
    pub fn paid_by(account: Entry) -> Result<Self, Refusal> {
        let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(Failure::Transport)?);
        let held = Held::new(NET.open(Delegate::entry(account.0, rights::ALL))?);
        let session = Self { held, semaphore };
        session.client().notify(Delegate::entry(session.semaphore.entry().0, rights::COPY | rights::WRITE))?;
        Ok(session)
    }

    fn client(&self) -> SessionClient<Direct> {
        SessionClient(self.held.direct())
    }

    /// The semaphore that is raised when there are events.
    pub fn semaphore(&self) -> Entry {
        self.semaphore.entry()
    }

    /// Waits until there are events, at most until `deadline` (nanoseconds since boot; if that is over, only looks): `TimedOut`. A network that
    /// died raises no semaphore, so now and then we look whether it is there.
    pub fn wait(&self, deadline: u64) -> Result<(), Refusal> {
        loop {
            let until = deadline.min(op::clock() + LOOK);
            match op::p(self.semaphore.entry(), until) {
                Ok(()) => return Ok(()),
                Err(Error::Timeout) => {}
                Err(error) => return Err(Failure::Transport(error)),
            }
            if !matches!(op::entry_info(Entry::OWN, self.held.0.entry()), Ok((rights::Kind::Call, _))) {
                return Err(Failure::Transport(Error::Revoked));
            }
            if until == deadline {
                return Err(Failure::Refused(NetError::TimedOut));
            }
        }
    }

    /// Takes events: calls `each` for every one.
    pub fn events(&self, mut each: impl FnMut(Event)) -> Result<(), Refusal> {
        let mut bytes = [0; EVENTS * EVENT_BYTES];
        loop {
            let count = self.client().events(&mut bytes)?;
            for event in bytes[..count].chunks_exact(EVENT_BYTES) {
                let word = |at: usize| u32::from_le_bytes([event[at], event[at + 1], event[at + 2], event[at + 3]]);
                each(Event { token: word(0), what: word(4) });
            }
            if count < bytes.len() {
                return Ok(());
            }
        }
    }

    /// Does `work` until it does not say `WouldBlock`, waiting in between; at most until `deadline`.
    pub fn until<R>(&self, deadline: u64, mut work: impl FnMut() -> Result<R, Refusal>) -> Result<R, Refusal> {
        loop {
            match work() {
                Err(Failure::Refused(NetError::WouldBlock)) => {}
                outcome => return outcome,
            }
            self.wait(deadline)?;
            self.events(|_| {})?;
        }
    }

    /// Listens on a TCP port; each connection has so many pages to receive into and to send from, 1 to 4 (else `BadSize`), or one
    /// of each from the client's 17th connection on.
    pub fn listen(&self, token: u32, port: u16, backlog: u64, pages: (u64, u64)) -> Result<Listener, Refusal> {
        self.client().listen(token, port.into(), backlog, pages.0, pages.1).map(|entry| Listener(Held::new(entry)))
    }

    /// Begins a connection; it is there when it is writable.
    pub fn connect(&self, token: u32, to: Endpoint) -> Result<Stream, Refusal> {
        let (high, low, port) = to.words();
        self.client().connect(token, high, low, port).map(|entry| Stream(Held::new(entry)))
    }

    /// Opens a UDP port; 0 = any.
    pub fn datagrams(&self, token: u32, port: u16) -> Result<Datagrams, Refusal> {
        self.client().datagrams(token, port.into()).map(|entry| Datagrams(Held::new(entry)))
    }

    /// For echo requests.
    pub fn echo(&self, token: u32) -> Result<Echo, Refusal> {
        self.client().echo(token).map(|entry| Echo(Held::new(entry)))
    }

    /// Asks for the addresses of a name and waits for them; gives how many of `into` were filled.
    pub fn resolve(&self, name: &str, six: bool, deadline: u64, into: &mut [IpAddr]) -> Result<usize, Refusal> {
        const MOST: usize = 8;
        let entry = Held::new(self.client().resolve(0, name, six)?);
        let mut bytes = [0; 16 * MOST];
        let count = self.until(deadline, || QueryClient(entry.direct()).addresses(&mut bytes))?;
        let mut found = 0;
        for (place, bytes) in into.iter_mut().zip(bytes[..count].chunks_exact(16)) {
            let bytes: [u8; 16] = bytes.try_into().unwrap_or([0; 16]);
            *place = Endpoint { address: u128::from_be_bytes(bytes), port: 0 }.ip();
            found += 1;
        }
        Ok(found)
    }
}

/// A TCP port that is listened on.
#[derive(Debug)]
pub struct Listener(Held);

impl Listener {
    /// Takes a connection, whose events have this token.
    pub fn accept(&self, token: u32) -> Result<Stream, Refusal> {
        ListenerClient(self.0.direct()).accept(token).map(|entry| Stream(Held::new(entry)))
    }

    /// Listens no more.
    pub fn close(self) -> Result<(), Refusal> {
        ListenerClient(self.0.direct()).close()
    }
}

/// A TCP connection. Let go without being closed, it stays until the session ends.
#[derive(Debug)]
pub struct Stream(Held);

impl Stream {
    /// A connection whose entry came otherwise, whole or in part.
    pub fn from_entry(entry: Delegated) -> Self {
        Self(Held::new(entry))
    }

    fn client(&self) -> ConnectionClient<Direct> {
        ConnectionClient(self.0.direct())
    }

    /// Takes bytes that came; 0 = the other side sends no more. `WouldBlock`: there are none, and an event says when some come. Bytes that
    /// are there already make no event: a client that waits for one has read until `WouldBlock`, or got less than asked for.
    pub fn read(&self, into: &mut [u8]) -> Result<usize, Refusal> {
        self.client().read(into)
    }

    /// Gives bytes to send; gives how many were taken, 0 only of none. `WouldBlock`: no room, and an event reports some.
    pub fn write(&self, bytes: &[u8]) -> Result<usize, Refusal> {
        self.client().write(bytes)
    }

    /// Gives all bytes to send, waiting for room.
    pub fn write_all(&self, session: &Session, mut bytes: &[u8], deadline: u64) -> Result<(), Refusal> {
        /// Bytes that one message carries, at most.
        const PIECE: usize = 4000;
        while !bytes.is_empty() {
            let piece = &bytes[..bytes.len().min(PIECE)];
            let count = session.until(deadline, || self.write(piece))?;
            bytes = bytes.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Sends the end; reading goes on.
    pub fn finish(&self) -> Result<(), Refusal> {
        self.client().finish()
    }

    /// Sends the end, and forgets the connection.
    pub fn close(&self) -> Result<(), Refusal> {
        self.client().close()
    }

    /// Breaks the connection off.
    pub fn abort(self) -> Result<(), Refusal> {
        self.client().abort()
    }

    /// The address of the other end.
    pub fn peer(&self) -> Result<Endpoint, Refusal> {
        let (high, low, port) = self.client().peer()?;
        Endpoint::from_words(high, low, port).ok_or(Failure::Refused(NetError::BadPort))
    }

    /// An entry that may do less with the connection, for somebody else.
    pub fn part(&self, may: u64) -> Result<Stream, Refusal> {
        self.client().part(may).map(|entry| Stream(Held::new(entry)))
    }
}

/// A UDP port.
#[derive(Debug)]
pub struct Datagrams(Held);

impl Datagrams {
    fn client(&self) -> DatagramsClient<Direct> {
        DatagramsClient(self.0.direct())
    }

    /// Sends a datagram.
    pub fn send(&self, to: Endpoint, bytes: &[u8]) -> Result<(), Refusal> {
        let (high, low, port) = to.words();
        self.client().send(high, low, port, bytes)
    }

    /// Takes a datagram that came: its bytes, and its sender.
    pub fn receive(&self, into: &mut [u8]) -> Result<(usize, Endpoint), Refusal> {
        self.client().receive(into).map(reported)
    }

    /// The port.
    pub fn port(&self) -> Result<u16, Refusal> {
        self.client().port().map(|port| port as u16)
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        let _ = self.client().close();
    }
}

/// Echo requests.
#[derive(Debug)]
pub struct Echo(Held);

impl Echo {
    fn client(&self) -> EchoClient<Direct> {
        EchoClient(self.0.direct())
    }

    /// Sends a request.
    pub fn send(&self, to: IpAddr, sequence: u16, bytes: &[u8]) -> Result<(), Refusal> {
        let (high, low, _) = Endpoint::new(to, 0).words();
        self.client().send(high, low, sequence.into(), bytes)
    }

    /// Takes an answer: its bytes, and its sender (the port is the sequence number).
    pub fn receive(&self, into: &mut [u8]) -> Result<(usize, Endpoint), Refusal> {
        self.client().receive(into).map(reported)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.client().close();
    }
}

fn reported(received: Received) -> (usize, Endpoint) {
    let from = Endpoint::from_words(received.high, received.low, received.port);
    (received.bytes, from.unwrap_or(Endpoint { address: 0, port: 0 }))
}
