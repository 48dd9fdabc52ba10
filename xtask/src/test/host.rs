//! Tests of what runs on this computer.
//!
//! A test is named `crate::path` (in an integration test `crate::file::path`), as in
//! `cpio::read::tests::bad_magic`; promises and mutants name them so.

use super::report::{Report, tail};
use crate::build::BuildFailed;
use crate::install;
use crate::project::Project;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The package whose tests run `dash`.
const COMPARED: &str = "shelleval";

/// A program that cargo made of tests.
struct TestProgram {
    /// `cpio`, `system::mistakes`.
    name: String,
    path: PathBuf,
    folder: PathBuf,
    /// Where the libraries of the compiler are; tests of macros are linked with them.
    libraries: PathBuf,
}

/// What a test program said of its tests: name and whether it passed.
type Results = Vec<(String, bool)>;

/// Runs the host tests, all or those whose names are given.
pub fn run(project: &Project, workspace: &Workspace, soak: bool, only: &[&str], report: &mut Report) {
    let start = Instant::now();
    let packages: Vec<&str> = workspace.tested().map(|package| package.name.as_str()).collect();
    let wanted = |package: &&str| only.is_empty() || only.iter().any(|name| in_package(name, package));
    let packages: Vec<&str> = packages.into_iter().filter(wanted).collect();
    if packages.contains(&COMPARED)
        && let Err(error) = install::dash()
    {
        return report.add("host: dash", start.elapsed(), Err(error));
    }
    let programs = match build(project, &packages) {
        Ok(programs) => programs,
        Err(error) => return report.add("host: build", start.elapsed(), Err(error)),
    };
    report.add("host: build", start.elapsed(), Ok(()));
    for program in &programs {
        let start = Instant::now();
        let filters: Vec<&str> =
            only.iter().filter_map(|name| name.strip_prefix(&program.name)?.strip_prefix("::")).collect();
        if !only.is_empty() && filters.is_empty() {
            continue;
        }
        match run_program(program, soak, &filters) {
            Ok((results, output)) if !results.is_empty() => {
                let failed: Vec<&str> =
                    results.iter().filter(|(_, passed)| !passed).map(|(name, _)| name.as_str()).collect();
                let name = format!("host: {} ({} tests)", program.name, results.len());
                let verdict = if failed.is_empty() {
                    Ok(())
                } else {
                    Err(anyhow::anyhow!("failed: {}\n{}", failed.join(", "), tail(&output, 40)))
                };
                report.add(&name, start.elapsed(), verdict);
                for (test, _) in results.iter().filter(|(_, passed)| *passed) {
                    report.passed_quietly(format!("{}::{test}", program.name));
                }
            }
            Ok(_) => {}
            Err(error) => report.add(&format!("host: {}", program.name), start.elapsed(), Err(error)),
        }
    }
    for name in only {
        if !report.has_passed(name) {
            report.run(name, || bail!("this test did not run, or failed"));
        }
    }
    if only.is_empty() {
        report.run("host: examples in the documentation", || {
            let mut command = Command::new("cargo");
            command.args(["test", "--doc", "--quiet"]);
            let libraries = workspace.host().filter(|package| package.makes("lib") || package.makes("proc-macro"));
            command.args(libraries.flat_map(|package| ["--package", &package.name]));
            super::checks::quietly(project, command)
        });
    }
}

/// Has this one test passed? An error if it could not be built or does not exist.
pub fn passes(project: &Project, name: &str) -> Result<bool> {
    let package = name.split("::").next().unwrap_or(name);
    for program in build(project, &[&package.replace('_', "-")]).or_else(|_| build(project, &[package]))? {
        let Some(filter) = name.strip_prefix(&program.name).and_then(|rest| rest.strip_prefix("::")) else { continue };
        let (results, _) = run_program(&program, true, &[filter])?;
        if let Some((_, passed)) = results.first() {
            return Ok(*passed);
        }
    }
    bail!("there is no host test `{name}`")
}

