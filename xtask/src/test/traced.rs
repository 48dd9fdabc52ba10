//! Boot tests whose run is traced:
//!
//! ```toml
//! [trace]
//! page = "/index.html"            # asked for once, instead of `exec`
//! domains = ["netd", "httpd"]     # different ones that had the CPU
//! calls = ["httpd > netd Connection.read"]   # made, and returned from
//! woken = ["virtio-net"]          # by an interrupt
//! loads = "ls"                    # the one program that `proc` loads: its whole pages by windows, the rest by a message for each page
//! ```
//! Besides, each CPU's scheduler ran, each record fits those before it, no two spans of time of one CPU overlap, no thread runs on two
//! CPUs at once, and what is written for Perfetto is
//! balanced: on each track every slice that begins ends, in the order of time.

use crate::elf;
use crate::project::read;
use crate::trace::{Call, Ended, Span, Story, Traced, Who, Work};
use abi::PAGE_BYTES;
use anyhow::{Context, Result, bail, ensure};
use loader::program::{Machine, Program};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The expectations of a trace.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expected {
    /// Asked for, instead of commands.
    pub page: Option<String>,
    domains: Vec<String>,
    calls: Vec<String>,
    woken: Vec<String>,
    /// See [`loaded`].
    pub loads: Option<String>,
}

impl Expected {
    /// The work of the run; `exec` = commands.
    pub fn work<'a>(&'a self, exec: Option<&'a str>) -> Result<Work<'a>> {
        match (&self.page, exec) {
            (Some(page), None) => Ok(Work::Page(page)),
            (None, Some(commands)) => Ok(Work::Commands(commands)),
            _ => bail!("a traced run needs `exec` or the `page` of `[trace]`, and not both"),
        }
    }

    /// Does it, for a machine with so many CPUs?
    pub fn compare(&self, traced: &Traced, status: u8, cpus: u32) -> Result<()> {
        ensure!(traced.status == status, "the machine stopped with status {} instead of {status}", traced.status);
        let story = &traced.story;
        ensure!(!self.domains.is_empty() && !self.calls.is_empty(), "`domains` and `calls` say what to look for");
        let running: BTreeSet<u32> = story
            .spans
            .iter()
            .filter_map(|span| match span.who {
                Who::Thread(_, domain) => Some(domain),
                Who::Idle => None,
            })
            .collect();
        for name in &self.domains {
            ensure!(running.iter().any(|domain| story.name(*domain) == name), "{name} never had the CPU");
        }
        let returned: BTreeSet<String> = story
            .calls
            .iter()
            .filter(|call| !call.before && call.ended == Ended::Returned)
            .map(|call| format!("{} > {}", story.name(call.from), traced.labels.call(story, call)))
            .collect();
        if let Some(missing) = self.calls.iter().find(|call| !returned.contains(*call)) {
            let found: Vec<&str> = returned.iter().map(String::as_str).collect();
            bail!("this call was not made or did not return: {missing}\nthese were:\n  {}", found.join("\n  "));
        }
        let woken = story.wakes.iter().filter(|wake| wake.interrupt).filter_map(|wake| Some(story.spans[wake.to?].who));
        let woken: Vec<Who> = woken.collect();
        for name in &self.woken {
            let is_woken = |who: &Who| matches!(who, Who::Thread(_, domain) if story.name(*domain) == name);
            ensure!(woken.iter().any(is_woken), "no interrupt woke {name}");
        }
        ensure!(story.cpu_count() == cpus as usize, "of {cpus} CPUs these left records: {:?}", story.cpus);
        for cpu in &story.cpus {
            let has_scheduler = story.threads.iter().any(|thread| thread.number == 0 && thread.cpu == *cpu);
            ensure!(has_scheduler, "the scheduler of CPU {cpu} never ran");
            let own: Vec<_> = story.spans.iter().filter(|span| span.cpu == *cpu).collect();
            for pair in own.windows(2) {
                ensure!(pair[0].end <= pair[1].begin, "two spans of CPU {cpu} overlap: {pair:?}");
            }
        }
        nowhere_twice(story)?;
        let processes = balanced(&traced.json())?;
        for domain in &running {
            let name = processes.get(&u64::from(*domain)).with_context(|| format!("process {domain} has no name"))?;
            ensure!(name == story.name(*domain), "process {domain} is {name}, not {}", story.name(*domain));
        }
        Ok(())
    }
}

/// The reads by which a program was loaded: a window is one copy, a message three. `file` is the program as the machine has it.
pub fn loaded(traced: &Traced, file: &[u8]) -> Result<()> {
    let parse = |machine| Program::parse(file, file.len() as u64, machine).ok();
    let program = parse(Machine::X86_64).or_else(|| parse(Machine::AArch64)).context("the file is no program")?;
    let pages =
        program.segments().iter().flat_map(|segment| (0..segment.pages).filter_map(|page| segment.contents(page)));
    let (whole, parts): (Vec<_>, Vec<_>) =
        pages.partition(|contents| contents.file.end - contents.file.start == PAGE_BYTES as u64);
    let story = &traced.story;
    let read = |call: &&Call| {
        let name = traced.labels.call(story, call);
        let is_read =
            name.strip_prefix("ramfs File.read").is_some_and(|rest| rest.is_empty() || rest.starts_with(" with"));
        is_read && story.name(call.from) == "proc" && call.ended == Ended::Returned
    };
    let (messages, windows): (Vec<_>, Vec<_>) = story.calls.iter().filter(read).partition(|call| call.pages == 0);
    let shown: usize = windows.iter().map(|call| usize::from(call.pages)).sum();
    ensure!(shown == whole.len(), "of {} whole pages of the program {shown} were read by windows", whole.len());
    // And the file's head.
    let most = parts.len() + 1;
    ensure!(messages.len() == most, "{} messages brought parts of the program instead of {most}", messages.len());
    Ok(())
}

