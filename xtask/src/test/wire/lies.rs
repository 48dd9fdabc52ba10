//! Frames that nobody should send, well-formed but for what they say: addresses, fragments, neighbours, leases.

use super::frames::{
    ACK, FIN, Four, ICMP, ICMP_SIX, MACHINE, MACHINE_HARDWARE, MACHINE_LINK, MACHINE_SIX, MORE, OUR_HARDWARE, ROUTER,
    ROUTER_LINK, ROUTER_SIX, SYN, Segment, TCP, UDP, arp, icmp, icmp_six, mend, six, udp,
};
use super::host::{Host, udp_frame};
use super::services::{self, Lease};
use anyhow::{Context, Result};
use smoltcp::wire::DhcpMessageType;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Sources that nobody can have, targets that are not the machine.
pub fn addresses(host: &mut Host<'_>) -> Result<()> {
    let any = [0, 0, 0, 0];
    let sources = [
        any,
        [255; 4],
        [10, 0, 2, 255],
        [10, 0, 2, 0],
        [224, 0, 0, 1],
        [239, 1, 2, 3],
        [127, 0, 0, 1],
        [10, 0, 2, 15],
        [240, 0, 0, 1],
        [0, 1, 2, 3],
    ];
    let targets = [[10, 0, 2, 15], [255; 4], [10, 0, 2, 255], [224, 0, 0, 1], [127, 0, 0, 1], any, [10, 0, 2, 77]];
    let mut segment = Segment {
        from: 80,
        to: 80,
        sequence: 1,
        acknowledged: 1,
        flags: SYN,
        window: 1000,
        urgent: 0,
        options: Vec::new(),
        payload: Vec::new(),
    };
    let mut frames = Vec::new();
    for (source, target) in sources.iter().flat_map(|source| targets.map(|target| (*source, target))) {
        let (source, target) = (Ipv4Addr::from(source), Ipv4Addr::from(target));
        let packet = |protocol| Four { target, ..Four::new(source, protocol) };
        for (port, flags) in [(80, SYN), (81, SYN), (80, ACK), (80, FIN | SYN)] {
            segment.to = port;
            segment.flags = flags;
            frames.push(packet(TCP).frame(&segment.bytes(source.into(), target.into())));
        }
        for port in [7, 68, 53, 9] {
            frames.push(packet(UDP).frame(&udp(source.into(), 67, target.into(), port, b"hello")));
        }
        frames.push(packet(ICMP).frame(&icmp(8, 0, b"\0\x01\0\x01echo")));
        frames.push(packet(99).frame(b"no protocol"));
    }
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let sources = [Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST, all_nodes, MACHINE_LINK, MACHINE_SIX];
    let targets = [MACHINE_LINK, MACHINE_SIX, all_nodes, Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED];
    for (source, target) in sources.iter().flat_map(|source| targets.map(|target| (*source, target))) {
        segment.flags = SYN;
        frames.push(six(source, target, TCP, 64, &segment.bytes(source.into(), target.into())));
        frames.push(six(source, target, UDP, 64, &udp(source.into(), 9, target.into(), 9, b"hello")));
        frames.push(six(source, target, ICMP_SIX, 255, &icmp_six(source, target, 128, 0, b"\0\x01\0\x01echo")));
        frames.push(six(source, target, 99, 64, b"no protocol"));
    }
    host.inject(frames)
}

/// Packets that no router would pass on.
pub fn lives(host: &mut Host<'_>) -> Result<()> {
    for hops in [0, 1] {
        let four = |protocol| Four { hops, ..Four::new(ROUTER, protocol) };
        let other = |protocol| Four { target: Ipv4Addr::new(192, 0, 2, 1), ..four(protocol) };
        let echo = icmp(8, 0, b"\0\x01\0\x01echo");
        host.inject((0..50).flat_map(|_| [four(ICMP).frame(&echo), other(ICMP).frame(&echo), four(99).frame(b"x")]))?;
        let body = icmp_six(ROUTER_LINK, MACHINE_LINK, 128, 0, b"\0\x01\0\x01abc");
        host.inject((0..50).map(|_| six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, hops, &body)))?;
        // Neighbours are trusted only if no router has passed it on (RFC 4861, 7.1).
        let lie = [&[0x60, 0, 0, 0][..], &ROUTER_LINK.octets(), &[2, 1], &[2, 9, 9, 9, 9, 9]].concat();
        let lie = icmp_six(ROUTER_LINK, MACHINE_LINK, 136, 0, &lie);
        host.inject([six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, hops, &lie)])?;
    }
    Ok(())
}

