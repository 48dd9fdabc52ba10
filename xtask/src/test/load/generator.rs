//! Several clients that ask again and again, on connections that they keep and on new ones.

use super::client::Client;
use super::site::Site;
use crate::emulator::Watch;
use anyhow::{Result, ensure};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Clients that keep their connections, and clients that do not.
const KEEPING: usize = 4;
const RENEWING: usize = 2;
/// Requests on a connection that is kept.
const PER_CONNECTION: usize = 500;
/// Every so manyth request is for one of all files.
const OTHERS: usize = 10;
/// How long a client waits for an answer if something may be away: a time of its own, so that after an outage they do
/// not ask all at once.
pub const IMPATIENT: Duration = Duration::from_millis(300);
const MORE_PATIENCE: Duration = Duration::from_millis(60);
/// If nothing may be.
const PATIENT: Duration = Duration::from_secs(5);
/// Between a failure and the next try.
const PAUSE: Duration = Duration::from_millis(10);

/// When a request began and when it ended.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// When it began.
    pub from: Instant,
    /// When it was answered, or given up.
    pub to: Instant,
}

/// The record of a request.
#[derive(Default)]
pub struct Record {
    /// Requests that were answered with the right bytes.
    pub served: Vec<Span>,
    /// Requests that were not, and why.
    pub failed: Vec<(Span, String)>,
}

/// Asks until `enough` says so of the number of requests that were answered.
pub fn run(site: &Site, until: Instant, patience: Duration, mut enough: impl FnMut(usize) -> bool) -> Record {
    let (over, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    let record = Mutex::new(Record::default());
    thread::scope(|scope| {
        for number in 0..KEEPING + RENEWING {
            let (over, served, record) = (&over, &served, &record);
            scope.spawn(move || {
                let patience = patience + number as u32 * MORE_PATIENCE;
                let per_connection = if number < KEEPING { PER_CONNECTION } else { 1 };
                let own = client(site, over, served, patience, per_connection, number);
                if let Ok(mut record) = record.lock() {
                    record.served.extend(own.served);
                    record.failed.extend(own.failed);
                }
            });
        }
        while !enough(served.load(Ordering::Relaxed)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        over.store(true, Ordering::Relaxed);
    });
    record.into_inner().unwrap_or_default()
}

fn client(
    site: &Site,
    over: &AtomicBool,
    served: &AtomicUsize,
    patience: Duration,
    per_connection: usize,
    number: usize,
) -> Record {
    let mut record = Record::default();
    // Most ask for what stands at `/`, each for another file now and then.
    let mut files = site.files.iter().cycle().skip(number);
    let index = String::from("/");
    let mut count = 0;
    let mut connection: Option<(Client, usize)> = None;
    while !over.load(Ordering::Relaxed) {
        count += 1;
        let file = if count % OTHERS == 0 { files.next() } else { None };
        let (path, expected) = file.map_or((&index, site.index()), |(path, bytes)| (path, bytes));
        let outcome = match connection.take() {
            Some(kept) => Ok(kept),
            None => Client::connect(site.port).map(|client| (client, per_connection)),
        };
        // Taking the connection is the emulator's work; its use, the machine's.
        let from = Instant::now();
        let outcome = outcome.and_then(|(mut client, left)| {
            let fields = if left == 1 { "Connection: close\r\n" } else { "" };
            let answer = client.get(path, expected, fields, from + patience)?;
            if left == 1 {
                client.ended(from + patience)?;
            }
            Ok((client, left, answer.is_kept()))
        });
        let span = Span { from, to: Instant::now() };
        match outcome {
            Ok((client, left, is_kept)) => {
                record.served.push(span);
                served.fetch_add(1, Ordering::Relaxed);
                connection = (is_kept && left > 1).then_some((client, left - 1));
            }
            Err(error) => {
                record.failed.push((span, format!("{path}: {error:#}")));
                thread::sleep(PAUSE);
            }
        }
    }
    record
}

/// So many requests, none of which fails, once the machine is there.
pub fn load(site: &Site, watch: &Watch, requests: usize) -> Result<Vec<String>> {
    super::client::wait(site, watch.until)?;
    let record = run(site, watch.until, PATIENT, |served| served >= requests);
    if let Some((_, cause)) = record.failed.first() {
        anyhow::bail!("{} requests of {}: {cause}", record.failed.len(), record.served.len() + record.failed.len());
    }
    ensure!(record.served.len() >= requests, "{} requests in the time that there is", record.served.len());
    let slowest = record.served.iter().map(|span| span.to - span.from).max().unwrap_or_default();
    Ok(vec![
        format!("the slowest answer took {} ms", slowest.as_millis()),
        format!("{requests} requests, each answered in full"),
    ])
}
