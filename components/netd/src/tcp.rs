//! TCP connections: their opening, events and end.

use alloc::boxed::Box;
use core::net::IpAddr;
use protocols::net::{Endpoint, NetError, READABLE, WRITABLE};
use runtime::{op, server};
use smoltcp::iface::{PollResult, SocketSet};
use smoltcp::socket::tcp::{self, State};
use smoltcp::time::Duration;
use smoltcp::wire::{IpEndpoint, IpListenEndpoint};

use crate::client::{COMPONENTS, Client};
use crate::demux::{Key, endpoint};
use crate::link::Medium;
use crate::pages::{Buffers, Held, MAX_PAGES};
use crate::random;
use crate::slots::Number;
use crate::socket::{Flow, Kind, Listener, Socket, Stage, What};
use crate::stack::{Stack, nanoseconds};

/// The other end may be silent so long while something is expected of it.
const PATIENCE: Duration = Duration::from_secs(60);
/// While the connection is being made.
const PATIENCE_AT_FIRST: Duration = Duration::from_secs(20);
/// After its client closed it.
const PATIENCE_AT_LAST: Duration = Duration::from_secs(10);
/// A silent connection is tried so often.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// A connection that is not there after so many nanoseconds makes room for others. A client that finds no room tries again after
/// one second and after three (RFC 6298, 2): there is room the second time, even if the machine was late to count.
const OPENING: u64 = 2_000_000_000;
/// A closed connection is forgotten after so many nanoseconds, whatever the other end does.
const LINGERING: u64 = 30_000_000_000;
/// Connections of one listener that wait.
pub const MAX_BACKLOG: u64 = 256;
/// Pages of a connection that a client makes.
const PAGES: (u64, u64) = (2, 2);
/// Bytes of a full segment over Ethernet and IPv4.
pub const SEGMENT: usize = 1460;
/// Ports for connections and datagrams that name none (RFC 6335, 6).
const DYNAMIC: core::ops::RangeInclusive<u16> = 49152..=65535;
/// Ports on which only components listen, also while none does: nobody takes a server's place while it is started again.
const KEPT: [u16; 1] = [80];

/// Bytes of a buffer to receive into that may be taken until the other end gets a window update, if one is due. smoltcp reports
/// a window that has doubled. So a reader that took all has let the other end know of room for a segment at least: with less most
/// senders wait for their timers (RFC 9293, 3.8.6.2.1).
const fn enough(buffer: usize) -> usize {
    let rest = buffer - 2 * SEGMENT;
    if rest < buffer / 2 { rest } else { buffer / 2 }
}

/// Whether an address is a loopback address.
pub fn is_loopback(address: Endpoint) -> bool {
    address.ip().is_loopback()
}

/// An endpoint as smoltcp has it.
pub fn wire(endpoint: Endpoint) -> IpEndpoint {
    IpEndpoint::new(endpoint.ip().into(), endpoint.port)
}

impl Flow {
    fn new(buffers: Buffers, key: Key, medium: Medium, stage: Stage) -> Self {
        // A segment does not go over the end of the buffer: whole ones fit into it.
        let held = Held::with_record(buffers, SEGMENT, |(receive, send, record)| {
            let mut socket = tcp::Socket::new(tcp::SocketBuffer::new(receive), tcp::SocketBuffer::new(send));
            socket.set_nagle_enabled(false);
            socket.set_timeout(Some(PATIENCE_AT_FIRST));
            let mut set = SocketSet::new(record);
            set.add(socket);
            set
        });
        let handle = held.socket.iter().next().map(|(handle, _)| handle).unwrap_or_default();
        let enough = enough(held.socket.get::<tcp::Socket<'_>>(handle).recv_capacity()) as u32;
        let since = op::clock();
        Self { held, handle, key, medium, stage, since, deadline: u64::MAX, taken: 0, enough, failure: None }
    }

    /// Whether it has something to send, or waits for an answer.
    pub fn waits(&self) -> bool {
        let tcp = self.held.socket.get::<tcp::Socket<'_>>(self.handle);
        tcp.send_queue() > 0 || matches!(tcp.state(), State::SynSent | State::SynReceived)
    }
}

impl Socket {
    /// Whether it is only there for the other end's sake.
    pub fn lingers(&self) -> bool {
        matches!(&self.kind, Kind::Flow(flow) if flow.stage == Stage::Lingering)
    }

