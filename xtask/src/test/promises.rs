//! `docs/promises.md`, and the table of methods in the book: each test that is named there exists and has passed in this run.

use super::cases::{self, Case, Wanted};
use super::file::BootTest;
use super::report::Report;
use crate::isa::Isa;
use crate::project::{Project, read_text};
use anyhow::{Result, bail};

/// Where the promises stand.
const PROMISES: &str = "docs/promises.md";
/// Where it stands what each method of a service promises.
pub const SERVICES: &str = "docs/book/services.md";

/// Tests besides boot tests that run on each ISA.
const ON_EACH_ISA: [&str; 6] = [
    super::book::TRANSCRIPT,
    super::deaths::NAME,
    super::debugger::NAME,
    super::overflow::NAME,
    super::profile::NAME,
    super::traces::NAME,
];

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Promise {
    file: &'static str,
    line: usize,
    text: String,
    tests: Vec<String>,
}

/// Compares the promises with what has passed. Without `all`, tests that did not run only have to exist.
pub fn check(project: &Project, boot_tests: &[BootTest], soak: bool, all: bool, report: &mut Report) {
    let verdict = || -> Result<()> {
        let mut promises = Vec::new();
        for file in [PROMISES, SERVICES] {
            let rows = rows(file, &read_text(&project.root.join(file))?);
            if rows.is_empty() {
                bail!("{file} has no row `| promise | tests |`");
            }
            promises.extend(rows);
        }
        let mut broken = Vec::new();
        for promise in &promises {
            if promise.tests.is_empty() {
                broken.push(format!("{}:{}: no test holds this promise", promise.file, promise.line));
            }
            for test in &promise.tests {
                let cases = Case::called(boot_tests, test, Wanted::default());
                let boot = cases.first().map(|case| case.test);
                let is_browser = test == super::browser::NAME;
                let is_soak = is_browser || boot.is_some_and(|boot| boot.file.soak) || report.is_left_out(test);
                let skipped = !all || is_soak && !soak;
                let groups = [
                    super::checks::UNSAFE,
                    super::deaths::NAME,
                    super::debugger::NAME,
                    super::isa::NAME,
                    crate::docs::links::NAME,
                    crate::docs::CRATES,
                    super::layers::NAME,
                    super::overflow::NAME,
                    super::overflow::NMI,
                    super::profile::NAME,
                    super::x87::NAME,
                    super::traces::NAME,
                    super::travel::NAME,
                ];
                // Parts of a group, as "portal: shape 0 on x86_64".
                let of_parts = ["counter", super::portal::NAME, super::refusals::NAME];
                let is_part = test.split([':', ' ']).next().is_some_and(|group| of_parts.contains(&group));
                let known = is_browser
                    || is_part
                    || groups.contains(&test.as_str())
                    || super::book::NAMES.contains(&test.as_str());
                let exists = known || boot.is_some() || test.contains("::");
                let passed = match cases[..] {
                    [] if ON_EACH_ISA.contains(&test.as_str()) => {
                        Isa::ALL.into_iter().all(|isa| report.has_passed(&cases::on(isa, test)))
                    }
                    [] => report.has_passed(test),
                    // A boot test passes on every ISA with every number of CPUs.
                    _ => cases.iter().all(|case| report.has_passed(&case.name())),
                };
                let failed = report.has_failed(test) || cases.iter().any(|case| report.has_failed(&case.name()));
                let holds = passed || exists && skipped && !failed;
                if !holds {
                    let (file, line) = (promise.file, promise.line);
                    broken.push(format!("{file}:{line}: `{test}` does not exist or has not passed: {}", promise.text));
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

/// The cells of each row of all tables, without their heads, with the number of its line.
pub fn cells(text: &str) -> Vec<(usize, Vec<&str>)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: &&str| line.starts_with('|') && line.chars().all(|c| "|-: ".contains(c));
    let rows =
        lines.iter().enumerate().filter(|(number, line)| !is_rule(line) && !lines.get(number + 1).is_some_and(is_rule));
    rows.filter_map(|(number, line)| {
        let cells = line.strip_prefix('|')?.trim_end().strip_suffix('|')?;
        Some((number + 1, cells.split('|').map(str::trim).collect()))
    })
    .collect()
}

/// The promises, one per row.
fn rows(file: &'static str, text: &str) -> Vec<Promise> {
    let promise = |(line, cells): (usize, Vec<&str>)| {
        let (tests, text) = cells.split_last().filter(|(_, text)| !text.is_empty())?;
        let tests = tests.split(',').map(|test| test.trim().trim_matches('`').to_string());
        Some(Promise { file, line, text: text[0].into(), tests: tests.filter(|test| !test.is_empty()).collect() })
    };
    cells(text).into_iter().filter_map(promise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let text = "# Promises\n\n| promise | tests |\n|---|---|\n| It boots. | `boots`, cpio::x |\n| Nothing | |\n";
        let expected = [
            Promise { file: "f", line: 5, text: "It boots.".into(), tests: vec!["boots".into(), "cpio::x".into()] },
            Promise { file: "f", line: 6, text: "Nothing".into(), tests: vec![] },
        ];
        assert_eq!(rows("f", text), expected);
    }
}
