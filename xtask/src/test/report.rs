//! What passed and what failed, printed as it comes.

use anyhow::Result;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Results so far.
pub struct Report {
    passed: BTreeSet<String>,
    failed: Vec<String>,
    left_out: BTreeSet<String>,
    start: Instant,
}

impl Report {
    /// Nothing has run yet.
    pub fn new() -> Self {
        Self { passed: BTreeSet::new(), failed: Vec::new(), left_out: BTreeSet::new(), start: Instant::now() }
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

    /// Prints the closing line, which continuous integration reads, and tells the exit status.
    pub fn finish(&self) -> u8 {
        println!();
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
