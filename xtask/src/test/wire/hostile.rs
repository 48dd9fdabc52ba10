//! Frames that nobody should send: below TCP.

use super::frames::{
    ACK, FIN, Four, ICMP, ICMP_SIX, MACHINE, MACHINE_HARDWARE, MACHINE_LINK, MACHINE_SIX, MORE, OUR_HARDWARE, ROUTER,
    ROUTER_LINK, ROUTER_SIX, SYN, Segment, TCP, UDP, arp, ethernet, icmp, icmp_six, six, udp,
};
use super::host::{Host, udp_frame};
use super::page;
use super::services::{self, Lease};
use anyhow::{Context, Result, bail};
use smoltcp::wire::DhcpMessageType;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Frames of memory that the machine may have lost at the end: caches, buffers for fragments, a few connections.
const SPARE: u64 = 192;
/// The first of our ports from which segments with bad sums come.
const BAD_PORTS: u16 = 3000;
/// How long a page may take after an attack, in seconds.
pub const RECOVERY: f64 = 4.0;

type Attack = fn(&mut Host<'_>) -> Result<()>;

/// The scenario.
pub fn run(host: &mut Host<'_>) -> Result<()> {
    attack(
        host,
        &[
            ("truncated frames", truncated),
            ("bytes that were changed", changed),
            ("random payloads", random),
            ("jumbo and runt frames", sizes),
            ("bad sums", bad_sums),
            ("strange sources and targets", addresses),
            ("lives of 0 and 1", lives),
            ("fragments", fragments),
            ("ARP", arp_lies),
            ("neighbours and routers of IPv6", neighbours),
            ("extension headers of IPv6", extensions),
            ("DHCP", dhcp_lies),
            ("datagrams of nobody", datagrams),
        ],
        SPARE,
    )
}

/// Does these to the machine; after each one it must be as before, but for so many frames of memory.
pub fn attack(host: &mut Host<'_>, attacks: &[(&str, Attack)], spare: u64) -> Result<()> {
    let before = free_frames(host)?;
    for (name, attack) in attacks {
        attack(host).and_then(|()| is_well(host)).with_context(|| name.to_string())?;
    }
    host.pass(1.0)?;
    let after = free_frames(host)?;
    if after + spare < before {
        bail!("{before} frames were free before, {after} are afterwards");
    }
    let (_, text) = host.shell("dmesg", 10.0)?;
    // The scheduler is taken for dead when the host stalls the emulator: see the caveats.
    let died =
        |line: &&str| line.contains("restarting") && !line.ends_with("restarting sched") || line.contains("panic");
    match text.lines().find(died) {
        Some(line) => bail!("somebody died: {line}"),
        None => Ok(()),
    }
}

/// A page comes at once or soon, and the machine can ask whether we are there.
///
/// Neighbours are believed without proof, as ARP has it: the router says again who it is.
fn is_well(host: &mut Host<'_>) -> Result<()> {
    let body = [&[0x60, 0, 0, 0][..], &ROUTER_LINK.octets(), &[2, 1], &OUR_HARDWARE].concat();
    let advertised = icmp_six(ROUTER_LINK, MACHINE_LINK, 136, 0, &body);
    host.inject([
        arp(1, (OUR_HARDWARE, ROUTER), ([0; 6], MACHINE)),
        six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, 255, &advertised),
    ])?;
    if host.get("/page-2000", RECOVERY).context("afterwards")? != page(2000) {
        bail!("the page came wrong");
    }
    let (status, text) = host.shell("ping -c 1 10.0.2.2", 5.0)?;
    if status != 0 {
        bail!("ping afterwards: status {status}, {text}");
    }
    Ok(())
}

fn free_frames(host: &mut Host<'_>) -> Result<u64> {
    let (_, text) = host.shell("frames", 5.0)?;
    let line =
        text.lines().find_map(|line| line.strip_prefix("free ")).context("`frames` does not say what is free")?;
    line.trim().parse().context("no number of frames")
}

