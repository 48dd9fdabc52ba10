//! The ingress filter: drops packets that cannot come over a wire, and packets that smoltcp would trust unchecked.

use core::net::Ipv6Addr;
use smoltcp::wire::{EthernetFrame, EthernetProtocol, IpAddress};

/// Bytes of the header of IPv6 (RFC 8200, 3).
const HEADER: usize = 40;
/// Protocols: options for each hop, ICMP for IPv6.
const HOP_BY_HOP: u8 = 0;
const ICMP: u8 = 58;
/// A router advertisement (RFC 4861, 4.2), its bytes before the options, and a prefix in it (4.6.2).
const ADVERTISEMENT: u8 = 134;
const BEFORE_OPTIONS: usize = 16;
const PREFIX: u8 = 3;
const PREFIX_BYTES: usize = 32;

/// Whether a frame is dropped. `is_own`: whether an address is one of ours.
pub fn refuses(bytes: &[u8], is_own: impl Fn(IpAddress) -> bool) -> bool {
    let Ok(frame) = EthernetFrame::new_checked(bytes) else { return true };
    let packet = frame.payload();
    match frame.ethertype() {
        EthernetProtocol::Ipv4 => match packet.get(12..16).and_then(|source| <[u8; 4]>::try_from(source).ok()) {
            Some(source) => source[0] == 127 || is_own(IpAddress::Ipv4(source.into())),
            None => true,
        },
        EthernetProtocol::Ipv6 => match packet.get(8..24).and_then(|source| <[u8; 16]>::try_from(source).ok()) {
            Some(source) => {
                let source = Ipv6Addr::from(source);
                source.is_loopback() || is_own(IpAddress::Ipv6(source)) || advertises_nonsense(packet)
            }
            None => true,
        },
        _ => false,
    }
}

/// A router advertises a prefix that can be none: longer than an address, or of groups. Addresses are made from
/// prefixes.
fn advertises_nonsense(packet: &[u8]) -> bool {
    let Some(rest) = packet.get(HEADER..) else { return false };
    let message = match (packet[6], rest) {
        (ICMP, _) => Some(rest),
        (HOP_BY_HOP, [ICMP, length, ..]) => rest.get((usize::from(*length) + 1) * 8..),
        _ => None,
    };
    let Some(message) = message.filter(|message| message.first() == Some(&ADVERTISEMENT)) else { return false };
    let mut options = message.get(BEFORE_OPTIONS..).unwrap_or_default();
    while let [kind, words, ..] = *options {
        let length = usize::from(words) * 8;
        // One that ends nowhere makes the whole advertisement invalid.
        let (Some(option), Some(rest)) = (options.get(..length.max(2)), options.get(length.max(2)..)) else { break };
        if kind == PREFIX && length == PREFIX_BYTES && (option[2] > 128 || option[16] == 0xff) {
            return true;
        }
        options = rest;
    }
    false
}
