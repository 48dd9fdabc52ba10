//! Requests while the machine kills what serves them (`chaos --only`): they fail only while one of the victims is
//! away, which is no second.
//!
//! The machine says when it killed on its own clock, and each time prints a line when the victim is alive again. The
//! line that came with the least delay says how that clock and ours fit together.

use super::generator::{self, Record, Span};
use super::site::Site;
use crate::emulator::Watch;
use anyhow::{Context, Result, bail, ensure};
use regex::Regex;
use std::time::{Duration, Instant};

/// The longest time after a kill in which nobody is served.
const LONGEST: Duration = Duration::from_secs(1);
/// Requests after the machine is done.
const AFTERWARDS: usize = 200;
/// How exactly an instant of the machine is known.
const BLUR: Duration = Duration::from_millis(100);

/// A kill, as the machine reports it.
struct Reported {
    victim: String,
    /// On the machine's clock.
    at: Duration,
    alive_after: Duration,
    /// When its line came.
    seen: Instant,
}

/// A kill on our clock.
struct Kill {
    victim: String,
    at: Instant,
    /// When the next instance was seen.
    alive: Instant,
}

/// So many requests at least, until the machine has killed so often and says that it is done.
pub fn kills(site: &Site, watch: &Watch, requests: usize, count: usize) -> Result<Vec<String>> {
    let line = Regex::new(r"chaos: killed (\S+) at (\d+) us, alive after (\d+) us\n")?;
    let mut reported: Vec<Reported> = Vec::new();
    let (start, mut over) = (Instant::now(), None);
    let record = generator::run(site, watch.until, |progress| {
        let printed = watch.printed();
        let seen = Instant::now();
        let time = |text: &str| Duration::from_micros(text.parse().unwrap_or(0));
        for found in line.captures_iter(&printed).skip(reported.len()) {
            let [victim, at, alive_after] = found.extract().1;
            reported.push(Reported { victim: victim.into(), at: time(at), alive_after: time(alive_after), seen });
            progress.disturb();
        }
        // After the last kill it goes on for a while.
        let served = progress.served();
        if over.is_none() && printed.contains("chaos over") {
            over = Some(served);
        }
        over.is_some_and(|over| served >= requests.max(over + AFTERWARDS))
    });
    ensure!(reported.len() == count, "the machine reports {} kills instead of {count}", reported.len());
    ensure!(record.served.len() >= requests, "{} requests in the time that there is", record.served.len());
    let mut lines = judge(&ours(&reported)?, &record)?;
    let rate = record.served.len() as f64 / start.elapsed().as_secs_f64();
    lines.push(format!("{} requests served, {rate:.0} a second", record.served.len()));
    lines.push(format!("{requests} requests and {count} kills, no outage of a second"));
    Ok(lines)
}

/// Kills on our clock, in order.
fn ours(reported: &[Reported]) -> Result<Vec<Kill>> {
    let offsets = reported.iter().map(|kill| kill.seen.checked_sub(kill.at + kill.alive_after));
    let offset = offsets.min().flatten().context("the machine's clock runs ahead of ours")?;
    let kill = |kill: &Reported| {
        let at = offset + kill.at;
        Kill { victim: kill.victim.clone(), at, alive: at + kill.alive_after }
    };
    Ok(reported.iter().map(kill).collect())
}

