//! How TCP behaves: what an attacker can guess, how connections end.

use super::frames::{ACK, FIN, ROUTER, RST, SYN, Segment};
use super::host::Host;
use super::pages::page;
use super::raw::Client;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Connections whose first numbers are compared.
const SAMPLES: usize = 40;
/// Connections that the machine makes.
const OUTGOING: usize = 12;

/// The scenario.
pub fn run(host: &mut Host<'_>) -> Result<()> {
    first_numbers(host).context("sequence numbers")?;
    outgoing(host).context("the machine's ports")?;
    queries(host).context("queries of names")?;
    refused(host).context("a port that nobody has")?;
    half_closed(host).context("one side has said all")?;
    simultaneous(host).context("both sides end at once")
}

/// Numbers that are all different, with differences that are all different.
fn unlike(numbers: &[u32]) -> Result<()> {
    let distinct: BTreeSet<_> = numbers.iter().collect();
    ensure!(distinct.len() == numbers.len(), "some come twice: {numbers:x?}");
    let steps: Vec<u32> = numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    let distinct: BTreeSet<_> = steps.iter().collect();
    ensure!(distinct.len() == steps.len(), "some steps come twice: {numbers:x?}");
    // Were they 2^16 apart or less, as from a clock, most steps would be small.
    let small = steps.iter().filter(|step| **step < 1 << 24 || **step > u32::MAX - (1 << 24)).count();
    ensure!(small * 4 < steps.len(), "steps are small: {numbers:x?}");
    Ok(())
}

/// The same for numbers of 16 bits, of which one may come twice by chance.
fn unlike_ports(numbers: &[u16]) -> Result<()> {
    let distinct: BTreeSet<_> = numbers.iter().collect();
    ensure!(distinct.len() + 1 >= numbers.len(), "some come twice: {numbers:?}");
    let steps: Vec<u16> = numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    let distinct: BTreeSet<_> = steps.iter().collect();
    ensure!(distinct.len() + 2 >= steps.len(), "steps come again: {numbers:?}");
    let small = steps.iter().filter(|step| **step < 64 || **step > u16::MAX - 64).count();
    ensure!(small * 3 < steps.len(), "steps are small: {numbers:?}");
    Ok(())
}

fn first_numbers(host: &mut Host<'_>) -> Result<()> {
    let mut numbers = Vec::new();
    for _ in 0..SAMPLES {
        let mut client = Client::new(host, 100, 80);
        let answer = client.open(host, &[])?;
        numbers.push(answer.sequence);
        client.send(host, RST, b"")?;
    }
    unlike(&numbers)
}

fn outgoing(host: &mut Host<'_>) -> Result<()> {
    let (mut ports, mut numbers) = (Vec::new(), Vec::new());
    for _ in 0..OUTGOING {
        host.seen = Some(Vec::new());
        let (status, text) = host.shell("nc -n 10.0.2.2 9", 5.0)?;
        ensure!(status == 1 && text.contains("refused"), "nc: status {status}, {text}");
        let seen = host.seen.take().unwrap_or_default();
        let segments = seen.iter().filter_map(|frame| Segment::read(frame));
        let opening = |(to, segment): &(_, Segment)| *to == ROUTER && segment.to == 9 && segment.flags & SYN != 0;
        let (_, first) = segments.into_iter().find(opening).context("no SYN came")?;
        ports.push(first.from);
        numbers.push(first.sequence);
    }
    ensure!(ports.iter().all(|port| *port >= 49152), "ports below the dynamic ones: {ports:?}");
    unlike_ports(&ports)?;
    unlike(&numbers)
}

fn queries(host: &mut Host<'_>) -> Result<()> {
    let (mut ports, mut numbers) = (Vec::new(), Vec::new());
    for _ in 0..OUTGOING {
        host.seen = Some(Vec::new());
        let (status, text) = host.shell("nslookup four.test", 5.0)?;
        ensure!(status == 0, "nslookup: status {status}, {text}");
        let seen = host.seen.take().unwrap_or_default();
        let query = seen.iter().find(|frame| {
            frame.len() > 54 && frame[12..14] == [8, 0] && frame[23] == super::frames::UDP && frame[36..38] == [0, 53]
        });
        let query = query.context("no query came")?;
        ports.push(u16::from_be_bytes([query[34], query[35]]));
        numbers.push(u16::from_be_bytes([query[42], query[43]]));
    }
    unlike_ports(&ports)?;
    unlike_ports(&numbers)
}

/// RFC 9293, 3.10.7.1.
fn refused(host: &mut Host<'_>) -> Result<()> {
    host.seen = Some(Vec::new());
    let mut client = Client::new(host, 101, 81);
    client.send(host, SYN, b"")?;
    let answer = client.wait(host, 3.0, |_| true).context("a SYN is not answered")?;
    ensure!(answer.flags == RST | ACK && answer.acknowledged == client.next.sequence, "SYN: {answer:?}");
    client.next.acknowledged = 77;
    client.send(host, ACK, b"data")?;
    let answer = client.wait(host, 3.0, |_| true).context("data are not answered")?;
    ensure!(answer.flags == RST && answer.sequence == 77, "data: {answer:?}");
    client.send(host, RST, b"")?;
    client.send(host, RST | ACK, b"")?;
    host.pass(0.3)?;
    let answers = client.take(host);
    ensure!(answers.is_empty(), "a reset is answered: {answers:?}");
    Ok(())
}