/// A frame of each kind that the machine takes.
fn samples() -> Vec<Vec<u8>> {
    let segment = Segment {
        from: 1000,
        to: 80,
        sequence: 1,
        acknowledged: 1,
        flags: SYN,
        window: 1000,
        urgent: 0,
        options: vec![2, 4, 5, 180, 3, 3, 7, 1],
        payload: b"payload".to_vec(),
    };
    let mut query = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    query.extend(b"\x04four\x04test\x00\x00\x01\x00\x01");
    let solicitation = [&[0; 4][..], &MACHINE_LINK.octets(), &[1, 1], &OUR_HARDWARE].concat();
    let advertised = [&[0x60, 0, 0, 0][..], &ROUTER_LINK.octets(), &[2, 1], &OUR_HARDWARE].concat();
    let query_of_groups = [&[0; 20][..], &[0, 0, 0, 0]].concat();
    let options = [&[17, 0, 5, 2, 0, 0, 1, 0][..], &udp(ROUTER_SIX.into(), 9, MACHINE_SIX.into(), 9, b"x")].concat();
    let link = |kind, body: &[u8]| icmp_six(ROUTER_LINK, MACHINE_LINK, kind, 0, body);
    vec![
        arp(1, (OUR_HARDWARE, ROUTER), ([0; 6], MACHINE)),
        segment.frame(ROUTER),
        udp_frame(53, 68, &services::dhcp_message(DhcpMessageType::Ack, 7, Lease::Right)),
        udp_frame(67, 68, &services::dhcp_message(DhcpMessageType::Ack, 7, Lease::Right)),
        udp_frame(53, 50_000, &query),
        Four::new(ROUTER, ICMP).frame(&icmp(8, 0, b"\0\x01\0\x01are you there?")),
        Four::new(ROUTER, ICMP).frame(&icmp(3, 3, &Four::new(MACHINE, UDP).packet(b"\0\x01\0\x01\0\0\0\0"))),
        Four::new(ROUTER, 2).frame(&[0x11, 100, 0xee, 0x9b, 0, 0, 0, 0]),
        six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, 255, &link(128, b"\0\x01\0\x01are you there?")),
        six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, 255, &link(135, &solicitation)),
        six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, 255, &link(136, &advertised)),
        six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, 1, &link(130, &query_of_groups)),
        services::our_advertisement(),
        six(ROUTER_SIX, MACHINE_SIX, 0, 64, &options),
        six(ROUTER_SIX, MACHINE_SIX, TCP, 64, &segment.bytes(ROUTER_SIX.into(), MACHINE_SIX.into())),
    ]
}

/// Each sample at every length. (A datagram of no bytes is the end of the wire to the emulator.)
fn truncated(host: &mut Host<'_>) -> Result<()> {
    for sample in samples() {
        host.inject((1..sample.len()).map(|length| sample[..length].to_vec()))?;
    }
    Ok(())
}

/// Each sample with bytes that are others, the sums made right again or not.
fn changed(host: &mut Host<'_>) -> Result<()> {
    for sample in samples() {
        let start = if sample[12..14] == [8, 6] { 14 } else { 15 };
        for round in 0..120_u64 {
            let mut frame = sample.clone();
            for _ in 0..=host.random.below(3) {
                let at = start + host.random.below((frame.len() - start) as u64) as usize;
                frame[at] = match host.random.below(4) {
                    0 => 0,
                    1 => 0xff,
                    _ => host.random.next() as u8,
                };
            }
            if round % 4 != 0 {
                mend(&mut frame);
            }
            host.inject([frame])?;
        }
    }
    Ok(())
}

