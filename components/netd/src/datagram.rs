//! UDP, ICMP echo, names: sockets of the common set.

use alloc::vec;
use interfaces::net::{Endpoint, MAX_DATAGRAM, NetError, READABLE, Received};
use smoltcp::iface::SocketHandle;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::dns::{self, GetQueryResultError, StartQueryError};
use smoltcp::socket::{icmp, udp};
use smoltcp::wire::{DnsQueryType, Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpAddress, Ipv6Address};

use crate::chance;
use crate::demux::endpoint;
use crate::slots::Number;
use crate::socket::{Datagrams, Echo, Kind, Socket};
use crate::stack::Stack;
use crate::tcp::wire;

/// Sockets in the common set, of all clients.
const MAX_OTHERS: usize = 64;
/// Queries of names at the same time.
const MAX_QUERIES: usize = 16;
/// Datagrams and their bytes that wait in each direction.
const PACKETS: usize = 16;
const BYTES: usize = 4096;
/// Bytes of an echo request's header.
const ECHO_HEADER: usize = 8;

fn received(from: Endpoint, bytes: usize, port: u16) -> Received {
    let (high, low, _) = from.words();
    Received { bytes, high, low, port: port.into() }
}

impl Stack {
    fn add_other(&mut self, session: Number, token: u32, kind: Kind) -> Result<Number, NetError> {
        let number = self.add(session, token, kind)?;
        self.others.push(number);
        Ok(number)
    }

    fn room_for_other(&self) -> Result<(), NetError> {
        if self.others.len() < MAX_OTHERS { Ok(()) } else { Err(NetError::Full) }
    }

    fn port_is_free(&self, port: u16) -> bool {
        !self.ports.contains_key(&port)
    }

