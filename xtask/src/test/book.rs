//! A check of the documents: the tutorial is done step by step in a copy of the tree, and the
//! transcripts of README and book are typed and compared.

use super::report::{Report, tail};
use super::{cases, copy};
use crate::build::Checks;
use crate::emulator::{self, Console, End, Machine, Step};
use crate::image::{self, Image, Size, System};
use crate::project::{Project, read_text, write};
use anyhow::{Context, Result, bail};
use regex::bytes::Regex;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Names of the two tests.
pub const NAMES: [&str; 2] = ["tutorial", TRANSCRIPT];
/// The one that is done on each ISA.
pub const TRANSCRIPT: &str = "transcript";

/// Done one after the other in the same copy.
const TUTORIALS: [&str; 5] = [
    "docs/book/first-component.md",
    "docs/book/own-program.md",
    "docs/book/own-interface.md",
    "docs/book/driver.md",
    "docs/book/network-service.md",
];
/// The documents with input to type, each at a machine of its own.
const TYPED: [&str; 2] = ["README.md", "docs/book/compartments.md"];
const MEMORY: &str = "64M";
/// Time for a transcript.
const LIMIT: Duration = Duration::from_secs(60);

/// The tutorials.
pub fn tutorial(project: &Project, report: &mut Report) {
    report.run("tutorial", || {
        let copy = copy::tree(project)?;
        TUTORIALS.iter().try_for_each(|chapter| do_as_asked(project, &copy, chapter).context(*chapter))
    });
}

/// Does what a chapter says, in a copy of the tree.
fn do_as_asked(project: &Project, copy: &Project, chapter: &str) -> Result<()> {
    let marks = marks(&read_text(&project.root.join(chapter))?)?;
    if !marks.iter().any(|mark| matches!(mark, Mark::Prints(_))) {
        bail!("nothing to compare: no `<!-- prints -->`");
    }
    let mut printed = String::new();
    for mark in marks {
        match mark {
            Mark::File(path, text) => {
                let path = copy.root.join(path);
                fs::create_dir_all(path.parent().context("a file without a folder")?)?;
                write(&path, text.as_bytes())?;
            }
            Mark::Run(commands) => {
                printed.clear();
                for command in commands {
                    printed += &run(copy, &command)?;
                }
            }
            Mark::Prints(lines) => {
                prints(&lines, &printed).with_context(|| format!("it printed\n{}", tail(&printed, 40)))?;
            }
        }
    }
    Ok(())
}

/// The transcripts of README and book, on the project's ISA.
pub fn transcript(project: &Project, report: &mut Report) {
    report.run(&cases::on(project.isa, TRANSCRIPT), || {
        let system = System::read(project, Path::new("systems/default.toml"))?;
        let image = image::make(project, &system, Checks::On, Size::of(MEMORY, 1)?, None)?;
        TYPED.iter().try_for_each(|document| type_and_compare(project, &image, document).context(*document))
    });
}

/// Types what a document has as typed, and compares what comes out.
fn type_and_compare(project: &Project, image: &Image, document: &str) -> Result<()> {
    let expected = marked(&read_text(&project.root.join(document))?, "<!-- transcript -->")?;
    let steps = expected.iter().filter_map(|line| step(line)).collect::<Result<Vec<_>>>()?;
    if steps.is_empty() {
        bail!("nothing is typed in the transcript");
    }
    let machine = Machine { icount: true, ..Machine::new(MEMORY) };
    let console = Console::Steps { steps: &steps, echo: false };
    let (end, output) = emulator::boot(image, &machine, console, Some(LIMIT))?;
    let found = visible(&String::from_utf8_lossy(&output));
    // The greeting comes before the first prompt.
    let first = found.iter().position(|line| prompt_of(line).is_some()).context("no prompt came")?;
    let found = &found[first..];
    for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
        if without_addresses(expected) != without_addresses(found) {
            bail!("line {} of the transcript is `{expected}`, and what came is `{found}`", number + 1);
        }
    }
    if found.len() != expected.len() {
        bail!("the transcript has {} lines, and {} came: {found:?}", expected.len(), found.len());
    }
    match end {
        End::Status(0) => Ok(()),
        other => bail!("the machine ended with {other:?}"),
    }
}

/// The line without digits of addresses: they are others in every build.
fn without_addresses(line: &str) -> String {
    let mut parts = line.split("0x");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + "0x" + part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit()))
}

/// The prompt that a line begins with.
fn prompt_of(line: &str) -> Option<&str> {
    let end = line.strip_prefix("cairn:")?.find("$ ")?;
    line.get(.."cairn:".len() + end + 2)
}

