//! A comparison of `/status.json` with the output of `ps`, `domains`, `frames`, `portals`, `threads` and `cpus` in the same run.
//!
//! The console shows a reading of them, then what the host fetched, then a second reading. Figures that are the same in
//! both readings must be the same in the data; those that moved meanwhile must lie between. The programs that print are
//! domains too: they are in one reading only, and what they are charged is taken off. The domains that carry the
//! request hold a connection just while the data are taken: their memory may differ by a little.

mod cpus;
mod values;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use values::{is_number, near, same, table};

/// Begins a line with what was fetched.
pub const FETCHED: &str = "host: fetched /status.json: ";
/// Bytes of a frame as `ps` counts: 4 KiB.
const FRAME_KIBIBYTES: u64 = 4;
/// The domains that carry the request.
const CARRIERS: [&str; 3] = ["httpd", "netd", "virtio-net"];
/// Frames, pages and call entries that each of them may have for it.
const FOR_REQUEST: u64 = 8;
/// The domain whose account all others come from.
const ROOT: &str = "roottask";

/// A domain, as `ps` and `domains` print it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Domain {
    name: String,
    parent: u64,
    is_alive: bool,
    charged: u64,
    limit: u64,
    /// Numbers that may move, each with its name in the data.
    numbers: BTreeMap<&'static str, u64>,
    restarts: Option<u64>,
}

/// Where the frames are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Frames {
    charged: u64,
    free: u64,
    total: u64,
    boot: u64,
    /// Free, or charged to the program that says so: as if it were not there.
    free_without: u64,
}

/// All that was printed before or after the fetch.
#[derive(Clone, Debug, Default)]
struct Reading {
    domains: BTreeMap<u64, Domain>,
    frames: Frames,
    /// Call entries by caller and callee.
    portals: BTreeMap<(u64, u64), u64>,
    /// CPUs and threads.
    cpus: cpus::Reading,
}

/// Compares the last data that was fetched with the readings before and after it.
pub fn compare(lines: &[&str]) -> Result<()> {
    let fetched = lines.iter().rposition(|line| line.starts_with(FETCHED)).context("nothing was fetched")?;
    let start = lines[..fetched].iter().rposition(|line| line.starts_with(FETCHED)).map_or(0, |before| before + 1);
    let data = serde_json::from_str(&lines[fetched][FETCHED.len()..]).context("the fetched text is no JSON")?;
    let before = reading(&lines[start..fetched]).context("the reading before the fetch")?;
    let after = reading(&lines[fetched + 1..]).context("the reading after the fetch")?;
    agree(&before, &data, &after)
}

fn agree(before: &Reading, data: &Value, after: &Reading) -> Result<()> {
    ensure!(data["complete"] == true, "the data say that they are not complete");
    let reported = reported(data)?;
    let numbers: BTreeSet<u64> = reported.domains.keys().copied().collect();
    let both: BTreeSet<u64> = before.domains.keys().filter(|key| after.domains.contains_key(key)).copied().collect();
    ensure!(numbers == both, "the data have the domains {numbers:?}, and both readings {both:?}");
    frames(before, &reported, after)?;
    for (number, domain) in &reported.domains {
        let (first, second) = (&before.domains[number], &after.domains[number]);
        // The memory that `proc` gives to programs is from an account that it made at the start: that does not show here.
        let charged = [first.charged, domain.charged, second.charged];
        near("memory", charged, slack(&domain.name)).and_then(|()| one(first, domain, second)).with_context(|| {
            format!("domain {number} ({}): {first:?}\nin the data {domain:?}\nthen {second:?}", domain.name)
        })?;
    }
    let names = reported.domains.values().map(|domain| domain.name.as_str()).collect();
    cpus::agree(&before.cpus, &reported.cpus, &after.cpus, &names)?;
    portals(before, &reported, after)
}

fn one(first: &Domain, reported: &Domain, second: &Domain) -> Result<()> {
    same("name", [&first.name, &reported.name, &second.name])?;
    same("parent", [first.parent, reported.parent, second.parent])?;
    same("state", [first.is_alive, reported.is_alive, second.is_alive])?;
    same("limit", [first.limit, reported.limit, second.limit])?;
    same("restarts", [first.restarts, reported.restarts, second.restarts])?;
    for (key, number) in &reported.numbers {
        let [first, second] = [first, second].map(|domain| domain.numbers.get(key));
        let missing = || format!("{key} was not printed");
        let slack = if *key == "crossings" { 0 } else { slack(&reported.name) };
        near(key, [*first.with_context(missing)?, *number, *second.with_context(missing)?], slack)?;
    }
    Ok(())
}