    /// Whether both ends have said and heard all: it only keeps its ports from being used again too soon.
    pub fn is_over(&self) -> bool {
        let state = |flow: &Flow| flow.held.socket.get::<tcp::Socket<'_>>(flow.handle).state();
        matches!(&self.kind, Kind::Flow(flow) if state(flow) == State::TimeWait)
    }
}

impl Stack {
    /// The connection of this number.
    pub fn flow(&mut self, number: Number) -> Option<&mut Flow> {
        match &mut self.sockets.get_mut(number)?.kind {
            Kind::Flow(flow) => Some(flow),
            _ => None,
        }
    }

    /// A segment came, and is in its device.
    pub fn segment(&mut self, key: Key, opens: bool, medium: Medium) {
        let known = self.flows.get(&key).copied();
        if let Some(number) = known {
            let old = |flow: &mut Flow| matches!(flow.tcp().state(), State::TimeWait | State::Closed);
            if !(opens
                && self.flow(number).is_some_and(old)
                && self.sockets.get_mut(number).is_some_and(|s| s.lingers()))
            {
                let time = self.now();
                if let Some(Socket { kind: Kind::Flow(flow), .. }) = self.sockets.get_mut(number) {
                    self.links.ingress(medium, time, &mut flow.held.socket);
                }
                return self.poll_later(number);
            }
            // The other end begins a new connection with the same ports.
            self.abort(number);
        }
        match self.listeners.get(&key.local.port).copied() {
            Some(listener) if opens => self.begin(listener, key, medium),
            _ => self.ingress_of_nobody(medium),
        }
    }

    /// The first segment of a connection to a listener. Without room it is dropped: the other end retransmits it. If
    /// the listener's session is gone it is refused, so that the other end need not wait.
    fn begin(&mut self, listener: Number, key: Key, medium: Medium) {
        let time = self.time;
        let session = self.sockets.get_mut(listener).map(|socket| socket.session);
        if !session.and_then(|session| self.sessions.get_mut(session)).is_some_and(|session| session.lives(time)) {
            self.sweep_soon();
            return self.ingress_of_nobody(medium);
        }
        if self.try_begin(listener, key, medium).is_none() {
            self.counters.refused += 1;
            self.links.ethernet.device.arrived = 0..0;
        }
    }

    fn try_begin(&mut self, number: Number, key: Key, medium: Medium) -> Option<()> {
        let socket = self.sockets.get_mut(number)?;
        let (session, token) = (socket.session, socket.token);
        let Kind::Listener(listener) = &socket.kind else { return None };
        let (pages, oldest) = (listener.pages, listener.opening.front().copied());
        if listener.opening.len() + listener.ready.len() >= listener.backlog {
            // A flood of beginnings keeps nobody out for long.
            let oldest = oldest?;
            let time = self.time;
            if self.flow(oldest).is_some_and(|flow| flow.since + OPENING > time) {
                return None;
            }
            self.abort(oldest);
        }
        if server::is_short() {
            return None;
        }
        let owner = self.sessions.get(session)?;
        let (client, ticket) = (owner.client, owner.ticket);
        self.holders.check(client, What::Flow).ok()?;
        let pages = if self.holders.is_crowded(client) { (1, 1) } else { pages };
        let buffers = Buffers::draw(ticket, pages.0, pages.1).ok()?;
        let mut flow = Flow::new(buffers, key, medium, Stage::Arriving(number));
        let place = IpListenEndpoint { addr: Some(key.local.ip().into()), port: key.local.port };
        flow.tcp().listen(place).ok()?;
        let time = self.now();
        let mut newborn = self.links.newborn(medium, time)?;
        self.links.first_ingress(medium, &mut newborn, time, &mut flow.held.socket);
        if flow.tcp().state() != State::SynReceived {
            return None;
        }
        let kind = Kind::Flow(Box::new(flow));
        let flow = self.insert(Socket { session, client, token, armed: 0, pending: 0, kind }).ok()?;
        self.flows.insert(key, flow);
        if let Some(Socket { kind: Kind::Listener(listener), .. }) = self.sockets.get_mut(number) {
            listener.opening.push_back(flow);
        }
        self.poll(flow);
        Some(())
    }

