//! Clients of the services that are measured: each takes nothing but the right answer.

use anyhow::{Context, Result, bail, ensure};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// How long an answer may take. A machine that has not booted takes the connection and says nothing.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Most bytes of an answer's head, and of a body.
const MAX_HEAD: u64 = 8192;
const MAX_BODY: usize = 1 << 20;
/// Bytes read at once.
const PIECE: usize = 64 * 1024;

/// A connection that sends small messages at once.
pub fn tcp(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).context("no connection")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends eight bytes and takes the same back.
pub fn echo(stream: &mut (impl Read + Write), number: u64) -> Result<()> {
    let sent = number.to_be_bytes();
    stream.write_all(&sent).context("it cannot be sent")?;
    let mut back = [0; 8];
    stream.read_exact(&mut back).context("it does not come back")?;
    ensure!(back == sent, "{sent:?} came back as {back:?}");
    Ok(())
}

/// Has the machine do something so many times, and waits for its saying so.
pub fn on_behalf(stream: &mut (impl Read + Write), times: u64) -> Result<()> {
    let times = u32::try_from(times).context("too many times")?.to_be_bytes();
    stream.write_all(&times).context("it cannot be asked for")?;
    let mut said = [0; 4];
    stream.read_exact(&mut said).context("it is not done")?;
    ensure!(said == times, "{times:?} were asked for, and {said:?} done");
    Ok(())
}

/// Reads so many KiB.
pub fn skip(stream: &mut impl Read, kib: u64) -> Result<()> {
    let mut left = kib * 1024;
    let mut piece = vec![0; PIECE];
    while left > 0 {
        let most = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match stream.read(&mut piece[..most]).context("nothing comes any more")? {
            0 => bail!("the end comes {left} bytes too early"),
            count => left -= count as u64,
        }
    }
    Ok(())
}

/// A stream that can be asked whether something came.
pub trait Wire: Read + Write {
    /// From now on reading waits for nothing, or for an answer as before.
    fn set_waiting(&self, is_waiting: bool) -> io::Result<()>;
}

impl Wire for TcpStream {
    fn set_waiting(&self, is_waiting: bool) -> io::Result<()> {
        self.set_nonblocking(!is_waiting)
    }
}

impl Wire for Datagrams {
    fn set_waiting(&self, is_waiting: bool) -> io::Result<()> {
        self.0.set_nonblocking(!is_waiting)
    }
}

/// Datagrams to one address, as a stream of which each reading and writing is a datagram.
pub struct Datagrams(UdpSocket);

impl Datagrams {
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(socket))
    }
}

impl Read for Datagrams {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.recv(bytes)
    }
}

impl Write for Datagrams {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A kept connection to a web server.
pub struct Web<S: Read>(BufReader<S>);

impl Web<TcpStream> {
    pub fn connect(address: SocketAddr) -> Result<Self> {
        Ok(Self(BufReader::new(tcp(address)?)))
    }
}

impl<S: Read + Write> Web<S> {
    /// Asks for a file; gives it.
    pub fn get(&mut self, path: &str) -> Result<Vec<u8>> {
        self.ask(path)?;
        self.answer()
    }

    /// Asks for a file, and does not wait.
    pub fn ask(&mut self, path: &str) -> Result<()> {
        let request = format!("GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes()).context("the request cannot be sent")
    }

    /// Waits for the file that was asked for first.
    pub fn answer(&mut self) -> Result<Vec<u8>> {
        let (status, body) = self.any_answer()?;
        ensure!(status.starts_with("HTTP/1.1 200 "), "the answer: it is `{status}`");
        Ok(body)
    }

    /// The same, with its first line: it may say why there is no such file.
    pub fn any_answer(&mut self) -> Result<(String, Vec<u8>)> {
        let (status, length) = head(&mut (&mut self.0).take(MAX_HEAD)).context("the answer")?;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).context("the page is cut off")?;
        Ok((status, body))
    }
}

/// Reads the head of an answer; gives its first line, and the length of its body in bytes.
fn head(head: &mut impl BufRead) -> Result<(String, usize)> {
    let mut line = || {
        let mut line = String::new();
        head.read_line(&mut line)?;
        line.strip_suffix("\r\n").map(String::from).context("its head is cut off")
    };
    let status = line()?;
    ensure!(status.starts_with("HTTP/1.1 "), "it is `{status}`");
    let mut length = None;
    loop {
        let field = line()?;
        if field.is_empty() {
            break;
        }
        let Some((name, value)) = field.split_once(':') else { bail!("it has the field `{field}`") };
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse().with_context(|| format!("its length is `{}`", value.trim()))?);
        }
    }
    let length = length.context("it has no Content-Length")?;
    ensure!(length <= MAX_BODY, "it is {length} bytes long");
    Ok((status, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads what is given, keeps what is written.
    struct Peer<'a>(&'a [u8], Vec<u8>);

    impl Read for Peer<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.0.read(bytes)
        }
    }

    impl Write for Peer<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn get(answer: &str) -> Result<Vec<u8>> {
        Web(BufReader::new(Peer(answer.as_bytes(), Vec::new()))).get("a")
    }

    #[test]
    fn pages_are_read_one_after_the_other() {
        let answers = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nServer: x\r\n\r\noneHTTP/1.1 200 OK\r\nContent-Length:3\r\n\r\ntwo";
        let mut web = Web(BufReader::new(Peer(answers.as_bytes(), Vec::new())));
        assert_eq!(web.get("a").unwrap(), b"one");
        assert_eq!(web.get("b").unwrap(), b"two");
        let asked = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\nGET /b HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert_eq!(web.0.into_inner().1, asked.as_bytes());
    }

    #[test]
    fn anything_else_is_refused_with_its_cause() {
        for (answer, cause) in [
            ("", "cut off"),
            ("HTTP/1.1 200 OK\r\nContent-Le", "cut off"),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404"),
            ("HTTP/1.1 200 OK\r\n\r\n", "no Content-Length"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "`-1`"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "99999999"),
            ("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "nonsense"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "cut off"),
        ] {
            let error = format!("{:#}", get(answer).unwrap_err());
            assert!(error.contains(cause), "{answer:?}: {error}");
        }
    }

    #[test]
    fn only_what_was_sent_is_an_echo() {
        let mut peer = Peer(&[0, 0, 0, 0, 0, 0, 1, 2, 9, 9], Vec::new());
        echo(&mut peer, 0x102).unwrap();
        assert_eq!(peer.1, [0, 0, 0, 0, 0, 0, 1, 2]);
        assert!(echo(&mut peer, 0x102).unwrap_err().to_string().contains("back"));
        assert!(echo(&mut Peer(&[0; 8], Vec::new()), 1).is_err());
    }

    #[test]
    fn a_source_that_ends_is_an_error() {
        let bytes = vec![0; 3 * 1024 + 1];
        let mut source = bytes.as_slice();
        skip(&mut source, 3).unwrap();
        assert!(skip(&mut source, 1).unwrap_err().to_string().contains("1023 bytes"));
    }
}
