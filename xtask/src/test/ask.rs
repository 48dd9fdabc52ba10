//! A client of a server in the machine: one connection from this computer, what it sends, and what comes back.

use crate::emulator::{Watch, Work};
use crate::forward::{Forward, Protocol};
use crate::image::Image;
use anyhow::{Context, Result};
use regex::bytes::Regex;
use serde::Deserialize;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Between two attempts to reach a server that is not there yet, and how long a read waits before it looks at the time.
const PAUSE: Duration = Duration::from_millis(50);

/// `ask = { port = 7, send = "…", until = "regex" }`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The server's port in the machine.
    pub port: u16,
    /// The text to send.
    #[serde(default)]
    pub send: String,
    /// The connection is closed when what came matches this. Without it, sending ends at once, and the server closes the connection.
    pub until: Option<String>,
}

/// The work of a step that asks; the image gets a port of this computer that leads to the server. Each line that comes becomes a line of the output,
/// `asked PORT: LINE`.
pub fn work(image: &mut Image, ask: &Ask) -> Result<Work> {
    let until = ask.until.as_deref().map(Regex::new).transpose().context("bad `until`")?;
    let forwards = image.forwards.as_mut().context("`ask`, but the system has no network")?;
    let known = forwards.iter().find(|forward| forward.guest == ask.port).copied();
    let forward = match known {
        Some(forward) => forward,
        None => Forward::any(Protocol::Tcp, ask.port)?,
    };
    if known.is_none() {
        forwards.push(forward);
    }
    let ask = ask.clone();
    Ok(Work(Arc::new(move |watch: &Watch| {
        let Ask { port, send, .. } = &ask;
        // The emulator accepts before the server does, and closes when nobody listens.
        let came = loop {
            let came = answer(&forward, send.as_bytes(), until.as_ref(), watch.until).unwrap_or_default();
            if !came.is_empty() {
                break came;
            }
            if Instant::now() >= watch.until {
                return format!("\nasked {port}: no answer came\n");
            }
            thread::sleep(PAUSE);
        };
        let lines = String::from_utf8_lossy(&came);
        std::iter::once(String::from("\n")).chain(lines.lines().map(|line| format!("asked {port}: {line}\n"))).collect()
    })))
}

/// One connection.
fn answer(forward: &Forward, send: &[u8], until: Option<&Regex>, limit: Instant) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(forward.address())?;
    stream.set_read_timeout(Some(PAUSE))?;
    stream.write_all(send)?;
    if until.is_none() {
        stream.shutdown(Shutdown::Write)?;
    }
    let (mut came, mut buffer) = (Vec::new(), [0; 4096]);
    while Instant::now() < limit && !until.is_some_and(|until| until.is_match(&came)) {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => came.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    Ok(came)
}