/// By how much a figure of this domain may differ from what it was before and after.
fn slack(name: &str) -> u64 {
    if CARRIERS.contains(&name) { FOR_REQUEST } else { 0 }
}

/// At least as many as the description gives to the vault of `ramfs`.
const VAULT_FRAMES: u64 = 1024;

fn frames(before: &Reading, reported: &Reading, after: &Reading) -> Result<()> {
    let all = [&before.frames, &reported.frames, &after.frames];
    same("frames in total", all.map(|frames| frames.total))?;
    same("frames taken at boot", all.map(|frames| frames.boot))?;
    for frames in all {
        same("charged + free, and total", [frames.charged + frames.free, frames.total])?;
    }
    let free = [before.frames.free_without, reported.frames.free, after.frames.free_without];
    near("free frames", free, CARRIERS.len() as u64 * FOR_REQUEST)?;
    // Every frame in use was taken at boot or is charged to one domain; frames that a domain passed on are charged to it too.
    let charged: u64 = reported.domains.values().map(|domain| domain.charged).sum();
    let passed = reported.domains.values().filter(|domain| domain.name != ROOT).map(|domain| domain.limit).sum::<u64>();
    // Accounts that no domain has (the vault's, and the parts into which `proc` divides its own) pass on more than is shown here.
    let [sum, known] = [charged + reported.frames.boot, reported.frames.charged + passed];
    let most: u64 = reported.domains.values().filter(|domain| domain.name == "proc").map(|domain| domain.limit).sum();
    ensure!(
        (known..=known + most + VAULT_FRAMES).contains(&sum),
        "frames charged, with those of boot: {sum}, reported {known}"
    );
    Ok(())
}

fn portals(before: &Reading, reported: &Reading, after: &Reading) -> Result<()> {
    let known = |&&(from, to): &&(u64, u64)| reported.domains.contains_key(&from) && reported.domains.contains_key(&to);
    let keys = before.portals.keys().chain(after.portals.keys()).filter(known).chain(reported.portals.keys());
    for key in keys {
        let count = |reading: &Reading| reading.portals.get(key).copied().unwrap_or(0);
        // The printing program belongs to the shell, which has an entry for it.
        let slack =
            reported.domains.get(&key.0).map_or(0, |domain| slack(&domain.name) + u64::from(domain.name == "shell"));
        near("portals", [count(before), count(reported), count(after)], slack)
            .with_context(|| format!("portals {key:?}"))?;
    }
    ensure!(!reported.portals.is_empty(), "no portals");
    Ok(())
}

/// The figures of the data.
fn reported(data: &Value) -> Result<Reading> {
    let number = |value: &Value, key: &str| value[key].as_u64().with_context(|| format!("no number {key} in {value}"));
    let list = |key: &str| data[key].as_array().with_context(|| format!("no list {key}"));
    let mut reported = Reading::default();
    for domain in list("domains")? {
        let keys = ["threads", "crossings", "pages", "activations", "table", "labels"];
        let numbers = keys.into_iter().map(|key| Ok((key, number(domain, key)?)));
        let read = Domain {
            name: domain["name"].as_str().context("a domain without a name")?.into(),
            parent: number(domain, "parent")?,
            is_alive: domain["alive"] == true,
            charged: number(domain, "charged")?,
            limit: number(domain, "limit")?,
            numbers: numbers.collect::<Result<_>>()?,
            restarts: domain["restarts"].as_u64(),
        };
        if reported.domains.insert(number(domain, "number")?, read).is_some() {
            bail!("a domain is reported twice: {domain}");
        }
    }
    let frames = &data["machine"]["frames"];
    let free = number(frames, "free")?;
    let [charged, total, boot] = [number(frames, "charged")?, number(frames, "total")?, number(frames, "boot")?];
    reported.frames = Frames { charged, free, total, boot, free_without: free };
    for portal in list("portals")? {
        let key = (number(portal, "from")?, number(portal, "to")?);
        *reported.portals.entry(key).or_insert(0) += number(portal, "entries")?;
    }
    reported.cpus = cpus::reported(data, |home| Some(reported.domains.get(&home)?.name.clone()))?;
    Ok(reported)
}

