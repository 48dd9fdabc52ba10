//! `./x labels`: traces of labels, judged by the engine, and made for others to judge.

use crate::build::Checks;
use crate::command_line::{LabelsCommand, ReplayOptions, ScriptOptions};
use crate::engine;
use crate::project::Project;
use crate::replay::{Replay, Said, Steps};
use anyhow::{Context, Result, anyhow, bail};
use flow::trace::{Mistake, Outcome, Script, Step, World};
use flow::{Handle, Level, specification as spec};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::Duration;

/// A label in JSON. ★ is -1.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    default: i64,
    #[serde(default)]
    entries: Vec<(u64, i64)>,
}

/// A line of a trace.
#[derive(Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    NewDomain { domain: u64 },
    NewHandle { domain: u64, handle: u64 },
    NewPort { domain: u64, handle: u64, label: Label },
    RaiseSend { domain: u64, handle: u64, level: i64 },
    LowerReceive { domain: u64, handle: u64, level: i64 },
    Send(Box<Send>),
}

/// A message, and what came of it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Send {
    from: u64,
    port: u64,
    cs: Option<Label>,
    ds: Option<Label>,
    v: Option<Label>,
    dr: Option<Label>,
    delivered: bool,
    to: Option<u64>,
    s: Option<Label>,
    r: Option<Label>,
}

/// The status where two sides differ, and where there is no trace.
const DIFFERS: u8 = 1;
const NO_TRACE: u8 = 2;

/// Does what the command says; gives the exit status.
pub fn labels(project: &Project, command: &LabelsCommand) -> Result<u8> {
    match command {
        LabelsCommand::Replay(options) => replay(project, options),
        LabelsCommand::Trace(options) => trace(options).map(|()| 0),
        LabelsCommand::Bench(options) => engine::bench(project, options).map(|()| 0),
    }
}

fn replay(project: &Project, ReplayOptions { file, machine, arch, timeout }: &ReplayOptions) -> Result<u8> {
    let mut judged = Judged::default();
    let read = if file == Path::new("-") {
        judge(std::io::stdin().lock(), &mut judged).context("standard input is no trace of labels")
    } else {
        let open = File::open(file).map_err(anyhow::Error::from);
        open.and_then(|file| judge(BufReader::new(file), &mut judged))
            .with_context(|| format!("{} is no trace of labels", file.display()))
    };
    let (text, status) = judged.outcome(read.is_ok());
    text.iter().for_each(|text| println!("{text}"));
    if let Err(error) = read {
        eprintln!("error: {error:#}");
    }
    if !machine || status != 0 {
        return Ok(status);
    }
    let limit = Duration::try_from_secs_f64(*timeout).context("--timeout")?;
    let project = project.on(*arch);
    judged.steps.fit()?;
    // The machine prints what comes of it.
    let (_, agrees) = Replay::build(&project, Checks::Off)?.compare(&judged.steps, limit, true)?;
    Ok(if agrees { 0 } else { DIFFERS })
}

/// Result of reading a trace, up to its end or a bad line.
#[derive(Default)]
struct Judged {
    lines: usize,
    /// The first line about which trace and engine disagree, or engine and specification.
    disagreement: Option<String>,
    /// The steps, for a machine.
    steps: Steps,
}

impl Judged {
    /// The text to print, and the exit status. A disagreement counts, even if a later line cannot be read.
    fn outcome(&self, is_read_to_the_end: bool) -> (Option<String>, u8) {
        let lines = self.lines;
        match &self.disagreement {
            Some(disagreement) => (Some(format!("{lines} lines; {disagreement}")), DIFFERS),
            None if is_read_to_the_end => (Some(format!("{lines} lines, no disagreement")), 0),
            None => (None, NO_TRACE),
        }
    }
}

/// A trace of steps at random, for a test; the lines of messages that say something else with `change`.
pub fn random_steps(seed: u64, count: usize, change: impl Fn(&mut Said)) -> Result<Steps> {
    let (mut world, mut script, mut steps) = (World::new(), Script::new(seed), Steps::default());
    for line in 1..=count {
        let step = script.next(&world);
        let said = world.step(&step)?.map(|came| {
            let (send, receive) = came.labels.unzip();
            let mut said = Said { delivered: came.delivered, to: came.to, send, receive };
            change(&mut said);
            said
        });
        steps.add(line, &step, said.as_ref());
    }
    Ok(steps)
}

/// Bytes of a line, at most: a label of some hundred thousand handles.
const LINE: u64 = 1 << 24;