/// No thread runs on two CPUs at once.
fn nowhere_twice(story: &Story) -> Result<()> {
    let mut last: BTreeMap<usize, &Span> = BTreeMap::new();
    for span in &story.spans {
        if let Who::Thread(thread, _) = span.who
            && let Some(before) = last.insert(thread, span)
        {
            ensure!(before.end <= span.begin, "a thread runs in two places: {before:?}, {span:?}");
        }
    }
    Ok(())
}

/// The nucleus that traces has the functions that write records; the one that ships has none of them.
pub fn ships_nothing(shipped: &Path, traced: &Path) -> Result<()> {
    let functions = |nucleus: &Path| -> Result<Vec<String>> {
        let symbols = elf::symbols(&read(nucleus)?)?;
        let ours = symbols.lines().filter(|line| line.contains(" nucleus::report::trace::"));
        Ok(ours.map(String::from).collect())
    };
    let shipped = functions(shipped)?;
    ensure!(shipped.is_empty(), "the nucleus that ships has functions of the one that traces: {shipped:?}");
    ensure!(
        functions(traced)?.iter().any(|line| line.contains("::write")),
        "the nucleus that traces has not the functions that this looks for"
    );
    Ok(())
}

/// Reads what Perfetto reads: each slice that begins ends. Gives the names of processes.
pub fn balanced(text: &str) -> Result<BTreeMap<u64, String>> {
    let json: Value = serde_json::from_str(text).context("the trace is no JSON")?;
    let events = json["traceEvents"].as_array().context("there are no events")?;
    let mut names = BTreeMap::new();
    // By track: open slices and the time of the last event.
    let mut tracks: BTreeMap<(u64, u64), (usize, f64)> = BTreeMap::new();
    let mut arrows: BTreeMap<u64, usize> = BTreeMap::new();
    for event in events {
        let number = |key: &str| event[key].as_u64().with_context(|| format!("no {key} in {event}"));
        let track = (number("pid")?, number("tid")?);
        let phase = event["ph"].as_str().with_context(|| format!("no ph in {event}"))?;
        if phase == "M" {
            if event["name"] == "process_name" {
                names.insert(track.0, event["args"]["name"].as_str().unwrap_or_default().to_string());
            }
            continue;
        }
        let time = event["ts"].as_f64().with_context(|| format!("no ts in {event}"))?;
        let (open, last) = tracks.entry(track).or_insert((0, 0.0));
        match phase {
            "B" | "E" | "i" => {
                ensure!(time >= *last, "earlier than what is before it: {event}");
                *last = time;
            }
            "s" | "f" => *arrows.entry(number("id")?).or_default() += 1,
            other => bail!("an event of phase {other}"),
        }
        match phase {
            "B" => {
                ensure!(event["name"].is_string(), "a slice without a name: {event}");
                *open += 1;
            }
            "E" => *open = open.checked_sub(1).with_context(|| format!("nothing is open where this ends: {event}"))?,
            _ => {}
        }
    }
    if let Some((track, (open, _))) = tracks.iter().find(|(_, (open, _))| *open > 0) {
        bail!("{open} slices never end on track {track:?}");
    }
    if let Some((arrow, _)) = arrows.iter().find(|(_, count)| **count != 2) {
        bail!("arrow {arrow} has not two ends");
    }
    if let Some(((process, _), _)) = tracks.iter().find(|((process, _), _)| !names.contains_key(process)) {
        bail!("process {process} has no name");
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::balanced;

    const NAME: &str = r#"{"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"a"}}"#;

    fn verdict(events: &str) -> Result<(), String> {
        balanced(&format!("{{\"traceEvents\":[{NAME}{events}]}}")).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn unbalanced_events_are_found() {
        let begin = r#",{"ph":"B","ts":2,"pid":1,"tid":1,"name":"n"}"#;
        let end = r#",{"ph":"E","ts":3,"pid":1,"tid":1}"#;
        assert_eq!(verdict(&format!("{begin}{end}")), Ok(()));
        for (events, cause) in [
            (begin.to_string(), "never end"),
            (end.to_string(), "nothing is open"),
            (format!("{begin}{}", end.replace('3', "1")), "earlier"),
            (format!("{begin}{}", end.replace("\"tid\":1", "\"tid\":2")), "nothing is open"),
            (format!("{begin}{end}").replace("\"pid\":1", "\"pid\":2"), "no name"),
            (begin.replace("\"B\"", "\"Q\""), "phase Q"),
            (r#",{"ph":"s","ts":1,"pid":1,"tid":1,"id":7}"#.to_string(), "arrow 7"),
            (r#",{"ph":"B","pid":1,"tid":1}"#.to_string(), "no ts"),
        ] {
            let error = verdict(&events).expect_err(cause);
            assert!(error.contains(cause), "{error}");
        }
        assert!(balanced("{").is_err());
    }
}
