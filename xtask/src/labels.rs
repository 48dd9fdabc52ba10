//! `./x labels`: traces of labels, judged by the engine, and made for others to judge.

use crate::command_line::{LabelsCommand, ReplayOptions, ScriptOptions};
use crate::project::read_text;
use anyhow::{Context, Result, bail};
use flow::trace::{Outcome, Script, Step, World};
use flow::{Handle, Level, specification as spec};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::{BufWriter, Read, Write};
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

/// Does what the command says; gives the exit status.
pub fn labels(command: &LabelsCommand) -> Result<u8> {
    match command {
        LabelsCommand::Replay(options) => replay(options),
        LabelsCommand::Trace(options) => trace(options).map(|()| 0),
    }
}

fn replay(ReplayOptions { file }: &ReplayOptions) -> Result<u8> {
    let (name, text) = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
        ("standard input".into(), text)
    } else {
        (file.display().to_string(), read_text(file)?)
    };
    let (lines, disagreement) = judge(&text).with_context(|| format!("{name} is no trace of labels"))?;
    match disagreement {
        None => {
            println!("{lines} lines, no disagreement");
            Ok(0)
        }
        Some(disagreement) => {
            println!("{lines} lines; {disagreement}");
            Ok(1)
        }
    }
}

/// The number of lines, and where a trace does not say what the engine says.
fn judge(text: &str) -> Result<(usize, Option<String>)> {
    let mut world = World::new();
    let mut disagreement = None;
    let mut count = 0;
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        count += 1;
        if disagreement.is_some() {
            continue;
        }
        let at = || format!("line {}", place + 1);
        let (step, said) = parsed(line).with_context(at)?;
        let came = world.step(&step).with_context(at)?;
        disagreement =
            came.zip(said).and_then(|(came, said)| difference(&said, &came)).map(|what| format!("{}: {what}", at()));
    }
    Ok((count, disagreement))
}

/// A step, and what the trace says came of it.
fn parsed(line: &str) -> Result<(Step, Option<Said>)> {
    let line: Line = serde_json::from_str(line).context("it cannot be read")?;
    Ok(match line {
        Line::NewDomain { domain } => (Step::NewDomain(domain), None),
        Line::NewHandle { domain, handle } => (Step::NewHandle(domain, handle_of(handle)?), None),
        Line::NewPort { domain, handle, label } => (Step::NewPort(domain, handle_of(handle)?, label.read()?), None),
        Line::RaiseSend { domain, handle, level } => {
            (Step::RaiseSend(domain, handle_of(handle)?, level_of(level)?), None)
        }
        Line::LowerReceive { domain, handle, level } => {
            (Step::LowerReceive(domain, handle_of(handle)?, level_of(level)?), None)
        }
        Line::Send(send) => {
            let Send { from, port, cs, ds, v, dr, delivered, to, s, r } = *send;
            let read = |label: Option<Label>| label.map(|label| label.read()).transpose();
            let or = |label: Option<Label>, default| {
                Ok::<_, anyhow::Error>(read(label)?.unwrap_or(spec::Label::of(default)))
            };
            let optional = spec::Optional {
                contaminate: or(cs, Level::Star)?,
                decontaminate_send: or(ds, Level::Three)?,
                verify: or(v, Level::Three)?,
                decontaminate_receive: or(dr, Level::Star)?,
            };
            let step = Step::Send { from, port: handle_of(port)?, optional };
            (step, Some(Said { delivered, to, send: read(s)?, receive: read(r)? }))
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
        Some(format!("{what}: the trace says {trace}, the engine {engine}"))
    };
    if said.delivered != came.delivered {
        return sides("delivered", &said.delivered, &came.delivered);
    }
    if let (Some(trace), Some(engine)) = (said.to, came.to)
        && trace != engine
    {
        return sides("to", &trace, &engine);
    }
    let (send, receive) = came.labels.as_ref()?;
    let labels = [("s", &said.send, send), ("r", &said.receive, receive)];
    let (what, trace, engine) =
        labels.into_iter().find(|(_, trace, engine)| trace.as_ref().is_some_and(|trace| trace != *engine))?;
    sides(what, trace.as_ref()?, engine)
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
                bail!("the handle {} stands in a label twice", handle.number());
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
        assert_eq!(judge(&text).expect("a trace"), (500, None));
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
                let (count, found) = judge(&changed.join("\n")).expect("a trace");
                let found = found.expect("a disagreement");
                assert_eq!(count, lines.len());
                assert!(found.starts_with(&format!("line {}: {what}: the trace says ", place + 1)), "{found}");
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
        let (_, disagreement) = judge(&text).expect("a trace");
        assert_eq!(disagreement, None);
        for label in [r#","s":"#, r#","r":"#, r#","to":"#] {
            assert_eq!(text.matches(label).count(), text.matches(r#""op":"send""#).count(), "{label}");
        }
    }

    #[test]
    fn what_is_no_trace_is_told() {
        for (line, cause) in [
            ("{", "it cannot be read"),
            (r#"{"op":"new_dominion","domain":1}"#, "it cannot be read"),
            (r#"{"op":"new_domain","domain":-1}"#, "it cannot be read"),
            (r#"{"op":"new_domain","domain":1,"handle":2}"#, "it cannot be read"),
            (
                r#"{"op":"new_handle","domain":1,"handle":2305843009213693952}"#,
                "the handle 2305843009213693952 has more than 61 bits",
            ),
            (r#"{"op":"raise_send","domain":1,"handle":2,"level":4}"#, "there is no level 4: from -1 (★) to 3"),
            (r#"{"op":"raise_send","domain":7,"handle":2,"level":3}"#, "there is no domain 7: new_domain makes it"),
            (
                r#"{"op":"new_port","domain":1,"handle":2,"label":{"default":3,"entries":[[5,1],[5,2]]}}"#,
                "the handle 5 stands in a label twice",
            ),
        ] {
            let error = judge(&format!("{{\"op\":\"new_domain\",\"domain\":1}}\n\n{line}\n")).expect_err("a mistake");
            let text = format!("{error:#}");
            assert!(text.starts_with("line 3: ") && text.contains(cause), "{text}");
        }
    }
}
