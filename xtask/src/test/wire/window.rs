//! A client that sends much to a program that takes it from one page, late and a little at a time. The client has no timers: it never
//! asks whether there is room. So each byte arrives only if the machine reports the room by itself.

use super::frames::{ACK, FIN, RST};
use super::host::Host;
use super::raw::Client;
use anyhow::{Context, Result, ensure};

/// Bytes that are sent.
const BYTES: usize = 64 << 10;
/// Bytes of a full segment.
const SEGMENT: usize = 1460;
/// Bytes of the buffer.
const PAGE: usize = 4096;
/// The port that takes what comes (RFC 863).
const SINK: u16 = 9;
/// Nothing moved so long: the machine waits for the client. Its own question whether the client is there comes later.
const STUCK_SECONDS: f64 = 10.0;

/// Which segments the client sends.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Segments {
    /// Whole ones and the last, as most senders do (RFC 9293, 3.8.6.2.1).
    Whole,
    /// All that fits into the window.
    Fitting,
}

/// The scenario.
pub fn run(host: &mut Host<'_>) -> Result<()> {
    let from = host.begin("negtest --net-sip &")?;
    host.shows(from, "sip: port 9", 5.0)?;
    for (last, segments) in [(110, Segments::Whole), (111, Segments::Fitting)] {
        send(host, last, segments).with_context(|| format!("{segments:?} segments"))?;
    }
    Ok(())
}

fn send(host: &mut Host<'_>, last: u8, segments: Segments) -> Result<()> {
    let mut client = Client::new(host, last, SINK);
    let window = usize::from(client.open(host, &[])?.window);
    ensure!(window <= PAGE, "the window is {window} bytes: more than one page");
    let start = client.next.sequence;
    // Bytes that were sent; that the machine has room for; that it has acknowledged.
    let (mut sent, mut room, mut acknowledged) = (0, window, 0);
    let (mut data, mut answers) = (0, 0);
    while acknowledged < BYTES {
        loop {
            let next = SEGMENT.min(BYTES - sent);
            let fits = next.min(room - sent);
            if fits == 0 || segments == Segments::Whole && fits < next {
                break;
            }
            client.send(host, ACK, &[b'x'; SEGMENT][..fits])?;
            sent += fits;
            data += 1;
        }
        let news = host.until(STUCK_SECONDS, |host| {
            let news = client.take(host);
            Ok((!news.is_empty()).then_some(news))
        });
        let news = news.with_context(|| {
            format!("{sent} bytes were sent, {acknowledged} acknowledged, there is room for {}", room - sent)
        })?;
        for answer in news {
            ensure!(answer.flags & (RST | FIN) == 0, "the connection ends: {answer:?}");
            acknowledged = answer.acknowledged.wrapping_sub(start) as usize;
            room = room.max(acknowledged + usize::from(answer.window));
            answers += 1;
        }
    }
    println!("{segments:?}: {data} segments for {BYTES} bytes, {answers} answers");
    client.send(host, FIN | ACK, b"")?;
    client.wait(host, 5.0, |answer| answer.flags & FIN != 0).context("the program does not end")?;
    Ok(())
}
