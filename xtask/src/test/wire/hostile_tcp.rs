//! Segments of TCP that nobody should send.

use super::frames::{ACK, FIN, Four, MACHINE, PSH, RST, SYN, Segment, TCP, URG};
use super::host::Host;
use super::hostile::{RECOVERY, attack};
use super::pages::page;
use super::raw::Client;
use anyhow::{Context, Result, bail, ensure};
use std::net::Ipv4Addr;

/// Segments of a flood.
const FLOOD: usize = 10_000;
/// Connections that may begin at the same time.
const BACKLOG: usize = 256;
/// After so many seconds, one that has not begun makes room for others: more than the machine needs, so that one that needs
/// longer than a client tries is seen.
const OPENING: f64 = 4.1;
/// Bytes of the page that is asked for over a narrow way.
const SMALL: usize = 1 << 10;
/// Bytes of a page that fills all buffers.
const LARGE: usize = 100_000;
/// Clients that ask and take nothing.
const MISERS: u8 = 30;
/// Frames of memory that are not free at the end: two for each of the connections that may begin at the same time, until
/// they are given up, and some.
const SPARE: u64 = 2 * BACKLOG as u64 + 256;

/// The scenario.
pub fn run(host: &mut Host<'_>) -> Result<()> {
    attack(
        host,
        &[
            ("flags of all kinds", flags),
            ("options of all lengths", options),
            ("segments outside the window", guesses),
            ("segments around the window", around),
            ("a storm of acknowledgements", storm),
            ("windows of no bytes", zero_windows),
            ("windows and segments of few bytes", narrow),
            ("urgent data", urgent),
            ("a flood of beginnings", flood),
        ],
        SPARE,
    )?;
    // The worst that can be: all that began before makes room for what begins right before us.
    host.pass(OPENING)?;
    beginnings(host, BACKLOG + 64)?;
    let body = host.get("/page-2000", RECOVERY).context("a connection right after the flood")?;
    ensure!(body == page(2000), "the page came wrong");
    Ok(())
}

/// One that has a connection still gets a page over it.
fn still_served(host: &mut Host<'_>, client: &mut Client) -> Result<()> {
    client.ask(host, "/page-1024")?;
    client.expect(host, 0xffff, &page(SMALL), 5.0)
}

fn flags(host: &mut Host<'_>) -> Result<()> {
    let mut client = Client::new(host, 1, 80);
    client.open(host, &[])?;
    for flags in 0..=255_u8 {
        for port in [80, 81] {
            let mut stranger = Client::new(host, 2, port);
            stranger.next.acknowledged = host.random.next() as u32;
            let payload = host.random.bytes(flags as usize % 7);
            stranger.send(host, flags, &payload)?;
        }
        // One that the window has no place for.
        let mut old = client.segment(flags, b"old");
        old.sequence = old.sequence.wrapping_sub(70_000 + u32::from(flags));
        client.send_segment(host, &old)?;
    }
    still_served(host, &mut client)
}

fn options(host: &mut Host<'_>) -> Result<()> {
    for kind in 0..=40_u8 {
        for length in [0, 1, 2, 3, 4, 5, 9, 10, 11, 34, 40, 255] {
            let mut client = Client::new(host, 3, 80);
            let mut bytes = host.random.bytes(8 + 4 * (usize::from(kind) % 8));
            (bytes[0], bytes[1]) = (kind, length);
            client.next.options = bytes;
            client.send(host, SYN, b"")?;
        }
    }
    // A header that is longer than the segment, or shorter than a header.
    for words in 0..16_u8 {
        let client = Client::new(host, 3, 80);
        let mut frame = client.segment(SYN, b"").frame(client.address);
        frame[46] = words << 4;
        host.inject([frame])?;
    }
    Ok(())
}

