//! Format, lints, and the rules about `unsafe` and dependencies.

use super::cases;
use super::report::{Report, tail};
use crate::isa::Isa;
use crate::project::{Project, read_text};
use crate::scan::lines_with_word;
use crate::workspace::{Package, Workspace};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `cargo fmt --check`.
pub fn format(project: &Project, report: &mut Report) {
    report.run("format", || {
        let mut command = Command::new("cargo");
        command.args(["fmt", "--all", "--check", "--", "-l"]);
        quietly(project, command).context("`cargo fmt --all` puts these files right")
    });
}

/// `cargo clippy -D warnings` over all crates as an editor checks them, bare crates, and the nucleus with its checks.
pub fn lints(project: &Project, workspace: &Workspace, isas: &[Isa], report: &mut Report) {
    report.run("lints: host", || {
        // All crates, tests and examples included, for this computer: as an editor checks them.
        let mut command = clippy(project, "lints-host");
        command.args(["--workspace", "--all-targets", "--", "-D", "warnings"]);
        quietly(project, command)
    });
    isas.iter().for_each(|isa| bare_lints(&project.on(*isa), workspace, report));
}

/// The same over what is compiled for the project's ISA.
fn bare_lints(project: &Project, workspace: &Workspace, report: &mut Report) {
    // The nucleus apart: a feature that a program wants of a crate is not one that the nucleus gets.
    report.run(&cases::on(project.isa, "lints: bare"), || {
        let mut command = clippy(project, "lints-bare");
        let programs = workspace.bare().filter(|package| package.name != "nucleus");
        command.args(programs.flat_map(|package| ["--package", &package.name]));
        command.args(["--target", project.isa.target(), "--", "-D", "warnings"]);
        quietly(project, command)
    });
    report.run(&cases::on(project.isa, "lints: nucleus"), || {
        ["", "checked,trace"].into_iter().try_for_each(|features| {
            let mut command = clippy(project, "lints-bare");
            command.args(["--package", "nucleus", "--features", features]);
            command.args(["--target", project.isa.nucleus_target(), "--", "-D", "warnings"]);
            quietly(project, command)
        })
    });
}

fn clippy(project: &Project, folder: &str) -> Command {
    let mut command = Command::new("cargo");
    command.arg("clippy").arg("--target-dir").arg(project.target.join(folder));
    command
}