/// Reads a trace, and notes the first disagreement. An error is that of the first line that cannot be read.
fn judge(mut trace: impl BufRead, judged: &mut Judged) -> Result<()> {
    let mut world = World::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let place = judged.lines + 1;
        let at = || format!("line {place}");
        let count = trace.by_ref().take(LINE).read_until(b'\n', &mut line).with_context(at)?;
        if count == 0 {
            return Ok(());
        }
        if count as u64 == LINE {
            bail!("{}: it is longer than {LINE} bytes", at());
        }
        let text = std::str::from_utf8(&line).context("it is no text in UTF-8").with_context(at)?.trim();
        if !text.is_empty() {
            let (step, said) = parsed(text).with_context(at)?;
            judged.steps.add(place, &step, said.as_ref());
            // The lines after a disagreement follow from it; they are only read.
            if judged.disagreement.is_none() {
                let found = disagreement(world.step(&step), said).with_context(at)?;
                judged.disagreement = found.map(|what| format!("{}: {what}", at()));
            }
        }
        judged.lines = place;
    }
}

/// A disagreement that a step shows: of engine and specification, or of the trace and both.
fn disagreement(came: Result<Option<Outcome>, Mistake>, said: Option<Said>) -> Result<Option<String>> {
    match came {
        Ok(came) => Ok(came.zip(said).and_then(|(came, said)| difference(&said, &came))),
        Err(mistake @ Mistake::Differs(..)) => Ok(Some(format!("engine and specification disagree: {mistake}"))),
        Err(mistake) => Err(mistake.into()),
    }
}

/// The error in a line, and where it is.
fn unreadable(error: &serde_json::Error) -> anyhow::Error {
    let text = error.to_string();
    let cause: String = text.split(" at line ").next().unwrap_or_default().chars().take(200).collect();
    anyhow!("column {}: {cause}", error.column())
}

/// A step, and what the trace says came of it.
fn parsed(line: &str) -> Result<(Step, Option<Said>)> {
    if !line.starts_with('{') {
        bail!("it does not begin with {{: a line is an object of JSON");
    }
    let line: Line = serde_json::from_str(line).map_err(|error| unreadable(&error))?;
    Ok(match line {
        Line::NewDomain { domain } => (Step::NewDomain(domain), None),
        Line::NewHandle { domain, handle } => (Step::NewHandle(domain, handle_of(handle)?), None),
        Line::NewPort { domain, handle, label } => {
            (Step::NewPort(domain, handle_of(handle)?, label.read().context("label")?), None)
        }
        Line::RaiseSend { domain, handle, level } => {
            (Step::RaiseSend(domain, handle_of(handle)?, level_of(level)?), None)
        }
        Line::LowerReceive { domain, handle, level } => {
            (Step::LowerReceive(domain, handle_of(handle)?, level_of(level)?), None)
        }
        Line::Send(send) => {
            let Send { from, port, cs, ds, v, dr, delivered, to, s, r } = *send;
            let read = |name: &'static str, label: Option<Label>| label.map(Label::read).transpose().context(name);
            let or = |name, label, default| -> Result<_> { Ok(read(name, label)?.unwrap_or(spec::Label::of(default))) };
            let optional = spec::Optional {
                contaminate: or("cs", cs, Level::Star)?,
                decontaminate_send: or("ds", ds, Level::Three)?,
                verify: or("v", v, Level::Three)?,
                decontaminate_receive: or("dr", dr, Level::Star)?,
            };
            let step = Step::Send { from, port: handle_of(port)?, optional };
            (step, Some(Said { delivered, to, send: read("s", s)?, receive: read("r", r)? }))
        }
    })
}

/// The first thing that is not as it should be, with both sides.
fn difference(said: &Said, came: &Outcome) -> Option<String> {
    let sides = |what: &str, trace: &dyn Display, engine: &dyn Display| {
        format!("{what}: the trace says {trace}, the engine {engine}")
    };
    if said.delivered != came.delivered {
        return Some(sides("delivered", &said.delivered, &came.delivered));
    }
    if let Some(trace) = said.to
        && said.to != came.to
    {
        let engine = came.to.map_or("nobody".to_string(), |to| to.to_string());
        return Some(sides("to", &trace, &engine));
    }
    let (send, receive) = came.labels.as_ref()?;
    for (what, trace, engine) in [("s", &said.send, send), ("r", &said.receive, receive)] {
        let Some(trace) = trace.as_ref().filter(|trace| *trace != engine) else { continue };
        let handles = trace.entries.keys().chain(engine.entries.keys());
        let other = handles.copied().find(|handle| trace.get(*handle) != engine.get(*handle));
        return Some(match other.filter(|_| trace.default == engine.default) {
            Some(other) => {
                let what = format!("{what}, for handle {}", other.number());
                sides(&what, &trace.get(other), &engine.get(other))
            }
            None => sides(&format!("{what}, by default"), &trace.default, &engine.default),
        });
    }
    None
}

