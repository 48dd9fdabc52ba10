//! The systems that ship: each description in `systems/` is without mistakes, and each program of the tree is offered by one.

use super::report::Report;
use crate::image::System;
use crate::project::Project;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The one to which a new program is added.
const DEFAULT: &str = "systems/default.toml";

/// Checks them all.
pub fn check(project: &Project, workspace: &Workspace, report: &mut Report) {
    report.run("systems", || {
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(project.root.join("systems")).context("cannot list systems")? {
            let path = Path::new("systems").join(entry?.file_name());
            if path.extension().is_some_and(|extension| extension == "toml") {
                paths.push(path);
            }
        }
        paths.sort();
        for path in &paths {
            System::read(project, path)?.plan(project, None)?;
        }
        offers_every_program(project, workspace, &paths)
    });
}

/// Each program is one of some description.
fn offers_every_program(project: &Project, workspace: &Workspace, paths: &[PathBuf]) -> Result<()> {
    let mut offered = BTreeSet::new();
    for path in paths {
        let system = System::read_for_tests(project, path, "")?;
        offered.extend(system.programs().iter().map(|(name, _)| name.to_string()));
    }
    for package in &workspace.packages {
        let is_program = workspace.place(package).starts_with("apps") && package.makes("bin");
        if is_program && !offered.contains(package.name.as_str()) {
            bail!("no description in systems/ offers the program `{}`: add it to `program` of {DEFAULT}", package.name);
        }
    }
    Ok(())
}
