//! On which machines each boot test runs. Each ISA and each number of CPUs is a case of its own:
//!
//! | name | machine |
//! |---|---|
//! | `TEST`, `TEST@2` | x86-64 with one CPU, with two |
//! | `aarch64:TEST`, `aarch64:TEST@2` | AArch64 with one, with two; by [`Isa::tested_board`] these are other boards |
//!
//! `TEST` alone on the command line means all of them.
//!
//! A test that says nothing runs with [`USUAL`]. One that is about a single CPU says why (`one_cpu`); others may
//! ask for other numbers (`cpus = [1, 2, 8]`).

use super::file::{BootTest, TestFile};
use crate::isa::Isa;
use anyhow::{Result, bail, ensure};

/// CPUs of the machines of a test that does not say.
pub const USUAL: &[u32] = &[1, 2];
/// The most CPUs that the nucleus can use.
const MAX_CPUS: u32 = abi::MAX_CPUS as u32;

/// Which cases are wanted; `None` = each.
#[derive(Clone, Copy, Default)]
pub struct Wanted {
    /// Of this ISA only.
    pub isa: Option<Isa>,
    /// With so many CPUs only.
    pub cpus: Option<u32>,
}

/// A boot test with a number of CPUs.
#[derive(Clone, Copy)]
pub struct Case<'t> {
    /// The test.
    pub test: &'t BootTest,
    /// CPUs of its machine.
    pub cpus: u32,
}

impl<'t> Case<'t> {
    /// As it is reported, and named on the command line.
    pub fn name(&self) -> String {
        let name = on(self.test.isa, &self.test.name);
        match self.cpus {
            1 => name,
            cpus => format!("{name}@{cpus}"),
        }
    }

    /// Whether its CPUs run at the same time.
    pub fn at_once(&self) -> bool {
        self.test.file.at_once && self.cpus > 1
    }

    /// The cases of a test that are wanted; a number of CPUs for which it does not ask is one if it fits.
    pub fn of(test: &'t BootTest, wanted: Wanted) -> Vec<Self> {
        let cpus = match wanted.cpus {
            _ if wanted.isa.is_some_and(|isa| isa != test.isa) => Vec::new(),
            None => test.file.cpus().to_vec(),
            Some(cpus) if fits(&test.file, cpus) => vec![cpus],
            Some(_) => Vec::new(),
        };
        cpus.into_iter().map(|cpus| Self { test, cpus }).collect()
    }

    /// All cases of all tests.
    pub fn all(tests: &'t [BootTest], wanted: Wanted) -> Vec<Self> {
        tests.iter().flat_map(|test| Self::of(test, wanted)).collect()
    }

    /// The cases that a name means: a test's cases; with `@` and a number those with so many CPUs, though the test may not ask
    /// for it; with `ISA:` before it those on that ISA. None if there is no such test, or it does not run so.
    pub fn called(tests: &'t [BootTest], name: &str, wanted: Wanted) -> Vec<Self> {
        let Some((test, named)) = parts(name) else { return Vec::new() };
        let (Some(isa), Some(cpus)) = (both(wanted.isa, named.isa), both(wanted.cpus, named.cpus)) else {
            return Vec::new();
        };
        let wanted = Wanted { isa, cpus };
        tests.iter().filter(|it| it.name == test).flat_map(|test| Self::of(test, wanted)).collect()
    }
}

/// The name of a test on an ISA: with the ISA's name, if it is not the first one.
pub fn on(isa: Isa, name: &str) -> String {
    if isa == Isa::default() { name.into() } else { format!("{}:{name}", isa.name()) }
}

/// The test that a name names, and what else it says; `None` if that has no meaning.
pub fn parts(name: &str) -> Option<(&str, Wanted)> {
    let (isa, name) = match name.split_once(':') {
        None => (None, name),
        Some((isa, name)) => (Some(Isa::ALL.into_iter().find(|it| it.name() == isa)?), name),
    };
    let (name, cpus) = match name.split_once('@') {
        None => (name, None),
        Some((name, cpus)) => (name, Some(cpus.parse().ok()?)),
    };
    Some((name, Wanted { isa, cpus }))
}

/// The value that satisfies two wishes; `None` if nothing does.
fn both<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<Option<T>> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => None,
        (one, other) => Some(one.or(other)),
    }
}

/// Whether a test can run with so many CPUs, though it does not ask for it.
fn fits(file: &TestFile, cpus: u32) -> bool {
    match &file.cpus {
        _ if !(1..=MAX_CPUS).contains(&cpus) => false,
        None => file.one_cpu.is_none() || cpus == 1,
        Some(numbers) => numbers.contains(&cpus) || cpus > 1 && numbers.iter().any(|number| *number > 1),
    }
}