/// Makes the sums of a frame right, as far as its headers make sense.
fn mend(frame: &mut [u8]) {
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

/// Random bytes behind right headers.
fn random(host: &mut Host<'_>) -> Result<()> {
    for round in 0..1500_u64 {
        let length = host.random.below(if round % 8 == 0 { 1400 } else { 90 }) as usize;
        let bytes = host.random.bytes(length);
        let protocol = match host.random.below(6) {
            0 => host.random.next() as u8,
            other => [TCP, UDP, ICMP, ICMP_SIX, 0][other as usize - 1],
        };
        let mut frame = match round % 3 {
            0 => ethernet([0x0800, 0x0806, 0x86dd, host.random.next() as u16][(round / 3 % 4) as usize], &bytes),
            1 => Four::new(ROUTER, protocol).frame(&bytes),
            _ => six(ROUTER_LINK, MACHINE_LINK, protocol, 255, &bytes),
        };
        if round % 2 == 0 && frame.len() > 60 {
            mend(&mut frame);
        }
        host.inject([frame])?;
    }
    Ok(())
}

/// Frames that are longer or shorter than they may be; right ones between them are answered.
fn sizes(host: &mut Host<'_>) -> Result<()> {
    let echo = |bytes| Four::new(ROUTER, ICMP).frame(&icmp(8, 0, &vec![7; bytes]));
    for length in [1515, 1518, 1600, 2000, 2036, 2047, 2048, 4096, 9018, 60_000] {
        let jumbo = || [echo(40), vec![0; length - 82]].concat();
        host.inject([jumbo(), jumbo(), jumbo(), jumbo()])?;
        let longer = Four::new(ROUTER, UDP).frame(&vec![1; length - 34]);
        host.inject([longer, vec![0; length]])?;
    }
    host.inject((1..60).map(|length| vec![0xff; length]))?;
    // Those behind one that is too long are neither lost nor late. All come at once, while the machine rests.
    let too_long = || [echo(40), vec![0; 1600]].concat();
    let answers = |host: &Host<'_>| {
        let is_answer = |frame: &&Vec<u8>| frame[12..14] == [8, 0] && frame[23] == ICMP && frame.get(34) == Some(&0);
        host.seen.iter().flatten().filter(|frame| is_answer(frame) && frame.len() > 400).count()
    };
    for round in 0..40 {
        host.pass(0.01)?;
        host.seen = Some(Vec::new());
        for frame in [echo(400), too_long(), echo(400), echo(400)] {
            host.link.inject(frame);
        }
        let result = host.until(1.5, |host| Ok((answers(host) == 3).then_some(())));
        let count = answers(host);
        host.seen = None;
        result
            .with_context(|| format!("round {round}: {count} of 3 echo requests around a jumbo frame were answered"))?;
    }
    Ok(())
}

/// Right but for one sum, which must be seen: nothing is answered.
fn bad_sums(host: &mut Host<'_>) -> Result<()> {
    let mut open = Segment {
        from: 999,
        to: 80,
        sequence: 5,
        acknowledged: 0,
        flags: SYN,
        window: 1000,
        urgent: 0,
        options: Vec::new(),
        payload: Vec::new(),
    };
    host.pass(0.3)?;
    host.seen = Some(Vec::new());
    let mut frames = Vec::new();
    for round in 0..50_u8 {
        open.from = BAD_PORTS + u16::from(round);
        let mut bad_four = open.frame(ROUTER);
        bad_four[24] ^= round + 1;
        let mut bad_tcp = open.frame(ROUTER);
        bad_tcp[50] ^= round + 1;
        let mut closed = open.clone();
        closed.to = 81;
        let mut bad_closed = closed.frame(ROUTER);
        bad_closed[51] ^= round + 1;
        let mut bad_echo = Four::new(ROUTER, ICMP).frame(&icmp(8, 0, b"\0\x01\0\x01abcdefgh"));
        bad_echo[36] ^= round + 1;
        let mut bad_udp = udp_frame(1, 9, b"nobody's");
        bad_udp[40] ^= round + 1;
        let body = icmp_six(ROUTER_LINK, MACHINE_LINK, 128, 0, b"\0\x01\0\x01abc");
        let mut bad_six = six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, 255, &body);
        bad_six[56] ^= round + 1;
        frames.extend([bad_four, bad_tcp, bad_closed, bad_echo, bad_udp, bad_six]);
    }
    host.inject(frames)?;
    host.pass(0.3)?;
    let answered = |frame: &&Vec<u8>| match frame[12..14] {
        [8, 0] if frame[23] == TCP => (BAD_PORTS..BAD_PORTS + 50).contains(&u16::from_be_bytes([frame[36], frame[37]])),
        [8, 0] => frame[23] == ICMP,
        [0x86, 0xdd] => frame[20] == ICMP_SIX && matches!(frame[54], 1..=4 | 129),
        _ => false,
    };
    let seen = host.seen.take().unwrap_or_default();
    match seen.iter().find(answered) {
        Some(frame) => bail!("a frame with a bad sum is answered: {}", super::host::hex(frame)),
        None => Ok(()),
    }
}

