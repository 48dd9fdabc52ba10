//! Imports inside a crate have one direction.
//!
//! | module | what |
//! |---|---|
//! | [`mod@imports`] | the graph of imports |
//! | [`mod@cycles`] | the shortest cycles among that |
//!
//! `tests/layers.toml` lists imports that may close a cycle, and crates that are left out, each with its reason. A row that
//! is not needed is a mistake of the list, and so is one between folders.

mod cycles;
mod imports;
#[cfg(test)]
mod tests;

use super::report::Report;
use crate::project::{Project, read_text};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use cycles::{Cycle, cycles, is_between_folders};
use imports::{File, Import, imports};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// `./x test layers`
pub const NAME: &str = "layers";
const LIST: &str = "tests/layers.toml";

/// The file of exceptions.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    left_out: Vec<LeftOut>,
    #[serde(default)]
    import: Vec<Excepted>,
}

/// A crate that is not checked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeftOut {
    #[serde(rename = "crate")]
    place: PathBuf,
    reason: String,
}

/// Imports that do not count. A folder stands for all files in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Excepted {
    from: PathBuf,
    to: PathBuf,
    reason: String,
}

/// A library or program: the folder of its crate, its files, and their imports.
struct Unit {
    place: PathBuf,
    files: Vec<File>,
    imports: Vec<Import>,
}

/// Checks every crate of the workspace.
pub fn check(project: &Project, workspace: &Workspace, report: &mut Report) {
    report.run(NAME, || {
        let list: List = toml::from_str(&read_text(&project.root.join(LIST))?).context(LIST)?;
        let mut units = Vec::new();
        for package in &workspace.packages {
            let ships = |kind: &String| matches!(kind.as_str(), "lib" | "bin" | "proc-macro");
            for target in package.targets.iter().filter(|target| target.kind.iter().any(ships)) {
                units.push(Unit::read(&project.root, workspace.place(package), &target.src_path)?);
            }
        }
        let complaints = complaints(&units, &list);
        if !complaints.is_empty() {
            bail!("{}\nthe rules stand in docs/book/testing.md", complaints.join("\n"));
        }
        Ok(())
    });
}

/// The complaints about these, or about the list.
fn complaints(units: &[Unit], list: &List) -> Vec<String> {
    let mut complaints = Vec::new();
    let rows: Vec<&Excepted> = list.import.iter().collect();
    for unit in units.iter().filter(|unit| !list.left_out.iter().any(|row| row.place == unit.place)) {
        complaints.extend(unit.cycles(&rows).iter().map(|cycle| unit.complaint(cycle)));
    }
    for (number, row) in list.import.iter().enumerate() {
        let title = format!("{LIST}: {} to {}", row.from.display(), row.to.display());
        let others: Vec<&Excepted> =
            rows.iter().enumerate().filter(|(at, _)| *at != number).map(|(_, row)| *row).collect();
        let is_needed = |unit: &Unit| unit.cycles(&others).len() > unit.cycles(&rows).len();
        if units.iter().any(|unit| unit.excepts_between_folders(row)) {
            complaints.push(format!("{title}: these are folders, between which nothing is excepted"));
        } else if !units.iter().any(is_needed) {
            complaints.push(format!("{title}: without this row there is no cycle"));
        }
    }
    for row in &list.left_out {
        if !units.iter().any(|unit| unit.place == row.place && !unit.cycles(&rows).is_empty()) {
            complaints.push(format!("{LIST}: {} is left out and has no cycle", row.place.display()));
        }
    }
    let reasons = list.import.iter().map(|row| &row.reason).chain(list.left_out.iter().map(|row| &row.reason));
    if reasons.into_iter().any(|reason| reason.trim().is_empty()) {
        complaints.push(format!("{LIST}: a row gives no reason"));
    }
    complaints
}

impl Excepted {
    fn covers(&self, from: &File, to: &File) -> bool {
        from.path.starts_with(&self.from) && to.path.starts_with(&self.to)
    }
}

impl Unit {
    /// Reads a library or program by its first file. Paths become those from the root of the repository.
    fn read(root: &Path, place: &Path, first: &Path) -> Result<Self> {
        let (mut files, imports) = imports(first)?;
        for file in &mut files {
            file.path = file.path.strip_prefix(root).context("a file elsewhere")?.to_path_buf();
        }
        Ok(Self { place: place.into(), files, imports })
    }

    /// The cycles, without the imports of these rows.
    fn cycles(&self, rows: &[&Excepted]) -> Vec<Cycle> {
        let counts = |import: &&Import| {
            let (from, to) = (&self.files[import.from], &self.files[import.to]);
            !rows.iter().any(|row| row.covers(from, to))
        };
        cycles(&self.files, &self.imports.iter().filter(counts).cloned().collect::<Vec<_>>())
    }

    fn excepts_between_folders(&self, row: &Excepted) -> bool {
        let is_excepted = |import: &&Import| row.covers(&self.files[import.from], &self.files[import.to]);
        self.imports.iter().filter(is_excepted).any(|import| is_between_folders(&self.files, import))
    }

    fn complaint(&self, cycle: &Cycle) -> String {
        let lines = cycle.iter().map(|import| {
            let (from, to) = (self.files[import.from].path.display(), self.files[import.to].path.display());
            format!("\n  {from}:{} imports `{}` of {to}", import.line, import.item)
        });
        format!("{}: a cycle of imports{}", self.place.display(), lines.collect::<String>())
    }
}
