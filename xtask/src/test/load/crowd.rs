//! Many connections: at the same time, and one after the other.

use super::client::{Client, request};
use super::site::Site;
use crate::emulator::Watch;
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// How long one page may take while all ask.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often a connected client asks while the others connect: the server closes a connection that says nothing for a
/// minute, and a slow computer takes longer for all of them.
const QUIET: Duration = Duration::from_secs(20);

/// So many connections are open at once; each gets a page, and when all have theirs, another one.
pub fn crowd(site: &Site, watch: &Watch, connections: usize) -> Result<Vec<String>> {
    let start = Instant::now();
    let mut clients = Vec::with_capacity(connections);
    let mut asked = start;
    for number in 0..connections {
        clients.push(Client::connect(site.port).with_context(|| format!("connection {number}"))?);
        if asked.elapsed() > QUIET {
            pages(site, watch, &mut clients)?;
            asked = Instant::now();
        }
    }
    let open = start.elapsed();
    for round in 1..=2 {
        let round = || format!("round {round}, all opened within {} ms", open.as_millis());
        pages(site, watch, &mut clients).with_context(round)?;
    }
    Ok(vec![
        format!("opened in {} ms, served after {} ms", open.as_millis(), start.elapsed().as_millis()),
        format!("{connections} connections at once, {} pages", 2 * connections),
    ])
}

/// All ask for a page, and then each gets its own.
fn pages(site: &Site, watch: &Watch, clients: &mut [Client]) -> Result<()> {
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(request("GET", "/", "").as_bytes()).with_context(|| format!("connection {number}"))?;
    }
    let until = watch.until.min(Instant::now() + PATIENCE);
    for (number, client) in clients.iter_mut().enumerate() {
        client.expect(site.index(), until).with_context(|| format!("the page of connection {number}"))?;
    }
    Ok(())
}

/// So many connections are opened and closed at once; a part of them says something before. Then a page still comes.
pub fn floods(site: &Site, watch: &Watch, connections: usize) -> Result<Vec<String>> {
    for number in 0..connections {
        let mut client = Client::connect(site.port).with_context(|| format!("connection {number}"))?;
        let said: &[u8] = match number % 4 {
            0 => b"",
            1 => b"GET / HTTP/1.1\r\nHo",
            2 => b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            _ => b"\x00\xff\x16\x03\r\n\r\n",
        };
        client.send(said)?;
        // Its end follows at once; of an answer nothing is read.
        drop(client);
    }
    let start = Instant::now();
    let until = watch.until.min(start + PATIENCE);
    Client::connect(site.port)?.get("/", site.index(), "", until).context("the page afterwards")?;
    Ok(vec![
        format!("a page {} ms after the flood", start.elapsed().as_millis()),
        format!("{connections} connections opened and closed at once, and a page afterwards"),
    ])
}