/// Overlapping, incomplete, oversized, of no length, in all orders.
pub fn fragments(host: &mut Host<'_>) -> Result<()> {
    let piece = |number: u16, offset: usize, more: bool, bytes: &[u8]| {
        let fragment = (offset / 8) as u16 | if more { MORE } else { 0 };
        Four { number, fragment, ..Four::new(ROUTER, ICMP) }.frame(bytes)
    };
    let whole = icmp(8, 0, &[&b"\0\x05\0\x05"[..], &[9; 2000]].concat());
    let mut frames = Vec::new();
    // A ping of death: it ends past 65,535.
    for offset in (0..65_500).step_by(1400) {
        frames.push(piece(1, offset, true, &[1; 1400]));
    }
    frames.push(piece(1, 65_528, false, &[1; 1400]));
    // Overlapping, the later ones saying something else (teardrop).
    frames.extend([piece(2, 0, true, &[2; 800]), piece(2, 24, false, &[3; 8]), piece(2, 8, true, &[4; 80])]);
    frames.extend([piece(3, 800, false, &[2; 800]), piece(3, 0, true, &[3; 1400]), piece(3, 0, true, &[3; 808])]);
    // Two ends, one before the other.
    frames.extend([piece(4, 1600, false, &[2; 8]), piece(4, 80, false, &[3; 8]), piece(4, 0, true, &[3; 80])]);
    // Nothing in them.
    frames.extend([piece(5, 0, true, &[]), piece(5, 8, true, &[]), piece(5, 8, false, &[])]);
    for number in 100..400 {
        let at = host.random.below(8000) as usize * 8;
        let length = host.random.below(180) as usize * 8;
        frames.push(piece(number, at, number % 3 != 0, &vec![5; length]));
        let (at, length) = (host.random.below(64) as usize * 8, host.random.below(160) as usize);
        frames.push(piece(number % 3, at, host.random.below(3) != 0, &vec![6; length]));
    }
    host.inject(frames)?;
    // Of IPv6, which the machine does not put together.
    let mut headers = Vec::new();
    for number in 0..100_u32 {
        let mut header = vec![ICMP_SIX, 0, (number % 7) as u8, (number % 2) as u8];
        header.extend(number.to_be_bytes());
        header.extend(&whole[..40]);
        headers.push(six(ROUTER_LINK, MACHINE_LINK, 44, 64, &header));
    }
    host.inject(headers)
}

/// Lies about the owners of addresses, and very many truths.
pub fn arp_lies(host: &mut Host<'_>) -> Result<()> {
    let other = [2, 0, 0, 0, 0, 9];
    for round in 0..1200_u64 {
        let random = |host: &mut Host<'_>| -> [u8; 6] { std::array::from_fn(|_| host.random.next() as u8) };
        let address = Ipv4Addr::new(10, 0, 2, host.random.next() as u8);
        let address = if address == ROUTER { MACHINE } else { address };
        let hardware = random(host);
        let operation = if round % 10 == 0 { host.random.next() as u16 } else { 1 + (round % 2) as u16 };
        let frame = arp(operation, (hardware, address), (MACHINE_HARDWARE, MACHINE));
        host.inject([frame])?;
    }
    host.inject([
        arp(2, ([0xff; 6], ROUTER), (MACHINE_HARDWARE, MACHINE)),
        arp(2, ([1, 0, 0, 0, 0, 1], ROUTER), (MACHINE_HARDWARE, MACHINE)),
        arp(2, (other, MACHINE), (MACHINE_HARDWARE, MACHINE)),
        arp(2, (other, Ipv4Addr::BROADCAST), (MACHINE_HARDWARE, MACHINE)),
        arp(1, (other, Ipv4Addr::UNSPECIFIED), (MACHINE_HARDWARE, MACHINE)),
        // Somebody says that he is the router; the router disagrees.
        arp(2, (other, ROUTER), (MACHINE_HARDWARE, MACHINE)),
        arp(1, (OUR_HARDWARE, ROUTER), ([0; 6], MACHINE)),
    ])
}

/// Lies of neighbours and routers.
pub fn neighbours(host: &mut Host<'_>) -> Result<()> {
    let nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    // Prefixes that are none: too long, of groups, of nobody, of the link.
    for bits in [0, 1, 63, 64, 65, 127, 128, 129, 200, 255] {
        let prefixes = [[0xff02, 0], [0x2001, 0xdb9], [0, 0], [0xfe80, 0], [0xffff, 0xffff]];
        for [first, second] in prefixes {
            let prefix = Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0);
            host.inject([services::advertisement(prefix, bits, 0)])?;
        }
    }
    // Malformed options follow: of length 0, or longer than the message.
    for kind in 133..=137 {
        for option in 0..8_u8 {
            for length in [0, 1, 2, 4, 31, 255] {
                let mut body = [&[0; 4][..], &MACHINE_LINK.octets(), &[option, length]].concat();
                body.extend(host.random.bytes(38));
                let message = icmp_six(ROUTER_LINK, MACHINE_LINK, kind, 0, &body);
                host.inject([six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, 255, &message)])?;
            }
        }
    }
    // Solicitations from many, more than a cache holds; from groups; for groups.
    for round in 0..300_u16 {
        let source = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, round);
        let target = if round % 5 == 0 { nodes } else { MACHINE_LINK };
        let hardware = [2, 0, 0, 0, (round >> 8) as u8, round as u8];
        let body = [&[0; 4][..], &target.octets(), &[1, 1], &hardware].concat();
        host.inject([six(source, MACHINE_LINK, ICMP_SIX, 255, &icmp_six(source, MACHINE_LINK, 135, 0, &body))])?;
    }
    // Reports and queries of groups.
    for length in 0..60 {
        let body = host.random.bytes(length);
        for kind in [130, 131, 132, 143] {
            let message = icmp_six(ROUTER_LINK, nodes, kind, 0, &body);
            host.inject([six(ROUTER_LINK, nodes, ICMP_SIX, 1, &message)])?;
        }
    }
    host.inject([services::our_advertisement()])
}

