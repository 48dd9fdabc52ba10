//! Clients that take an answer or send a request slowly: they are given up in their time, and others are served
//! meanwhile.

use super::client::{Client, request};
use super::site::Site;
use crate::emulator::Watch;
use anyhow::{Context, Result, bail, ensure};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Times that a slow reader asks for the largest file, in one piece: some fifty megabytes. Buffers of this computer on the way grow to
/// ten, and then a client that was given up still finds so much there.
const GREED: usize = 2000;
/// Clients of each kind.
const SLOW: usize = 4;
/// How long the server takes parts of a request, and how long it waits for an answer to be taken.
const REQUEST: Duration = Duration::from_secs(10);
const PROGRESS: Duration = Duration::from_secs(20);
/// How much later it may notice.
const LATE: Duration = Duration::from_secs(5);
/// Between two bytes.
const PAUSE: Duration = Duration::from_millis(300);
/// How long anybody else waits for a page.
const PATIENCE: Duration = Duration::from_secs(2);

/// Both kinds at the same time, and somebody else.
pub fn slow(site: &Site, _: &Watch) -> Result<Vec<String>> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..SLOW).map(|_| scope.spawn(|| reader(site))).collect();
        let writers: Vec<_> = (0..SLOW).map(|_| scope.spawn(|| writer(site))).collect();
        let others = scope.spawn(|| others(site, &over));
        let mut outcomes = Vec::new();
        for (kind, threads) in [("a slow reader", readers), ("a slow writer", writers)] {
            for thread in threads {
                outcomes.push(thread.join().unwrap_or_else(|_| bail!("a panic")).context(kind));
            }
        }
        over.store(true, Ordering::Relaxed);
        let pages = others.join().unwrap_or_else(|_| bail!("a panic")).context("somebody else meanwhile")?;
        outcomes.into_iter().collect::<Result<Vec<()>>>()?;
        Ok(vec![
            format!("{pages} pages meanwhile"),
            format!("{SLOW} slow readers given up, {SLOW} slow writers notified, others served meanwhile"),
        ])
    })
}

/// Asks for more than all buffers on the way hold, and takes a byte now and then: the connection is broken off before
/// it has all.
fn reader(site: &Site) -> Result<()> {
    let (path, file) = site.files.iter().max_by_key(|(_, file)| file.len()).context("a site without files")?;
    let mut client = Client::connect(site.port)?;
    client.send(request("GET", path, "").repeat(GREED).as_bytes())?;
    let start = Instant::now();
    while start.elapsed() < PROGRESS + LATE {
        client.more_into(&mut [0], Instant::now() + PATIENCE)?;
        thread::sleep(PAUSE);
    }
    // The bytes on the way still come, and then the end: all of it would come from a server that gave nobody up.
    let mut bytes = vec![0; 1 << 16];
    let outcome = loop {
        match client.more_into(&mut bytes, Instant::now() + PATIENCE) {
            Ok(true) => {}
            outcome => break outcome,
        }
    };
    ensure!(client.waiting() < GREED * file.len(), "all that was asked for came");
    match outcome {
        Err(error) if !error.to_string().starts_with("the connection broke") => {
            Err(error).context("the connection is still there")
        }
        _ => Ok(()),
    }
}

/// Sends a byte now and then: after a while the answer says that this takes too long.
fn writer(site: &Site) -> Result<()> {
    // The server's time begins when it takes the connection.
    let start = Instant::now();
    let mut client = Client::connect(site.port)?;
    let endless = b"GET / HTTP/1.1\r\nHost: localhost\r\nA: ".iter().chain(std::iter::repeat(&b'b'));
    for byte in endless {
        // After the end nothing is taken any more; earlier answers can still be read.
        if client.send(&[*byte]).is_err() || start.elapsed() > REQUEST + LATE {
            break;
        }
        if client.more(Instant::now() + PAUSE).is_ok() {
            break;
        }
    }
    let took = start.elapsed();
    let answer = client.answer(Instant::now() + PATIENCE, false)?;
    ensure!(answer.status == 408, "the status is {}", answer.status);
    // Its clock and ours may differ by a hundredth.
    ensure!(took >= REQUEST - REQUEST / 100 && took < REQUEST + LATE, "after {} ms", took.as_millis());
    Ok(())
}

/// Pages, as long as there are slow ones.
fn others(site: &Site, over: &AtomicBool) -> Result<usize> {
    let mut pages = 0;
    while !over.load(Ordering::Relaxed) {
        Client::connect(site.port)?.get("/", site.index(), "", Instant::now() + PATIENCE)?;
        pages += 1;
        thread::sleep(Duration::from_millis(20));
    }
    Ok(pages)
}
