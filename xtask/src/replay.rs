//! `./x labels replay FILE --machine`: a trace of labels in a system of its own, `systems/replay.toml`. The program `selftest replay` makes
//! the steps with domains, ports and messages, and compares.

use crate::build::{self, Checks, Programs};
use crate::emulator::{self, Console, End, Machine, TimedOut};
use crate::image::{self, Size, System};
use crate::install;
use crate::project::{Project, write};
use anyhow::{Context, Result, bail, ensure};
use flow::specification::Label;
use flow::trace::Step;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SYSTEM: &str = "systems/replay.toml";
/// Where the boot archive has the trace, and its most bytes: the machine has this much memory beside.
const TRACE: &str = "trace";
const MOST: usize = 64 << 20;
const MEMORY: &str = "256M";
/// The beginning of what the program prints.
const SAYS: &str = "replay: ";

/// A trace's statement of the outcome of a message; omitted parts are not compared.
pub struct Said {
    /// Whether it was taken.
    pub delivered: bool,
    /// The owner of the port.
    pub to: Option<u64>,
    /// That domain's labels afterwards.
    pub send: Option<Label>,
    /// See `send`.
    pub receive: Option<Label>,
}

/// Steps as the program reads them.
#[derive(Default)]
pub struct Steps(String);

impl Steps {
    /// Adds the step of a line, and what the trace says came of it.
    pub fn add(&mut self, line: usize, step: &Step, said: Option<&Said>) {
        let text = match step {
            Step::NewDomain(domain) => format!("new_domain {domain}"),
            Step::NewHandle(domain, handle) => format!("new_handle {domain} {}", handle.number()),
            Step::NewPort(domain, handle, label) => {
                format!("new_port {domain} {} {}", handle.number(), written(Some(label)))
            }
            Step::RaiseSend(domain, handle, level) => {
                format!("raise_send {domain} {} {}", handle.number(), level.number())
            }
            Step::LowerReceive(domain, handle, level) => {
                format!("lower_receive {domain} {} {}", handle.number(), level.number())
            }
            Step::Send { from, port, optional } => {
                // A label that is the default is left out: the machine then sends without it.
                let usual = flow::specification::Optional::default();
                let labels = optional.all().into_iter().zip(usual.all());
                let labels = labels.map(|(label, usual)| written(Some(label).filter(|label| *label != usual)));
                let due = said.map_or(String::new(), |said| {
                    let to = said.to.map_or("-".to_string(), |to| to.to_string());
                    let [s, r] = [&said.send, &said.receive].map(|label| written(label.as_ref()));
                    format!("{} {to} {s} {r}", said.delivered)
                });
                let labels = labels.collect::<Vec<_>>().join(" ");
                format!("send {from} {} {labels} {due}", port.number())
            }
        };
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line} {text}");
    }

    /// Refuses more steps than the machine has room for.
    pub fn fit(&self) -> Result<()> {
        let [size, most] = [self.0.len(), MOST].map(|bytes| bytes >> 20);
        ensure!(
            self.0.len() <= MOST,
            "the trace takes {size} MiB in the machine, and at most {most}: replay less of it"
        );
        Ok(())
    }
}

fn written(label: Option<&Label>) -> String {
    let Some(label) = label else { return "-".into() };
    let entries = label.entries.iter().map(|(handle, level)| format!(",{}:{}", handle.number(), level.number()));
    format!("{}{}", label.default.number(), entries.collect::<String>())
}

/// The system that replays, built.
pub struct Replay {
    project: Project,
    nucleus: PathBuf,
    programs: Programs,
}

impl Replay {
    /// Builds it for the project's ISA.
    pub fn build(project: &Project, checks: Checks) -> Result<Self> {
        install::emulator(project.isa)?;
        let nucleus = build::nucleus(project, checks)?;
        let programs = build::programs(project, &System::read(project, Path::new(SYSTEM))?.programs())?;
        Ok(Self { project: project.clone(), nucleus, programs })
    }

    /// Makes the steps; gives the last line of the program, and whether machine and trace agree.
    pub fn compare(&self, Steps(text): &Steps, limit: Duration, echo: bool) -> Result<(String, bool)> {
        let scratch = self.project.scratch()?;
        let file = scratch.file(TRACE);
        write(&file, text.as_bytes())?;
        let mut system = System::read(&self.project, Path::new(SYSTEM))?;
        system.add_file(TRACE, &file);
        let plan = system.plan(&self.project, Some(Size::of(MEMORY, 1)?))?;
        let image = image::pack(&self.project, &system, &plan, self.nucleus.clone(), &self.programs, None)?;
        let console = Console::Steps { steps: &[], echo };
        let (end, output) = emulator::boot(&image, &Machine::new(MEMORY), console, Some(limit))?;
        let output = String::from_utf8_lossy(&output).into_owned();
        let last = output.lines().rev().find_map(|line| line.trim().strip_prefix(SAYS));
        match end {
            End::Status(0) => {
                let last = last.with_context(|| format!("the machine said nothing of the trace:\n{output}"))?;
                Ok((last.to_string(), last.ends_with("no disagreement")))
            }
            End::TimedOut => Err(TimedOut(limit.as_secs_f64()).into()),
            _ => bail!("the machine could not make the steps: {}", last.unwrap_or(output.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::specification::Optional;
    use flow::{Handle, Level};

    #[test]
    fn steps_are_lines_of_words() {
        let handle = |number| Handle::new(number).expect("a handle");
        let label = |default, entries: &[(u64, Level)]| {
            Label::new(default, entries.iter().map(|(number, level)| (handle(*number), *level)))
        };
        let owned = label(Level::Three, &[(5, Level::Star), (7, Level::One)]);
        let optional = Optional { decontaminate_send: owned.clone(), ..Optional::default() };
        let said = Said { delivered: true, to: None, send: Some(label(Level::One, &[])), receive: None };
        let mut steps = Steps::default();
        for (line, step) in [
            Step::NewDomain(1),
            Step::NewHandle(1, handle(5)),
            Step::NewPort(1, handle(6), owned),
            Step::RaiseSend(1, handle(5), Level::Two),
            Step::LowerReceive(1, handle(5), Level::Zero),
            Step::Send { from: 1, port: handle(6), optional },
        ]
        .iter()
        .enumerate()
        {
            steps.add(2 * line, step, Some(&said));
        }
        let due = "0 new_domain 1\n2 new_handle 1 5\n4 new_port 1 6 3,5:-1,7:1\n6 raise_send 1 5 2\n\
            8 lower_receive 1 5 0\n10 send 1 6 - 3,5:-1,7:1 - - true - 1 -\n";
        assert_eq!(steps.0, due);
    }

    #[test]
    fn a_trace_that_is_too_large_is_refused() {
        let steps = Steps(" ".repeat(MOST + (1 << 20)));
        let error = steps.fit().expect_err("too large");
        assert_eq!(error.to_string(), "the trace takes 65 MiB in the machine, and at most 64: replay less of it");
    }
}
