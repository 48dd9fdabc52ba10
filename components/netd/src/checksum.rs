//! Checksums of what is sent (RFC 1071), made eight bytes at a time: smoltcp makes them two bytes at a time.

use smoltcp::wire::{EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, Ipv6Packet};

/// Where TCP and UDP have theirs.
const IN_TCP: usize = 16;
const IN_UDP: usize = 6;

/// Bytes of one round of the loop.
const BLOCK: usize = 128;

/// The sum of bytes as big-endian pairs, folded to 16 bits.
fn sum(bytes: &[u8]) -> u16 {
    let (mut total, mut carry) = (0u64, false);
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    for block in blocks {
        for word in block.as_chunks().0 {
            (total, carry) = total.carrying_add(u64::from_ne_bytes(*word), carry);
        }
    }
    let (words, rest) = rest.as_chunks();
    for word in words {
        (total, carry) = total.carrying_add(u64::from_ne_bytes(*word), carry);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let (total, carry) = total.carrying_add(u64::from_ne_bytes(last), carry);
    // The order of bytes makes no difference until the end (RFC 1071, 2 B), nor does where a carry is added (2 A).
    u16::from_be(fold(u64::from(fold(total)) + u64::from(carry)))
}

const fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Fills the checksum of TCP or UDP in a whole IP packet in an Ethernet frame. A fragment has none of its own.
pub fn fill(frame: &mut [u8]) {
    let Ok(mut ethernet) = EthernetFrame::new_checked(frame) else { return };
    match ethernet.ethertype() {
        EthernetProtocol::Ipv4 => {
            let Ok(mut packet) = Ipv4Packet::new_checked(ethernet.payload_mut()) else { return };
            if packet.more_frags() || packet.frag_offset() != 0 {
                return;
            }
            let addresses = sum(&packet.src_addr().octets()) as u64 + sum(&packet.dst_addr().octets()) as u64;
            let protocol = packet.next_header();
            of_segment(protocol, addresses, packet.payload_mut());
        }
        EthernetProtocol::Ipv6 => {
            let Ok(mut packet) = Ipv6Packet::new_checked(ethernet.payload_mut()) else { return };
            let addresses = sum(&packet.src_addr().octets()) as u64 + sum(&packet.dst_addr().octets()) as u64;
            let protocol = packet.next_header();
            of_segment(protocol, addresses, packet.payload_mut());
        }
        _ => {}
    }
}

/// The sum goes over addresses, protocol, length and segment (RFC 9293, 3.1; RFC 768).
fn of_segment(protocol: IpProtocol, addresses: u64, segment: &mut [u8]) {
    let place = match protocol {
        IpProtocol::Tcp => IN_TCP,
        IpProtocol::Udp => IN_UDP,
        _ => return,
    };
    let Some(field) = segment.get_mut(place..place + 2) else { return };
    field.fill(0);
    let total = addresses + u64::from(u8::from(protocol)) + segment.len() as u64 + u64::from(sum(segment));
    let checksum = match (!fold(total), protocol) {
        // Zero would say that there is none.
        (0, IpProtocol::Udp) => 0xffff,
        (checksum, _) => checksum,
    };
    segment[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
}
