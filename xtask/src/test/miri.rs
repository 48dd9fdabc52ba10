//! The parts of the nucleus that are tested here, run by Miri, which finds what Rust leaves undefined: `./x test --miri`. It needs a
//! nightly compiler, so it is no part of the usual tests.

use super::report::{Report, tail};
use crate::project::Project;
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use std::process::{Command, Stdio};

/// As it is named after `./x test`.
pub const NAME: &str = "miri";

/// Miri is some hundred times slower than the processor.
const PROPERTY_CASES: &str = "4";

/// Crates that have no test for it: the nucleus's copying of pages is machine code, and the models are loom's, which runs every
/// interleaving of a model of memory.
const WITHOUT: [&str; 2] = ["memfuncs", "nucleus-sync"];

/// Which tests of a package: of the generator's those that take no disassembler, as that of x86-64 does what Miri refuses.
fn tests_of(package: &str) -> &'static [&'static str] {
    if package == "portalgen" { &["--test", "refusals"] } else { &["--tests"] }
}

/// Runs the tests of the crates that the nucleus is made of, one crate after the other.
pub fn check(project: &Project, workspace: &Workspace, report: &mut Report) {
    if !is_installed() {
        return report.run("miri", || {
            bail!("Miri is not installed: `rustup toolchain install nightly --component miri --component rust-src`")
        });
    }
    for package in workspace.of_nucleus().filter(|package| !WITHOUT.contains(package)) {
        report.run(&format!("miri: {package}"), || run(project, package));
    }
}

fn is_installed() -> bool {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "miri", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn run(project: &Project, package: &str) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "miri", "test", "--package", package]).args(tests_of(package));
    command.arg("--target-dir").arg(project.target.join("miri"));
    // Objects of the nucleus are never dropped, and know each other by addresses of 32 bits.
    command.env("MIRIFLAGS", "-Zmiri-ignore-leaks -Zmiri-permissive-provenance -Zmiri-disable-isolation");
    command.env("PROPTEST_CASES", PROPERTY_CASES).current_dir(&project.root).stdin(Stdio::null());
    let output = command.output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("{}", tail(&(printed + String::from_utf8_lossy(&output.stderr)), 40));
    }
    // Each file of tests says how many it has: `running 4 tests`.
    if printed.lines().filter(|line| line.starts_with("running ")).all(|line| line == "running 0 tests") {
        bail!("no test ran");
    }
    Ok(())
}