    /// Polls a connection: sends its segments, reports events, and notes its next deadline.
    pub fn poll(&mut self, number: Number) {
        let time = self.now();
        let Some(Socket { kind: Kind::Flow(flow), armed, .. }) = self.sockets.get_mut(number) else { return };
        let set = &mut flow.held.socket;
        let wanted = loop {
            let (outcome, wanted) = self.links.egress(flow.medium, time, set);
            // Each round sends one segment.
            if outcome == PollResult::None || wanted.is_none_or(|at| at > time) {
                break wanted;
            }
        };
        let wanted = nanoseconds(wanted, self.time);
        if wanted < flow.deadline {
            // One that is later than noted is found when the noted one comes.
            self.timers.remove(&(flow.deadline, number));
            flow.deadline = wanted;
            self.timers.insert((wanted, number));
        }
        let armed = *armed;
        let tcp = flow.tcp();
        let state = tcp.state();
        // The other end sends no more, or has not begun.
        let is_over = !matches!(state, State::Established | State::FinWait1 | State::FinWait2);
        let readable = tcp.can_recv() || is_over;
        // Half of the buffer, so that a writer does not come for every segment that was acknowledged.
        let writable = !tcp.may_send() || tcp.send_queue() <= tcp.send_capacity() / 2;
        match flow.stage {
            Stage::Arriving(listener) => match state {
                State::SynReceived => {}
                State::Closed | State::Listen => self.remove(number),
                _ => self.arrive(listener, number),
            },
            Stage::Lingering => {
                if state == State::Closed {
                    self.remove(number);
                }
            }
            Stage::Connecting => match state {
                State::SynSent | State::SynReceived => {}
                State::Closed => {
                    let silent = flow.since + PATIENCE_AT_FIRST.total_micros() * 1_000 <= self.time;
                    flow.failure = Some(if silent { NetError::TimedOut } else { NetError::Refused });
                    flow.stage = Stage::Open;
                    self.report(number, READABLE | WRITABLE);
                }
                _ => {
                    flow.stage = Stage::Open;
                    flow.established();
                    self.report(number, WRITABLE);
                }
            },
            Stage::Open => {
                if is_over {
                    // A reader that got fewer bytes than it asked for waits for an event. From now on each read reports the end.
                    flow.enough = 0;
                }
                let what = if readable { READABLE } else { 0 } | if writable { WRITABLE } else { 0 };
                if armed & what != 0 {
                    self.report(number, what);
                }
            }
        }
    }

    /// A connection to a listener is there.
    fn arrive(&mut self, listener: Number, number: Number) {
        if let Some(Socket { kind: Kind::Listener(listener), .. }) = self.sockets.get_mut(listener)
            && let Some(place) = listener.opening.iter().position(|other| *other == number)
        {
            listener.opening.remove(place);
            listener.ready.push_back(number);
            if let Some(flow) = self.flow(number) {
                flow.established();
            }
        }
        self.report(listener, READABLE);
    }

    /// Handles the timer that a connection set.
    pub fn timer_fired(&mut self, number: Number) {
        let Some(flow) = self.flow(number) else { return };
        flow.deadline = u64::MAX;
        if flow.stage == Stage::Lingering && flow.since + LINGERING <= self.time {
            return self.abort(number);
        }
        self.poll(number);
    }