/// Runs a command; its output is the error if it fails.
pub fn quietly(project: &Project, mut command: Command) -> Result<()> {
    let output = command.current_dir(&project.root).stdin(Stdio::null()).output().context("cannot start cargo")?;
    if output.status.success() {
        return Ok(());
    }
    let text = [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat();
    bail!("\n{}", tail(&text, 60));
}

/// The group of [`unsafe_code`].
pub const UNSAFE: &str = "unsafe";

/// Only what `tests/unsafe.toml` lists may hold `unsafe`; everything else forbids it. Each `unsafe` gives its own reason.
pub fn unsafe_code(project: &Project, workspace: &Workspace, report: &mut Report) {
    report.run(UNSAFE, || {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Rules {
            allowed: BTreeMap<PathBuf, Vec<String>>,
        }
        let rules: Rules = toml::from_str(&read_text(&project.root.join("tests/unsafe.toml"))?)?;
        let mut offences = Vec::new();
        for package in &workspace.packages {
            match rules.allowed.get(workspace.place(package)) {
                Some(files) if files.iter().any(|file| file == "*") => {}
                Some(files) => outside(package, files, &mut offences)?,
                None => forbidden(package, &mut offences)?,
            }
        }
        for place in rules.allowed.keys() {
            if !workspace.packages.iter().any(|package| workspace.place(package) == place) {
                offences.push(format!("tests/unsafe.toml lists {}, which is no crate", place.display()));
            }
        }
        let folders = workspace.packages.iter().map(|package| package.folder().to_path_buf());
        let mut files = BTreeSet::new();
        for folder in folders.chain([project.root.join("tests")]) {
            files.extend(rust_files(&folder)?);
        }
        for path in files {
            let place = path.strip_prefix(&project.root).unwrap_or(&path);
            offences.extend(without_reason(place, &read_text(&path)?));
        }
        if !offences.is_empty() {
            bail!("{}", offences.join("\n"));
        }
        Ok(())
    });
}

/// How a SAFETY comment begins that only refers to another one, or to code elsewhere. "As the caller says" is no such: it names
/// the contract of the function.
const REFERENCES: [&str; 12] = [
    "as above",
    "as before",
    "as below",
    "as for",
    "as here",
    "as in",
    "as there",
    "as with",
    "ditto",
    "likewise",
    "same",
    "see",
];

/// The SAFETY comments of a file that refer to another in place of a reason: the other may change or go, unseen.
fn without_reason(place: &Path, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let reason = |number: usize| {
        let comment = lines[number].strip_prefix("//")?.trim_start_matches(['/', '!']).to_lowercase();
        let reason = comment.split_once("safety:")?.1.trim().to_string();
        let next = || lines.get(number + 1)?.strip_prefix("//");
        Some(if reason.is_empty() { next().unwrap_or("").trim().to_lowercase() } else { reason })
    };
    let refers = |reason: &String| {
        let reason = reason.strip_prefix("the ").unwrap_or(reason);
        let ends_word = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
        REFERENCES.iter().any(|reference| reason.strip_prefix(reference).is_some_and(ends_word))
    };
    let complaint = |number: usize| {
        let reason = reason(number).filter(refers)?;
        Some(format!(
            "{}:{}: this SAFETY comment refers elsewhere (\"{reason}\"): say here why the code is sound, or make one safe function",
            place.display(),
            number + 1
        ))
    };
    (0..lines.len()).filter_map(complaint).collect()
}

/// The crate forbids `unsafe` in each library and program; its tests do not use it.
fn forbidden(package: &Package, offences: &mut Vec<String>) -> Result<()> {
    for target in &package.targets {
        let text = read_text(&target.src_path)?;
        let forbids = text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]");
        let ships = target.kind.iter().any(|kind| matches!(kind.as_str(), "lib" | "bin" | "proc-macro"));
        if ships && !forbids {
            offences.push(format!("{} lacks #![forbid(unsafe_code)]", target.src_path.display()));
        } else if !forbids && !lines_with_word(&text, "unsafe").is_empty() {
            offences.push(format!("{} uses `unsafe`", target.src_path.display()));
        }
    }
    Ok(())
}

