//! Frames made by hand, as right or as wrong as one likes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The machine's hardware address: the emulator's usual one.
pub const MACHINE_HARDWARE: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
/// Ours.
pub const OUR_HARDWARE: [u8; 6] = [0x52, 0x55, 10, 0, 2, 2];
/// The address that our DHCP server gives the machine.
pub const MACHINE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// Ours: the router, the DHCP server, clients and servers.
pub const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// Ours: the name server.
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
/// Our address on the link.
pub const ROUTER_LINK: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
/// Our address of the prefix that we advertise.
pub const ROUTER_SIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 2);
/// The machine's address on the link, made from its hardware address (RFC 4291, appendix A).
pub const MACHINE_LINK: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x5054, 0xff, 0xfe12, 0x3456);
/// The machine's address of the prefix that we advertise.
pub const MACHINE_SIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0x5054, 0xff, 0xfe12, 0x3456);

/// Numbers of protocols.
pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMP_SIX: u8 = 58;

/// Flags of TCP.
pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;
pub const URG: u8 = 32;

/// Flag of IPv4: more fragments follow.
pub const MORE: u16 = 0x2000;

/// The sum of the internet's protocols (RFC 1071).
pub fn sum(parts: &[&[u8]]) -> u16 {
    let bytes: Vec<u8> = parts.concat();
    let mut sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A frame from us to the machine.
pub fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&MACHINE_HARDWARE[..], &OUR_HARDWARE, &kind.to_be_bytes(), payload].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// An IPv4 packet around a payload.
#[derive(Clone)]
pub struct Four {
    pub source: Ipv4Addr,
    pub target: Ipv4Addr,
    pub protocol: u8,
    pub hops: u8,
    pub number: u16,
    /// Flags, and the offset in units of eight bytes.
    pub fragment: u16,
    pub options: Vec<u8>,
}

impl Four {
    /// As one would send it to the machine.
    pub fn new(source: Ipv4Addr, protocol: u8) -> Self {
        Self { source, target: MACHINE, protocol, hops: 64, number: 0, fragment: 0, options: Vec::new() }
    }

    /// The packet.
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let words = 5 + self.options.len().div_ceil(4);
        let length = (words * 4 + payload.len()) as u16;
        let mut packet = vec![0x40 | words as u8, 0];
        packet.extend(length.to_be_bytes());
        packet.extend(self.number.to_be_bytes());
        packet.extend(self.fragment.to_be_bytes());
        packet.extend([self.hops, self.protocol, 0, 0]);
        packet.extend(self.source.octets());
        packet.extend(self.target.octets());
        packet.extend(&self.options);
        packet.resize(words * 4, 0);
        let sum = sum(&[&packet]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(payload);
        packet
    }

    /// The frame.
    pub fn frame(&self, payload: &[u8]) -> Vec<u8> {
        ethernet(0x0800, &self.packet(payload))
    }
}

/// An IPv6 frame.
pub fn six(source: Ipv6Addr, target: Ipv6Addr, next: u8, hops: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, hops]);
    packet.extend(source.octets());
    packet.extend(target.octets());
    packet.extend(payload);
    ethernet(0x86dd, &packet)
}

fn pseudo_header(source: IpAddr, target: IpAddr, protocol: u8, length: usize) -> Vec<u8> {
    let octets = |address| match address {
        IpAddr::V4(address) => Ipv4Addr::octets(&address).to_vec(),
        IpAddr::V6(address) => Ipv6Addr::octets(&address).to_vec(),
    };
    let mut header = octets(source);
    header.extend(octets(target));
    header.extend((length as u32).to_be_bytes());
    header.extend([0, 0, 0, protocol]);
    header
}

fn put_sum(packet: &mut [u8], at: usize, source: IpAddr, target: IpAddr, protocol: u8) {
    let sum = sum(&[&pseudo_header(source, target, protocol, packet.len()), packet]);
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// A UDP packet.
pub fn udp(source: IpAddr, from: u16, target: IpAddr, to: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let mut packet = [&from.to_be_bytes()[..], &to.to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload].concat();
    put_sum(&mut packet, 6, source, target, UDP);
    packet
}

/// A message of ICMP.
pub fn icmp(kind: u8, code: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = [&[kind, code, 0, 0][..], body].concat();
    let sum = sum(&[&packet]);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// A message of ICMP for IPv6.
pub fn icmp_six(source: Ipv6Addr, target: Ipv6Addr, kind: u8, code: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = [&[kind, code, 0, 0][..], body].concat();
    put_sum(&mut packet, 2, source.into(), target.into(), ICMP_SIX);
    packet
}

/// A message of ARP.
pub fn arp(operation: u16, from: ([u8; 6], Ipv4Addr), to: ([u8; 6], Ipv4Addr)) -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4];
    packet.extend(operation.to_be_bytes());
    packet.extend(from.0);
    packet.extend(from.1.octets());
    packet.extend(to.0);
    packet.extend(to.1.octets());
    ethernet(0x0806, &packet)
}

