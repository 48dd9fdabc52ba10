//! CPUs and threads, as `cpus 0` and `threads` print them.

use super::values::{is_number, near, same, table};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Nanoseconds of a thousandth of a second, to which `threads` shows times.
const MILLISECOND: u64 = 1_000_000;

/// A CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cpu {
    identity: u64,
    is_online: bool,
    /// Numbers that only grow, each with its name in the data.
    counts: BTreeMap<&'static str, u64>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Thread {
    cpu: u64,
    /// On which it may run.
    cpus: String,
    /// Milliseconds.
    used: u64,
}

/// The figures, printed or fetched.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    cpus: BTreeMap<u64, Cpu>,
    /// By number and name of the domain in which they began.
    threads: BTreeMap<(u64, String), Thread>,
}

/// The columns of counts, as the data call them.
const COUNTS: [&str; 6] = ["dispatches", "interrupts", "received", "wakes", "stops", "lock_waits"];

/// Compares; only threads of domains with these names are in the data.
pub fn agree(before: &Reading, reported: &Reading, after: &Reading, names: &BTreeSet<&str>) -> Result<()> {
    let numbers = [before, reported, after].map(|reading| reading.cpus.keys().copied().collect::<Vec<_>>());
    same("CPUs", numbers)?;
    ensure!(reported.cpus.values().any(|cpu| cpu.is_online), "no CPU runs");
    for (number, cpu) in &reported.cpus {
        let (first, second) = (&before.cpus[number], &after.cpus[number]);
        let all = [first, cpu, second];
        same("identity", all.map(|cpu| cpu.identity)).and_then(|()| same("online", all.map(|cpu| cpu.is_online)))?;
        for (key, count) in &cpu.counts {
            let [first, second] = [first, second].map(|cpu| cpu.counts.get(key).copied().unwrap_or_default());
            ensure!(first <= second, "{key} of CPU {number} went back");
            near(key, [first, *count, second], 0).with_context(|| format!("CPU {number}"))?;
        }
    }
    let printed = |reading: &Reading| -> BTreeSet<(u64, String)> {
        let known = |(_, home): &&(u64, String)| names.contains(home.as_str());
        reading.threads.keys().filter(known).cloned().collect()
    };
    let both: BTreeSet<_> = printed(before).intersection(&printed(after)).cloned().collect();
    let keys: BTreeSet<_> = reported.threads.keys().cloned().collect();
    ensure!(keys == both, "the data have the threads {keys:?}, and both readings {both:?}");
    for (key, thread) in &reported.threads {
        let all = [&before.threads[key], thread, &after.threads[key]];
        same("CPUs on which it may run", all.map(|thread| &thread.cpus))
            .and_then(|()| near("time used", all.map(|thread| thread.used), 0))
            .with_context(|| format!("thread {key:?}"))?;
        for Thread { cpu, .. } in all {
            ensure!(reported.cpus.get(cpu).is_some_and(|cpu| cpu.is_online), "thread {key:?} is on CPU {cpu}");
        }
    }
    Ok(())
}

/// The figures of the data; `home` = the name of a domain.
pub fn reported(data: &Value, home: impl Fn(u64) -> Option<String>) -> Result<Reading> {
    let number = |value: &Value, key: &str| value[key].as_u64().with_context(|| format!("no number {key} in {value}"));
    let list = |key: &str| data[key].as_array().with_context(|| format!("no list {key}"));
    let mut reported = Reading::default();
    let mut online = 0;
    for cpu in list("cpus")? {
        let is_online = cpu["state"] != "offline";
        let counts = COUNTS.into_iter().filter(|_| is_online).map(|key| Ok((key, number(cpu, key)?)));
        let counts = counts.collect::<Result<_>>()?;
        let key = number(cpu, "number")?;
        ensure!(key < 64, "CPU {key}");
        online |= u64::from(is_online) << key;
        reported.cpus.insert(key, Cpu { identity: number(cpu, "identity")?, is_online, counts });
    }
    for thread in list("threads")? {
        let cpus = thread["cpus"].as_str().with_context(|| format!("no CPUs in {thread}"))?;
        let set = cpuset::parse(cpus).map_err(|error| anyhow::anyhow!("{cpus}: {error}"))?;
        // As the programs say it.
        let cpus = if set & online == online { "all".into() } else { cpus.into() };
        let domain = number(thread, "home")?;
        let key = (number(thread, "number")?, home(domain).with_context(|| format!("no domain {domain}"))?);
        let read = Thread { cpu: number(thread, "cpu")?, cpus, used: number(thread, "used")? / MILLISECOND };
        if reported.threads.insert(key, read).is_some() {
            bail!("a thread is notified twice: {thread}");
        }
    }
    Ok(reported)
}

/// The output of the two programs.
pub fn reading(lines: &[&str]) -> Result<Reading> {
    let mut reading = Reading::default();
    for row in table(lines, "CPU ", is_number).context("cpus")? {
        let [number, identity, state, rest @ ..] = &row[..] else { bail!("a line of cpus: {row:?}") };
        let is_online = *state != "offline";
        let mut counts = BTreeMap::new();
        if is_online {
            // After them come the mean and the longest wait.
            let Some((counted, _)) = rest.last_chunk::<{ COUNTS.len() + 2 }>().map(|last| last.split_at(COUNTS.len()))
            else {
                bail!("a line of cpus: {row:?}")
            };
            for (key, text) in COUNTS.into_iter().zip(counted) {
                counts.insert(key, text.parse()?);
            }
        }
        reading.cpus.insert(number.parse()?, Cpu { identity: identity.parse()?, is_online, counts });
    }
    for row in table(lines, "THREAD  HOME", is_number).context("threads")? {
        let [number, home, _, .., cpu, cpus, used, "s"] = row[..] else { bail!("a line of threads: {row:?}") };
        let thread = Thread { cpu: cpu.parse()?, cpus: cpus.into(), used: used.replace('.', "").parse()? };
        reading.threads.insert((number.parse()?, home.into()), thread);
    }
    Ok(reading)
}