/// The crate uses `unsafe` in `files` only.
fn outside(package: &Package, files: &[String], offences: &mut Vec<String>) -> Result<()> {
    for path in rust_files(&package.folder().join("src"))? {
        let place = path.strip_prefix(package.folder()).unwrap_or(&path);
        if files.iter().any(|allowed| place.starts_with(allowed)) {
            continue;
        }
        for line in lines_with_word(&read_text(&path)?, "unsafe") {
            offences.push(format!("{}:{line}: `unsafe` is allowed only in {}", path.display(), files.join(", ")));
        }
    }
    Ok(())
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Only what `tests/dependencies.toml` lists is used from outside, and inside each layer uses only those below.
pub fn dependencies(project: &Project, workspace: &Workspace, report: &mut Report) {
    report.run("dependencies", || {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Rules {
            /// Crate and the reason for it.
            allowed: BTreeMap<String, String>,
            /// Those that the nucleus may use, besides our own.
            nucleus: Vec<String>,
        }
        let rules: Rules = toml::from_str(&read_text(&project.root.join("tests/dependencies.toml"))?)?;
        let mut offences = Vec::new();
        for package in &workspace.packages {
            let place = workspace.place(package);
            for dependency in &package.dependencies {
                let name = &dependency.name;
                match &dependency.path {
                    Some(path) => {
                        let to = path.strip_prefix(&project.root).unwrap_or(path);
                        if !may_use(place, to) {
                            offences.push(format!("{} may not use {}", place.display(), to.display()));
                        }
                    }
                    None if !rules.allowed.contains_key(name) => {
                        offences.push(format!("{} uses `{name}`, which is not listed", place.display()));
                    }
                    None if place == Path::new("nucleus") && !rules.nucleus.contains(name) => {
                        offences.push(format!("the nucleus uses `{name}`, which is not listed for it"));
                    }
                    None => {}
                }
            }
        }
        if !offences.is_empty() {
            bail!("{}\nthe rules stand in tests/dependencies.toml and in the design", offences.join("\n"));
        }
        Ok(())
    });
}

/// The library of small things that programs share.
const SHARED_BY_PROGRAMS: &str = "apps/tool";

/// A program that one system description runs as a component, with rights that no program has.
const TRIAL: (&str, &str) = ("components/special-fuzzer", "apps/fuzzer");

/// `crates` use `crates`; `runtime` and `nucleus` use `crates`; components and programs use `runtime` and
/// `crates`; programs also what they share, components also drivers, which are libraries if they can be used.
fn may_use(from: &Path, to: &Path) -> bool {
    if to.starts_with("crates") {
        return true;
    }
    let above_runtime = ["components", "apps", "drivers"].iter().any(|layer| from.starts_with(layer));
    to.starts_with("runtime") && (above_runtime || from.starts_with("runtime"))
        || from.starts_with("apps") && to == Path::new(SHARED_BY_PROGRAMS)
        || from.starts_with("components") && to.starts_with("drivers")
        || from == to
        || (from, to) == (Path::new(TRIAL.0), Path::new(TRIAL.1))
}

#[cfg(test)]
mod tests {
    use super::{may_use, without_reason};
    use std::path::Path;

    #[test]
    fn a_safety_comment_that_only_refers_to_another_is_refused() {
        for reference in [
            "as above.",
            "As above; nobody else has it.",
            "as in `write`; it has 64 bits.",
            "as for `read`.",
            "see the first.",
            "see above",
            "the same.",
            "the same object.",
            "likewise.",
            "\n    // as below.",
        ] {
            let text = format!("fn f() {{\n    // Why.\n    // SAFETY: {reference}\n    unsafe {{ g() }}\n}}\n");
            let reported = reference.trim_start_matches(['\n', ' ', '/']).to_lowercase();
            let expected = format!("crates/a/src/lib.rs:3: this SAFETY comment refers elsewhere (\"{reported}\")");
            let complaints = without_reason(Path::new("crates/a/src/lib.rs"), &text);
            assert!(matches!(&complaints[..], [one] if one.starts_with(&expected)), "{reference}: {complaints:?}");
        }
        let twice = "// SAFETY: nobody else has it.\nunsafe { g() }\n/// Safety: see `g`.\nunsafe { g() }\n    // SAFETY: same\n";
        let lines = without_reason(Path::new("a.rs"), twice);
        assert!(matches!(&lines[..], [a, b] if a.starts_with("a.rs:3:") && b.starts_with("a.rs:5:")), "{lines:?}");
    }

    #[test]
    fn a_safety_comment_with_a_reason_passes() {
        for reason in [
            "nobody else has it.",
            "as the caller says.",
            "as many bytes as it has; see above.",
            "seen by nobody else.",
            "as inside of it nothing refers to it.",
            "by contract.",
            "",
        ] {
            let text = format!("// SAFETY: {reason}\nunsafe {{ g() }}\nlet text = \"// SAFETY: as above.\";\n");
            assert_eq!(without_reason(Path::new("a.rs"), &text), [""; 0], "{reason}");
        }
    }

    #[test]
    fn layers() {
        let may = |from: &str, to: &str| may_use(Path::new(from), Path::new(to));
        assert!(may("crates/system", "crates/abi"));
        assert!(may("nucleus", "crates/abi"));
        assert!(may("components/ramfs", "runtime"));
        assert!(may("apps/ls", "crates/idl"));
        assert!(may("apps/ls", "apps/tool"));
        assert!(!may("components/ramfs", "apps/tool"));
        assert!(!may("crates/system", "runtime"));
        assert!(!may("nucleus", "runtime"));
        assert!(!may("components/ramfs", "components/names"));
        assert!(!may("apps/ls", "components/ramfs"));
        assert!(may("components/special-fuzzer", "apps/fuzzer"));
        assert!(!may("components/ramfs", "apps/fuzzer"));
        assert!(!may("components/special-fuzzer", "apps/ls"));
        assert!(!may("runtime", "nucleus"));
        assert!(may("components/console", "drivers/serial/uart"));
        assert!(!may("runtime", "drivers/serial/uart") && !may("drivers/serial/uart", "drivers/clock/chip"));
        assert!(!may("apps/ls", "drivers/serial/uart"));
    }
}