impl TestFile {
    /// With how many CPUs it runs.
    fn cpus(&self) -> &[u32] {
        match (&self.cpus, &self.one_cpu) {
            (Some(cpus), _) => cpus,
            (None, Some(_)) => &[1],
            (None, None) => USUAL,
        }
    }

    /// Checks the keys about CPUs.
    pub fn check_cpus(&self) -> Result<()> {
        if let Some(why) = &self.one_cpu {
            ensure!(self.cpus.is_none(), "`one_cpu` says why there is one CPU, and `cpus` names others");
            ensure!(!why.trim().is_empty(), "`one_cpu` says why the test is about one CPU");
        }
        let Some(cpus) = &self.cpus else { return Ok(()) };
        match cpus[..] {
            [] => bail!("`cpus` is a list of numbers of CPUs, as [1, 2]"),
            [1] => bail!("a test that runs only with one CPU says why: one_cpu = \"…\""),
            _ => {}
        }
        ensure!(cpus.is_sorted_by(|a, b| a < b), "`cpus` goes from few to many");
        ensure!(cpus.iter().all(|cpus| (1..=MAX_CPUS).contains(cpus)), "there are 1 to {MAX_CPUS} CPUs");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(text: &str) -> Result<BootTest> {
        let file: TestFile = toml::from_str(&format!("about = \"\"\n{text}"))?;
        file.check_cpus()?;
        Ok(BootTest { name: "ls".into(), isa: Isa::X86_64, file })
    }

    fn names(text: &str, cpus: Option<u32>) -> Vec<String> {
        let test = test(text).unwrap();
        Case::of(&test, Wanted { isa: None, cpus }).iter().map(Case::name).collect()
    }

    #[test]
    fn each_number_of_cpus_is_a_case() {
        assert_eq!(names("cpus = [1, 2, 8]", None), ["ls", "ls@2", "ls@8"]);
        assert_eq!(names("cpus = [4]", None), ["ls@4"]);
        assert_eq!(names("one_cpu = \"it is about what runs first\"", None), ["ls"]);
        assert_eq!(names("", None).len(), USUAL.len());
    }

    #[test]
    fn other_numbers_can_be_asked_for_where_they_fit() {
        assert_eq!(names("cpus = [1, 2]", Some(1)), ["ls"]);
        assert_eq!(names("cpus = [1, 2]", Some(8)), ["ls@8"]);
        assert_eq!(names("", Some(8)), ["ls@8"]);
        assert!(names("cpus = [4]", Some(1)).is_empty());
        assert!(names("one_cpu = \"…\"", Some(2)).is_empty());
        assert_eq!(names("one_cpu = \"…\"", Some(1)), ["ls"]);
    }

    #[test]
    fn a_name_is_that_of_a_case_or_of_all() {
        let on = |isa| BootTest { isa, ..test("cpus = [1, 2]").unwrap() };
        let tests = Isa::ALL.map(on);
        let called = |name, isa, cpus| {
            let cases = Case::called(&tests, name, Wanted { isa, cpus });
            cases.iter().map(Case::name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(called("ls", None, None), "ls ls@2 aarch64:ls aarch64:ls@2");
        assert_eq!(called("ls@2", None, None), "ls@2 aarch64:ls@2");
        assert_eq!(called("ls@4", None, None), "ls@4 aarch64:ls@4");
        assert_eq!(called("ls@1", None, None), "ls aarch64:ls");
        assert_eq!(called("ls", None, Some(8)), "ls@8 aarch64:ls@8");
        assert_eq!(called("aarch64:ls", None, None), "aarch64:ls aarch64:ls@2");
        assert_eq!(called("x86_64:ls@2", None, None), "ls@2");
        assert_eq!(called("ls", Some(Isa::Aarch64), Some(2)), "aarch64:ls@2");
        for name in ["l", "ls@", "ls@x", "ls@65", "m68k:ls", "aarch64:", "ls:aarch64", "ls::aarch64"] {
            assert_eq!(called(name, None, None), "", "{name}");
        }
        assert_eq!(called("ls@2", None, Some(1)), "");
        assert_eq!(called("aarch64:ls", Some(Isa::X86_64), None), "");
    }

    #[test]
    fn nonsense_is_refused() {
        for (text, cause) in [
            ("cpus = []", "a list"),
            ("cpus = [1]", "says why"),
            ("cpus = [2, 1]", "from few"),
            ("cpus = [2, 2]", "from few"),
            ("cpus = [0, 2]", "1 to 64"),
            ("cpus = [1, 65]", "1 to 64"),
            ("one_cpu = \" \"", "says why"),
            ("one_cpu = \"…\"\ncpus = [1, 2]", "names others"),
            ("cpus = 2", "invalid type"),
        ] {
            let error = test(text).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(cause), "{text}: {error}");
        }
    }
}
