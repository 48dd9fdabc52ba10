//! Several clients that ask again and again, on connections that they keep and on new ones.

use super::client::{Client, Late, request};
use super::site::Site;
use crate::emulator::Watch;
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Clients that keep their connections, and clients that do not.
const KEEPING: usize = 4;
const RENEWING: usize = 2;
/// Requests on a connection that is kept.
const PER_CONNECTION: usize = 500;
/// Every so manyth request is for one of all files.
const OTHERS: usize = 10;
/// How long a client waits for an answer if something was away: a time of its own, so that after an outage they do not
/// ask all at once.
const IMPATIENT: Duration = Duration::from_millis(300);
const MORE_PATIENCE: Duration = Duration::from_millis(60);
/// If nothing was.
const PATIENT: Duration = Duration::from_secs(5);
/// A connection that began up to so long after a kill was reported may be lost.
const SETTLED: Duration = Duration::from_secs(1);
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

/// State that the clients share with the thread that ends their work.
#[derive(Default)]
pub struct Progress {
    over: AtomicBool,
    served: AtomicUsize,
    /// When something that serves was last seen to have been away.
    disturbed: Mutex<Option<Instant>>,
}

impl Progress {
    /// Requests that were answered.
    pub fn served(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }

    /// Something that serves was away just now.
    pub fn disturb(&self) {
        *self.disturbed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether a connection of then may be lost.
    fn may_be_lost(&self, connected: Instant) -> bool {
        let disturbed = *self.disturbed.lock().unwrap_or_else(PoisonError::into_inner);
        disturbed.is_some_and(|at| at + SETTLED >= connected)
    }
}

/// Asks until `enough` says so.
pub fn run(site: &Site, until: Instant, mut enough: impl FnMut(&Progress) -> bool) -> Record {
    let progress = Progress::default();
    let record = Mutex::new(Record::default());
    thread::scope(|scope| {
        for number in 0..KEEPING + RENEWING {
            let (progress, record) = (&progress, &record);
            scope.spawn(move || {
                let own = client(site, progress, number);
                if let Ok(mut record) = record.lock() {
                    record.served.extend(own.served);
                    record.failed.extend(own.failed);
                }
            });
        }
        while !enough(&progress) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        progress.over.store(true, Ordering::Relaxed);
    });
    record.into_inner().unwrap_or_default()
}

/// Waits for an answer as long as it makes sense: a computer with much to do answers late, a lost connection never.
fn wait<T>(
    from: Instant,
    patience: Duration,
    is_lost: impl Fn() -> bool,
    mut next: impl FnMut(Instant) -> Result<T>,
) -> Result<T> {
    loop {
        match next(Instant::now() + patience) {
            Err(error) if error.is::<Late>() && from.elapsed() < PATIENT && !is_lost() => {}
            outcome => return outcome,
        }
    }
}

fn client(site: &Site, progress: &Progress, number: usize) -> Record {
    let patience = IMPATIENT + number as u32 * MORE_PATIENCE;
    let per_connection = if number < KEEPING { PER_CONNECTION } else { 1 };
    let mut record = Record::default();
    // Most ask for what stands at `/`, each for another file now and then.
    let mut files = site.files.iter().cycle().skip(number);
    let index = String::from("/");
    let mut count = 0;
    let mut connection: Option<(Client, Instant, usize)> = None;
    while !progress.over.load(Ordering::Relaxed) {
        count += 1;
        let file = if count % OTHERS == 0 { files.next() } else { None };
        let (path, expected) = file.map_or((&index, site.index()), |(path, bytes)| (path, bytes));
        let outcome = match connection.take() {
            Some(kept) => Ok(kept),
            None => Client::connect(site.port).map(|client| (client, Instant::now(), per_connection)),
        };
        // Taking the connection is the emulator's work; its use, the machine's.
        let from = Instant::now();
        let outcome = outcome.and_then(|(mut client, connected, left)| {
            let is_lost = || progress.may_be_lost(connected);
            let fields = if left == 1 { "Connection: close\r\n" } else { "" };
            client.send(request("GET", path, fields).as_bytes())?;
            let answer = wait(from, patience, is_lost, |until| client.expect(expected, until))?;
            if left == 1 {
                wait(from, patience, is_lost, |until| client.ended(until))?;
            }
            Ok((client, connected, left, answer.is_kept()))
        });
        let span = Span { from, to: Instant::now() };
        match outcome {
            Ok((client, connected, left, is_kept)) => {
                record.served.push(span);
                progress.served.fetch_add(1, Ordering::Relaxed);
                connection = (is_kept && left > 1).then_some((client, connected, left - 1));
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
    let record = run(site, watch.until, |progress| progress.served() >= requests);
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
