//! The session with gdb that the book shows is held, word for word, on each ISA.

use super::report::{Report, tail};
use super::{book, cases};
use crate::command_line::{Command as Asked, CommandLine, DebugOptions};
use crate::debug::{self, Session};
use crate::emulator::{self, Console, End};
use crate::forward::{Forward, Protocol};
use crate::install;
use crate::project::{Project, read_text};
use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use regex::Regex;
use std::io::{Read, pipe};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Name of the test, which runs on each ISA.
pub const NAME: &str = "debugger";

const CHAPTER: &str = "docs/book/debugging.md";
/// The prompt before input to gdb.
const PROMPT: &str = "(gdb) ";
/// In the chapter: any text, or alone any lines.
const ANY: &str = "…";
/// Time for the session.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the test on the project's ISA.
pub fn check(project: &Project, report: &mut Report) {
    report.run(&cases::on(project.isa, NAME), || {
        install::emulator(project.isa)?;
        install::debugger(project.isa)?;
        verdict(project)?
    });
}

/// Holds the session in a tree. The outer error: it could not be built. The inner one: the test failed.
pub fn verdict(project: &Project) -> Result<Result<()>> {
    let chapter = read_text(&project.root.join(CHAPTER))?;
    let block = |mark: &str| book::marked(&chapter, mark).context(CHAPTER);
    let command = block("<!-- machine -->")?;
    let port = Forward::any(Protocol::Tcp, 0)?.host;
    let session = debug::session(project, &DebugOptions { port, ..asked(&command)? })?;
    let expected = commands(&block("<!-- gdb -->")?)?;
    Ok(hold(&session, &expected, &block("<!-- console -->")?))
}

/// Parses the options of a line `./x debug …`.
fn asked(lines: &[String]) -> Result<DebugOptions> {
    let [line] = lines else { bail!("{CHAPTER}: one line starts the machine") };
    let words: Vec<&str> = line
        .split('\'')
        .enumerate()
        .flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        })
        .collect();
    match CommandLine::try_parse_from(words)?.command {
        Asked::Debug(options) => Ok(options),
        _ => bail!("{CHAPTER}: `{line}` debugs nothing"),
    }
}

/// Boots, has gdb do what is typed, and compares what both print.
fn hold(session: &Session, expected: &[Typed], console: &[String]) -> Result<()> {
    let (boot, found) = thread::scope(|scope| {
        let boot = scope.spawn(|| {
            let console = Console::Steps { steps: &[], echo: false };
            emulator::boot(&session.image, &session.machine, console, Some(LIMIT))
        });
        let found = gdb(session, expected);
        (boot.join(), found)
    });
    let found = commands(&found?)?;
    for (expected, found) in expected.iter().zip(&found) {
        ensure!(
            expected.lines_fit(&found.lines),
            "after `{}` the chapter shows\n{}and gdb printed\n{}",
            expected.command,
            tail(&expected.lines.join("\n"), 40),
            tail(&found.lines.join("\n"), 40)
        );
    }
    ensure!(found.len() == expected.len(), "gdb ended after {} of {} commands", found.len(), expected.len());
    let (end, output) = boot.unwrap_or_else(|_| bail!("the boot panicked"))?;
    let output = String::from_utf8_lossy(&output);
    ensure!(end == End::Status(0), "the machine ended with {end:?} and printed\n{}", tail(&output, 20));
    let printed: Vec<&str> = output.lines().map(str::trim_end).collect();
    ensure!(printed.ends_with(&console.iter().map(String::as_str).collect::<Vec<_>>()), "it printed\n{output}");
    Ok(())
}

/// The lines that gdb prints, with the commands before what each prints.
fn gdb(session: &Session, expected: &[Typed]) -> Result<Vec<String>> {
    let (program, words) = &session.gdb;
    let typed = expected.iter().flat_map(|Typed { command, .. }| {
        let said = format!("echo {PROMPT}{}\\n", command.replace('\\', "\\\\"));
        ["-ex".into(), said, "-ex".into(), command.clone()]
    });
    let (mut reader, writer) = pipe()?;
    let mut command = Command::new(program);
    command.args(["-nx", "-batch"]).args(words).args(typed).stdin(Stdio::null());
    // Errors are printed among the rest.
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    drop(command);
    let mut printed = Vec::new();
    reader.read_to_end(&mut printed)?;
    child.wait()?;
    let printed = String::from_utf8_lossy(&printed).into_owned();
    Ok(printed.lines().skip_while(|line| !line.starts_with(PROMPT)).map(String::from).collect())
}

