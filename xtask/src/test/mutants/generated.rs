//! `./x test --mutants --generated`: [changes] of the sources at random, each tried with tests until one is red.
//!
//! A mutant ends as *red*, as *refused* by the compiler, as the *same* program, or as a *survivor*, which fails the run. Host tests
//! of the changed crate come first, then boot tests with the most likely ones ahead: those that were red for an earlier mutant of the file, or
//! are to be red for mutants of the list of the same file, or of its folder.

use super::Mutant;
use super::changes::{self, Change};
use crate::command_line::Generated;
use crate::isa::Isa;
use crate::project::{Project, files, read_text, write};
use crate::test::boot::Prepared;
use crate::test::cases::{Case, Wanted, parts};
use crate::test::random::Random;
use crate::test::report::Report;
use crate::test::{file, host};
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folders whose sources are changed: the nucleus, the libraries of programs, and the essential components.
const PLACES: &[&str] = &[
    "nucleus/src",
    "runtime/src",
    "crates",
    "components/roottask",
    "components/sigma0",
    "components/sched",
    "components/proc",
    "components/names",
    "components/ramfs",
    "components/netd",
];

/// How a mutant ends.
enum End {
    Red(String),
    Refused,
    Same,
    Survivor,
}

/// Numbers of mutants by their ends.
#[derive(Default)]
struct Ends {
    red: usize,
    refused: usize,
    same: usize,
    survivors: usize,
}

/// Tries mutants that `options` describe.
pub fn run(project: &Project, workspace: &Workspace, options: &Generated, isa: Isa, report: &mut Report) -> Result<()> {
    let seed = options.seed.unwrap_or_else(|| super::rotation(project) as u64);
    let all = all(project, options.file.as_deref())?;
    println!("{} generated mutants; seed {seed}, {} of them:", all.len(), options.count.min(all.len()));
    let Some(copy) = super::copied(project, report) else { return Ok(()) };
    let copy = Project { is_quiet: true, ..copy };
    let tests = file::read_all(&copy)?;
    let (red, unchanged) = (BTreeMap::new(), BTreeMap::new());
    let mut trial = Trial { copy: &copy, workspace, tests: &tests, isa, list: super::list(&copy)?, red, unchanged };
    let mut ends = Ends::default();
    for (path, change) in chosen(&all, seed, options.count) {
        let source = read_text(&copy.root.join(path))?;
        let name = format!("{}:{} {}", path.display(), change.line, change.about);
        let place = format!("    {}\n  → {}", shown(&source, change), shown(&change.apply(&source), change));
        report.run(&name, || {
            let (line, end) = match trial.end_of(path, &source, change)? {
                End::Red(test) => (format!("red: {test}"), &mut ends.red),
                End::Refused => ("refused by the compiler".into(), &mut ends.refused),
                End::Same => ("the same program".into(), &mut ends.same),
                End::Survivor => {
                    ends.survivors += 1;
                    bail!("it survived\n{place}");
                }
            };
            *end += 1;
            println!("{place}\n  {line}");
            Ok(())
        });
    }
    let Ends { red, refused, same, survivors } = ends;
    let share = 100.0 * red as f64 / (red + survivors).max(1) as f64;
    println!(
        "seed {seed}: {red} red, {survivors} survivors ({share:.1} % red); {refused} refused by the compiler, {same} the same program"
    );
    Ok(())
}

/// The changed line.
fn shown(source: &str, change: &Change) -> String {
    source.lines().nth(change.line - 1).unwrap_or_default().trim().to_owned()
}

/// All changes of all files, or of those below a path.
fn all(project: &Project, below: Option<&Path>) -> Result<Vec<(PathBuf, Change)>> {
    let mut all = Vec::new();
    for path in files(&project.root, &["*.rs", "*.s"])? {
        let is_wanted = match below {
            Some(below) => path.starts_with(below),
            None => PLACES.iter().any(|place| path.starts_with(place)),
        };
        let is_of_tests =
            path.iter().any(|part| ["tests", "tests.rs", "benches", "build.rs"].iter().any(|it| part == *it));
        if !is_wanted || is_of_tests {
            continue;
        }
        let source = read_text(&project.root.join(&path))?;
        let is_assembly = path.extension().is_some_and(|it| it == "s");
        let made = if is_assembly { changes::of_assembly(&source) } else { changes::of_rust(&source)? };
        all.extend(made.into_iter().map(|change| (path.clone(), change)));
    }
    if all.is_empty() {
        bail!("no mutant can be made there; --file is the path of a source file or folder, as nucleus/src/operation");
    }
    Ok(all)
}