/// Chains of headers, headers that claim to be longer, options of all kinds.
pub fn extensions(host: &mut Host<'_>) -> Result<()> {
    let echo = icmp_six(ROUTER_SIX, MACHINE_SIX, 128, 0, b"\0\x01\0\x01abc");
    for kind in [0, 43, 44, 50, 51, 59, 60, 135] {
        for count in [1, 2, 3, 10, 100, 170] {
            let mut chain = Vec::new();
            for _ in 1..count {
                chain.extend([kind, 0, 1, 4, 0, 0, 0, 0]);
            }
            chain.extend([ICMP_SIX, 0, 1, 4, 0, 0, 0, 0]);
            chain.extend(&echo);
            host.inject([six(ROUTER_SIX, MACHINE_SIX, kind, 64, &chain)])?;
        }
        for length in [1, 2, 30, 255] {
            let header = [&[kind, length, 1, 0][..], &[0; 12]].concat();
            host.inject([six(ROUTER_SIX, MACHINE_SIX, kind, 64, &header)])?;
        }
    }
    for option in 0..=255_u8 {
        for length in [0, 1, 4, 5, 255] {
            let header = [&[ICMP_SIX, 0, option, length, 0, 0, 0, 0][..], &echo].concat();
            host.inject([six(ROUTER_SIX, MACHINE_SIX, 0, 64, &header)])?;
        }
    }
    Ok(())
}

/// Offers, leases and refusals that the machine did not ask for, and those from a bad server.
pub fn dhcp_lies(host: &mut Host<'_>) -> Result<()> {
    let request = host.dhcp_seen.last().context("the machine did not ask for an address")?.clone();
    let number = u32::from_be_bytes(request[4..8].try_into().context("a short message")?);
    let everything = [DhcpMessageType::Offer, DhcpMessageType::Ack, DhcpMessageType::Nak, DhcpMessageType::Discover];
    for round in 0..200 {
        for kind in everything {
            let mut message = services::dhcp_message(kind, number.wrapping_add(round + 1), Lease::Right);
            message[16..20].copy_from_slice(&[10, 0, 9, 9]);
            host.inject([udp_frame(67, 68, &message)])?;
        }
        // With the right number, but broken after it.
        let mut message = services::dhcp_message(DhcpMessageType::Ack, number, Lease::Right);
        let at = 240 + host.random.below((message.len() - 240) as u64) as usize;
        if round % 2 == 0 {
            message.truncate(at);
        } else {
            message[240..243].fill(0);
            message[at] = host.random.next() as u8;
        }
        host.inject([udp_frame(67, 68, &message)])?;
    }
    // A router that no packet can be sent to.
    for router in [[0; 4], [255; 4], [224, 0, 0, 1], [10, 0, 2, 255], [127, 0, 0, 1], [10, 0, 2, 15]] {
        let message = services::dhcp_message(DhcpMessageType::Ack, number, Lease::Router(router.into()));
        host.inject([udp_frame(67, 68, &message)])?;
        // Something must go through the router.
        let outside = Four::new(Ipv4Addr::new(192, 0, 2, 9), ICMP).frame(&icmp(8, 0, b"\0\x01\0\x01echo"));
        host.inject([outside])?;
        host.pass(0.02)?;
    }
    host.inject([udp_frame(67, 68, &services::dhcp_message(DhcpMessageType::Ack, number, Lease::Right))])?;
    // Refused: it asks again, and gets its address again.
    let before = host.dhcp_seen.len();
    host.inject([udp_frame(67, 68, &services::dhcp_message(DhcpMessageType::Nak, number, Lease::Right))])?;
    host.until(3.0, |host| Ok((host.dhcp_seen.len() > before + 1).then_some(()))).context("it does not ask again")
}

/// Datagrams to ports that nobody has, answers that nobody asked for.
pub fn datagrams(host: &mut Host<'_>) -> Result<()> {
    for round in 0..600_u64 {
        let length = host.random.below(600) as usize;
        let bytes = host.random.bytes(length);
        let (from, to) = match round % 4 {
            0 => (53, host.random.next() as u16),
            1 => (host.random.next() as u16, 7),
            2 => (67, 68),
            _ => (host.random.next() as u16, host.random.next() as u16),
        };
        let mut frame = udp_frame(from, to, &bytes);
        if round % 5 == 0 {
            // The length of UDP is not that of IP.
            let length = host.random.next() as u16;
            frame[38..40].copy_from_slice(&length.to_be_bytes());
            mend(&mut frame);
        }
        host.inject([frame])?;
    }
    Ok(())
}
