//! A client of a server in the machine: sends one text over and over, and takes what comes back.

use crate::bench::client::{self, Datagrams, Wire};
use crate::forward::{Forward, Protocol};
use anyhow::{Result, anyhow, bail, ensure};
use std::fmt;
use std::io::ErrorKind;

/// Bytes that are taken at once.
const BLOCK: usize = 65_536;

/// A text that is sent to a port of the machine.
#[derive(Clone, Copy)]
pub struct Sent<'a> {
    /// The port of this computer that leads there.
    pub forward: Forward,
    /// Its bytes.
    pub text: &'a [u8],
}

impl fmt::Display for Sent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Forward { protocol, guest, .. } = self.forward;
        write!(f, "{} bytes to {protocol} port {guest}", self.text.len())
    }
}

/// The bytes that a person wrote with escapes.
pub fn unescaped(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        bytes.push(match rest.next() {
            Some('n') => b'\n',
            Some('r') => b'\r',
            Some('t') => b'\t',
            Some('\\') => b'\\',
            Some('x') => {
                let digits: String = rest.by_ref().take(2).collect();
                let is_hex = digits.len() == 2 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
                ensure!(is_hex, "--send: `\\x{digits}` is no byte: \\x takes two hexadecimal digits");
                u8::from_str_radix(&digits, 16)?
            }
            other => {
                let other = other.map(String::from).unwrap_or_default();
                bail!("--send: `\\{other}` is no escape: there are \\n, \\r, \\t, \\\\ and \\x with two hexadecimal digits")
            }
        });
    }
    ensure!(!bytes.is_empty(), "--send takes a text of at least a byte, as 'hello\\n'");
    Ok(bytes)
}

/// The client's end.
pub struct Peer<'a> {
    sent: Sent<'a>,
    /// Opened with the first text, and again when the server has closed it.
    wire: Option<Box<dyn Wire>>,
}

impl<'a> Peer<'a> {
    /// Nothing is sent yet.
    pub const fn new(sent: Sent<'a>) -> Self {
        Self { sent, wire: None }
    }

    /// Sends the text, and waits for the beginning of the answer; gives its bytes.
    pub fn ask(&mut self) -> Result<usize> {
        let Sent { forward, text } = self.sent;
        let wire = match &mut self.wire {
            Some(wire) => wire,
            none => none.insert(match forward.protocol {
                Protocol::Tcp => Box::new(client::tcp(forward.address())?),
                Protocol::Udp => Box::new(Datagrams::connect(forward.address())?),
            }),
        };
        let mut block = vec![0; BLOCK];
        let count = match wire.write_all(text).and_then(|()| wire.read(&mut block)) {
            Ok(0) => Err(anyhow!("the server closed the connection")),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Err(anyhow!("nothing came back for {} s", client::PATIENCE.as_secs()))
            }
            count => count.map_err(Into::into),
        };
        if count.is_err() {
            self.wire = None;
        }
        count
    }

    /// Takes what else came; gives its bytes.
    pub fn take_rest(&mut self) -> Result<usize> {
        let Some(wire) = &mut self.wire else { return Ok(0) };
        wire.set_waiting(false)?;
        let mut block = vec![0; BLOCK];
        let mut all = 0;
        loop {
            match wire.read(&mut block) {
                Ok(0) => {
                    self.wire = None;
                    return Ok(all);
                }
                Ok(count) => all += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        wire.set_waiting(true)?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, UdpSocket};
    use std::thread;

    #[test]
    fn escapes_are_bytes() {
        assert_eq!(unescaped(r"a\x00\xffä\r\n\t\\").unwrap(), b"a\0\xff\xc3\xa4\r\n\t\\");
        for (bad, cause) in [
            ("", "at least a byte"),
            (r"\q", r"`\q` is no escape"),
            ("\\", r"`\` is no escape"),
            (r"\x1", r"`\x1` is no byte"),
            (r"\x+1", r"`\x+1` is no byte"),
        ] {
            let error = unescaped(bad).unwrap_err().to_string();
            assert!(error.contains(cause), "{bad}: {error}");
        }
    }

    #[test]
    fn a_connection_that_the_server_closes_is_opened_again() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let host = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            for answer in [&b"one"[..], b"", b"four"] {
                let mut stream = listener.accept().unwrap().0;
                stream.read_exact(&mut [0; 4]).unwrap();
                stream.write_all(answer).unwrap();
            }
        });
        let mut peer = Peer::new(Sent { forward: Forward { protocol: Protocol::Tcp, host, guest: 7 }, text: b"text" });
        assert_eq!(peer.ask().unwrap(), 3);
        while peer.wire.is_some() {
            assert_eq!(peer.take_rest().unwrap(), 0);
        }
        assert!(peer.ask().unwrap_err().to_string().contains("closed the connection"));
        assert_eq!(peer.ask().unwrap(), 4);
        server.join().unwrap();
    }

    #[test]
    fn a_datagram_is_answered_or_not() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let host = server.local_addr().unwrap().port();
        let mut peer = Peer::new(Sent { forward: Forward { protocol: Protocol::Udp, host, guest: 7 }, text: b"text" });
        let answers = thread::spawn(move || {
            let from = server.recv_from(&mut [0; 8]).unwrap().1;
            server.send_to(b"one", from).unwrap();
            server.send_to(b"more", from).unwrap();
            server
        });
        assert_eq!(peer.ask().unwrap(), 3);
        let _server = answers.join().unwrap();
        assert_eq!(peer.take_rest().unwrap(), 4);
        assert!(peer.ask().unwrap_err().to_string().contains("nothing came back"));
    }
}