/// A segment of TCP.
#[derive(Clone, Debug)]
pub struct Segment {
    pub from: u16,
    pub to: u16,
    pub sequence: u32,
    pub acknowledged: u32,
    pub flags: u8,
    pub window: u16,
    pub urgent: u16,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Segment {
    /// The segment's bytes; options that are no whole words stay so, and the header's length lies.
    pub fn bytes(&self, source: IpAddr, target: IpAddr) -> Vec<u8> {
        let words = (5 + self.options.len().div_ceil(4)) as u8;
        let mut packet = Vec::new();
        packet.extend(self.from.to_be_bytes());
        packet.extend(self.to.to_be_bytes());
        packet.extend(self.sequence.to_be_bytes());
        packet.extend(self.acknowledged.to_be_bytes());
        packet.extend([words << 4, self.flags]);
        packet.extend(self.window.to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(self.urgent.to_be_bytes());
        packet.extend(&self.options);
        packet.extend(&self.payload);
        put_sum(&mut packet, 16, source, target, TCP);
        packet
    }

    /// In a frame from an IPv4 address to the machine.
    pub fn frame(&self, source: Ipv4Addr) -> Vec<u8> {
        Four::new(source, TCP).frame(&self.bytes(source.into(), MACHINE.into()))
    }

    /// The segment in a frame of IPv4, and where it goes; `None` = there is none.
    pub fn read(frame: &[u8]) -> Option<(Ipv4Addr, Self)> {
        let packet = frame.get(14..).filter(|_| frame[12..14] == [8, 0])?;
        let header = usize::from(packet.first()? & 15) * 4;
        let length = usize::from(word(packet, 2)?);
        let target = Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?);
        let bytes = packet.get(header..length).filter(|_| packet[9] == TCP)?;
        let data = usize::from(bytes.get(12)? >> 4) * 4;
        let segment = Self {
            from: word(bytes, 0)?,
            to: word(bytes, 2)?,
            sequence: u32::from(word(bytes, 4)?) << 16 | u32::from(word(bytes, 6)?),
            acknowledged: u32::from(word(bytes, 8)?) << 16 | u32::from(word(bytes, 10)?),
            flags: bytes[13],
            window: word(bytes, 14)?,
            urgent: word(bytes, 18)?,
            options: bytes.get(20..data)?.into(),
            payload: bytes.get(data..)?.into(),
        };
        Some((target, segment))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Makes the sums of a frame right, as far as its headers make sense.
pub fn mend(frame: &mut [u8]) {
    use super::frames::sum;
    let (source, target, protocol, header, length): (Vec<u8>, Vec<u8>, u8, usize, usize) = match frame[12..14] {
        [8, 0] => {
            let header = usize::from(frame[14] & 15) * 4;
            let length = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
            if header < 20 || 14 + header > frame.len() || length < header || 14 + length > frame.len() {
                return;
            }
            frame[24..26].fill(0);
            let own = sum(&[&frame[14..14 + header]]);
            frame[24..26].copy_from_slice(&own.to_be_bytes());
            (frame[26..30].into(), frame[30..34].into(), frame[23], header, length)
        }
        [0x86, 0xdd] => {
            let length = 40 + usize::from(u16::from_be_bytes([frame[18], frame[19]]));
            if 14 + length > frame.len() {
                return;
            }
            (frame[22..38].into(), frame[38..54].into(), frame[20], 40, length)
        }
        _ => return,
    };
    let (place, with_addresses) = match protocol {
        ICMP | 2 => (2, false),
        ICMP_SIX => (2, true),
        TCP => (16, true),
        UDP => (6, true),
        _ => return,
    };
    let payload = &mut frame[14 + header..14 + length];
    if payload.len() < place + 2 {
        return;
    }
    payload[place..place + 2].fill(0);
    let count = (payload.len() as u32).to_be_bytes();
    let own = match with_addresses {
        true => sum(&[&source, &target, &count, &[0, 0, 0, protocol], payload]),
        false => sum(&[payload]),
    };
    payload[place..place + 2].copy_from_slice(&own.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{Icmpv4Packet, Ipv4Packet, Ipv4Repr, TcpPacket, TcpRepr, UdpPacket};

    #[test]
    fn well_formed_frames_parse() {
        let sums = ChecksumCapabilities::default();
        let segment = Segment {
            from: 1,
            to: 2,
            sequence: 3,
            acknowledged: 4,
            flags: ACK,
            window: 5,
            urgent: 0,
            options: vec![2, 4, 1, 0],
            payload: b"odd".to_vec(),
        };
        let frame = segment.frame(ROUTER);
        let packet = Ipv4Packet::new_checked(&frame[14..]).unwrap();
        Ipv4Repr::parse(&packet, &sums).unwrap();
        let inner = TcpPacket::new_checked(packet.payload()).unwrap();
        let seen = TcpRepr::parse(&inner, &ROUTER.into(), &MACHINE.into(), &sums).unwrap();
        assert_eq!((seen.max_seg_size, seen.payload), (Some(256), &b"odd"[..]));
        let (target, read) = Segment::read(&frame).unwrap();
        assert_eq!((target, read.sequence, read.payload), (MACHINE, 3, b"odd".to_vec()));
        let datagram = udp(ROUTER.into(), 9, MACHINE.into(), 7, b"abc");
        assert!(UdpPacket::new_checked(&datagram).unwrap().verify_checksum(&ROUTER.into(), &MACHINE.into()));
        assert!(Icmpv4Packet::new_checked(&icmp(8, 0, b"abcdefg")).unwrap().verify_checksum());
        assert!(Segment::read(&frame[..40]).is_none());
    }
}
