//! UDP, ICMP echo, names: sockets of the common set.

use alloc::boxed::Box;
use alloc::vec;
use protocols::net::{Endpoint, MAX_DATAGRAM, NetError, READABLE, Received};
use smoltcp::iface::SocketHandle;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::dns::{self, GetQueryResultError, StartQueryError};
use smoltcp::socket::{icmp, udp};
use smoltcp::time::Duration;
use smoltcp::wire::{DnsQueryType, Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpAddress, Ipv6Address};

use crate::demux::endpoint;
use crate::failure::failed;
use crate::link::Medium;
use crate::pages::Buffers;
use crate::random;
use crate::slots::Number;
use crate::socket::{Datagrams, Echo, Inbox, Kind, PACKETS, Socket, What};
use crate::stack::Stack;
use crate::tcp::wire;

/// For so long the library waits for a name server before it asks the next one (`RETRANSMIT_TIMEOUT` of its `socket::dns`).
const SILENCE: Duration = Duration::from_secs(10);
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

    fn port_is_free(&self, port: u16) -> bool {
        !self.ports.contains_key(&port)
    }

    /// Opens a UDP port.
    pub fn datagrams(&mut self, session: Number, token: u32, port: u16) -> Result<Number, NetError> {
        if !self.port_is_free(port) {
            self.sweep();
        }
        let (_, ticket) = self.claim(session, What::Port)?;
        let port = match port {
            0 => self.dynamic_port(Self::port_is_free)?,
            port if self.port_is_free(port) => port,
            _ => return Err(NetError::InUse),
        };
        let local = Inbox::draw(ticket)?;
        let buffer = |page| udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; PACKETS], page);
        let handle = self.common.add(Buffers::draw(ticket, 1, 1)?, |receive, send| {
            let mut socket = udp::Socket::new(buffer(receive), buffer(send));
            // Refused are the port 0 and a second time.
            let _ = socket.bind(port);
            socket
        });
        let number = self.add_other(session, token, Kind::Datagrams(Box::new(Datagrams { handle, port, local })));
        match number {
            Ok(number) => drop(self.ports.insert(port, number)),
            Err(_) => self.common.remove(handle),
        }
        number
    }

    /// Sends a datagram.
    pub fn send_datagram(
        &mut self,
        handle: SocketHandle,
        from: u16,
        to: Endpoint,
        bytes: &[u8],
    ) -> Result<(), NetError> {
        if to.port == 0 {
            return Err(NetError::BadPort);
        }
        if to.ip().is_unspecified() {
            return Err(NetError::BadAddress);
        }
        if bytes.len() > MAX_DATAGRAM {
            return Err(NetError::TooLong);
        }
        if self.is_own(to) {
            return self.deliver(Endpoint::new(to.ip(), from), to.port, bytes);
        }
        self.source_for(to.ip())?;
        let socket = self.common.set.get_mut::<udp::Socket<'_>>(handle);
        socket.send_slice(bytes, wire(to)).map_err(|_| NetError::WouldBlock)?;
        let time = self.now();
        self.links.ethernet.egress(time, &mut self.common.set);
        if self.common.set.get::<udp::Socket<'_>>(handle).send_queue() > 0 {
            // The neighbour is not known yet, others were before it, or the device has no room.
            self.poll_common();
        }
        Ok(())
    }

    /// A datagram over loopback.
    fn deliver(&mut self, from: Endpoint, port: u16, bytes: &[u8]) -> Result<(), NetError> {
        let number = self.ports.get(&port).copied().ok_or(NetError::Refused)?;
        if let Some(Socket { kind: Kind::Datagrams(target), .. }) = self.sockets.get_mut(number)
            // Without room it is lost, as on any wire.
            && target.local.put(from, bytes)
        {
            self.report(number, READABLE);
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
        let (bytes, from) = match self.common.set.get_mut::<udp::Socket<'_>>(port.handle).recv() {
            Ok((bytes, from)) => (bytes, endpoint(from.endpoint.addr, from.endpoint.port)),
            Err(_) => return Err(NetError::WouldBlock),
        };
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        Ok(received(from, count, from.port))
    }

    /// Opens a socket for echo requests.
    pub fn echo(&mut self, session: Number, token: u32) -> Result<Number, NetError> {
        let (_, ticket) = self.claim(session, What::Port)?;
        let local = Inbox::draw(ticket)?;
        let buffer = |page| icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; PACKETS], page);
        let identifier = random::number().ok_or(NetError::NoRandom)? as u16;
        let handle = self.common.add(Buffers::draw(ticket, 1, 1)?, |receive, send| {
            let mut socket = icmp::Socket::new(buffer(receive), buffer(send));
            // Refused is a second time.
            let _ = socket.bind(icmp::Endpoint::Ident(identifier));
            socket
        });
        let number = self.add_other(session, token, Kind::Echo(Box::new(Echo { handle, identifier, local })));
        if number.is_err() {
            self.common.remove(handle);
        }
        number
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
            self.report(number, READABLE);
            return Ok(());
        }
        let identifier = echo.identifier;
        let socket = self.common.set.get_mut::<icmp::Socket<'_>>(echo.handle);
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
        self.poll_common();
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
        let socket = self.common.set.get_mut::<icmp::Socket<'_>>(echo.handle);
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
        self.claim(session, What::Query)?;
        if self.dns_servers == 0 {
            return Err(NetError::NoNameServer);
        }
        let kind = if six { DnsQueryType::Aaaa } else { DnsQueryType::A };
        // Identifier and port come from a generator of its own: see there.
        let mut newborn = self.links.newborn(Medium::Ethernet, self.now()).ok_or(NetError::NoRandom)?;
        let dns = self.common.set.get_mut::<dns::Socket<'_>>(self.dns);
        let query = dns.start_query(newborn.context(), name, kind).map_err(|error| match error {
            StartQueryError::NoFreeSlot => failed("a query", "no room for one more"),
            _ => NetError::BadName,
        })?;
        let number = self.add_other(session, token, Kind::Query(query, self.now()));
        if number.is_err() {
            self.common.set.get_mut::<dns::Socket<'_>>(self.dns).cancel_query(query);
        }
        self.poll_common();
        number
    }

    /// Takes the addresses of a name; the query is gone then.
    pub fn addresses(&mut self, number: Number, into: &mut [u8]) -> Result<usize, NetError> {
        let socket = self.sockets.get_mut(number).ok_or(NetError::Closed)?;
        let Kind::Query(query, since) = &socket.kind else { return Err(NetError::Closed) };
        let (query, since) = (*query, *since);
        let found = match self.common.set.get_mut::<dns::Socket<'_>>(self.dns).get_query_result(query) {
            Err(GetQueryResultError::Pending) => {
                socket.armed |= READABLE;
                return Err(NetError::WouldBlock);
            }
            other => other,
        };
        self.others.retain(|other| *other != number);
        self.take(number);
        // The library does not say why a query failed. It gives up only after each server was silent for so long.
        let is_silent = self.now() - since >= SILENCE * self.dns_servers as u32;
        let found = found.map_err(|_| if is_silent { NetError::TimedOut } else { NetError::NotFound })?;
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

    /// Removes what is left of a socket of the common set.
    pub fn remove_other(&mut self, number: Number, kind: Kind) {
        self.others.retain(|other| *other != number);
        match kind {
            Kind::Datagrams(own) => {
                self.ports.remove(&own.port);
                self.common.remove(own.handle);
            }
            Kind::Echo(own) => self.common.remove(own.handle),
            Kind::Query(query, _) => self.common.set.get_mut::<dns::Socket<'_>>(self.dns).cancel_query(query),
            Kind::Listener(_) | Kind::Flow(_) => {}
        }
    }
}
