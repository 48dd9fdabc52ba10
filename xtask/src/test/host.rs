//! Tests of what runs on this computer.
//!
//! A test is named `crate::path` (in an integration test `crate::file::path`), as in
//! `cpio::read::tests::bad_magic`; promises and mutants name them so. On the command line a crate or a module
//! means all tests in it.

use super::report::{Report, tail};
use crate::build::BuildFailed;
use crate::install;
use crate::nearest::meant;
use crate::project::Project;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The package whose tests run `dash`.
const COMPARED: &str = "shelleval";

/// Cases of each property in a soak and under a mutant, 8 times the usual: rare cases are to be met.
const SOAKED_CASES: &str = "2048";

/// Within which time tests end; a mutant may make one run for ever.
const LIMIT: Duration = Duration::from_secs(1800);
const LIMIT_OF_ONE: Duration = Duration::from_secs(240);

/// A program that cargo made of tests.
struct TestProgram {
    /// `cpio`, `system::mistakes`.
    name: String,
    path: PathBuf,
    folder: PathBuf,
    /// Where the libraries of the compiler are; tests of macros are linked with them.
    libraries: PathBuf,
}

/// A test program's results: name and whether it passed.
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
    let (mut known, mut ran) = (Vec::new(), Vec::new());
    for program in &programs {
        let start = Instant::now();
        let mut filters = Vec::new();
        if !only.is_empty() {
            match tests_of(program) {
                Ok(tests) => filters = tests,
                Err(error) => report.add(&format!("host: {}", program.name), start.elapsed(), Err(error)),
            }
            known.extend(filters.iter().map(|test| format!("{}::{test}", program.name)));
            filters.retain(|test| only.iter().any(|name| is_in(&format!("{}::{test}", program.name), name)));
            if filters.is_empty() {
                continue;
            }
        }
        let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
        match run_program(program, soak, &filters, LIMIT) {
            Ok(Some((results, output))) if !results.is_empty() => {
                ran.extend(results.iter().map(|(test, _)| format!("{}::{test}", program.name)));
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
                for test in left_out(&output) {
                    report.left_out(format!("{}::{test}", program.name));
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => {
                let verdict = Err(anyhow::anyhow!("its tests did not end in {} minutes", LIMIT.as_secs() / 60));
                report.add(&format!("host: {}", program.name), start.elapsed(), verdict);
            }
            Err(error) => report.add(&format!("host: {}", program.name), start.elapsed(), Err(error)),
        }
    }
    for name in only {
        if !known.iter().any(|test| is_in(test, name)) {
            let meant = meant(name, known.iter().map(String::as_str));
            report.run(name, || bail!("there is no such host test{meant}; `./x test --list` lists all tests"));
        } else if known.iter().any(|test| test == name) && !ran.iter().any(|test| test == name) {
            report.run(name, || bail!("this test did not run: `--soak` runs those that are ignored else"));
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

/// Has this one test passed? One that does not end has not. An error if it could not be built or does not exist.
pub fn passes(project: &Project, name: &str) -> Result<bool> {
    let package = name.split("::").next().unwrap_or(name);
    for program in build(project, &[&package.replace('_', "-")]).or_else(|_| build(project, &[package]))? {
        let Some(filter) = name.strip_prefix(&program.name).and_then(|rest| rest.strip_prefix("::")) else { continue };
        let Some((results, _)) = run_program(&program, true, &[filter], LIMIT_OF_ONE)? else { return Ok(false) };
        if let Some((_, passed)) = results.first() {
            return Ok(*passed);
        }
    }
    bail!("there is no host test `{name}`")
}

/// Have all host tests of a package passed? Tests that do not end have not. An error if they could not be built.
pub fn package_passes(project: &Project, package: &str) -> Result<bool> {
    for program in build(project, &[package])? {
        match run_program(&program, false, &[], LIMIT_OF_ONE) {
            Ok(Some((results, _))) if results.iter().all(|(_, passed)| *passed) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Names of the crates that have host tests, as they are written in paths.
pub fn crates(workspace: &Workspace) -> impl Iterator<Item = String> {
    workspace.tested().map(|package| package.name.replace('-', "_"))
}

/// Is this a crate with host tests, or something in one?
pub fn is_of_crate(workspace: &Workspace, name: &str) -> bool {
    workspace.tested().any(|package| in_package(name, &package.name))
}

/// All host tests, which this builds, in the order of their names.
pub fn names(project: &Project, workspace: &Workspace) -> Result<Vec<String>> {
    let packages: Vec<&str> = workspace.tested().map(|package| package.name.as_str()).collect();
    let mut names = Vec::new();
    for program in build(project, &packages)? {
        names.extend(tests_of(&program)?.iter().map(|test| format!("{}::{test}", program.name)));
    }
    names.sort_unstable();
    Ok(names)
}

/// Is it the test of this name, or one in the crate or module of this name?
fn is_in(test: &str, name: &str) -> bool {
    // A crate may be written as its folder is.
    let name = if name.contains("::") { name.to_string() } else { name.replace('-', "_") };
    test.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
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
    let errors = if project.is_quiet { Stdio::null() } else { Stdio::inherit() };
    command.current_dir(&project.root).stdin(Stdio::null()).stderr(errors);
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

fn start(program: &TestProgram) -> Command {
    let mut command = Command::new(&program.path);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder).stdin(Stdio::null());
    command.args(["--color", "never"]).env("LD_LIBRARY_PATH", &program.libraries).env("RUST_BACKTRACE", "0");
    command
}

/// The tests in a program, without the name of the crate.
fn tests_of(program: &TestProgram) -> Result<Vec<String>> {
    let output = start(program).arg("--list").output();
    let output = output.with_context(|| format!("cannot start {}", program.path.display()))?;
    if !output.status.success() {
        bail!("it does not list its tests\n{}", tail(&String::from_utf8_lossy(&output.stderr), 40));
    }
    let listing = String::from_utf8_lossy(&output.stdout);
    Ok(listing.lines().filter_map(|line| line.strip_suffix(": test")).map(String::from).collect())
}

/// Runs tests of a program; gives their results and what was printed, nothing if they did not end in time.
fn run_program(
    program: &TestProgram,
    soak: bool,
    filters: &[&str],
    limit: Duration,
) -> Result<Option<(Results, String)>> {
    let mut command = start(program);
    command.stderr(Stdio::piped());
    if soak {
        // Tests that take minutes report there how far they are.
        command.arg("--include-ignored").env("PROPTEST_CASES", SOAKED_CASES).stderr(Stdio::inherit());
    }
    if !filters.is_empty() {
        command.arg("--exact").args(filters);
    }
    let output = output_within(command, limit).with_context(|| format!("cannot start {}", program.path.display()))?;
    let Some((status, printed, errors)) = output else { return Ok(None) };
    let text = [printed.as_str(), &errors].concat();
    let results = results(&printed);
    if !status.success() && results.iter().all(|(_, passed)| *passed) {
        bail!("the test program died\n{}", tail(&text, 40));
    }
    Ok(Some((results, text)))
}

/// Status of a command, its output and that on standard error if it is piped; nothing if it did not end in time.
fn output_within(mut command: Command, limit: Duration) -> io::Result<Option<(ExitStatus, String, String)>> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let (mut printed, mut errors) = (Vec::new(), Vec::new());
    let (from_printed, from_errors) = (child.stdout.take(), child.stderr.take());
    let status = thread::scope(|scope| {
        scope.spawn(|| from_printed.map(|mut from| from.read_to_end(&mut printed)));
        scope.spawn(|| from_errors.map(|mut from| from.read_to_end(&mut errors)));
        loop {
            match child.try_wait()? {
                Some(status) => return Ok(Some(status)),
                None if start.elapsed() > limit => {
                    child.kill()?;
                    child.wait()?;
                    return io::Result::Ok(None);
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        }
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(status.map(|status| (status, text(&printed), text(&errors))))
}

/// Tests that only a soak runs.
fn left_out(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter_map(|line| Some(line.strip_prefix("test ")?.split_once(" ... ignored")?.0))
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
    use super::{in_package, is_in, left_out, output_within, results};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    #[test]
    fn output_of_tests() {
        let text = "\nrunning 4 tests\ntest a::b ... ok\ntest c - should panic ... ok\ntest d ... FAILED\n\
                    test e ... ignored\ntest f ... ignored, long\n\ntest result: FAILED. 2 passed\n";
        let expected = [("a::b", true), ("c", true), ("d", false)];
        assert_eq!(results(text), expected.map(|(name, passed)| (name.to_string(), passed)));
        assert!(left_out(text).eq(["e", "f"]));
    }

    #[test]
    fn endless_commands_are_ended() {
        let run = |script: &str, milliseconds: u64| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stderr(Stdio::piped());
            output_within(command, Duration::from_millis(milliseconds)).unwrap()
        };
        let (status, printed, errors) = run("echo out; echo error >&2; exit 3", 600_000).unwrap();
        assert_eq!((status.code(), printed.as_str(), errors.as_str()), (Some(3), "out\n", "error\n"));
        assert_eq!(run("exec sleep 600", 50), None);
    }

    #[test]
    fn a_crate_or_module_means_the_tests_in_it() {
        let test = "idl_macros::parse::tests::x";
        for name in ["idl_macros", "idl-macros", "idl_macros::parse", test] {
            assert!(is_in(test, name), "{name}");
        }
        for name in ["idl", "idl_macros::par", "parse", "idl_macros::parse::tests::x::y"] {
            assert!(!is_in(test, name), "{name}");
        }
    }

    #[test]
    fn packages_of_tests() {
        assert!(in_package("idl_macros::parse::tests::x", "idl-macros"));
        assert!(!in_package("idl::tests::x", "idl-macros"));
    }
}