    /// Forgets a socket.
    pub fn remove(&mut self, number: Number) {
        let Some(socket) = self.take(number) else { return };
        match socket.kind {
            Kind::Flow(flow) => {
                self.flows.remove(&flow.key);
                self.timers.remove(&(flow.deadline, number));
                if flow.stage == Stage::Lingering {
                    self.no_longer_lingers(socket.client, number);
                }
                if let Stage::Arriving(listener) = flow.stage
                    && let Some(Socket { kind: Kind::Listener(listener), .. }) = self.sockets.get_mut(listener)
                {
                    listener.opening.retain(|other| *other != number);
                    listener.ready.retain(|other| *other != number);
                }
            }
            Kind::Listener(listener) => {
                self.listeners.remove(&listener.port);
                for flow in listener.opening.into_iter().chain(listener.ready) {
                    self.abort(flow);
                }
            }
            other => self.remove_other(number, other),
        }
    }

    /// Breaks a connection off, and forgets the socket, whatever it is.
    pub fn abort(&mut self, number: Number) {
        if let Some(flow) = self.flow(number) {
            flow.tcp().abort();
            flow.stage = match flow.stage {
                Stage::Arriving(listener) => Stage::Arriving(listener),
                _ => Stage::Lingering,
            };
            self.poll(number);
        }
        self.remove(number);
    }

    /// Its client has done with it.
    pub fn linger(&mut self, number: Number) {
        let Some(socket) = self.sockets.get_mut(number) else { return };
        socket.armed = 0;
        let Kind::Flow(flow) = &mut socket.kind else { return };
        if matches!(flow.tcp().state(), State::SynSent | State::Closed) {
            return self.abort(number);
        }
        flow.tcp().close();
        flow.tcp().set_timeout(Some(PATIENCE_AT_LAST));
        flow.stage = Stage::Lingering;
        flow.since = self.time;
        let client = socket.client;
        if self.holders.is_full(client, What::Lingering)
            && let Some((_, oldest)) = self.lingering.iter().find(|(other, _)| *other == client).copied()
        {
            self.abort(oldest);
        }
        self.holders.add(client, What::Lingering);
        self.lingering.push_back((client, number));
        self.poll(number);
    }

    fn no_longer_lingers(&mut self, client: Client, number: Number) {
        let before = self.lingering.len();
        self.lingering.retain(|(_, other)| *other != number);
        if self.lingering.len() < before {
            self.holders.remove(client, What::Lingering);
        }
    }

    /// Listens on a port.
    pub fn listen(
        &mut self,
        session: Number,
        token: u32,
        port: u16,
        backlog: u64,
        pages: (u64, u64),
    ) -> Result<Number, NetError> {
        let (client, _) = self.claim(session, What::Listener)?;
        let is_kept = client != COMPONENTS && KEPT.contains(&port);
        if self.listeners.contains_key(&port) {
            // Its owner may be gone.
            self.sweep();
        }
        if is_kept {
            return Err(NetError::Kept);
        }
        if self.listeners.contains_key(&port) {
            return Err(NetError::InUse);
        }
        if ![pages.0, pages.1].iter().all(|pages| (1..=MAX_PAGES).contains(pages)) {
            return Err(NetError::BadSize);
        }
        let backlog = backlog.clamp(1, MAX_BACKLOG) as usize;
        let listener = Listener { port, backlog, pages, opening: Default::default(), ready: Default::default() };
        let number = self.add(session, token, Kind::Listener(Box::new(listener)))?;
        self.listeners.insert(port, number);
        Ok(number)
    }

    /// Puts a socket in, armed for reading.
    pub fn add(&mut self, session: Number, token: u32, kind: Kind) -> Result<Number, NetError> {
        let client = self.sessions.get(session).ok_or(NetError::NoSession)?.client;
        self.insert(Socket { session, client, token, armed: READABLE, pending: 0, kind })
    }