/// Sources that nobody can have, targets that are not the machine.
fn addresses(host: &mut Host<'_>) -> Result<()> {
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
            (segment.to, segment.flags) = (port, flags);
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

fn lives(host: &mut Host<'_>) -> Result<()> {
    for hops in [0, 1] {
        let four = |protocol| Four { hops, ..Four::new(ROUTER, protocol) };
        let other = |protocol| Four { target: Ipv4Addr::new(192, 0, 2, 1), ..four(protocol) };
        let echo = icmp(8, 0, b"\0\x01\0\x01echo");
        host.inject((0..50).flat_map(|_| [four(ICMP).frame(&echo), other(ICMP).frame(&echo), four(99).frame(b"x")]))?;
        let body = icmp_six(ROUTER_LINK, MACHINE_LINK, 128, 0, b"\0\x01\0\x01abc");
        host.inject((0..50).map(|_| six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, hops, &body)))?;
        // Neighbours are believed only if no router has passed it on (RFC 4861, 7.1).
        let lie = [&[0x60, 0, 0, 0][..], &ROUTER_LINK.octets(), &[2, 1], &[2, 9, 9, 9, 9, 9]].concat();
        let lie = icmp_six(ROUTER_LINK, MACHINE_LINK, 136, 0, &lie);
        host.inject([six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, hops, &lie)])?;
    }
    Ok(())
}

/// Overlapping, incomplete, oversized, of no length, in all orders.
fn fragments(host: &mut Host<'_>) -> Result<()> {
    let piece = |number: u16, offset: usize, more: bool, bytes: &[u8]| {
        let fragment = (offset / 8) as u16 | if more { MORE } else { 0 };
        Four { number, fragment, ..Four::new(ROUTER, ICMP) }.frame(bytes)
    };
    let whole = icmp(8, 0, &[&b"\0\x05\0\x05"[..], &[9; 2000]].concat());
    let mut frames = Vec::new();
    // A ping of death: it ends behind 65,535.
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

/// Lies about who has which address, and very many truths.
fn arp_lies(host: &mut Host<'_>) -> Result<()> {
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

fn neighbours(host: &mut Host<'_>) -> Result<()> {
    let nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    // Prefixes that are none: too long, of groups, of nobody, of the link.
    for bits in [0, 1, 63, 64, 65, 127, 128, 129, 200, 255] {
        let prefixes = [[0xff02, 0], [0x2001, 0xdb9], [0, 0], [0xfe80, 0], [0xffff, 0xffff]];
        for [first, second] in prefixes {
            let prefix = Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0);
            host.inject([services::advertisement(prefix, bits, 0)])?;
        }
    }
    // What follows is no end: options of length 0, options that are longer than the message.
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
fn extensions(host: &mut Host<'_>) -> Result<()> {
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

/// Offers, leases and refusals that the machine did not ask for, and such that come from a bad server.
fn dhcp_lies(host: &mut Host<'_>) -> Result<()> {
    let request = host.dhcp_seen.last().context("the machine did not ask for an address")?.clone();
    let number = u32::from_be_bytes(request[4..8].try_into().context("a short message")?);
    let everything = [DhcpMessageType::Offer, DhcpMessageType::Ack, DhcpMessageType::Nak, DhcpMessageType::Discover];
    for round in 0..200 {
        for kind in everything {
            let mut message = services::dhcp_message(kind, number.wrapping_add(round + 1), Lease::Right);
            message[16..20].copy_from_slice(&[10, 0, 9, 9]);
            host.inject([udp_frame(67, 68, &message)])?;
        }
        // With the right number, but broken behind it.
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
    // Refused: it asks anew, and gets its address again.
    let before = host.dhcp_seen.len();
    host.inject([udp_frame(67, 68, &services::dhcp_message(DhcpMessageType::Nak, number, Lease::Right))])?;
    host.until(3.0, |host| Ok((host.dhcp_seen.len() > before + 1).then_some(()))).context("it does not ask again")
}

/// Datagrams to ports that nobody has, answers that nobody asked for.
fn datagrams(host: &mut Host<'_>) -> Result<()> {
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
