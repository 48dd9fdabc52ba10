//! Mutants: one-line mistakes, each of which must turn a named test red.
//!
//! The tree is copied below the target folder, one replacement is made in the copy, and the named test
//! runs there. A mutant that does not build proves nothing: it is a mistake of the list, as is one whose
//! test is red without it.

mod changes;
pub mod generated;

use super::cases::{Case, Wanted};
use super::report::Report;
use super::{boot, checks, copy, deaths, debugger, file, host, overflow, traces, x87};
use crate::build::hash;
use crate::isa::Isa;
use crate::project::{Project, read_text, write};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// Mutants that continuous integration tries; which ones rotates from commit to commit.
const SAMPLE: usize = 6;

/// A mutant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// Its description, in a few words.
    pub name: String,
    file: PathBuf,
    find: String,
    replace: String,
    /// The test that must turn red: a boot test (on x86-64 with its fewest CPUs, or as `name@2` with two, as `aarch64:name` on AArch64), a host test as `crate::path`, `debugger`, `nmi` or `x87`.
    pub test: String,
    /// Runs of which one must be red: more than one where CPUs race.
    #[serde(default = "once")]
    tries: u32,
}

fn once() -> u32 {
    1
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

/// Tries all mutants, those that are named or whose tests are, or a sample.
pub fn run(project: &Project, every: bool, names: &[String], report: &mut Report) -> Result<()> {
    let mutants = list(project)?;
    let chosen = if every { named(&mutants, names) } else { sample(&mutants, rotation(project)) };
    let Some(copy) = copied(project, report) else { return Ok(()) };
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

/// Compiles all mutants, or those that are named or whose tests are, and runs nothing.
pub fn compile(project: &Project, workspace: &Workspace, names: &[String], report: &mut Report) -> Result<()> {
    let mutants = list(project)?;
    let Some(copy) = copied(project, report) else { return Ok(()) };
    for mutant in named(&mutants, names) {
        report.run(&format!("compiles: {}", mutant.name), || {
            let Some(package) = workspace.package_of(&mutant.file) else { return Ok(()) };
            let on_host = workspace.is_host(package) || mutant.test.contains("::");
            with_mutant(&copy, mutant, || check(&copy, mutant, &package.name, on_host))
        });
    }
    Ok(())
}

/// Compiles the package with the mutant, for this computer or for Cairn's machine.
fn check(copy: &Project, mutant: &Mutant, package: &str, on_host: bool) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["check", "--quiet", "--package", package]);
    if on_host {
        command.arg("--tests").arg("--target-dir").arg(copy.target.join("check-host"));
    } else {
        let of_arm = mutant.test.starts_with("aarch64:") || mutant.file.iter().any(|part| part == "aarch64");
        let isa = if of_arm { Isa::Aarch64 } else { Isa::X86_64 };
        command.args(["--target", isa.target()]).arg("--target-dir").arg(copy.target.join("check"));
    }
    checks::quietly(copy, command)
}

/// Those that are named or whose tests are; all if none is.
fn named<'m>(mutants: &'m [Mutant], names: &[String]) -> Vec<&'m Mutant> {
    let is_named = |mutant: &&Mutant| names.contains(&mutant.test) || names.contains(&mutant.name);
    let named: Vec<&Mutant> = mutants.iter().filter(is_named).collect();
    if named.is_empty() { mutants.iter().collect() } else { named }
}

/// A copy of the tree; none if that failed, which the report says.
fn copied(project: &Project, report: &mut Report) -> Option<Project> {
    let copy = copy::tree(project);
    copy.map_err(|error| report.run("mutants: copy of the tree", || Err(error))).ok()
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
    let verdict: Result<bool> = with_mutant(copy, mutant, || {
        (0..mutant.tries).try_fold(true, |green, _| Ok(green && passes(copy, &mutant.test)?))
    });
    if verdict.context("a mutant that does not build proves nothing")? {
        bail!("it survived: `{}` stays green", mutant.test);
    }
    Ok(())
}