/// A sender that does not see the connection can neither end it nor say anything in it.
fn guesses(host: &mut Host<'_>) -> Result<()> {
    let mut client = Client::new(host, 4, 80);
    let first = client.open(host, &[])?;
    for round in 0..400_u32 {
        // Half of all numbers lie in front of the window, at least 100,000 from it.
        let far = 100_000 + host.random.below((1 << 31) - 200_000) as u32;
        let sequence = client.next.sequence;
        let mut guess = client.segment([RST, RST | ACK, ACK | PSH, FIN | ACK, SYN][round as usize % 5], b"");
        guess.sequence = if round % 2 == 0 { sequence.wrapping_add(far) } else { sequence.wrapping_sub(far) };
        if guess.flags & PSH != 0 {
            guess.payload = b"GET /nothing HTTP/1.1\r\n\r\n".to_vec();
        }
        client.send_segment(host, &guess)?;
        // In the window, but acknowledging what was never sent.
        let mut ahead = client.segment(ACK, b"");
        ahead.acknowledged = first.sequence.wrapping_add(2 + far);
        client.send_segment(host, &ahead)?;
    }
    // One that wants to begin again in the middle of the window (RFC 5961, 4).
    let mut again = client.segment(SYN, b"");
    again.sequence = again.sequence.wrapping_add(100);
    client.send_segment(host, &again)?;
    client.receive(host, 0xffff)?;
    ensure!(!client.reset, "a guess outside the window has ended the connection");
    still_served(host, &mut client)
}

/// Numbers near the right ones, in connections in all states; harm to these is their own fault.
fn around(host: &mut Host<'_>) -> Result<()> {
    for round in 0..60_u8 {
        let mut client = Client::new(host, 7, 80);
        let first = client.open(host, &[[2, 4, 5, 180, 3, 3, 7, 4, 2, 1, 1, 1], [1; 12]][usize::from(round % 2)])?;
        match round % 4 {
            0 => {}
            1 => client.ask(host, "/page-100000")?,
            2 => client.send(host, ACK | FIN, b"")?,
            _ => client.send(host, ACK | PSH, b"GET /page-1024 HTTP/1.1\r\nHost:")?,
        }
        for _ in 0..25 {
            let near = |host: &mut Host<'_>, number: u32| {
                let distances = [0, 1, 2, 100, 1460, 4096, 65_535, 1 << 31];
                let distance: u32 = distances[host.random.below(8) as usize];
                if host.random.below(2) == 0 { number.wrapping_add(distance) } else { number.wrapping_sub(distance) }
            };
            let flags = host.random.next() as u8 & !RST | if host.random.below(4) == 0 { 0 } else { ACK };
            let length = [0, 0, 1, 7, 100, 1400][host.random.below(6) as usize];
            let payload = host.random.bytes(length);
            let mut segment = client.segment(flags, &payload);
            segment.sequence = near(host, client.next.sequence);
            segment.acknowledged = near(host, first.sequence.wrapping_add(1));
            segment.window = [0, 1, 1000, 0xffff][host.random.below(4) as usize];
            if host.random.below(3) == 0 {
                // Ranges that were taken already (RFC 2018), as many as there is room for, and times.
                segment.options = [&[1, 1, 5, 26][..], &host.random.bytes(24)].concat();
            } else if host.random.below(3) == 0 {
                segment.options = [&[1, 1, 8, 10][..], &host.random.bytes(8)].concat();
            }
            client.send_segment(host, &segment)?;
        }
        client.take(host);
        client.send(host, RST, b"")?;
    }
    Ok(())
}

/// Each is answered once at most.
fn storm(host: &mut Host<'_>) -> Result<()> {
    let mut client = Client::new(host, 5, 80);
    client.open(host, &[])?;
    host.pass(0.1)?;
    client.take(host);
    let mut count = 0;
    for round in 0..1500_u32 {
        let mut segment = client.segment(ACK, b"");
        match round % 3 {
            0 => {}
            1 => segment.acknowledged = segment.acknowledged.wrapping_sub(round),
            _ => segment.sequence = segment.sequence.wrapping_sub(1),
        }
        client.send_segment(host, &segment)?;
        count += 1;
    }
    host.pass(0.2)?;
    let answers = client.take(host).len();
    ensure!(answers <= count, "{count} acknowledgements brought {answers} answers");
    still_served(host, &mut client)?;
    // Nobody's: all are refused, none more than once.
    let stranger = Client::new(host, 6, 80);
    for _ in 0..500 {
        let mut segment = stranger.segment(ACK, b"");
        segment.acknowledged = host.random.next() as u32;
        stranger.send_segment(host, &segment)?;
    }
    host.pass(0.2)?;
    let answers = stranger.take(host);
    ensure!(answers.len() <= 500, "500 acknowledgements brought {} answers", answers.len());
    match answers.iter().find(|segment| segment.flags & RST == 0) {
        Some(segment) => bail!("nobody's segment is answered by {segment:?}"),
        None => Ok(()),
    }
}

