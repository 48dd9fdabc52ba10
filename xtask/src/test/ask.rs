//! Clients of servers in the machine: connections from this computer, what they send, and what comes back.

use crate::emulator::{Watch, Work};
use crate::forward::{Forward, Protocol};
use crate::image::Image;
use anyhow::{Context, Result, bail};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Between two attempts to reach a server that is not there yet, and how long a read waits before it looks at the time.
const PAUSE: Duration = Duration::from_millis(50);

/// `ask = { … }`, or `ask = [{ … }, …]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Asks {
    /// One client.
    One(Ask),
    /// One after the other. Connections with a name stay open to the last of them.
    Many(Vec<Ask>),
}

/// `{ port = 7, as = "name", send = "…", until = "regex" }`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The server's port in the machine. Without it, the connection of this name is used again.
    port: Option<u16>,
    /// A name for the connection, which stays open.
    #[serde(rename = "as")]
    name: Option<String>,
    /// The text to send.
    #[serde(default)]
    send: String,
    /// It is over when what came matches this, in which `^` and `$` are of lines. Without it, sending ends at once, and the server closes the connection.
    until: Option<String>,
}

/// One that can be done.
struct Client {
    /// The name in the lines of output.
    name: String,
    /// The connection stays open.
    is_kept: bool,
    /// Where a new connection leads to.
    forward: Option<Forward>,
    send: String,
    until: Option<Regex>,
}

/// The work of a step that asks; the image gets ports of this computer that lead to the servers. Each line that comes becomes a line of the
/// output, `asked PORT: LINE`, or `asked NAME: LINE`.
pub fn work(image: &mut Image, asks: &Asks) -> Result<Work> {
    let asks = match asks {
        Asks::One(ask) => std::slice::from_ref(ask),
        Asks::Many(asks) => asks,
    };
    let forwards = image.forwards.as_mut().context("`ask`, but the system has no network")?;
    let clients = clients(asks, |port| {
        let leads_there = |forward: &&Forward| forward.protocol == Protocol::Tcp && forward.guest == port;
        if let Some(forward) = forwards.iter().find(leads_there) {
            return Ok(*forward);
        }
        let forward = Forward::any(Protocol::Tcp, port)?;
        forwards.push(forward);
        Ok(forward)
    })?;
    Ok(Work(Arc::new(move |watch: &Watch| {
        let mut open: Vec<(&str, TcpStream)> = Vec::new();
        let mut lines = String::from("\n");
        for client in &clients {
            // Half of what is left, so that a report can name the client that waited in vain.
            let now = Instant::now();
            let limit = now + watch.until.saturating_duration_since(now) / 2;
            let came = match client.forward {
                Some(forward) => client.connect(&forward, limit).map(|(stream, came)| {
                    open.extend(client.is_kept.then_some((client.name.as_str(), stream)));
                    came
                }),
                None => {
                    let stream = open.iter_mut().find(|(name, _)| *name == client.name);
                    stream.and_then(|(_, stream)| client.talk(stream, limit).ok())
                }
            };
            let mut reported = String::from_utf8_lossy(&came.unwrap_or_default()).into_owned();
            if reported.is_empty() {
                reported = "no answer came".into();
            } else if let Some(until) = client.until.as_ref().filter(|until| !until.is_match(reported.as_bytes())) {
                reported += &format!("\nnothing came that matches `{until}`");
            }
            reported.lines().for_each(|line| lines += &format!("asked {}: {line}\n", client.name));
        }
        lines
    })))
}

/// Looks whether all of it can be done.
fn clients(asks: &[Ask], mut forward: impl FnMut(u16) -> Result<Forward>) -> Result<Vec<Client>> {
    let mut clients: Vec<Client> = Vec::new();
    for Ask { port, name, send, until } in asks {
        let lines = |until: &str| RegexBuilder::new(until).multi_line(true).crlf(true).build();
        let until = until.as_deref().map(lines).transpose().context("bad `until` of an `ask`")?;
        let is_known =
            name.as_ref().is_some_and(|name| clients.iter().any(|client| client.is_kept && client.name == *name));
        match (port, name) {
            (Some(port), Some(name)) if is_known => bail!("`ask` at port {port}: {name} is connected already"),
            (None, Some(name)) if !is_known => bail!("`ask` as {name}, who is not connected: `port` is missing"),
            (None, None) => bail!("`ask` without `port`"),
            _ => {}
        }
        let (is_kept, forward) = (name.is_some(), port.map(&mut forward).transpose()?);
        let name = name.clone().or(port.map(|port| port.to_string())).unwrap_or_default();
        clients.push(Client { name, is_kept, forward, send: send.clone(), until });
    }
    Ok(clients)
}

impl Client {
    /// Connects, again and again until something comes: the emulator accepts before the server does, and closes when nobody listens.
    fn connect(&self, forward: &Forward, limit: Instant) -> Option<(TcpStream, Vec<u8>)> {
        while Instant::now() < limit {
            if let Ok(mut stream) = TcpStream::connect(forward.address())
                && let Ok(came) = self.talk(&mut stream, limit)
                && !came.is_empty()
            {
                return Some((stream, came));
            }
            thread::sleep(PAUSE);
        }
        None
    }

    /// Sends, and reads what comes back.
    fn talk(&self, stream: &mut TcpStream, limit: Instant) -> Result<Vec<u8>> {
        stream.set_read_timeout(Some(PAUSE))?;
        stream.write_all(self.send.as_bytes())?;
        if self.until.is_none() {
            stream.shutdown(Shutdown::Write)?;
        }
        let (mut came, mut buffer) = (Vec::new(), [0; 4096]);
        while Instant::now() < limit && !self.until.as_ref().is_some_and(|until| until.is_match(&came)) {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => came.extend_from_slice(&buffer[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => break,
            }
        }
        Ok(came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<usize> {
        #[derive(Deserialize)]
        struct Step {
            ask: Asks,
        }
        let asks = match toml::from_str::<Step>(text)?.ask {
            Asks::One(ask) => vec![ask],
            Asks::Many(asks) => asks,
        };
        let clients = clients(&asks, |guest| Ok(Forward { protocol: Protocol::Tcp, host: 1, guest }))?;
        Ok(clients.len())
    }

    #[test]
    fn bad_ask_steps_are_reported() {
        for (text, cause) in [
            ("ask = { send = 'a' }", "`ask` without `port`"),
            ("ask = { as = 'eve' }", "`ask` as eve, who is not connected: `port` is missing"),
            ("ask = [{ port = 7, as = 'eve' }, { port = 7, as = 'eve' }]", "`ask` at port 7: eve is connected already"),
            ("ask = { port = 7, until = '(' }", "bad `until` of an `ask`"),
        ] {
            assert_eq!(checked(text).err().map(|error| error.to_string()).as_deref(), Some(cause), "{text}");
        }
        assert!(checked("ask = { prot = 7 }").is_err());
        assert_eq!(
            checked("ask = [{ port = 7, as = 'eve', until = 'a' }, { port = 7 }, { as = 'eve' }]").ok(),
            Some(3)
        );
    }
}
