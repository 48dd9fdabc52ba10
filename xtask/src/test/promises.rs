//! `docs/promises.md`: each test that is named there exists and has passed in this run.

use super::cases::{self, Case, Wanted};
use super::file::BootTest;
use super::report::Report;
use crate::isa::Isa;
use crate::project::{Project, read_text};
use anyhow::{Result, bail};

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Promise {
    line: usize,
    text: String,
    tests: Vec<String>,
}

/// Compares the promises with what has passed. Without `all`, tests that did not run only have to exist.
pub fn check(project: &Project, boot_tests: &[BootTest], soak: bool, all: bool, report: &mut Report) {
    let verdict = || -> Result<()> {
        let promises = rows(&read_text(&project.root.join("docs/promises.md"))?);
        if promises.is_empty() {
            bail!("docs/promises.md has no row `| promise | tests |`");
        }
        let mut broken = Vec::new();
        for promise in &promises {
            if promise.tests.is_empty() {
                broken.push(format!("docs/promises.md:{}: no test holds this promise", promise.line));
            }
            for test in &promise.tests {
                let cases = Case::called(boot_tests, test, Wanted::default());
                let boot = cases.first().map(|case| case.test);
                let is_browser = test == super::browser::NAME;
                let skipped = !all || (is_browser || boot.is_some_and(|boot| boot.file.soak)) && !soak;
                let groups = [super::isa::NAME, super::overflow::NAME, super::overflow::NMI, super::travel::NAME];
                let known =
                    is_browser || groups.contains(&test.as_str()) || super::book::NAMES.contains(&test.as_str());
                let exists = known || boot.is_some() || test.contains("::");
                let passed = match cases[..] {
                    [] if [super::book::TRANSCRIPT, super::overflow::NAME].contains(&test.as_str()) => {
                        Isa::ALL.into_iter().all(|isa| report.has_passed(&cases::on(isa, test)))
                    }
                    [] => report.has_passed(test),
                    // A boot test passes on every ISA with every number of CPUs.
                    _ => cases.iter().all(|case| report.has_passed(&case.name())),
                };
                let failed = report.has_failed(test) || cases.iter().any(|case| report.has_failed(&case.name()));
                let holds = passed || exists && skipped && !failed;
                if !holds {
                    let line = promise.line;
                    broken.push(format!(
                        "docs/promises.md:{line}: `{test}` does not exist or has not passed: {}",
                        promise.text
                    ));
                }
            }
        }
        if !broken.is_empty() {
            bail!("{}", broken.join("\n"));
        }
        Ok(())
    };
    let start = std::time::Instant::now();
    let verdict = verdict();
    report.add("promises", start.elapsed(), verdict);
}

/// Rows of all tables, without their heads.
fn rows(text: &str) -> Vec<Promise> {
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: &&str| line.starts_with('|') && line.chars().all(|c| "|-: ".contains(c));
    let mut rows = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let head = lines.get(number + 1).is_some_and(is_rule);
        let Some(cells) = line.strip_prefix('|').and_then(|line| line.trim_end().strip_suffix('|')) else { continue };
        let Some((text, tests)) = cells.rsplit_once('|') else { continue };
        if head || is_rule(line) {
            continue;
        }
        let tests = tests.split(',').map(|test| test.trim().trim_matches('`').to_string());
        let tests = tests.filter(|test| !test.is_empty()).collect();
        rows.push(Promise { line: number + 1, text: text.trim().into(), tests });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let text = "# Promises\n\n| promise | tests |\n|---|---|\n| It boots. | `boots`, cpio::x |\n| Nothing | |\n";
        let expected = [
            Promise { line: 5, text: "It boots.".into(), tests: vec!["boots".into(), "cpio::x".into()] },
            Promise { line: 6, text: "Nothing".into(), tests: vec![] },
        ];
        assert_eq!(rows(text), expected);
    }
}
