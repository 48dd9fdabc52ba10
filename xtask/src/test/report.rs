//! The report of passed and failed checks, printed as they come.

use anyhow::Result;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Results so far.
pub struct Report {
    passed: BTreeSet<String>,
    failed: Vec<String>,
    left_out: BTreeSet<String>,
    /// The duration of each reported test.
    took: Vec<(Duration, String)>,
    start: Instant,
}

/// Slow tests that are named at the end, if more than these ran.
const SLOWEST: usize = 10;

impl Report {
    /// Nothing has run yet.
    pub fn new() -> Self {
        let (passed, left_out) = (BTreeSet::new(), BTreeSet::new());
        Self { passed, failed: Vec::new(), left_out, took: Vec::new(), start: Instant::now() }
    }

    /// Runs `test` and adds its result.
    pub fn run(&mut self, name: &str, test: impl FnOnce() -> Result<()>) {
        let start = Instant::now();
        let result = test();
        self.add(name, start.elapsed(), result);
    }

    /// Adds a result and prints its line.
    pub fn add(&mut self, name: &str, elapsed: Duration, result: Result<()>) {
        let seconds = elapsed.as_secs_f64();
        self.took.push((elapsed, name.into()));
        match result {
            Ok(()) => {
                println!("ok    {name:48} {seconds:8.2} s");
                self.passed.insert(name.into());
            }
            Err(error) => {
                println!("FAIL  {name:48} {seconds:8.2} s");
                for line in format!("{error:#}").lines() {
                    println!("      {line}");
                }
                self.failed.push(name.into());
            }
        }
    }

    /// Adds a test that passed and gets no line of its own.
    pub fn passed_quietly(&mut self, name: String) {
        self.passed.insert(name);
    }

    /// Adds a test that only a soak runs.
    pub fn left_out(&mut self, name: String) {
        self.left_out.insert(name);
    }

    /// Is it a test that only a soak runs, and did not run?
    pub fn is_left_out(&self, name: &str) -> bool {
        self.left_out.contains(name)
    }

    /// Has this test passed?
    pub fn has_passed(&self, name: &str) -> bool {
        self.passed.contains(name)
    }

    /// Has it failed?
    pub fn has_failed(&self, name: &str) -> bool {
        self.failed.iter().any(|failed| failed == name)
    }

    /// The tests that took longest, the longest first; none if few ran.
    fn slowest(&self) -> Vec<&(Duration, String)> {
        let mut all: Vec<_> = self.took.iter().collect();
        all.sort_by_key(|(took, _)| Reverse(*took));
        all.truncate(if all.len() > SLOWEST { SLOWEST } else { 0 });
        all
    }

    /// Prints the slowest tests, what failed, and the closing line, which continuous integration reads; gives the exit status.
    pub fn finish(&self) -> u8 {
        println!();
        for (took, name) in self.slowest() {
            println!("slow: {name:48} {:8.2} s", took.as_secs_f64());
        }
        for name in &self.failed {
            println!("failed: {name}");
        }
        println!("after {:.0} s", self.start.elapsed().as_secs_f64());
        println!("{} passed, {} failed", self.passed.len(), self.failed.len());
        u8::from(!self.failed.is_empty() || self.passed.is_empty())
    }
}

/// The last `count` lines of a text, indented.
pub fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.len().saturating_sub(count);
    lines[start..].iter().map(|line| format!("  | {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_many_are_named() {
        let mut report = Report::new();
        for number in 0..SLOWEST as u64 {
            report.took.push((Duration::from_secs(number * 7 % 10), number.to_string()));
        }
        assert!(report.slowest().is_empty());
        report.took.push((Duration::from_secs(5), "another".into()));
        let slowest = report.slowest();
        assert_eq!(slowest.len(), SLOWEST);
        assert!(slowest.is_sorted_by(|first, second| first.0 >= second.0));
        assert_eq!(slowest[0].1, "7");
    }
}