/// Does something in the copy while the mutant is in it.
fn with_mutant<T>(copy: &Project, mutant: &Mutant, act: impl FnOnce() -> Result<T>) -> Result<T> {
    let path = copy.root.join(&mutant.file);
    let original = read_text(&path)?;
    let count = original.matches(&mutant.find).count();
    if count != 1 {
        bail!("`{}` stands {count} times in {}, not once", mutant.find, mutant.file.display());
    }
    write(&path, original.replacen(&mutant.find, &mutant.replace, 1).as_bytes())?;
    let result = act();
    write(&path, original.as_bytes())?;
    result
}

fn passes(copy: &Project, test: &str) -> Result<bool> {
    if test.contains("::") {
        return host::passes(copy, test);
    }
    if test == overflow::NMI {
        return Ok(overflow::nmi(copy)?.is_ok());
    }
    if test == debugger::NAME {
        return Ok(debugger::verdict(copy)?.is_ok());
    }
    if test == x87::NAME {
        return Ok(x87::verdict(copy)?.is_ok());
    }
    if test == deaths::NAME {
        return Ok(deaths::verdict(copy)?.is_ok());
    }
    if test == traces::NAME {
        return Ok(traces::verdict(copy)?.is_ok());
    }
    let tests = file::read_all(copy)?;
    // A test's name alone means its first case, which is the one on x86-64 with the fewest CPUs.
    let cases = Case::called(&tests, test, Wanted::default());
    boot::passes(copy, cases.first().with_context(|| format!("there is no boot test `{test}`"))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn mutants(count: usize) -> Vec<Mutant> {
        let mutant = |number: usize| Mutant {
            name: number.to_string(),
            file: "f".into(),
            find: "a".into(),
            replace: "b".into(),
            test: "t".into(),
            tries: 1,
        };
        (0..count).map(mutant).collect()
    }

    /// Checks the list without building anything: trying it takes long.
    #[test]
    fn the_list_fits_the_tree() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let project = Project::in_folder(root);
        let (mutants, boot_tests) = (list(&project)?, file::read_all(&project)?);
        assert!(mutants.len() >= 40, "{} are too few", mutants.len());
        let names: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
        assert_eq!(names.len(), mutants.len(), "two have the same name");
        for mutant in &mutants {
            let count = read_text(&project.root.join(&mutant.file))?.matches(&mutant.find).count();
            assert_eq!(
                count,
                1,
                "{}: `{}` stands {count} times in {}",
                mutant.name,
                mutant.find,
                mutant.file.display()
            );
            // Lines round it may stand there to say which is meant.
            let kept: Vec<&str> =
                mutant.replace.lines().filter(|line| mutant.find.lines().any(|it| it == *line)).collect();
            let (found, replaced) = (mutant.find.lines().count(), mutant.replace.lines().count());
            assert!(
                mutant.find != mutant.replace && found - kept.len() == 1 && replaced - kept.len() <= 1,
                "{}: no mutant of a line",
                mutant.name
            );
            let exists = mutant.test.contains("::")
                || [deaths::NAME, debugger::NAME, overflow::NMI, traces::NAME, x87::NAME]
                    .contains(&mutant.test.as_str())
                || !Case::called(&boot_tests, &mutant.test, Wanted::default()).is_empty();
            assert!(exists, "{}: there is no test `{}`", mutant.name, mutant.test);
        }
        Ok(())
    }

    #[test]
    fn samples_rotate_and_never_repeat() {
        let all = mutants(11);
        let names = |rotation| sample(&all, rotation).iter().map(|mutant| mutant.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(0), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(names(18), ["7", "8", "9", "10", "0", "1"]);
        assert_eq!(sample(&mutants(2), 7).len(), 2);
        assert!(sample(&[], 7).is_empty());
    }
}
