//! A client of a server in the machine: sends one text over and over, and takes what comes back.

use crate::forward::{Forward, Protocol};
use anyhow::{Result, anyhow, bail, ensure};
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::time::Duration;

/// How long the server may be silent.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes that are taken at once.
const BLOCK: usize = 65_536;

/// A text for a port of the machine.
#[derive(Clone, Copy)]
pub struct Sent<'a> {
    /// The port of this computer that leads there.
    pub forward: Forward,
    /// What is sent.
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
pub enum Peer<'a> {
    /// A connection, opened again when the server has closed it.
    Tcp(Sent<'a>, Option<TcpStream>),
    /// A socket.
    Udp(Sent<'a>, UdpSocket),
}

impl<'a> Peer<'a> {
    /// Nothing is sent yet.
    pub fn new(sent: Sent<'a>) -> Result<Self> {
        if sent.forward.protocol == Protocol::Tcp {
            return Ok(Self::Tcp(sent, None));
        }
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(sent.forward.address())?;
        Ok(Self::Udp(sent, socket))
    }

    /// Sends the text, and waits for the beginning of the answer; gives its bytes.
    pub fn ask(&mut self) -> Result<usize> {
        let mut block = vec![0; BLOCK];
        let count = match self {
            Self::Tcp(sent, stream) => {
                let stream = match stream {
                    Some(stream) => stream,
                    None => stream.insert(TcpStream::connect(sent.forward.address())?),
                };
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.write_all(sent.text).and_then(|()| stream.read(&mut block))
            }
            Self::Udp(sent, socket) => {
                socket.set_read_timeout(Some(PATIENCE))?;
                socket.send(sent.text).and_then(|_| socket.recv(&mut block))
            }
        };
        let count = match count {
            Ok(0) => Err(anyhow!("the server closed the connection")),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Err(anyhow!("nothing came back for {} s", PATIENCE.as_secs()))
            }
            count => count.map_err(Into::into),
        };
        if count.is_err() {
            self.close();
        }
        count
    }

    /// Takes what else came; gives its bytes.
    pub fn take_rest(&mut self) -> Result<usize> {
        let mut block = vec![0; BLOCK];
        let mut all = 0;
        loop {
            let count = match self {
                Self::Tcp(_, None) => return Ok(all),
                Self::Tcp(_, Some(stream)) => {
                    stream.set_nonblocking(true)?;
                    let count = stream.read(&mut block);
                    stream.set_nonblocking(false)?;
                    count
                }
                Self::Udp(_, socket) => {
                    socket.set_nonblocking(true)?;
                    let count = socket.recv(&mut block);
                    socket.set_nonblocking(false)?;
                    count
                }
            };
            match count {
                Ok(0) => self.close(),
                Ok(count) => all += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(all),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn close(&mut self) {
        if let Self::Tcp(_, stream) = self {
            *stream = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
