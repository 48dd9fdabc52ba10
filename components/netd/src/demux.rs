//! Finds the receiver of a packet, as far as its headers determine it. Errors in the packet are left to smoltcp.

use core::cmp::Ordering;

use protocols::net::Endpoint;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpAddress, IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket, UdpPacket,
};

/// Both ends of a TCP connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The other end.
    pub remote: Endpoint,
    /// This end.
    pub local: Endpoint,
}

impl Ord for Key {
    /// Ports first: most connections differ there, and they are compared sooner than addresses.
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |key: &Self| (key.remote.port, key.local.port, key.remote.address, key.local.address);
        order(self).cmp(&order(other))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A segment of this connection; whether it wants to open it.
    Segment(Key, bool),
    /// A UDP datagram for this port.
    Datagram(u16),
    /// Says where neighbours are, or may.
    Neighbor,
    /// Anything else.
    Other,
}

/// The class of an Ethernet frame.
pub fn frame(bytes: &[u8]) -> Class {
    let Ok(frame) = EthernetFrame::new_checked(bytes) else { return Class::Other };
    match frame.ethertype() {
        EthernetProtocol::Ipv4 | EthernetProtocol::Ipv6 => packet(frame.payload()),
        EthernetProtocol::Arp => Class::Neighbor,
        _ => Class::Other,
    }
}

/// The class of an IP packet.
pub fn packet(bytes: &[u8]) -> Class {
    let (source, target, protocol, payload) = match bytes.first().map(|byte| byte >> 4) {
        Some(4) => {
            let Ok(packet) = Ipv4Packet::new_checked(bytes) else { return Class::Other };
            if packet.more_frags() || packet.frag_offset() != 0 {
                return Class::Other;
            }
            (packet.src_addr().into(), packet.dst_addr().into(), packet.next_header(), packet.payload())
        }
        Some(6) => {
            let Ok(packet) = Ipv6Packet::new_checked(bytes) else { return Class::Other };
            (packet.src_addr().into(), packet.dst_addr().into(), packet.next_header(), packet.payload())
        }
        _ => return Class::Other,
    };
    match protocol {
        IpProtocol::Tcp => {
            let Ok(segment) = TcpPacket::new_checked(payload) else { return Class::Other };
            let key = Key { remote: endpoint(source, segment.src_port()), local: endpoint(target, segment.dst_port()) };
            Class::Segment(key, segment.syn() && !segment.ack() && !segment.rst())
        }
        IpProtocol::Udp => match UdpPacket::new_checked(payload) {
            Ok(datagram) => Class::Datagram(datagram.dst_port()),
            Err(_) => Class::Other,
        },
        IpProtocol::Icmpv6 => Class::Neighbor,
        _ => Class::Other,
    }
}

/// An endpoint of ours.
pub fn endpoint(address: IpAddress, port: u16) -> Endpoint {
    Endpoint::new(address.into(), port)
}