/// Some ask for much and take nothing; others are served meanwhile; a client that takes it in the end gets it whole.
fn zero_windows(host: &mut Host<'_>) -> Result<()> {
    let mut misers = Vec::new();
    for number in 0..MISERS {
        let mut miser = Client::new(host, 10 + number, 80);
        miser.open(host, &[])?;
        miser.next.window = 0;
        miser.ask(host, "/page-100000")?;
        misers.push(miser);
    }
    host.pass(0.5)?;
    for miser in &mut misers {
        miser.receive(host, 0)?;
        ensure!(miser.came.len() <= 1, "{} bytes came into a window of none", miser.came.len());
    }
    for _ in 0..5 {
        let body = host.get("/page-20000", RECOVERY).context("while others take nothing")?;
        ensure!(body == page(20_000), "the page came wrong");
    }
    for miser in misers.iter_mut().take(2) {
        // The window opens.
        miser.next.window = 0xffff;
        miser.send(host, ACK, b"")?;
        miser.expect(host, 0xffff, &page(LARGE), 8.0).context("after the window opened")?;
    }
    for miser in misers.iter_mut().skip(2) {
        miser.send(host, RST, b"")?;
    }
    Ok(())
}

fn narrow(host: &mut Host<'_>) -> Result<()> {
    let mss = |bytes: u16| [&[2, 4][..], &bytes.to_be_bytes()].concat();
    for (number, (options, window)) in
        [(mss(1460), 16), (mss(8), 0xffff), (mss(1), 64), (mss(0), 0xffff), (mss(0xffff), 0xffff)]
            .into_iter()
            .enumerate()
    {
        let context = || format!("options {options:?}, window {window}");
        let mut client = Client::new(host, 50 + number as u8, 80);
        client.next.window = window;
        if let Err(error) = client.open(host, &options) {
            // A machine may refuse to serve segments of no bytes; it may not do anything else.
            if options == mss(0) {
                continue;
            }
            return Err(error).with_context(context);
        }
        client.ask(host, "/page-1024")?;
        client.expect(host, window, &page(SMALL), 10.0).with_context(context)?;
    }
    Ok(())
}

/// It is data like any other (RFC 6093, 6).
fn urgent(host: &mut Host<'_>) -> Result<()> {
    let mut client = Client::new(host, 60, 80);
    client.open(host, &[])?;
    let request = b"GET /page-1024 HTTP/1.1\r\nHost: cairn\r\nConnection: close\r\n\r\n";
    for (number, piece) in request.chunks(9).enumerate() {
        client.next.urgent = [1, 9, 0, 0xffff][number % 4];
        client.send(host, ACK | URG | PSH, piece)?;
    }
    client.next.urgent = 0;
    client.expect(host, 0xffff, &page(SMALL), 5.0)
}

fn flood(host: &mut Host<'_>) -> Result<()> {
    beginnings(host, FLOOD)
}

/// Beginnings from many addresses that go on with nothing.
fn beginnings(host: &mut Host<'_>, count: usize) -> Result<()> {
    host.seen = None;
    for number in 0..count {
        let source = Ipv4Addr::from(0xc612_0000 | host.random.below(1 << 17) as u32);
        let segment = Segment {
            from: 1024 + number as u16 % 60_000,
            to: 80,
            sequence: host.random.next() as u32,
            acknowledged: 0,
            flags: SYN,
            window: 8000,
            urgent: 0,
            options: vec![2, 4, 5, 180],
            payload: Vec::new(),
        };
        let packet = segment.bytes(source.into(), MACHINE.into());
        host.inject([Four::new(source, TCP).frame(&packet)])?;
    }
    Ok(())
}