/// The output of the programs.
fn reading(lines: &[&str]) -> Result<Reading> {
    let mut reading = Reading::default();
    for row in table(lines, "DOMAIN  PARENT", is_number).context("ps")? {
        let [number, parent, state @ .., charged, limit, threads, crossings, _, name] = &row[..] else {
            bail!("a line of ps: {row:?}")
        };
        let domain = Domain {
            name: (*name).into(),
            parent: parent.parse()?,
            is_alive: state == ["alive"],
            charged: frames_of(charged)?,
            limit: frames_of(limit)?,
            numbers: BTreeMap::from([("threads", threads.parse()?), ("crossings", crossings.parse()?)]),
            restarts: None,
        };
        reading.domains.insert(number.parse()?, domain);
    }
    for row in table(lines, "DOMAIN  PAGES", is_number).context("domains")? {
        let [number, pages, activations, entries, labels, restarts, _] = row[..] else {
            bail!("a line of domains: {row:?}")
        };
        // The program that prints this is not in the table of the other.
        let Some(domain) = reading.domains.get_mut(&number.parse()?) else { continue };
        let columns = [("pages", pages), ("activations", activations), ("table", entries), ("labels", labels)];
        for (key, text) in columns {
            domain.numbers.insert(key, text.parse()?);
        }
        domain.restarts = restarts.parse().ok();
    }
    reading.frames = printed_frames(lines).context("frames")?;
    for row in table(lines, "FROM ", |row| row.get(1).is_some_and(|text| text.starts_with('('))).context("portals")? {
        let [_, from, _, to, entries, _, _, _] = row[..] else { bail!("a line of portals: {row:?}") };
        let number = |text: &str| text.trim_matches(['(', ')']).parse::<u64>();
        *reading.portals.entry((number(from)?, number(to)?)).or_insert(0) += entries.parse::<u64>()?;
    }
    reading.cpus = cpus::reading(lines)?;
    Ok(reading)
}

fn printed_frames(lines: &[&str]) -> Result<Frames> {
    let find = |head: &str| {
        let line = lines.iter().rev().find(|line| line.starts_with(head));
        line.map(|line| line[head.len()..].trim()).with_context(|| format!("no line begins with `{head}`"))
    };
    let first = |text: &str| Ok::<u64, anyhow::Error>(text.split(' ').next().unwrap_or_default().parse()?);
    let charged = find("charged  ")?;
    let boot = charged.split_once("(of these ").context("no frames of the nucleus")?.1;
    Ok(Frames {
        charged: first(charged)?,
        free: first(find("free  ")?)?,
        total: first(find("total  ")?)?,
        boot: first(boot)?,
        free_without: first(find("free or theirs ")?)?,
    })
}