/// So many of them, in an order that the seed decides.
fn chosen<T>(all: &[T], seed: u64, count: usize) -> Vec<&T> {
    let mut random = Random(seed);
    let mut order: Vec<&T> = all.iter().collect();
    let count = count.min(order.len());
    for place in 0..count {
        let other = place + random.below((order.len() - place) as u64) as usize;
        order.swap(place, other);
    }
    order.truncate(count);
    order
}

struct Trial<'t> {
    copy: &'t Project,
    workspace: &'t Workspace,
    tests: &'t [file::BootTest],
    isa: Isa,
    /// The mutants of the list.
    list: Vec<Mutant>,
    /// How often each test was red, by file.
    red: BTreeMap<(PathBuf, String), usize>,
    /// Fingerprint of the unchanged build, by ISA.
    unchanged: BTreeMap<&'static str, u64>,
}

impl<'t> Trial<'t> {
    fn end_of(&mut self, path: &Path, source: &str, change: &Change) -> Result<End> {
        let is_of = |isa: Isa| path.iter().any(|part| part == isa.name());
        let isa = Isa::ALL.into_iter().find(|isa| is_of(*isa)).unwrap_or(self.isa);
        let cases = self.cases(isa, path);
        let project = self.copy.on(isa);
        if !self.unchanged.contains_key(isa.name()) {
            self.unchanged.insert(isa.name(), Prepared::of(&project, &cases)?.fingerprint()?);
        }
        let place = self.copy.root.join(path);
        write(&place, change.apply(source).as_bytes())?;
        let end = self.try_it(&project, path, &cases);
        write(&place, source.as_bytes())?;
        if let Ok(End::Red(test)) = &end {
            *self.red.entry((path.to_owned(), test.clone())).or_default() += 1;
        }
        end
    }

    fn try_it(&self, project: &Project, path: &Path, cases: &[Case<'_>]) -> Result<End> {
        let package = self.workspace.package_of(path).map(|package| package.name.as_str());
        let Ok(prepared) = Prepared::of(project, cases) else { return Ok(End::Refused) };
        let is_same = self.unchanged.get(project.isa.name()) == Some(&prepared.fingerprint()?);
        if let Some(package) = package.filter(|package| self.workspace.tested().any(|it| it.name == *package)) {
            match host::package_passes(project, package) {
                Ok(true) => {}
                Ok(false) => return Ok(End::Red(format!("host tests of {package}"))),
                Err(_) => return Ok(End::Refused),
            }
        }
        if is_same {
            return Ok(End::Same);
        }
        Ok(prepared.first_red(cases).map_or(End::Survivor, |case| End::Red(case.name())))
    }

    /// The tests with one CPU and with two, the likeliest first.
    fn cases(&self, isa: Isa, path: &Path) -> Vec<Case<'t>> {
        let mut cases = Case::all(self.tests, Wanted { isa: Some(isa), cpus: None });
        cases.retain(|case| !case.test.file.soak && !case.at_once() && case.cpus <= 2 && case.test.file.is_plain());
        cases.sort_by_cached_key(|case| (std::cmp::Reverse(self.likeliness(case, path)), case.cpus, case.name()));
        cases
    }

    /// How often a test was red in this run, or is expected to be by the list: for this file, for its folder, for any file.
    fn likeliness(&self, case: &Case<'_>, path: &Path) -> [usize; 4] {
        let is_of = |mutant: &&Mutant| {
            parts(&mutant.test)
                .is_some_and(|(name, named)| name == case.test.name && named.cpus.unwrap_or(1) == case.cpus)
        };
        let of_case: Vec<&Mutant> = self.list.iter().filter(is_of).collect();
        let count = |is: &dyn Fn(&Mutant) -> bool| of_case.iter().filter(|mutant| is(mutant)).count();
        let red = self.red.get(&(path.to_owned(), case.name())).copied().unwrap_or(0);
        [
            red + count(&|mutant| mutant.file == path),
            count(&|mutant| mutant.file.parent() == path.parent()),
            count(&|_| true),
            usize::from(case.cpus == 1),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn a_seed_decides_and_nothing_comes_twice() {
        let all: Vec<u32> = (0..50).collect();
        let one = chosen(&all, 7, 20);
        assert_eq!(one, chosen(&all, 7, 20));
        assert_ne!(one, chosen(&all, 8, 20));
        let mut each: Vec<u32> = chosen(&all, 7, 99).into_iter().copied().collect();
        each.sort_unstable();
        assert_eq!(each, all);
    }
}