/// The input to gdb, and the lines that it prints then.
#[derive(Debug, PartialEq, Eq)]
struct Typed {
    command: String,
    lines: Vec<String>,
}

/// The commands in a session, without empty lines.
fn commands(lines: &[String]) -> Result<Vec<Typed>> {
    let mut commands: Vec<Typed> = Vec::new();
    for line in lines {
        match (line.strip_prefix(PROMPT), commands.last_mut()) {
            (Some(command), _) => commands.push(Typed { command: command.into(), lines: Vec::new() }),
            (None, Some(last)) if !line.trim().is_empty() => last.lines.push(line.clone()),
            (None, Some(_)) => {}
            (None, None) => bail!("nothing was typed before `{line}`"),
        }
    }
    ensure!(!commands.is_empty(), "nothing is typed into gdb");
    Ok(commands)
}

impl Typed {
    /// Are these lines what the chapter shows, but for numbers of addresses and lines?
    fn lines_fit(&self, found: &[String]) -> bool {
        let pattern: String = self
            .lines
            .iter()
            .map(|line| match line.trim() {
                ANY => "(.*\n)*".into(),
                _ => plain(line).split(ANY).map(regex::escape).collect::<Vec<_>>().join(".*") + "\n",
            })
            .collect();
        let found: String = found.iter().map(|line| plain(line) + "\n").collect();
        Regex::new(&format!("^{pattern}$")).is_ok_and(|pattern| pattern.is_match(&found))
    }
}

/// A line with one space for several, and without what another build changes: addresses and numbers of lines.
fn plain(line: &str) -> String {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts =
        [(r"\b0x[0-9a-f]+", "0x0"), (r"^[0-9]+ ", "1 "), (r":[0-9]+$", ":1"), (r", line [0-9]+\.", ", line 1.")];
    parts.iter().fold(line, |line, (pattern, same)| match Regex::new(pattern) {
        Ok(pattern) => pattern.replace_all(&line, *same).into_owned(),
        Err(_) => line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(String::from).collect()
    }

    #[test]
    fn a_session_is_read_and_compared() {
        let session =
            commands(&lines("(gdb) bt\n#0  main (x=1) at a.rs:7\n\n…\n#9 0x12 in … ()\n(gdb) detach")).unwrap();
        assert_eq!(session.iter().map(|typed| typed.command.as_str()).collect::<Vec<_>>(), ["bt", "detach"]);
        let fits = |found: &str| session[0].lines_fit(&lines(found));
        assert!(fits("#0 main (x=1) at a.rs:80\n#9  0xabc in f ()"));
        assert!(fits("#0 main (x=1) at a.rs:80\n#1 g\n#2 h\n#9  0xabc in f ()"));
        assert!(!fits("#0 main (x=2) at a.rs:7\n#9  0x12 in f ()"));
        assert!(!fits("#0 main (x=1) at a.rs:7"));
        assert!(!fits("#0 main (x=1) at a.rs:7\n#9  0x12 in f ()\nmore"));
        assert!(session[1].lines_fit(&[]));
        assert!(!session[1].lines_fit(&lines("No stack.")));
        assert!(commands(&lines("bt\n")).is_err());
        assert!(commands(&[]).is_err());
    }

    #[test]
    fn the_machine_is_the_one_that_is_asked_for() {
        let options = asked(&lines("./x debug --component names --exec 'kill names; ls /'")).unwrap();
        assert_eq!(options.component.as_deref(), Some("names"));
        assert_eq!(options.exec.as_deref(), Some("kill names; ls /"));
        assert!(asked(&lines("./x run")).is_err());
        assert!(asked(&[]).is_err());
    }
}
