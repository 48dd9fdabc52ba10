//! A request to the machine's web server, from this computer.

use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// How long the other side may be silent.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of the longest answer.
const MAX_BYTES: u64 = 1 << 20;

/// Asks for a path; gives the body of the answer, which must have status 200.
pub fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("no connection")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())?;
    // The end of what we send: a server that keeps connections closes this one then.
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = String::new();
    stream.take(MAX_BYTES).read_to_string(&mut answer).with_context(|| format!("the answer to {path}"))?;
    body(&answer).map(String::from)
}

/// The body of an answer, as long as its head says.
fn body(answer: &str) -> Result<&str> {
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a head")?;
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        bail!("the answer is {status}");
    }
    let length = lines.find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
    });
    match length {
        Some(length) => body.get(..length?).with_context(|| format!("only {} bytes came", body.len())),
        None => Ok(body),
    }
}

#[cfg(test)]
mod tests {
    use super::body;

    #[test]
    fn bodies_are_whole() {
        assert_eq!(body("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab").unwrap(), "ab");
        assert_eq!(body("HTTP/1.1 200 OK\r\n\r\nabc").unwrap(), "abc");
        for bad in [
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nab",
            "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
            "",
            "HTTP/1.1 200 OK\r\n",
        ] {
            assert!(body(bad).is_err(), "{bad:?}");
        }
    }
}
