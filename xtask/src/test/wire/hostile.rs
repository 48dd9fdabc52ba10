//! Frames that nobody should send: below TCP.

use super::frames::{
    Four, ICMP, ICMP_SIX, MACHINE, MACHINE_LINK, MACHINE_SIX, OUR_HARDWARE, ROUTER, ROUTER_LINK, ROUTER_SIX, SYN,
    Segment, TCP, UDP, arp, ethernet, icmp, icmp_six, mend, six, udp,
};
use super::host::{Host, udp_frame};
use super::lies;
use super::pages::page;
use super::services::{self, Lease};
use anyhow::{Context, Result, bail, ensure};
use smoltcp::wire::DhcpMessageType;
use std::time::{Duration, Instant};

/// Frames of memory that the machine may have lost at the end: caches, buffers for fragments, a few connections.
const SPARE: u64 = 192;
/// So long the machine may keep connections that an attack began and nobody goes on with: it gives them up after 20.
const SECONDS_TO_FORGET: u32 = 25;
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
            ("strange sources and targets", lies::addresses),
            ("lives of 0 and 1", lies::lives),
            ("fragments", lies::fragments),
            ("ARP", lies::arp_lies),
            ("neighbours and routers of IPv6", lies::neighbours),
            ("extension headers of IPv6", lies::extensions),
            ("DHCP", lies::dhcp_lies),
            ("datagrams of nobody", lies::datagrams),
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
    let mut after = 0;
    for _ in 0..SECONDS_TO_FORGET {
        host.pass(1.0)?;
        after = free_frames(host)?;
        if after + spare >= before {
            break;
        }
    }
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
/// Neighbours are trusted without proof, as ARP has it: the router says again who it is.
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

/// Random bytes after right headers.
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
    // A host that returned these would send frames that are too long.
    for length in [1441, 1442, 1443, 1460, 1600, 1900, 1960] {
        let body = [&b"\0\x01\0\x01"[..], &vec![7; length]].concat();
        let body = icmp_six(ROUTER_LINK, MACHINE_LINK, 128, 0, &body);
        host.inject([six(ROUTER_LINK, MACHINE_LINK, ICMP_SIX, 255, &body)])?;
    }
    host.inject((1..60).map(|length| vec![0xff; length]))?;
    // Those behind one that is too long are neither lost nor late. All come at once, while the machine rests.
    let too_long = || [echo(40), vec![0; 1600]].concat();
    let answers = |host: &Host<'_>| {
        let is_answer = |frame: &&Vec<u8>| frame[12..14] == [8, 0] && frame[23] == ICMP && frame.get(34) == Some(&0);
        host.seen.iter().flatten().filter(|frame| is_answer(frame) && frame.len() > 400).count()
    };
    let mut took = Duration::ZERO;
    for round in 0..40 {
        host.pass(0.01)?;
        let start = Instant::now();
        host.seen = Some(Vec::new());
        for frame in [echo(400), too_long(), too_long(), echo(400), echo(400)] {
            host.link.inject(frame);
        }
        let result = host.until(1.5, |host| Ok((answers(host) == 3).then_some(())));
        let count = answers(host);
        host.seen = None;
        result
            .with_context(|| format!("round {round}: {count} of 3 echo requests around jumbo frames were answered"))?;
        took += start.elapsed();
    }
    // Each answer takes a few milliseconds, unless it has to wait for the next thing that wakes the machine.
    ensure!(took < Duration::from_secs(5), "echo requests after jumbo frames took {took:?} to be answered");
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