fn handle_of(number: u64) -> Result<Handle> {
    Handle::new(number).with_context(|| format!("the handle {number} has more than 61 bits"))
}

fn level_of(number: i64) -> Result<Level> {
    Level::from_number(number).with_context(|| format!("there is no level {number}: from -1 (★) to 3"))
}

impl Label {
    fn read(self) -> Result<spec::Label> {
        let mut label = spec::Label::of(level_of(self.default)?);
        let mut seen = std::collections::BTreeSet::new();
        for (handle, level) in self.entries {
            let handle = handle_of(handle)?;
            if !seen.insert(handle) {
                bail!("the handle {} stands in it twice", handle.number());
            }
            label.set(handle, level_of(level)?);
        }
        Ok(label)
    }

    fn write(label: &spec::Label) -> Self {
        let entries = label.entries.iter().map(|(handle, level)| (handle.number(), level.number().into())).collect();
        Self { default: label.default.number().into(), entries }
    }
}

fn trace(ScriptOptions { seed, steps }: &ScriptOptions) -> Result<()> {
    let (mut world, mut script) = (World::new(), Script::new(*seed));
    let mut output = BufWriter::new(std::io::stdout().lock());
    for _ in 0..*steps {
        let step = script.next(&world);
        let came = world.step(&step)?;
        serde_json::to_writer(&mut output, &written(&step, came))?;
        writeln!(output)?;
    }
    Ok(output.flush()?)
}

