//! The crates of the workspace, as cargo reports them.

use crate::project::Project;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A crate.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    manifest_path: PathBuf,
    /// Its targets.
    pub targets: Vec<Target>,
    /// Its direct dependencies.
    pub dependencies: Vec<Dependency>,
}

/// A library, program or test.
#[derive(Debug, Deserialize)]
pub struct Target {
    /// `lib`, `bin`, `proc-macro`, `test`, `custom-build`, …
    pub kind: Vec<String>,
    /// Its first source file.
    pub src_path: PathBuf,
}

/// A crate that another uses.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// Its folder, if it is of this workspace.
    pub path: Option<PathBuf>,
}

/// The crates and where they lie.
#[derive(Debug)]
pub struct Workspace {
    /// All of them.
    pub packages: Vec<Package>,
    root: PathBuf,
}

impl Package {
    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    /// Does it make something of this kind?
    pub fn makes(&self, kind: &str) -> bool {
        self.targets.iter().any(|target| target.kind.iter().any(|other| other == kind))
    }
}

impl Workspace {
    /// Asks cargo.
    pub fn read(project: &Project) -> Result<Self> {
        #[derive(Deserialize)]
        struct Metadata {
            packages: Vec<Package>,
            workspace_root: PathBuf,
        }
        let mut command = Command::new("cargo");
        command.args(["metadata", "--no-deps", "--format-version", "1", "--quiet"]).current_dir(&project.root);
        let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
        if !output.status.success() {
            bail!("`cargo metadata` failed");
        }
        let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata is not as expected")?;
        Ok(Self { packages: metadata.packages, root: metadata.workspace_root })
    }

    /// Its folder in the repository, as `crates/abi`.
    pub fn place<'p>(&self, package: &'p Package) -> &'p Path {
        package.folder().strip_prefix(&self.root).unwrap_or(package.folder())
    }

    /// The package that a file of the repository belongs to.
    pub fn package_of(&self, file: &Path) -> Option<&Package> {
        let is_in = |package: &&Package| file.starts_with(self.place(package));
        self.packages.iter().filter(is_in).max_by_key(|package| package.folder().as_os_str().len())
    }

    /// Does it run on this computer (and not on Cairn's machine)?
    pub fn is_host(&self, package: &Package) -> bool {
        let place = self.place(package);
        place.starts_with("crates") || place.starts_with("xtask")
    }

    /// Crates that run on this computer.
    pub fn host(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.is_host(package))
    }

    /// Crates that have tests for this computer: those that run on it, and the runtime, parts of which do.
    pub fn tested(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.is_host(package) || package.name == "runtime")
    }

    /// Names of the crates that the nucleus is made of, and that run on this computer, too.
    pub fn of_nucleus(&self) -> impl Iterator<Item = &str> {
        let nucleus = self.packages.iter().find(|package| package.name == "nucleus");
        let used = nucleus.into_iter().flat_map(|package| &package.dependencies);
        used.filter(|used| used.path.is_some()).map(|used| used.name.as_str()).chain(["pointer"])
    }

    /// Crates that run on Cairn's machine.
    pub fn bare(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| !self.is_host(package))
    }
}
