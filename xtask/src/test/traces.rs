//! Traces of labels come true in a machine, and what such a trace says otherwise is found there.

use super::cases;
use super::report::Report;
use crate::build::Checks;
use crate::labels::random_steps;
use crate::project::Project;
use crate::replay::{Replay, Said};
use anyhow::{Result, ensure};
use flow::specification::Label;
use flow::{Handle, Level};
use std::time::Duration;

/// The group.
pub const NAME: &str = "traces";

const SEED: u64 = 7;
const STEPS: usize = 2_000;
const LIMIT: Duration = Duration::from_secs(120);

/// Runs it on the project's ISA.
pub fn check(project: &Project, report: &mut Report) {
    report.run(&cases::on(project.isa, NAME), || verdict(project)?);
}

/// Runs it on a tree. The outer error: it could not be built. The inner one: the test failed.
pub fn verdict(project: &Project) -> Result<Result<()>> {
    Ok(judge(&Replay::build(project, Checks::On)?))
}

/// A change of what a trace says, and the start of the difference that the machine then finds.
type Change = (fn(&mut Said), &'static str);

fn judge(replay: &Replay) -> Result<()> {
    let replayed = |change: fn(&mut Said)| replay.compare(&random_steps(SEED, STEPS, change)?, LIMIT, false);
    let (text, agrees) = replayed(|_| ())?;
    ensure!(agrees && text.starts_with(&format!("{STEPS} steps, ")), "{text}");
    let changes: [Change; 6] = [
        (|said| said.delivered = true, ": delivered: the trace says true, the machine false"),
        (|said| said.delivered = false, ": delivered: the trace says false, the machine true"),
        (|said| said.to = said.to.map(|to| to + 1), ": to: the trace says "),
        (|said| raise(&mut said.send), ": s, for handle 5: the trace says 2, the machine 1"),
        (|said| raise(&mut said.receive), ": r, by default: the trace says -1, the machine 2"),
        (forget, ": s, handles of other levels: the trace says "),
    ];
    for (change, due) in changes {
        let (text, agrees) = replayed(change)?;
        ensure!(!agrees && text.starts_with("line ") && text.contains(due), "`{text}` came instead of `…{due}`");
    }
    Ok(())
}

/// Another level of a handle that no label has; another default, if that is not {1}.
fn raise(label: &mut Option<Label>) {
    let Some(label) = label else { return };
    match label.default {
        Level::One => label.entries.extend(Handle::new(5).map(|handle| (handle, Level::Two))),
        _ => label.default = Level::Star,
    }
}

/// An entry that the label has not.
fn forget(said: &mut Said) {
    if let Some(label) = &mut said.send {
        label.entries.pop_first();
    }
}
