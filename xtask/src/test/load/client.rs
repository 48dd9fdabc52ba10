//! A connection to the web server, and answers of which every byte is looked at.

use super::site::Site;
use anyhow::{Context, Result, bail, ensure};
use std::error::Error;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Between two beginnings of connections.
const PACE: Duration = Duration::from_micros(1500);
/// Bytes of the longest head of an answer.
const MAX_HEAD: usize = 4096;

/// A connection.
pub struct Client {
    stream: TcpStream,
    /// Bytes that came and belong to no answer yet.
    input: Vec<u8>,
}

/// Nothing came in time: whoever waits may wait on.
#[derive(Debug)]
pub struct Late {
    /// Bytes that came.
    bytes: usize,
}

impl fmt::Display for Late {
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(output, "no answer in time, after {} bytes", self.bytes)
    }
}

impl Error for Late {}

/// An answer.
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Version, as `HTTP/1.1`.
    pub version: String,
    fields: Vec<(String, String)>,
    /// The bytes that follow the head.
    pub body: Vec<u8>,
}

impl Answer {
    /// A header field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Whether another request may follow.
    pub fn is_kept(&self) -> bool {
        self.field("connection").is_none_or(|value| value.eq_ignore_ascii_case("keep-alive"))
    }
}

/// The request for a path.
pub fn request(method: &str, path: &str, fields: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

impl Client {
    /// A new connection. The emulator takes it, whatever the machine does.
    pub fn connect(port: u16) -> Result<Self> {
        // The emulator takes one connection at a time; this computer loses those that come meanwhile for a second.
        static LAST: Mutex<Option<Instant>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = *last {
            thread::sleep(PACE.saturating_sub(last.elapsed()));
        }
        *last = Some(Instant::now());
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("no connection")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, input: Vec::new() })
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).context("it takes nothing more")
    }

    /// No more is sent.
    pub fn finish(&self) -> Result<()> {
        self.stream.shutdown(Shutdown::Write).context("it cannot be ended")
    }

    /// Waits for more bytes; whether some came before the end.
    pub fn more(&mut self, until: Instant) -> Result<bool> {
        let mut bytes = [0; 16384];
        self.more_into(&mut bytes, until)
    }

    /// As [`Self::more`], no more than fit here.
    pub fn more_into(&mut self, bytes: &mut [u8], until: Instant) -> Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        ensure!(!left.is_zero(), Late { bytes: self.input.len() });
        self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match self.stream.read(bytes) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.input.extend_from_slice(&bytes[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                bail!(Late { bytes: self.input.len() })
            }
            Err(error) => Err(error).context("the connection broke"),
        }
    }

    /// Bytes that came and belong to no answer yet.
    pub fn waiting(&self) -> usize {
        self.input.len()
    }

    /// The next answer; that to `HEAD` has no body. If it is [`Late`], the next call goes on with what came.
    pub fn answer(&mut self, until: Instant, is_head: bool) -> Result<Answer> {
        let end = loop {
            if let Some(end) = self.input.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            ensure!(self.input.len() < MAX_HEAD, "an answer's head has no end");
            ensure!(self.more(until)?, "the connection ended in an answer's head, after {} bytes", self.input.len());
        };
        let mut answer = head(std::str::from_utf8(&self.input[..end])?)?;
        let body = end + 4;
        let has_body = !is_head && !matches!(answer.status, 100..=199 | 204 | 304);
        let length = match answer.field("content-length").map(str::parse::<usize>) {
            Some(length) => length.context("a length that is no number")?,
            None => 0,
        };
        if has_body {
            ensure!(answer.field("content-length").is_some(), "an answer without a length");
            while self.input.len() < body + length {
                ensure!(self.more(until)?, "the connection ended after {} bytes of {length}", self.input.len() - body);
            }
            answer.body = self.input.drain(..body + length).skip(body).collect();
        } else {
            self.input.drain(..body);
        }
        Ok(answer)
    }

    /// Asks for a path, and compares the answer.
    pub fn get(&mut self, path: &str, expected: &[u8], fields: &str, until: Instant) -> Result<Answer> {
        self.send(request("GET", path, fields).as_bytes())?;
        self.expect(expected, until)
    }

    /// The next answer is a page that holds this.
    pub fn expect(&mut self, expected: &[u8], until: Instant) -> Result<Answer> {
        let answer = self.answer(until, false)?;
        ensure!(answer.status == 200, "the status is {}", answer.status);
        ensure!(answer.body == expected, "the page is not what the file holds");
        Ok(answer)
    }

    /// Nothing more comes but the end.
    pub fn ended(&mut self, until: Instant) -> Result<()> {
        ensure!(self.input.is_empty(), "{} bytes too many", self.input.len());
        ensure!(!self.more(until)?, "more than was announced");
        Ok(())
    }
}

