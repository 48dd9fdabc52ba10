//! `./x labels`: traces of labels, judged by the engine, and made for others to judge.

use crate::command_line::{LabelsCommand, ReplayOptions, ScriptOptions};
use crate::engine;
use crate::project::Project;
use anyhow::{Context, Result, anyhow, bail};
use flow::trace::{Outcome, Script, Step, World};
use flow::{Handle, Level, specification as spec};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

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

/// The status where trace and engine differ, and where there is no trace.
const DIFFERS: u8 = 1;
const NO_TRACE: u8 = 2;

/// Does what the command says; gives the exit status.
pub fn labels(project: &Project, command: &LabelsCommand) -> Result<u8> {
    match command {
        LabelsCommand::Replay(options) => Ok(replay(options)),
        LabelsCommand::Trace(options) => trace(options).map(|()| 0),
        LabelsCommand::Bench(options) => engine::bench(project, options).map(|()| 0),
    }
}

fn replay(ReplayOptions { file }: &ReplayOptions) -> u8 {
    let judged = if file == Path::new("-") {
        judge(std::io::stdin().lock()).context("standard input is no trace of labels")
    } else {
        let open = File::open(file).map_err(anyhow::Error::from);
        open.and_then(|file| judge(BufReader::new(file)))
            .with_context(|| format!("{} is no trace of labels", file.display()))
    };
    match judged {
        Ok((lines, None)) => {
            println!("{lines} lines, no disagreement");
            0
        }
        Ok((lines, Some(disagreement))) => {
            println!("{lines} lines; {disagreement}");
            DIFFERS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            NO_TRACE
        }
    }
}

/// Bytes of a line, at most: a label of some hundred thousand handles.
const LINE: u64 = 1 << 24;

/// The number of lines, and where a trace does not say what the engine says.
fn judge(mut trace: impl BufRead) -> Result<(usize, Option<String>)> {
    let mut world = World::new();
    let mut disagreement = None;
    let mut lines = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let at = || format!("line {}", lines + 1);
        let count = trace.by_ref().take(LINE).read_until(b'\n', &mut line).with_context(at)?;
        if count == 0 {
            return Ok((lines, disagreement));
        }
        if count as u64 == LINE {
            bail!("{}: it is longer than {LINE} bytes", at());
        }
        let text = std::str::from_utf8(&line).context("it is no text in UTF-8").with_context(at)?.trim();
        if !text.is_empty() {
            let (step, said) = parsed(text).with_context(at)?;
            // What follows a disagreement follows from it; it is only read.
            if disagreement.is_none() {
                let came = world.step(&step).with_context(at)?;
                let difference = came.zip(said).and_then(|(came, said)| difference(&said, &came));
                disagreement = difference.map(|what| format!("{}: {what}", at()));
            }
        }
        lines += 1;
    }
}

/// What is wrong with a line, and where in it.
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

/// What a trace says came of a message; what it leaves out is not compared.
struct Said {
    delivered: bool,
    to: Option<u64>,
    send: Option<spec::Label>,
    receive: Option<spec::Label>,
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
    fn what_is_written_is_agreed_with() {
        let text = script(3, 500);
        assert_eq!(judge(text.as_bytes()).expect("a trace"), (500, None));
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
                let (count, found) = judge(changed.join("\n").as_bytes()).expect("a trace");
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
        let (_, disagreement) = judge(text.as_bytes()).expect("a trace");
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

    /// What is said of a label is told by the handle; what is said of a port that is not there, too.
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
            let (lines, disagreement) = judge(format!("{begin}{line}\n\n").as_bytes()).expect("a trace");
            assert_eq!((lines, disagreement.as_deref()), (5, Some(reported)));
        }
    }

    #[test]
    fn what_is_no_trace_is_reported() {
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
            let error = format!("{:#}", judge(text.as_bytes()).expect_err("a mistake"));
            assert!(error.starts_with("line 3: ") && error.contains(cause), "{error}");
            assert!(error.len() < 300, "{error}");
        }
        let mut bytes = b"{\"op\":\"new_domain\",\"domain\":1}\r\n".to_vec();
        assert_eq!(judge(&bytes[..]).expect("a trace"), (1, None));
        bytes.extend(b"{\xff}\n");
        let error = format!("{:#}", judge(&bytes[..]).expect_err("no text"));
        assert!(error.starts_with("line 2: it is no text in UTF-8"), "{error}");
        let error = format!("{:#}", judge(std::io::BufReader::new(std::io::repeat(b'{'))).expect_err("no end"));
        assert_eq!(error, "line 1: it is longer than 16777216 bytes");
    }
}
