//! With how many CPUs each boot test runs: each number is a case of its own, named `TEST` with one CPU and `TEST@2`
//! with two.
//!
//! A test that says nothing runs with [`USUAL`]. One that is about a single CPU says why (`one_cpu`); others may
//! ask for other numbers (`cpus = [1, 2, 8]`).

use super::boot::{BootTest, TestFile};
use anyhow::{Result, bail, ensure};

/// CPUs of the machines of a test that does not say.
pub const USUAL: &[u32] = &[1, 2];
/// What the nucleus can use.
const MAX_CPUS: u32 = 64;

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
        match self.cpus {
            1 => self.test.name.clone(),
            cpus => format!("{}@{cpus}", self.test.name),
        }
    }

    /// The cases of a test; with `only`, the one with so many CPUs, if that fits.
    pub fn of(test: &'t BootTest, only: Option<u32>) -> Vec<Self> {
        let cpus = match only {
            None => test.file.cpus().to_vec(),
            Some(cpus) if fits(&test.file, cpus) => vec![cpus],
            Some(_) => Vec::new(),
        };
        cpus.into_iter().map(|cpus| Self { test, cpus }).collect()
    }

    /// All cases of all tests.
    pub fn all(tests: &'t [BootTest], only: Option<u32>) -> Vec<Self> {
        tests.iter().flat_map(|test| Self::of(test, only)).collect()
    }

    /// What a name means: a test's cases, or with `@` and a number the one with so many CPUs, though the test may not ask
    /// for it. None if there is no such test, or it does not run so.
    pub fn called(tests: &'t [BootTest], name: &str, only: Option<u32>) -> Vec<Self> {
        let (name, only) = match name.split_once('@') {
            None => (name, only),
            Some((test, cpus)) => match cpus.parse() {
                Ok(cpus) if only.is_none_or(|only| only == cpus) => (test, Some(cpus)),
                _ => return Vec::new(),
            },
        };
        tests.iter().filter(|test| test.name == name).flat_map(|test| Self::of(test, only)).collect()
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

    /// What is wrong with what it says about CPUs.
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
        Ok(BootTest { name: "ls".into(), file })
    }

    fn names(text: &str, only: Option<u32>) -> Vec<String> {
        let test = test(text).unwrap();
        Case::of(&test, only).iter().map(Case::name).collect()
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
        let tests = [test("cpus = [1, 2]").unwrap()];
        let called = |name, only| {
            let cases = Case::called(&tests, name, only);
            cases.iter().map(Case::name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(called("ls", None), "ls ls@2");
        assert_eq!(called("ls@2", None), "ls@2");
        assert_eq!(called("ls@4", None), "ls@4");
        assert_eq!(called("ls@1", None), "ls");
        assert_eq!(called("ls", Some(8)), "ls@8");
        for (name, only) in [("l", None), ("ls@", None), ("ls@x", None), ("ls@65", None), ("ls@2", Some(1))] {
            assert_eq!(called(name, only), "", "{name} {only:?}");
        }
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