fn written(step: &Step, came: Option<Outcome>) -> Line {
    match step {
        Step::NewDomain(domain) => Line::NewDomain { domain: *domain },
        Step::NewHandle(domain, handle) => Line::NewHandle { domain: *domain, handle: handle.number() },
        Step::NewPort(domain, handle, label) => {
            Line::NewPort { domain: *domain, handle: handle.number(), label: Label::write(label) }
        }
        Step::RaiseSend(domain, handle, level) => {
            Line::RaiseSend { domain: *domain, handle: handle.number(), level: level.number().into() }
        }
        Step::LowerReceive(domain, handle, level) => {
            Line::LowerReceive { domain: *domain, handle: handle.number(), level: level.number().into() }
        }
        Step::Send { from, port, optional } => {
            let (delivered, to, labels) =
                came.map_or((false, None, None), |came| (came.delivered, came.to, came.labels));
            let (s, r) = labels.map(|(s, r)| (Label::write(&s), Label::write(&r))).unzip();
            let write = |label| Some(Label::write(label));
            Line::Send(Box::new(Send {
                from: *from,
                port: port.number(),
                cs: write(&optional.contaminate),
                ds: write(&optional.decontaminate_send),
                v: write(&optional.verify),
                dr: write(&optional.decontaminate_receive),
                delivered,
                to,
                s,
                r,
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::read_text;

    /// Lines and disagreement of a trace that can be read to its end.
    fn whole(trace: impl BufRead) -> Result<(usize, Option<String>)> {
        let mut judged = Judged::default();
        judge(trace, &mut judged)?;
        Ok((judged.lines, judged.disagreement))
    }

    fn script(seed: u64, steps: usize) -> String {
        let (mut world, mut script) = (World::new(), Script::new(seed));
        let lines = (0..steps).map(|_| {
            let step = script.next(&world);
            let came = world.step(&step).expect("a step");
            serde_json::to_string(&written(&step, came)).expect("a line") + "\n"
        });
        lines.collect()
    }

    #[test]
    fn a_written_trace_is_judged_to_be_right() {
        let text = script(3, 500);
        assert_eq!(whole(text.as_bytes()).expect("a trace"), (500, None));
        assert!(text.contains(r#""delivered":true"#) && text.contains(r#""delivered":false"#));
    }

    /// Each message that says something else about one thing is found, where it is said.
    #[test]
    fn each_change_is_found() {
        let text = script(5, 300);
        let lines: Vec<&str> = text.lines().collect();
        let mut changes = 0;
        for (place, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(r#""op":"send""#)) {
            for (from, to, what) in [
                (r#""delivered":true"#, r#""delivered":false"#, "delivered"),
                (r#""delivered":false"#, r#""delivered":true"#, "delivered"),
                (r#""s":{"default":1"#, r#""s":{"default":2"#, "s"),
                (r#""r":{"default":2"#, r#""r":{"default":3"#, "r"),
            ] {
                if !line.contains(from) {
                    continue;
                }
                let mut changed = lines.clone();
                let other = line.replace(from, to);
                changed[place] = &other;
                let (count, found) = whole(changed.join("\n").as_bytes()).expect("a trace");
                let found = found.expect("a disagreement");
                assert_eq!(count, lines.len());
                assert!(
                    found.starts_with(&format!("line {}: {what}", place + 1)) && found.contains(": the trace says "),
                    "{found}"
                );
                changes += 1;
            }
        }
        assert!(changes > 100, "{changes}");
    }

    /// The chapter on labels has what comes of its examples; each of them is a message about which something is said.
    #[test]
    fn the_books_examples_are_right() {
        let chapter = read_text(Path::new("../docs/book/labels.md")).expect("the chapter");
        let blocks = chapter.split("```json").skip(1).filter_map(|block| block.split_once("```"));
        let text: String = blocks.map(|(block, _)| block).collect();
        assert!(text.matches(r#""delivered":"#).count() >= 10);
        let (_, disagreement) = whole(text.as_bytes()).expect("a trace");
        assert_eq!(disagreement, None);
        for label in [r#","s":"#, r#","r":"#, r#","to":"#] {
            assert_eq!(text.matches(label).count(), text.matches(r#""op":"send""#).count(), "{label}");
        }
    }

    /// The chapter shows each part of the program that runs, and nothing else.
    #[test]
    fn the_books_program_is_the_one_that_runs() {
        let read = |path: &str| read_text(Path::new(path)).expect("a file of the tree");
        for (chapter, program) in [("labels", "example"), ("ports", "ports")] {
            let chapter = read(&format!("../docs/book/{chapter}.md"));
            let program = read(&format!("../components/selftest/src/{program}.rs"));
            is_shown(&chapter, &program);
        }
    }

    fn is_shown(chapter: &str, program: &str) {
        let shown: Vec<&str> =
            chapter.split("```rust\n").skip(1).filter_map(|block| Some(block.split_once("```")?.0)).collect();
        let parts = program.split("// [").skip(1).filter(|part| !part.starts_with("end]")).map(|part| {
            let (_, lines) = part.split_once("]\n").expect("the name of a part");
            let lines = lines.trim_end_matches(' ');
            let depth = lines.len() - lines.trim_start_matches(' ').len();
            lines.lines().map(|line| format!("{}\n", line.get(depth..).unwrap_or(""))).collect::<String>()
        });
        let missing: Vec<String> = parts.clone().filter(|part| !shown.contains(&part.as_str())).collect();
        assert_eq!((missing, shown.len()), (Vec::new(), parts.count()));
    }

    /// A disagreement about a label names the handle; one about a port that is not there is reported, too.
    #[test]
    fn both_sides_are_notified() {
        let begin = concat!(
            r#"{"op":"new_domain","domain":1}"#,
            "\n",
            r#"{"op":"new_port","domain":1,"handle":7,"label":{"default":3}}"#,
            "\n\n"
        );
        for (line, reported) in [
            (
                r#"{"op":"send","from":1,"port":7,"delivered":true,"to":1,"s":{"default":1,"entries":[[7,0]]}}"#,
                "line 4: s, for handle 7: the trace says 0, the engine ★",
            ),
            (
                r#"{"op":"send","from":1,"port":7,"delivered":true,"r":{"default":2,"entries":[[9,3]]}}"#,
                "line 4: r, for handle 9: the trace says 3, the engine 2",
            ),
            (
                r#"{"op":"send","from":1,"port":7,"delivered":true,"r":{"default":1}}"#,
                "line 4: r, by default: the trace says 1, the engine 2",
            ),
            (
                r#"{"op":"send","from":1,"port":7,"delivered":true,"to":2}"#,
                "line 4: to: the trace says 2, the engine 1",
            ),
            (
                r#"{"op":"send","from":1,"port":8,"delivered":false,"to":2}"#,
                "line 4: to: the trace says 2, the engine nobody",
            ),
            (
                r#"{"op":"send","from":1,"port":8,"delivered":true}"#,
                "line 4: delivered: the trace says true, the engine false",
            ),
        ] {
            let (lines, disagreement) = whole(format!("{begin}{line}\n\n").as_bytes()).expect("a trace");
            assert_eq!((lines, disagreement.as_deref()), (5, Some(reported)));
        }
    }

    /// The disagreement stays the first report, and the bad line is reported, too.
    #[test]
    fn a_bad_line_after_a_disagreement_hides_nothing() {
        let trace = concat!(
            r#"{"op":"new_domain","domain":1}"#,
            "\n",
            r#"{"op":"send","from":1,"port":8,"delivered":true}"#,
            "\n{\n"
        );
        let mut judged = Judged::default();
        let error = judge(trace.as_bytes(), &mut judged).expect_err("a line that is none");
        assert!(format!("{error:#}").starts_with("line 3: column 1: "), "{error:#}");
        let reported = "2 lines; line 2: delivered: the trace says true, the engine false";
        assert_eq!(judged.outcome(false), (Some(reported.to_string()), DIFFERS));
        assert_eq!(Judged::default().outcome(false), (None, NO_TRACE));
        assert_eq!(Judged::default().outcome(true), (Some("0 lines, no disagreement".to_string()), 0));
    }

    #[test]
    fn engine_and_specification_that_disagree_are_no_bad_trace() {
        let differs = Mistake::Differs("s", "{1}".to_string(), "{2}".to_string());
        let found = disagreement(Err(differs), None).expect("a trace").expect("a disagreement");
        assert_eq!(found, "engine and specification disagree: s: the engine says {1}, the specification {2}");
        assert!(disagreement(Err(Mistake::NoDomain(7)), None).is_err());
        assert_eq!(disagreement(Ok(None), None).expect("a trace"), None);
    }

    #[test]
    fn malformed_traces_are_reported() {
        for (line, cause) in [
            ("{", "column 1: EOF while parsing"),
            ("[\"new_domain\",2]", "it does not begin with {: a line is an object of JSON"),
            ("\u{feff}{}", "it does not begin with {: a line is an object of JSON"),
            (r#"{"op":"new_dominion","domain":1}"#, "unknown variant `new_dominion`"),
            (r#"{"op":"new_domain","domain":-1}"#, "invalid value: integer `-1`"),
            (r#"{"op":"new_domain","domain":1.5}"#, "invalid type: floating point `1.5`"),
            (r#"{"op":"new_domain","domain":1,"handle":2}"#, "unknown field `handle`"),
            (r#"{"op":"new_domain","domain":1,"domain":2}"#, "duplicate field `domain`"),
            (r#"{"op":"new_domain"}"#, "missing field `domain`"),
            (r#"{"op":"new_domain","domain":1} {"#, "column 32: trailing characters"),
            (
                r#"{"op":"new_handle","domain":1,"handle":2305843009213693952}"#,
                "the handle 2305843009213693952 has more than 61 bits",
            ),
            (r#"{"op":"raise_send","domain":1,"handle":2,"level":4}"#, "there is no level 4: from -1 (★) to 3"),
            (r#"{"op":"raise_send","domain":7,"handle":2,"level":3}"#, "there is no domain 7: new_domain makes it"),
            (
                r#"{"op":"new_port","domain":1,"handle":2,"label":{"default":3,"entries":[[5,1],[5,2]]}}"#,
                "label: the handle 5 stands in it twice",
            ),
            (
                r#"{"op":"send","from":1,"port":2,"delivered":true,"v":{"default":9}}"#,
                "v: there is no level 9: from -1 (★) to 3",
            ),
        ] {
            let text = format!("{{\"op\":\"new_domain\",\"domain\":1}}\n\n{line}\n");
            let error = format!("{:#}", whole(text.as_bytes()).expect_err("a mistake"));
            assert!(error.starts_with("line 3: ") && error.contains(cause), "{error}");
            assert!(error.len() < 300, "{error}");
        }
        let mut bytes = b"{\"op\":\"new_domain\",\"domain\":1}\r\n".to_vec();
        assert_eq!(whole(&bytes[..]).expect("a trace"), (1, None));
        bytes.extend(b"{\xff}\n");
        let error = format!("{:#}", whole(&bytes[..]).expect_err("no text"));
        assert!(error.starts_with("line 2: it is no text in UTF-8"), "{error}");
        let error = format!("{:#}", whole(std::io::BufReader::new(std::io::repeat(b'{'))).expect_err("no end"));
        assert_eq!(error, "line 1: it is longer than 16777216 bytes");
    }
}