/// Waits until a page comes: at first, the machine may have no address yet.
pub fn wait(site: &Site, until: Instant) -> Result<()> {
    loop {
        let soon = until.min(Instant::now() + Duration::from_millis(500));
        match Client::connect(site.port).and_then(|mut client| client.get("/", site.index(), "", soon)) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > until => return Err(error.context("nothing was served at all")),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn head(text: &str) -> Result<Answer> {
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut words = first.splitn(3, ' ');
    let version = words.next().unwrap_or_default();
    ensure!(version.starts_with("HTTP/1."), "no answer of HTTP/1: {first}");
    let status = words.next().and_then(|word| word.parse().ok()).with_context(|| format!("no status: {first}"))?;
    let fields = lines.map(|line| {
        let (key, value) = line.split_once(':').with_context(|| format!("no field: {line}"))?;
        Ok((key.to_string(), value.trim().to_string()))
    });
    Ok(Answer { status, version: version.into(), fields: fields.collect::<Result<_>>()?, body: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let answer = head("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nConnection: close").unwrap();
        assert_eq!((answer.status, answer.field("content-length"), answer.is_kept()), (404, Some("3"), false));
        for bad in ["", "HTTP/2 200", "HTTP/1.1", "HTTP/1.1 x y", "HTTP/1.1 200 OK\r\nnothing"] {
            assert!(head(bad).is_err(), "{bad}");
        }
    }

    /// A server that answers one connection with these bytes.
    fn served(bytes: &'static [u8]) -> Client {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = Client::connect(port).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(bytes).unwrap();
        client
    }

    #[test]
    fn a_late_answer_goes_on_where_it_was() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = Client::connect(listener.local_addr().unwrap().port()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        for piece in [&b"HTTP/1.1 200"[..], b" OK\r\nContent-Length: 2\r\n\r\n", b"a"] {
            stream.write_all(piece).unwrap();
            let late = client.expect(b"ab", Instant::now() + Duration::from_millis(50)).err().unwrap();
            assert!(late.is::<Late>(), "{late:#}");
        }
        stream.write_all(b"b").unwrap();
        client.expect(b"ab", Instant::now() + Duration::from_secs(5)).unwrap();
    }

    #[test]
    fn every_byte_is_compared() {
        let soon = || Instant::now() + Duration::from_secs(5);
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nc";
        let mut client = served(whole);
        client.expect(b"ab", soon()).unwrap();
        client.expect(b"c", soon()).unwrap();
        client.ended(soon()).unwrap();
        for bad in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nac"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            b"HTTP/1.1 200 OK\r\n\r\nab",
            b"HTTP/1.1 404 OK\r\nContent-Length: 2\r\n\r\nab",
            b"",
        ] {
            assert!(served(bad).expect(b"ab", soon()).is_err());
        }
        let mut more = served(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab");
        more.expect(b"a", soon()).unwrap();
        assert!(more.ended(soon()).is_err());
    }
}
