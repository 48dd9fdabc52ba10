//! Mutants: one-line sabotages, each of which must turn a named test red.
//!
//! The tree is copied below the target folder, one replacement is made in the copy, and the named test
//! runs there. A mutant that does not build proves nothing: it is a mistake of the list, as is one whose
//! test is red without it.

use super::report::Report;
use super::{boot, host};
use crate::build::hash;
use crate::project::{Project, read, read_text, write};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mutants that continuous integration tries; which ones rotates from commit to commit.
const SAMPLE: usize = 3;

/// A sabotage.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// What it does, in a few words.
    pub name: String,
    file: PathBuf,
    find: String,
    replace: String,
    /// The test that must turn red: a boot test, or a host test as `crate::path`.
    pub test: String,
}

/// Reads the list.
pub fn list(project: &Project) -> Result<Vec<Mutant>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct List {
        #[serde(default)]
        mutant: Vec<Mutant>,
    }
    let path = project.root.join("tests/mutants.toml");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let list: List = toml::from_str(&read_text(&path)?).context("tests/mutants.toml")?;
    Ok(list.mutant)
}

/// Tries all mutants, those of the named tests, or a sample.
pub fn run(project: &Project, every: bool, names: &[String], report: &mut Report) -> Result<()> {
    let mutants = list(project)?;
    let named: Vec<&Mutant> =
        mutants.iter().filter(|mutant| names.contains(&mutant.test) || names.contains(&mutant.name)).collect();
    let chosen = if every && named.is_empty() {
        mutants.iter().collect()
    } else if every {
        named
    } else {
        sample(&mutants, rotation(project))
    };
    let copy = match copy_tree(project) {
        Ok(copy) => copy,
        Err(error) => {
            report.run("mutants: copy of the tree", || Err(error));
            return Ok(());
        }
    };
    let mut green = BTreeSet::new();
    for mutant in chosen {
        report.run(&format!("mutant: {}", mutant.name), || {
            if !green.contains(&mutant.test) && !passes(&copy, &mutant.test)? {
                bail!("its test `{}` is red without it", mutant.test);
            }
            green.insert(&mutant.test);
            attempt(&copy, mutant)
        });
    }
    Ok(())
}

/// A few mutants, beginning at one that the commit decides.
fn sample(mutants: &[Mutant], rotation: usize) -> Vec<&Mutant> {
    let start = if mutants.is_empty() { 0 } else { rotation % mutants.len() };
    mutants.iter().cycle().skip(start).take(SAMPLE.min(mutants.len())).collect()
}

fn rotation(project: &Project) -> usize {
    let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(&project.root).output();
    output.map_or(0, |output| hash(&output.stdout) as usize >> 1)
}

fn attempt(copy: &Project, mutant: &Mutant) -> Result<()> {
    let path = copy.root.join(&mutant.file);
    let original = read_text(&path)?;
    let count = original.matches(&mutant.find).count();
    if count != 1 {
        bail!("`{}` stands {count} times in {}, not once", mutant.find, mutant.file.display());
    }
    write(&path, original.replacen(&mutant.find, &mutant.replace, 1).as_bytes())?;
    let verdict = passes(copy, &mutant.test);
    write(&path, original.as_bytes())?;
    if verdict.context("a mutant that does not build proves nothing")? {
        bail!("it survived: `{}` stays green", mutant.test);
    }
    Ok(())
}

fn passes(copy: &Project, test: &str) -> Result<bool> {
    if test.contains("::") {
        return host::passes(copy, test);
    }
    let tests = boot::read_all(copy)?;
    let test =
        tests.iter().find(|boot| boot.name == test).with_context(|| format!("there is no boot test `{test}`"))?;
    boot::passes(copy, test)
}

/// Copies what git knows, and what it would add, to a folder with its own target folder. Only files that
/// differ are written, so that cargo builds nothing twice.
fn copy_tree(project: &Project) -> Result<Project> {
    let folder = project.target.join("mutants");
    let copy = Project { root: folder.join("tree"), target: folder.join("target") };
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(&project.root);
    let output = command.output().context("cannot start git")?;
    if !output.status.success() {
        bail!("`git ls-files` failed: mutants need a repository");
    }
    let listing = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let names: BTreeSet<&Path> = listing.split('\0').filter(|name| !name.is_empty()).map(Path::new).collect();
    for name in &names {
        let (from, to) = (project.root.join(name), copy.root.join(name));
        if !from.is_file() {
            continue;
        }
        let content = read(&from)?;
        if fs::read(&to).is_ok_and(|old| old == content) {
            continue;
        }
        let parent = to.parent().context("a file without a folder")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        write(&to, &content)?;
    }
    remove_others(&copy.root, &copy.root, &|name| names.contains(name) && project.root.join(name).is_file())?;
    Ok(copy)
}

fn remove_others(root: &Path, folder: &Path, keep: &dyn Fn(&Path) -> bool) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(root, &path, keep)?;
        } else if !keep(path.strip_prefix(root).unwrap_or(&path)) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutants(count: usize) -> Vec<Mutant> {
        let mutant = |number: usize| Mutant {
            name: number.to_string(),
            file: "f".into(),
            find: "a".into(),
            replace: "b".into(),
            test: "t".into(),
        };
        (0..count).map(mutant).collect()
    }

    #[test]
    fn samples_rotate_and_never_repeat() {
        let all = mutants(5);
        let names = |rotation| sample(&all, rotation).iter().map(|mutant| mutant.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(0), ["0", "1", "2"]);
        assert_eq!(names(9), ["4", "0", "1"]);
        assert_eq!(sample(&mutants(2), 7).len(), 2);
        assert!(sample(&[], 7).is_empty());
    }
}
