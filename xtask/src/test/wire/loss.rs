//! Pages over a wire that loses, doubles and reorders frames.

use super::frames::{MACHINE, MACHINE_SIX};
use super::host::{Fetch, Host};
use super::link::Faults;
use super::pages::{PAGES, page};
use anyhow::{Context, Result, bail};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Pages of up to so many bytes come over the worse wire.
const SMALL: usize = 50_000;
const WORSE: Faults = Faults { lost: 10, doubled: 5, late: 15 };
/// Each loss costs a second: the longest page has to come in time.
const BETTER: Faults = Faults { lost: 3, doubled: 5, late: 15 };
/// One page may take so long.
const PATIENCE: Duration = Duration::from_secs(100);
/// So many pages of a run may be asked for again: when the other end is silent for 10 seconds after it closed a connection, the
/// machine gives it up, and four losses of one segment in a row take longer.
const AGAIN: usize = 2;

struct Asked {
    bytes: usize,
    since: Instant,
    fetch: Fetch,
}

/// The scenario.
pub fn run(host: &mut Host<'_>) -> Result<()> {
    let (small, large): (Vec<usize>, Vec<usize>) = PAGES.into_iter().partition(|bytes| *bytes <= SMALL);
    host.set_faults(WORSE);
    all(host, &[small.clone(), small].concat())?;
    let happened = host.link.happened;
    if happened.lost < happened.frames / 20 || happened.doubled == 0 || happened.late == 0 {
        bail!("the wire was too good: {happened:?}");
    }
    host.set_faults(BETTER);
    all(host, &large)?;
    host.set_faults(Faults::default());
    host.get("/page-1024", 10.0).map(drop)
}

/// All these pages at once, over IPv4 and IPv6.
fn all(host: &mut Host<'_>, pages: &[usize]) -> Result<()> {
    let (mut on_the_way, mut complete, mut again) = (Vec::<Asked>::new(), 0, 0);
    let ask = |host: &mut Host<'_>, number: usize, bytes: usize| -> Result<Asked> {
        let from: IpAddr = if number.is_multiple_of(2) { MACHINE.into() } else { MACHINE_SIX.into() };
        let fetch = Fetch::new(host, from, &format!("/page-{bytes}"))?;
        fetch.notice_death(host);
        Ok(Asked { bytes, since: Instant::now(), fetch })
    };
    for (number, bytes) in pages.iter().copied().enumerate() {
        on_the_way.push(ask(host, number, bytes)?);
    }
    while !on_the_way.is_empty() {
        host.pass(0.0)?;
        for place in (0..on_the_way.len()).rev() {
            let asked = &mut on_the_way[place];
            let context = format!("page of {} bytes, {complete} of {} were complete", asked.bytes, pages.len());
            let came = asked.fetch.turn(host);
            if came.is_err() && again < AGAIN {
                let bytes = asked.bytes;
                again += 1;
                std::mem::replace(asked, ask(host, again, bytes)?).fetch.end(host);
                continue;
            }
            let Some(body) = came.context(context.clone())? else {
                if asked.since.elapsed() > PATIENCE {
                    let state = asked.fetch.state(host);
                    bail!("{context}: not there after {} seconds: {state}", PATIENCE.as_secs());
                }
                continue;
            };
            if body != page(asked.bytes) {
                let wrong = body.iter().zip(page(asked.bytes)).position(|(came, sent)| *came != sent);
                bail!("{context}: byte {wrong:?} came wrong");
            }
            on_the_way.swap_remove(place).fetch.end(host);
            complete += 1;
        }
    }
    Ok(())
}
