//! Cargo, with the flags of the nucleus and of components.
//!
//! Each set of flags has its own folder below the target folder, so that changing from one to the
//! other compiles nothing again, and each is complete before it is read.

use crate::project::{Project, read};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Cargo said that it cannot build; it has explained itself.
#[derive(Debug)]
pub struct BuildFailed(pub String);

impl fmt::Display for BuildFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not build", self.0)
    }
}

impl std::error::Error for BuildFailed {}

/// Does the nucleus check itself?
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Checks {
    /// As shipped.
    Off,
    /// With the ledgers.
    On,
    /// With a clock on every non-preemptible section.
    Measured,
    /// With a record of each event.
    Traced,
}

impl From<bool> for Checks {
    fn from(checked: bool) -> Self {
        if checked { Checks::On } else { Checks::Off }
    }
}

/// Builds the nucleus and says where its ELF file is.
pub fn nucleus(project: &Project, checks: Checks) -> Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--package", "nucleus", "--target", project.isa.nucleus_target()]);
    let folder = match checks {
        Checks::Off => "nucleus",
        Checks::On => {
            command.args(["--features", "checked"]);
            "nucleus-checked"
        }
        Checks::Measured => {
            command.args(["--features", "measured"]);
            "nucleus-measured"
        }
        Checks::Traced => {
            command.args(["--features", "trace"]);
            "nucleus-traced"
        }
    };
    let target = project.isa.nucleus_target();
    let folder = cargo(project, command, (folder, target), &project.isa.nucleus_flags(), "the nucleus")?;
    Ok(folder.join("nucleus"))
}

/// A component or program: its package and the features with which it is built.
pub type Program = (String, Vec<String>);

/// Where the ELF files of programs are.
#[derive(Default)]
pub struct Programs(BTreeMap<Program, PathBuf>);

impl Programs {
    /// The files of all.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.0.values().map(PathBuf::as_path)
    }

    /// The file of a program that was built.
    pub fn file(&self, program: &Program) -> Result<&Path> {
        self.0.get(program).map(PathBuf::as_path).with_context(|| format!("`{}` was not built", program.0))
    }
}

/// Builds components and programs. Those without features are built together, others each by itself.
pub fn programs(project: &Project, programs: &BTreeSet<Program>) -> Result<Programs> {
    let mut groups: BTreeMap<String, Vec<&Program>> = BTreeMap::new();
    for program in programs {
        let (package, features) = program;
        let group =
            if features.is_empty() { "programs".into() } else { format!("programs-{package}-{}", features.join("-")) };
        groups.entry(group).or_default().push(program);
    }
    let mut built = Programs::default();
    for (group, programs) in groups {
        let folder = group_of_programs(project, &group, &programs)?;
        built.0.extend(programs.into_iter().map(|program| (program.clone(), folder.join(&program.0))));
    }
    Ok(built)
}

/// Builds programs that share their features, in a folder of their own; says where they are.
fn group_of_programs(project: &Project, folder: &str, programs: &[&Program]) -> Result<PathBuf> {
    let script = project.root.join("runtime/link.ld");
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--target", project.isa.target()]);
    for (package, features) in programs {
        command.args(["--package", package]);
        for feature in features {
            command.args(["--features", feature]);
        }
    }
    // Cargo does not know that the link script is an input: its hash among the flags shows changes.
    let mut flags = vec![
        "-Crelocation-model=static".to_string(),
        // Symbols of generic functions contain their types: `./x trace` finds the names of services in them.
        "-Csymbol-mangling-version=v0".to_string(),
        // The bare target has no vector registers, which the ciphers would else look for.
        "--cfg=chacha20_backend=\"soft\"".to_string(),
        "--cfg=sha2_backend=\"soft\"".to_string(),
        format!("-Clink-arg=-T{}", script.display()),
        format!("--cfg=link_script=\"{:x}\"", hash(&read(&script)?)),
    ];
    flags.extend(project.isa.program_flags().iter().map(|flag| (*flag).to_string()));
    cargo(project, command, (folder, project.isa.target()), &flags, "a component or program")
}

/// Builds the emulator's plugin that counts instructions, for this computer; says where it is.
pub fn counter(project: &Project) -> Result<PathBuf> {
    let target = project.target.join("counter");
    let mut command = Command::new("cargo");
    command.args(["build", "--quiet", "--release", "--package", "counter", "--target-dir"]).arg(&target);
    let status = command.current_dir(&project.root).stdin(Stdio::null()).status().context("cannot start cargo")?;
    if !status.success() {
        return Err(BuildFailed("the counter of instructions".into()).into());
    }
    Ok(target.join("release/libcounter.so"))
}

/// Builds the first program of the Linux that Cairn is compared with, and brings the target for it; says where it is.
pub fn peer_init(project: &Project) -> Result<PathBuf> {
    let target = "x86_64-unknown-linux-musl";
    let installed = Command::new("rustup").args(["target", "list", "--installed"]).output();
    if let Ok(installed) = installed
        && !String::from_utf8_lossy(&installed.stdout).lines().any(|line| line == target)
    {
        eprintln!("Adding the target {target}: the first program of that Linux is compiled for it.");
        let status = Command::new("rustup").args(["target", "add", target]).status().context("cannot start rustup")?;
        if !status.success() {
            return Err(BuildFailed(format!("a program for {target}")).into());
        }
    }
    let folder = project.target.join("peer/init");
    let mut command = Command::new("cargo");
    command.args(["build", "--quiet", "--release", "--package", "peer-init", "--target", target, "--target-dir"]);
    let status = command.arg(&folder).current_dir(&project.root).stdin(Stdio::null()).status();
    if !status.context("cannot start cargo")?.success() {
        return Err(BuildFailed("the first program of that Linux".into()).into());
    }
    Ok(folder.join(target).join("release/peer-init"))
}

/// Runs cargo with these flags in a folder of their own, for a target; says where the programs are.
fn cargo(
    project: &Project,
    mut command: Command,
    (folder, triple): (&str, &str),
    flags: &[String],
    what: &str,
) -> Result<PathBuf> {
    let target = project.target.join(project.isa.folder()).join(folder);
    command
        .current_dir(&project.root)
        .arg("--target-dir")
        .arg(&target)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env_remove("RUSTFLAGS")
        .stdin(Stdio::null());
    if project.is_quiet {
        command.stderr(Stdio::null());
    }
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        return Err(BuildFailed(what.into()).into());
    }
    Ok(target.join(triple).join("release"))
}

/// FNV-1a; only to notice changes.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