/// A client that has asked and says no more still gets the whole answer.
fn half_closed(host: &mut Host<'_>) -> Result<()> {
    let mut client = Client::new(host, 102, 80);
    client.open(host, &[])?;
    client.send(host, ACK | FIN, b"GET /page-100000 HTTP/1.1\r\nHost: cairn\r\n\r\n")?;
    let result = host.until(8.0, |host| {
        client.receive(host, 0xffff)?;
        Ok((client.finished || client.reset).then_some(()))
    });
    result.with_context(|| format!("{} bytes came", client.came.len()))?;
    ensure!(client.came.ends_with(&page(100_000)), "{} bytes came, reset: {}", client.came.len(), client.reset);
    Ok(())
}

/// Both have sent their FIN before they see the other's (RFC 9293, figure 13).
fn simultaneous(host: &mut Host<'_>) -> Result<()> {
    let mut client = Client::new(host, 103, 80);
    client.open(host, &[])?;
    client.ask(host, "/page-1024")?;
    let start = Instant::now();
    // All is taken, but its end is not acknowledged.
    let end = loop {
        let segments = host.until(5.0, |host| {
            let segments = client.take(host);
            Ok((!segments.is_empty()).then_some(segments))
        })?;
        for segment in &segments {
            if segment.sequence == client.next.acknowledged {
                client.came.extend(&segment.payload);
                client.next.acknowledged = client.next.acknowledged.wrapping_add(segment.payload.len() as u32);
            }
        }
        match segments.last() {
            Some(last) if last.flags & FIN != 0 => break last.sequence.wrapping_add(last.payload.len() as u32),
            _ if start.elapsed() > Duration::from_secs(8) => bail!("it does not end"),
            _ => client.send(host, ACK, b"")?,
        }
    };
    ensure!(client.came.ends_with(&page(1 << 10)), "the page came wrong");
    client.send(host, FIN | ACK, b"")?;
    let ours = client.next.sequence;
    let answer = client.wait(host, 3.0, |segment| segment.acknowledged == ours).context("our FIN")?;
    ensure!(answer.flags & (ACK | RST) == ACK, "our FIN is answered by {answer:?}");
    // Now theirs is acknowledged: nothing more comes.
    client.next.acknowledged = end.wrapping_add(1);
    client.send(host, ACK, b"")?;
    host.pass(0.2)?;
    client.take(host);
    host.pass(1.6)?;
    let more = client.take(host);
    ensure!(more.is_empty(), "after the end comes {more:?}");
    let (_, text) = host.shell("netstat", 5.0)?;
    let port = format!("198.51.100.103:{}", client.next.from);
    let line = text.lines().find(|line| line.contains(&port)).unwrap_or("time-wait");
    ensure!(line.to_ascii_lowercase().replace('-', "").contains("timewait"), "netstat shows {line}");
    Ok(())
}

/// A connection whose other end is gone ends; one that only says nothing stays.
pub fn idle(host: &mut Host<'_>) -> Result<()> {
    let from = host.begin("nc -l 9001")?;
    host.shows(from, "waiting on port 9001", 5.0)?;
    let mut dead = Client::new(host, 104, 9001);
    dead.open(host, &[])?;
    host.shows(from, "connected with", 5.0)?;
    let start = Instant::now();
    let mut probes = 0;
    let ended = host.until(120.0, |host| {
        let segments = dead.take(host);
        let next = dead.next.acknowledged;
        probes +=
            segments.iter().filter(|one| one.sequence == next.wrapping_sub(1) && one.flags & (SYN | RST) == 0).count();
        Ok((start.elapsed() > Duration::from_secs(100) || segments.iter().any(|one| one.flags & RST != 0))
            .then_some(()))
    });
    ended?;
    ensure!(probes > 0, "nobody asked whether it is still there");
    let (status, text) = host.finish(from, 10.0).context("nc goes on though the other end is gone")?;
    ensure!(status != 0, "nc is content: {text}");
    // One that answers stays for as long.
    let from = host.begin("nc -l 9001")?;
    host.shows(from, "waiting on port 9001", 5.0)?;
    let mut alive = Client::new(host, 105, 9001);
    alive.open(host, &[])?;
    let start = Instant::now();
    host.until(120.0, |host| {
        for segment in alive.take(host) {
            ensure!(segment.flags & (RST | FIN) == 0, "the connection ends: {segment:?}");
            if segment.sequence == alive.next.acknowledged.wrapping_sub(1) {
                alive.send(host, ACK, b"")?;
            }
        }
        Ok((start.elapsed() > Duration::from_secs(100)).then_some(()))
    })?;
    alive.send(host, ACK, b"still here\n")?;
    host.shows(from, "still here", 5.0)?;
    alive.send(host, FIN | ACK, b"")?;
    let (status, text) = host.finish(from, 10.0)?;
    ensure!(status == 0, "nc: status {status}, {text}");
    Ok(())
}