/// Each request that failed began or was under way within a second of a death; each outage is shorter than that.
fn judge(kills: &[Kill], record: &Record) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut outages: Vec<Span> = Vec::new();
    for (number, kill) in kills.iter().enumerate() {
        // The first request that was served by the next instance says that it is over, at the latest; the longest time
        // without an answer, since what the one before had answered may still be on its way.
        let later = record.served.iter().filter(|span| span.from >= kill.alive);
        let back = later.map(|span| span.to).min().context("nobody was served after the last kill")?;
        // The next component, if it is killed before that, lengthens the outage: a longer one counts for that kill.
        let next = kills.get(number + 1).map(|next| next.at);
        let last = next.map_or(kill.at + LONGEST, |next| next.min(kill.at + LONGEST));
        let (gap, gap_end) = gap(record, kill.at, last, next);
        let end = next.map_or(back.max(gap_end), |next| next.min(back.max(gap_end)));
        ensure!(
            gap < LONGEST,
            "after kill {} ({}) nobody was served for {} ms",
            number + 1,
            kill.victim,
            gap.as_millis()
        );
        let failed = record.failed.iter().filter(|(span, _)| span.to >= kill.at && span.from <= end).count();
        lines.push(format!(
            "kill {} of {}: {} requests failed, longest time without an answer {} ms",
            number + 1,
            kill.victim,
            failed,
            gap.as_millis()
        ));
        // Data that was lost when it died is missed a little later: for a second requests may fail, though others are answered.
        outages.push(Span { from: kill.at - BLUR, to: end.max(kill.at + LONGEST) + BLUR });
    }
    let during = |span: &Span| outages.iter().any(|outage| span.from <= outage.to && span.to >= outage.from);
    if let Some((span, cause)) = record.failed.iter().find(|(span, _)| !during(span)) {
        let last = kills.iter().rfind(|kill| kill.at <= span.from);
        let last = last.map(|kill| (kill.victim.as_str(), (span.from - kill.at).as_millis()));
        let next = kills.iter().find(|kill| kill.at >= span.from);
        let next = next.map(|kill| (kill.victim.as_str(), (kill.at - span.to.min(kill.at)).as_millis()));
        bail!(
            "a request failed while everything was there, {last:?} ms after a kill, ended {next:?} ms before one: {cause}"
        );
    }
    Ok(lines)
}

/// The longest time between two answers that begins in this span, as far as it lies before the next kill, and its end.
fn gap(record: &Record, from: Instant, to: Instant, next: Option<Instant>) -> (Duration, Instant) {
    let mut ends: Vec<Instant> = record.served.iter().map(|span| span.to).collect();
    ends.sort_unstable();
    let first = ends.partition_point(|end| *end < from);
    let mut last = from;
    let mut longest = (Duration::ZERO, from);
    for end in &ends[first..] {
        if last > to {
            break;
        }
        let end = next.map_or(*end, |next| next.min(*end));
        longest = longest.max((end.saturating_duration_since(last), end));
        last = end;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Times(Instant);

    impl Times {
        fn at(&self, milliseconds: u64) -> Instant {
            self.0 + Duration::from_millis(milliseconds)
        }
        fn span(&self, (from, to): (u64, u64)) -> Span {
            Span { from: self.at(from), to: self.at(to) }
        }
        fn verdict(&self, kills: &[u64], served: &[(u64, u64)], failed: &[(u64, u64)]) -> Result<Vec<String>> {
            let kill = |at: &u64| Kill { victim: "netd".into(), at: self.at(*at), alive: self.at(*at + 5) };
            let kills: Vec<_> = kills.iter().map(kill).collect();
            let served = served.iter().map(|span| self.span(*span)).collect();
            let failed = failed.iter().map(|span| (self.span(*span), "cause".into())).collect();
            judge(&kills, &Record { served, failed })
        }
    }

    #[test]
    fn failures_belong_to_kills() {
        let times = Times(Instant::now());
        let mut served = vec![(900, 950), (950, 1010), (1400, 1500)];
        served.extend((15..30).map(|hundreds| (100 * hundreds, 100 * hundreds + 10)));
        let lines = times.verdict(&[1000], &served, &[(1050, 1350)]).unwrap();
        assert_eq!(lines, ["kill 1 of netd: 1 requests failed, longest time without an answer 490 ms"]);
        assert!(times.verdict(&[1000], &served, &[(700, 800)]).is_err(), "before");
        assert!(times.verdict(&[1000], &served, &[(1700, 2900)]).is_ok(), "begun within a second");
        assert!(times.verdict(&[1000], &served, &[(2300, 2400)]).is_err(), "after");
    }

    #[test]
    fn a_second_is_too_long() {
        let times = Times(Instant::now());
        assert!(times.verdict(&[1000], &[(900, 950), (1900, 1990)], &[]).is_ok());
        assert!(times.verdict(&[1000], &[(900, 950), (1900, 2010)], &[]).is_err());
        assert!(times.verdict(&[1000], &[(900, 950)], &[]).is_err(), "never again");
        // A second kill before the end of the first one's outage: each counts for itself.
        let served = [(900, 950), (2600, 2610)];
        assert!(times.verdict(&[1000, 1800], &served, &[]).is_ok());
        assert!(times.verdict(&[1000, 1500], &served, &[]).is_err());
        // Something that was under way when it was killed is no sign of life, but no outage either.
        assert!(times.verdict(&[1000], &[(900, 1005), (2100, 2110)], &[]).is_err());
    }
}