fn in_package(test: &str, package: &str) -> bool {
    test.split("::").next().is_some_and(|first| first.replace('_', "-") == package.replace('_', "-"))
}

fn build(project: &Project, packages: &[&str]) -> Result<Vec<TestProgram>> {
    #[derive(Deserialize)]
    struct Message {
        reason: String,
        executable: Option<PathBuf>,
        target: Option<Target>,
        manifest_path: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
        kind: Vec<String>,
    }
    let mut command = Command::new("cargo");
    command.args(["test", "--no-run", "--quiet", "--message-format=json-render-diagnostics"]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    command.arg("--target-dir").arg(&project.target);
    command.current_dir(&project.root).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().context("cannot start cargo")?;
    if !output.status.success() {
        return Err(BuildFailed("a host test".into()).into());
    }
    let libraries = compiler_libraries()?;
    let mut programs = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Message = serde_json::from_str(line).context("a message of cargo is not as expected")?;
        let (Some(path), Some(target), Some(manifest)) = (message.executable, message.target, message.manifest_path)
        else {
            continue;
        };
        if message.reason != "compiler-artifact" {
            continue;
        }
        let folder = manifest.parent().context("a crate without a folder")?.to_path_buf();
        let package = crate_name(&manifest)?;
        let name =
            if target.kind.iter().any(|kind| kind == "test") { format!("{package}::{}", target.name) } else { package };
        programs.push(TestProgram { name, path, folder, libraries: libraries.clone() });
    }
    Ok(programs)
}

fn compiler_libraries() -> Result<PathBuf> {
    let output = Command::new("rustc").args(["--print", "target-libdir"]).output().context("cannot start rustc")?;
    Ok(String::from_utf8(output.stdout).context("the compiler's folder is not UTF-8")?.trim().into())
}

/// The name of the package, as it is written in paths.
fn crate_name(manifest: &std::path::Path) -> Result<String> {
    #[derive(Deserialize)]
    struct Manifest {
        package: Package,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
    }
    let manifest: Manifest = toml::from_str(&crate::project::read_text(manifest)?)?;
    Ok(manifest.package.name.replace('-', "_"))
}

fn run_program(program: &TestProgram, soak: bool, filters: &[&str]) -> Result<(Results, String)> {
    let mut command = Command::new(&program.path);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder).stdin(Stdio::null());
    command.args(["--color", "never"]).env("LD_LIBRARY_PATH", &program.libraries).env("RUST_BACKTRACE", "0");
    if soak {
        command.arg("--include-ignored");
    }
    if !filters.is_empty() {
        command.arg("--exact").args(filters);
    }
    let output = command.output().with_context(|| format!("cannot start {}", program.path.display()))?;
    let text = [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat();
    let results = results(&String::from_utf8_lossy(&output.stdout));
    if !output.status.success() && results.iter().all(|(_, passed)| *passed) {
        bail!("the test program died\n{}", tail(&text, 40));
    }
    Ok((results, text))
}

fn results(output: &str) -> Results {
    let verdict = |line: &str| {
        let (name, verdict) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
        let name = name.strip_suffix(" - should panic").unwrap_or(name);
        match verdict {
            "ok" => Some((name.to_string(), true)),
            "FAILED" => Some((name.to_string(), false)),
            _ => None,
        }
    };
    output.lines().filter_map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::{in_package, results};

    #[test]
    fn output_of_tests() {
        let text = "\nrunning 4 tests\ntest a::b ... ok\ntest c - should panic ... ok\ntest d ... FAILED\n\
                    test e ... ignored\n\ntest result: FAILED. 2 passed\n";
        let expected = [("a::b", true), ("c", true), ("d", false)];
        assert_eq!(results(text), expected.map(|(name, passed)| (name.to_string(), passed)));
    }

    #[test]
    fn packages_of_tests() {
        assert!(in_package("interface_macros::parse::tests::x", "interface-macros"));
        assert!(!in_package("interface::tests::x", "interface-macros"));
    }
}
