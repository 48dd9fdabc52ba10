//! A client of TCP made by hand, one segment after the other, with an address of its own behind the router.

use super::frames::{ACK, PSH, SYN, Segment};
use super::host::Host;
use anyhow::{Context, Result, bail};
use std::net::Ipv4Addr;

/// See the module.
pub struct Client {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its next segment, without flags and payload.
    pub next: Segment,
    /// The bytes that came in order.
    pub came: Vec<u8>,
    /// The machine has said all.
    pub finished: bool,
    /// The machine has reset it.
    pub reset: bool,
}

impl Client {
    /// One that has not said anything.
    pub fn new(host: &mut Host<'_>, last: u8, to: u16) -> Self {
        let next = Segment {
            from: host.port(),
            to,
            sequence: host.random.next() as u32,
            acknowledged: 0,
            flags: 0,
            window: 0xffff,
            urgent: 0,
            options: Vec::new(),
            payload: Vec::new(),
        };
        let address = Ipv4Addr::new(198, 51, 100, last);
        Self { address, next, came: Vec::new(), finished: false, reset: false }
    }

    /// The segment that comes next, with these flags.
    pub fn segment(&self, flags: u8, payload: &[u8]) -> Segment {
        Segment { flags, payload: payload.into(), ..self.next.clone() }
    }

    /// Sends a segment as it is.
    pub fn send_segment(&self, host: &mut Host<'_>, segment: &Segment) -> Result<()> {
        host.inject([segment.frame(self.address)])
    }

    /// Sends the next segment.
    pub fn send(&mut self, host: &mut Host<'_>, flags: u8, payload: &[u8]) -> Result<()> {
        let segment = self.segment(flags, payload);
        self.next.sequence = self.next.sequence.wrapping_add(payload.len() as u32 + u32::from(flags & 3 != 0));
        self.send_segment(host, &segment)
    }

    /// Opens the connection; gives the machine's first segment.
    pub fn open(&mut self, host: &mut Host<'_>, options: &[u8]) -> Result<Segment> {
        host.seen.get_or_insert_default();
        self.next.options = options.into();
        self.send(host, SYN, b"")?;
        self.next.options.clear();
        let answer = self.wait(host, 4.0, |segment| segment.flags & (SYN | ACK) == SYN | ACK).context("no SYN, ACK")?;
        if answer.acknowledged != self.next.sequence {
            bail!("the SYN was {:x}, the answer is for {:x}", self.next.sequence, answer.acknowledged);
        }
        self.next.acknowledged = answer.sequence.wrapping_add(1);
        self.send(host, ACK, b"")?;
        Ok(answer)
    }

    /// Segments that came for it and were not taken yet; those of others stay.
    pub fn take(&self, host: &mut Host<'_>) -> Vec<Segment> {
        let mut mine = Vec::new();
        let (address, port) = (self.address, self.next.from);
        host.seen.get_or_insert_default().retain(|frame| match Segment::read(frame) {
            Some((to, segment)) if to == address && segment.to == port => {
                mine.push(segment);
                false
            }
            _ => true,
        });
        mine
    }

    /// Waits for a segment.
    pub fn wait(&self, host: &mut Host<'_>, seconds: f64, wanted: impl Fn(&Segment) -> bool) -> Result<Segment> {
        host.until(seconds, |host| Ok(self.take(host).into_iter().find(|segment| wanted(segment))))
    }

    /// Takes what came and acknowledges it, in a window of so many bytes.
    pub fn receive(&mut self, host: &mut Host<'_>, window: u16) -> Result<()> {
        let mut news = false;
        for segment in self.take(host) {
            self.reset |= segment.flags & super::frames::RST != 0;
            if segment.payload.is_empty() && segment.flags & 1 == 0 {
                continue;
            }
            news = true;
            if segment.sequence != self.next.acknowledged || self.finished {
                continue;
            }
            self.came.extend(&segment.payload);
            self.next.acknowledged = self.next.acknowledged.wrapping_add(segment.payload.len() as u32);
            if segment.flags & 1 != 0 {
                self.finished = true;
                self.next.acknowledged = self.next.acknowledged.wrapping_add(1);
            }
        }
        self.next.window = window;
        if news { self.send(host, ACK, b"") } else { Ok(()) }
    }

    /// Asks for a page, on a connection that ends with it.
    pub fn ask(&mut self, host: &mut Host<'_>, path: &str) -> Result<()> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: cairn\r\nConnection: close\r\n\r\n");
        self.send(host, ACK | PSH, request.as_bytes())
    }

    /// Takes the whole answer, in a window of so many bytes; its body must be this.
    pub fn expect(&mut self, host: &mut Host<'_>, window: u16, body: &[u8], seconds: f64) -> Result<()> {
        let result = host.until(seconds, |host| {
            self.receive(host, window)?;
            Ok((self.finished || self.reset).then_some(()))
        });
        result.with_context(|| format!("{} bytes came", self.came.len()))?;
        if !self.came.starts_with(b"HTTP/1.1 200 ") || !self.came.ends_with(body) {
            bail!("the page came wrong: {} bytes, reset: {}", self.came.len(), self.reset);
        }
        Ok(())
    }
}