    /// Opens a UDP port.
    pub fn datagrams(&mut self, session: Number, token: u32, port: u16) -> Result<Number, NetError> {
        if !self.port_is_free(port) || self.room_for_other().is_err() {
            self.sweep();
        }
        self.room_for_other()?;
        let port = match port {
            0 => self.dynamic_port(Self::port_is_free)?,
            port if self.port_is_free(port) => port,
            _ => return Err(NetError::InUse),
        };
        let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; PACKETS], vec![0; BYTES]);
        let mut socket = udp::Socket::new(buffer(), buffer());
        socket.bind(port).map_err(|_| NetError::BadAddress)?;
        let handle = self.common.add(socket);
        let number =
            self.add_other(session, token, Kind::Datagrams(Datagrams { handle, port, local: Default::default() }))?;
        self.ports.insert(port, number);
        Ok(number)
    }

    /// Sends a datagram.
    pub fn send_datagram(
        &mut self,
        handle: SocketHandle,
        from: u16,
        to: Endpoint,
        bytes: &[u8],
    ) -> Result<(), NetError> {
        if to.port == 0 || to.ip().is_unspecified() {
            return Err(NetError::BadAddress);
        }
        if bytes.len() > MAX_DATAGRAM {
            return Err(NetError::TooLong);
        }
        if self.is_own(to) {
            return self.deliver(Endpoint::new(to.ip(), from), to.port, bytes);
        }
        self.source_for(to.ip())?;
        let socket = self.common.get_mut::<udp::Socket<'_>>(handle);
        socket.send_slice(bytes, wire(to)).map_err(|_| NetError::WouldBlock)?;
        let time = self.now();
        self.ethernet.poll_egress(time, &mut self.link, &mut self.common);
        if self.common.get::<udp::Socket<'_>>(handle).send_queue() > 0 {
            // The neighbour is not known yet, or others were before it.
            self.settle_common();
        }
        Ok(())
    }

    /// A datagram from here to here.
    fn deliver(&mut self, from: Endpoint, port: u16, bytes: &[u8]) -> Result<(), NetError> {
        let number = self.ports.get(&port).copied().ok_or(NetError::Refused)?;
        if let Some(Socket { kind: Kind::Datagrams(target), .. }) = self.sockets.get_mut(number)
            // Without room it is lost, as on any wire.
            && target.local.put(from, bytes)
        {
            self.tell(number, READABLE);
        }
        Ok(())
    }

    /// Takes a datagram.
    pub fn receive_datagram(&mut self, number: Number, into: &mut [u8]) -> Result<Received, NetError> {
        let socket = self.sockets.get_mut(number).ok_or(NetError::Closed)?;
        let Kind::Datagrams(port) = &mut socket.kind else { return Err(NetError::Closed) };
        socket.armed |= READABLE;
        if let Some((from, bytes)) = port.local.take(into) {
            return Ok(received(from, bytes, from.port));
        }
        let (bytes, from) = match self.common.get_mut::<udp::Socket<'_>>(port.handle).recv() {
            Ok((bytes, from)) => (bytes, endpoint(from.endpoint.addr, from.endpoint.port)),
            Err(_) => return Err(NetError::WouldBlock),
        };
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        Ok(received(from, count, from.port))
    }

    /// Opens a socket for echo requests.
    pub fn echo(&mut self, session: Number, token: u32) -> Result<Number, NetError> {
        if self.room_for_other().is_err() {
            self.sweep();
        }
        self.room_for_other()?;
        let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; PACKETS], vec![0; BYTES]);
        let mut socket = icmp::Socket::new(buffer(), buffer());
        let identifier = chance::number() as u16;
        socket.bind(icmp::Endpoint::Ident(identifier)).map_err(|_| NetError::Full)?;
        let handle = self.common.add(socket);
        self.add_other(session, token, Kind::Echo(Echo { handle, identifier, local: Default::default() }))
    }

    /// Sends an echo request.
    pub fn send_echo(&mut self, number: Number, to: Endpoint, sequence: u16, bytes: &[u8]) -> Result<(), NetError> {
        if to.ip().is_unspecified() {
            return Err(NetError::BadAddress);
        }
        if bytes.len() > MAX_DATAGRAM - ECHO_HEADER {
            return Err(NetError::TooLong);
        }
        let own = self.is_own(to);
        let source = if own { to.ip() } else { self.source_for(to.ip())? };
        let socket = self.sockets.get_mut(number).ok_or(NetError::Closed)?;
        let Kind::Echo(echo) = &mut socket.kind else { return Err(NetError::Closed) };
        if own {
            echo.local.put(Endpoint { port: sequence, ..to }, bytes);
            self.tell(number, READABLE);
            return Ok(());
        }
        let identifier = echo.identifier;
        let socket = self.common.get_mut::<icmp::Socket<'_>>(echo.handle);
        let target: IpAddress = to.ip().into();
        let room = socket.send(ECHO_HEADER + bytes.len(), target).map_err(|_| NetError::WouldBlock)?;
        let sums = ChecksumCapabilities::default();
        match (IpAddress::from(source), target) {
            (IpAddress::Ipv6(source), IpAddress::Ipv6(target)) => {
                let request = Icmpv6Repr::EchoRequest { ident: identifier, seq_no: sequence, data: bytes };
                request.emit(&source, &target, &mut Icmpv6Packet::new_unchecked(room), &sums);
            }
            _ => {
                let request = Icmpv4Repr::EchoRequest { ident: identifier, seq_no: sequence, data: bytes };
                request.emit(&mut Icmpv4Packet::new_unchecked(room), &sums);
            }
        }
        self.settle_common();
        Ok(())
    }

    /// Takes an answer.
    pub fn receive_echo(&mut self, number: Number, into: &mut [u8]) -> Result<Received, NetError> {
        let socket = self.sockets.get_mut(number).ok_or(NetError::Closed)?;
        let Kind::Echo(echo) = &mut socket.kind else { return Err(NetError::Closed) };
        socket.armed |= READABLE;
        if let Some((from, bytes)) = echo.local.take(into) {
            return Ok(received(from, bytes, from.port));
        }
        let socket = self.common.get_mut::<icmp::Socket<'_>>(echo.handle);
        while let Ok((packet, from)) = socket.recv() {
            // Type and sequence number stand in the same places for both (RFC 792; RFC 4443, 4.2).
            let (answer, header) = match (from, packet.get(..ECHO_HEADER)) {
                (IpAddress::Ipv4(_), Some(header)) => (0, header),
                (IpAddress::Ipv6(_), Some(header)) => (129, header),
                _ => continue,
            };
            if header[0] != answer {
                continue;
            }
            let bytes = &packet[ECHO_HEADER..];
            let count = bytes.len().min(into.len());
            into[..count].copy_from_slice(&bytes[..count]);
            return Ok(received(endpoint(from, 0), count, u16::from_be_bytes([header[6], header[7]])));
        }
        Err(NetError::WouldBlock)
    }

    /// Asks for a name.
    pub fn resolve(&mut self, session: Number, token: u32, name: &str, six: bool) -> Result<Number, NetError> {
        let queries = self.others.iter().filter(|number| self.is_query(**number)).count();
        if queries >= MAX_QUERIES || self.room_for_other().is_err() {
            self.sweep();
            self.room_for_other()?;
        }
        let kind = if six { DnsQueryType::Aaaa } else { DnsQueryType::A };
        // Identifier and port come from a generator of its own: see there.
        let mut newborn = self.newborn(false);
        let dns = self.common.get_mut::<dns::Socket<'_>>(self.dns);
        let query = dns.start_query(newborn.context(), name, kind).map_err(|error| match error {
            StartQueryError::NoFreeSlot => NetError::Full,
            _ => NetError::BadName,
        })?;
        let number = self.add_other(session, token, Kind::Query(query));
        if number.is_err() {
            self.common.get_mut::<dns::Socket<'_>>(self.dns).cancel_query(query);
        }
        self.settle_common();
        number
    }

    fn is_query(&self, number: Number) -> bool {
        matches!(self.sockets.get(number), Some(Socket { kind: Kind::Query(_), .. }))
    }

    /// Takes the addresses of a name; the query is gone then.
    pub fn addresses(&mut self, number: Number, into: &mut [u8]) -> Result<usize, NetError> {
        let socket = self.sockets.get_mut(number).ok_or(NetError::Closed)?;
        let Kind::Query(query) = &socket.kind else { return Err(NetError::Closed) };
        let query = *query;
        let found = match self.common.get_mut::<dns::Socket<'_>>(self.dns).get_query_result(query) {
            Err(GetQueryResultError::Pending) => {
                socket.armed |= READABLE;
                return Err(NetError::WouldBlock);
            }
            other => other,
        };
        self.others.retain(|other| *other != number);
        if let Some(socket) = self.sockets.remove(number)
            && let Some(session) = self.sessions.get_mut(socket.session)
        {
            session.forget(number);
        }
        let found = found.map_err(|_| NetError::NotFound)?;
        let mut bytes = 0;
        for (place, address) in into.chunks_exact_mut(16).zip(&found) {
            let address: Ipv6Address = match address {
                IpAddress::Ipv4(address) => address.to_ipv6_mapped(),
                IpAddress::Ipv6(address) => *address,
            };
            place.copy_from_slice(&address.octets());
            bytes += 16;
        }
        Ok(bytes)
    }

    /// What is left of a socket of the common set goes.
    pub fn remove_other(&mut self, number: Number, kind: Kind) {
        self.others.retain(|other| *other != number);
        match kind {
            Kind::Datagrams(Datagrams { handle, port, .. }) => {
                self.ports.remove(&port);
                drop(self.common.remove(handle));
            }
            Kind::Echo(Echo { handle, .. }) => drop(self.common.remove(handle)),
            Kind::Query(query) => self.common.get_mut::<dns::Socket<'_>>(self.dns).cancel_query(query),
            Kind::Listener(_) | Kind::Flow(_) => {}
        }
    }
}