/// The input for a line of the transcript, if something is typed.
fn step(line: &str) -> Option<Result<Step>> {
    let prompt = prompt_of(line)?;
    let after = Regex::new(&regex::escape(prompt)).context("a prompt");
    Some(after.map(|after| Step {
        after,
        send: format!("{}\r", &line[prompt.len()..]).into_bytes(),
        fetch: None,
        work: None,
    }))
}

/// Lines as a terminal shows them that is wide enough: without control sequences.
fn visible(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' if rest.next_if_eq(&'[').is_some() => while rest.next().is_some_and(|c| !c.is_ascii_alphabetic()) {},
            '\r' => {}
            c => plain.push(c),
        }
    }
    plain.lines().map(|line| line.trim_end().to_string()).collect()
}

/// Something that the tutorial has done.
#[derive(Debug, PartialEq, Eq)]
enum Mark {
    /// This file has this content.
    File(String, String),
    /// These commands end well.
    Run(Vec<String>),
    /// The commands before printed these, in this order.
    Prints(Vec<String>),
}

/// The marked blocks of a chapter.
fn marks(text: &str) -> Result<Vec<Mark>> {
    let mut marks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(mark) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) else { continue };
        let block = block(&mut lines).with_context(|| format!("after the mark `{mark}`"))?;
        marks.push(match (mark, mark.strip_prefix("file: ")) {
            (_, Some(path)) => Mark::File(path.into(), block.join("\n") + "\n"),
            ("run", None) => Mark::Run(block),
            ("prints", None) => Mark::Prints(block),
            _ => bail!("there is no mark `{mark}`"),
        });
    }
    Ok(marks)
}

/// The lines of the blocks that stand after a line `mark`.
pub fn marked(text: &str, mark: &str) -> Result<Vec<String>> {
    let mut lines = text.lines();
    let mut marked = Vec::new();
    while lines.any(|line| line == mark) {
        marked.extend(block(&mut lines).with_context(|| format!("after the mark {mark}"))?);
    }
    if marked.is_empty() {
        bail!("no line is {mark}, or nothing follows");
    }
    Ok(marked)
}

/// The lines of the fenced block that comes next.
fn block<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Result<Vec<String>> {
    if !lines.next().is_some_and(|line| line.starts_with("```")) {
        bail!("no fenced block follows");
    }
    let mut block = Vec::new();
    for line in lines {
        if line.starts_with("```") {
            return Ok(block);
        }
        block.push(line.into());
    }
    bail!("the fenced block does not end")
}

/// Runs a command for sh in the copy; gives what it printed.
fn run(copy: &Project, command: &str) -> Result<String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(&copy.root).env("CARGO_TARGET_DIR", &copy.target).stdin(Stdio::null());
    let output = shell.output().context("cannot start sh")?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{command}` failed: {}\n{}", output.status, tail(&format!("{printed}{said}"), 40));
    }
    Ok(printed)
}

/// Each line is part of a line of what was printed, in this order.
fn prints(lines: &[String], printed: &str) -> Result<()> {
    let mut rest = printed.lines();
    for line in lines {
        if !rest.any(|found| found.contains(line.as_str())) {
            bail!("this did not come, or not in its place: {line}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read() {
        let text = "<!--\n  run  explained\n-->\n# Title\n```\nnot this\n```\n<!-- run -->\n```sh\na\nb\n```\n\
                    <!-- prints -->\n```\nc\n```\n<!-- file: d/e -->\n```\nf\n```\n";
        let expected = [
            Mark::Run(vec!["a".into(), "b".into()]),
            Mark::Prints(vec!["c".into()]),
            Mark::File("d/e".into(), "f\n".into()),
        ];
        assert_eq!(marks(text).unwrap(), expected);
        for bad in ["<!-- walk -->\n```\n```\n", "<!-- run -->\ntext\n", "<!-- run -->\n```\nnever ends\n"] {
            assert!(marks(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn printed_lines_come_in_order() {
        let lines = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
        assert!(prints(&lines("one\ntwo"), "zero\nis one\ntwo three\n").is_ok());
        assert!(prints(&lines("two\none"), "one\ntwo\n").is_err());
        assert!(prints(&lines("one\none"), "one\n").is_err());
    }

    #[test]
    fn typed_lines_are_distinguished_from_others() {
        assert_eq!(prompt_of("cairn:/tmp$ ls"), Some("cairn:/tmp$ "));
        assert_eq!(prompt_of("cairn:"), None);
        assert_eq!(prompt_of("ls"), None);
        let step = step("cairn:/$ echo $?").unwrap().unwrap();
        assert_eq!(step.send, b"echo $?\r");
        assert!(step.after.is_match(b"cairn:/$ "));
        assert_eq!(visible("a\x1b[K\x1b[12Cb\r\nc \n"), ["ab", "c"]);
    }
}