    /// The next connection of a listener.
    pub fn accept(&mut self, listener: Number, token: u32) -> Result<Number, NetError> {
        let socket = self.sockets.get_mut(listener).ok_or(NetError::Closed)?;
        let Kind::Listener(listener) = &mut socket.kind else { return Err(NetError::Closed) };
        let Some(number) = listener.ready.pop_front() else {
            socket.armed |= READABLE;
            return Err(NetError::WouldBlock);
        };
        let socket = self.sockets.get_mut(number).ok_or(NetError::Closed)?;
        socket.token = token;
        socket.armed = READABLE;
        if let Kind::Flow(flow) = &mut socket.kind {
            flow.stage = Stage::Open;
        }
        self.poll(number);
        Ok(number)
    }

    /// Begins a connection.
    pub fn connect(&mut self, session: Number, token: u32, remote: Endpoint) -> Result<Number, NetError> {
        if remote.port == 0 {
            return Err(NetError::BadPort);
        }
        if remote.ip().is_unspecified() || remote.ip().is_multicast() {
            return Err(NetError::BadAddress);
        }
        let (medium, source) = match self.is_own(remote) {
            true => (Medium::Loopback, remote.ip()),
            false => (Medium::Ethernet, self.source_for(remote.ip())?),
        };
        let (_, ticket) = self.claim(session, What::Flow)?;
        let port = self.dynamic_port(|stack, port| {
            let key = Key { remote, local: Endpoint::new(source, port) };
            // Nobody is connected with himself.
            key.local != remote && !stack.flows.contains_key(&key) && !stack.listeners.contains_key(&port)
        })?;
        let key = Key { remote, local: Endpoint::new(source, port) };
        let mut flow = Flow::new(Buffers::draw(ticket, PAGES.0, PAGES.1)?, key, medium, Stage::Connecting);
        let mut newborn = self.links.newborn(medium, self.now()).ok_or(NetError::NoRandom)?;
        flow.tcp().connect(newborn.context(), wire(remote), wire(key.local)).map_err(|_| NetError::Unreachable)?;
        let number = self.add(session, token, Kind::Flow(Box::new(flow)))?;
        if let Some(socket) = self.sockets.get_mut(number) {
            socket.armed |= WRITABLE;
        }
        self.flows.insert(key, number);
        self.poll(number);
        Ok(number)
    }

    /// Whether this is one of our addresses.
    pub fn is_own(&self, remote: Endpoint) -> bool {
        is_loopback(remote) || self.links.ethernet.interface.has_ip_addr(smoltcp::wire::IpAddress::from(remote.ip()))
    }

    /// The address of ours that leads there.
    pub fn source_for(&mut self, target: IpAddr) -> Result<IpAddr, NetError> {
        let source = self.links.ethernet.interface.get_source_address(&target.into()).ok_or(NetError::Unreachable)?;
        let source = endpoint(source, 0).ip();
        if source.is_loopback() || source.is_unspecified() { Err(NetError::Unreachable) } else { Ok(source) }
    }

    /// A port that is free, and that nobody can guess.
    pub fn dynamic_port(&self, is_free: impl Fn(&Self, u16) -> bool) -> Result<u16, NetError> {
        /// So many tries find one if a tenth of them is free.
        const TRIES: usize = 64;
        let count = u64::from(DYNAMIC.end() - DYNAMIC.start()) + 1;
        for _ in 0..TRIES {
            let port = DYNAMIC.start() + (random::number().ok_or(NetError::NoRandom)? % count) as u16;
            if is_free(self, port) {
                return Ok(port);
            }
        }
        Err(NetError::NoPort)
    }
}

impl Flow {
    /// From now on silence is borne longer, and broken.
    fn established(&mut self) {
        self.tcp().set_timeout(Some(PATIENCE));
        self.tcp().set_keep_alive(Some(KEEP_ALIVE));
    }
}