/// Frames of a size such as `68K`.
fn frames_of(text: &str) -> Result<u64> {
    let kibibytes = text.strip_suffix('K').with_context(|| format!("{text} is no size"))?;
    Ok(kibibytes.parse::<u64>()? / FRAME_KIBIBYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run: a reading, the data, a reading in which `ramfs` made more calls and has more memory.
    const RUN: &str = "\
cairn:/$ ps; domains; frames frames; portals; threads; cpus 0
DOMAIN  PARENT  STATE  MEMORY   LIMIT  THREADS  CROSSINGS  CPUS  NAME
     1       0  alive     68K    256K        1          0  all   sigma0
     2       0  alive  24044K  61972K        1        144  all   roottask
     5       1  alive    252K   2048K        1        100  all   ramfs
     6       1  alive    260K  20480K        1         50  all   proc
     9       6  alive    100K   4096K        1          3  all   ps
DOMAIN  PAGES  ACTIVATIONS  TABLE  LABELS  RESTARTS  NAME
     1      9            3    256       1         -  sigma0
     2     39            3    256       1         -  roottask
     5     74            7    128       1         2  ramfs
     6     43           21    512       1         0  proc
    10     17            1    128       1         -  domains
charged      1246  (of these 760 by the nucleus since boot)
free        15007
total       16253
free or theirs 15033
charged + free = total
FROM             TO              ENTRIES  INTERFACE  SHAPE  BYTES
ramfs (5)        sigma0 (1)            3  Pager   npkox5>ox5  610
ramfs (5)        sigma0 (1)            1  Sigma0  npkox5>ox5  610
portals (12)    sigma0 (1)            3  Pager   npkox5>ox5  610
THREAD  HOME     NOW     STATE    PRIORITY  DEPTH  CPU  CPUS     USED
     1  sigma0           blocked        40      1    0  all   0.006 s
    11  ramfs    sigma0  blocked        32      2    0  0,1   0.012 s
    12  proc             in ring        30      1    1  all   0.002 s
    40  threads  proc    running        16      2    0  all   0.000 s
CPU  ID  STATE        LOAD  THREAD  IN    DISPATCHES  INTERRUPTS  RECEIVED  WAKES  HALTS  WAITS  MEAN  WORST
  0   0  busy       12.5 %      41  proc         350          84         0      3      0      1    10     10
  1   2  idle        0.1 %                        20           4         3      1      0      0     0      0
  2   4  schedules   0.0 %                         9           1         0      0      0      0     0      0
  3   6  offline
cairn:/$ host: fetched /status.json: DATA
ps; domains; frames frames; portals; threads; cpus 0
DOMAIN  PARENT  STATE  MEMORY   LIMIT  THREADS  CROSSINGS  CPUS  NAME
     1       0  alive     68K    256K        1          0  all   sigma0
     2       0  alive  24044K  61972K        1        144  all   roottask
     5       1  alive    260K   2048K        1        120  all   ramfs
     6       1  alive    260K  20480K        1         70  all   proc
    13       6  alive    100K   4096K        1          3  all   ps
DOMAIN  PAGES  ACTIVATIONS  TABLE  LABELS  RESTARTS  NAME
     1      9            3    256       1         -  sigma0
     2     39            3    256       1         -  roottask
     5     76            7    128       1         2  ramfs
     6     43           21    512       1         0  proc
charged      1248  (of these 760 by the nucleus since boot)
free        15005
total       16253
free or theirs 15031
charged + free = total
FROM             TO              ENTRIES  INTERFACE  SHAPE  BYTES
ramfs (5)        sigma0 (1)            3  Pager   npkox5>ox5  610
ramfs (5)        sigma0 (1)            2  Sigma0  npkox5>ox5  610
THREAD  HOME     NOW     STATE        PRIORITY  DEPTH  CPU  CPUS     USED
     1  sigma0           blocked            40      1    0  all   0.006 s
    11  ramfs    sigma0  with sched         32      2    1  0,1   0.014 s
    12  proc             blocked            30      1    1  all   0.002 s
    40  threads  proc    running            16      2    0  all   0.000 s
CPU  ID  STATE     LOAD  THREAD  IN    DISPATCHES  INTERRUPTS  RECEIVED  WAKES  HALTS  WAITS  MEAN  WORST
  0   0  busy    12.5 %      41  proc         370          94         0      3      0      1    10     10
  1   2  idle     0.1 %                        20           5         3      1      0      0     0      0
  2   4  idle     0.0 %                         9           1         0      0      0      0     0      0
  3   6  offline
cairn:/$ exit
";

    const DATA: &str = r#"{"machine":{"frames":{"total":16253,"charged":1221,"free":15032,"boot":760}},"domains":[
{"number":1,"parent":0,"name":"sigma0","alive":true,"charged":17,"limit":64,"threads":1,"activations":3,"crossings":0,"pages":9,"table":256,"labels":1,"restarts":null},
{"number":2,"parent":0,"name":"roottask","alive":true,"charged":6011,"limit":15493,"threads":1,"activations":3,"crossings":144,"pages":39,"table":256,"labels":1,"restarts":null},
{"number":5,"parent":1,"name":"ramfs","alive":true,"charged":64,"limit":512,"threads":1,"activations":7,"crossings":110,"pages":75,"table":128,"labels":1,"restarts":2},
{"number":6,"parent":1,"name":"proc","alive":true,"charged":65,"limit":5120,"threads":1,"activations":21,"crossings":60,"pages":43,"table":512,"labels":1,"restarts":0}],
"cpus":[{"number":0,"identity":0,"state":"busy","dispatches":360,"interrupts":90,"received":0,"wakes":3,"stops":0,"lock_waits":1},
{"number":1,"identity":2,"state":"busy","dispatches":20,"interrupts":4,"received":3,"wakes":1,"stops":0,"lock_waits":0},
{"number":2,"identity":4,"state":"idle","dispatches":9,"interrupts":1,"received":0,"wakes":0,"stops":0,"lock_waits":0},
{"number":3,"identity":6,"state":"offline"}],
"threads":[{"number":1,"home":1,"cpu":0,"cpus":"0-2","used":6000999},{"number":11,"home":5,"cpu":0,"cpus":"0,1","used":13999999},
{"number":12,"home":6,"cpu":1,"cpus":"0-3","used":2000000}],
"portals":[{"from":5,"to":1,"service":"page faults","entries":3},{"from":5,"to":1,"service":"memory","entries":1}],"complete":true}"#;

    fn verdict(run: &str, data: &str) -> Result<()> {
        let run = run.replace("cairn:/$ host: ", "host: ").replace("DATA", &data.replace('\n', ""));
        compare(&run.lines().collect::<Vec<_>>())
    }

    #[test]
    fn a_run_that_agrees() {
        verdict(RUN, DATA).unwrap();
    }

    #[test]
    fn each_figure_that_is_wrong_is_found() {
        let wrong = [
            ("\"total\":16253", "\"total\":16254"),
            ("\"boot\":760", "\"boot\":761"),
            ("\"charged\":1221,\"free\":15032", "\"charged\":1222,\"free\":15032"),
            ("\"charged\":1221,\"free\":15032", "\"charged\":1000,\"free\":15253"),
            ("\"name\":\"ramfs\"", "\"name\":\"ramft\""),
            ("\"number\":5,\"parent\":1", "\"number\":5,\"parent\":0"),
            ("\"alive\":true,\"charged\":64", "\"alive\":false,\"charged\":64"),
            ("\"charged\":17", "\"charged\":18"),
            ("\"charged\":64", "\"charged\":66"),
            ("\"charged\":65", "\"charged\":64"),
            ("\"limit\":512,", "\"limit\":513,"),
            ("\"activations\":3,\"crossings\":0", "\"activations\":4,\"crossings\":0"),
            ("\"crossings\":110", "\"crossings\":99"),
            ("\"crossings\":110", "\"crossings\":121"),
            ("\"crossings\":0", "\"crossings\":1"),
            ("\"pages\":9", "\"pages\":8"),
            ("\"pages\":9,\"table\":256", "\"pages\":9,\"table\":255"),
            ("\"restarts\":2", "\"restarts\":1"),
            (
                "\"pages\":9,\"table\":256,\"labels\":1,\"restarts\":null",
                "\"pages\":9,\"table\":256,\"labels\":1,\"restarts\":0",
            ),
            ("\"entries\":3", "\"entries\":5"),
            ("\"from\":5,\"to\":1,\"service\":\"memory\"", "\"from\":1,\"to\":5,\"service\":\"memory\""),
            ("{\"number\":1,\"parent\"", "{\"number\":2,\"parent\""),
            ("\"complete\":true", "\"complete\":false"),
            ("\"threads\":1,\"activations\":7", "\"activations\":7"),
            ("\"identity\":6,\"state\":\"offline\"", "\"identity\":7,\"state\":\"offline\""),
            ("\"identity\":6,\"state\":\"offline\"", "\"identity\":6,\"state\":\"idle\""),
            ("{\"number\":2,\"identity\":4", "{\"number\":4,\"identity\":4"),
            ("\"dispatches\":360", "\"dispatches\":349"),
            ("\"dispatches\":360", "\"dispatches\":371"),
            ("\"dispatches\":9", "\"dispatches\":10"),
            ("\"received\":3", "\"received\":2"),
            ("\"wakes\":3", "\"wakes\":4"),
            ("\"lock_waits\":1", "\"lock_waits\":0"),
            ("\"home\":5,\"cpu\":0", "\"home\":5,\"cpu\":3"),
            ("\"cpus\":\"0,1\"", "\"cpus\":\"0-2\""),
            ("\"cpus\":\"0-3\"", "\"cpus\":\"1-3\""),
            ("\"used\":13999999", "\"used\":15000000"),
            ("\"used\":13999999", "\"used\":11999999"),
            ("\"number\":12,\"home\":6", "\"number\":13,\"home\":6"),
            ("\"number\":12,\"home\":6", "\"number\":12,\"home\":5"),
        ];
        for (right, wrong) in wrong {
            assert_eq!(DATA.matches(right).count(), 1, "{right}");
            assert!(verdict(RUN, &DATA.replace(right, wrong)).is_err(), "{wrong} is not found");
        }
    }

    #[test]
    fn missing_lines_are_found() {
        for gone in [
            "host: fetched",
            "DOMAIN  PARENT",
            "DOMAIN  PAGES",
            "free or theirs",
            "FROM  ",
            "DATA",
            "68K",
            "CPU ",
            "THREAD  HOME",
        ] {
            assert!(verdict(&RUN.replace(gone, "x"), DATA).is_err(), "{gone}");
        }
    }
}
