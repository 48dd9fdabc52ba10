//! Where things lie.

use crate::isa::Isa;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The tree that is worked on and the folder for everything that is built.
#[derive(Clone, Debug)]
pub struct Project {
    /// The repository.
    pub root: PathBuf,
    /// `CARGO_TARGET_DIR`, or `target` in the repository.
    pub target: PathBuf,
    /// For what is built.
    pub isa: Isa,
    /// Builds say nothing, not even why they fail.
    pub is_quiet: bool,
}

impl Project {
    /// The project in the current folder; `./x` starts us in it.
    pub fn find() -> Result<Self> {
        let root = std::env::current_dir().context("no current folder")?;
        if !root.join("nucleus/Cargo.toml").is_file() {
            bail!("{} is not the root of Cairn's repository: start this tool as ./x", root.display());
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        Ok(Self { target: root.join(target), ..Self::in_folder(root) })
    }

    /// The project in this folder.
    pub fn in_folder(root: PathBuf) -> Self {
        Self { target: root.join("target"), root, isa: Isa::default(), is_quiet: false }
    }

    /// The same, to build for this ISA.
    pub fn on(&self, isa: Isa) -> Self {
        Self { isa, ..self.clone() }
    }

    /// The folder of a crate that makes a program for Cairn.
    pub fn bare_program(&self, group: &str, name: &str) -> Option<PathBuf> {
        let folder = self.root.join(group).join(name);
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        (plain && folder.join("src/main.rs").is_file()).then_some(folder)
    }

    /// The folder of a driver: `virtio-net` is `drivers/net/virtio`.
    pub fn driver(&self, name: &str) -> Option<PathBuf> {
        let (device, class) = name.rsplit_once('-')?;
        let plain = class.bytes().all(|byte| byte.is_ascii_lowercase()) && !class.is_empty();
        plain.then(|| self.bare_program(&format!("drivers/{class}"), device)).flatten()
    }

    /// A new folder that goes when the value does; parallel runs get different ones.
    pub fn scratch(&self) -> Result<Scratch> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            remove_leftovers(&self.target.join("run"));
        }
        let path = self.target.join(format!("run/{}-{number}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Scratch { path })
    }
}

/// Removes the folders of runs whose process is gone: those that were killed.
fn remove_leftovers(folder: &Path) {
    let Ok(listing) = fs::read_dir(folder) else { return };
    for entry in listing.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.split_once('-')).map(|(process, _)| process);
        let gone = process.is_some_and(|process| !Path::new("/proc").join(process).exists());
        if gone && Path::new("/proc/self").exists() {
            // Another run may be removing it as well.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A folder that is removed at the end.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on its going; a leftover is seen in the target folder.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The content of a file, or an error that names it.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The text of a file, or an error that names it.
pub fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file, or an error that names it.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// An error if no file can be written there: before much is done for it.
pub fn writable(file: &Path) -> Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!("{} cannot be written: there is no folder {}", file.display(), folder.display());
    }
    if file.is_dir() {
        bail!("{} cannot be written: it is a folder; name a file in it", file.display());
    }
    Ok(())
}

/// Files that git knows or would add, and that are there, below `root`: those that fit a pattern, or all without one.
pub fn files(root: &Path, patterns: &[&str]) -> Result<Vec<PathBuf>> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]).args(patterns);
    let output = command.current_dir(root).output().context("cannot start git")?;
    if !output.status.success() {
        bail!("`git ls-files` failed: it needs a repository");
    }
    let listing = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let names = listing.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    Ok(names.filter(|name| root.join(name).is_file()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_folders_differ_and_go() {
        let target = std::env::temp_dir().join(format!("cairn-test-{}", std::process::id()));
        let project = Project { target: target.clone(), ..Project::in_folder(target.clone()) };
        // No process has this number: Linux counts to 4,194,304.
        let leftover = target.join("run/99999999-0");
        fs::create_dir_all(&leftover).unwrap();
        remove_leftovers(&target.join("run"));
        assert_eq!(leftover.exists(), !Path::new("/proc/self").exists());
        let (one, two) = (project.scratch().unwrap(), project.scratch().unwrap());
        assert_ne!(one.file("x"), two.file("x"));
        write(&one.file("x"), b"1").unwrap();
        let path = one.file("x");
        drop(one);
        assert!(!path.exists() && two.file("x").parent().unwrap().exists());
        drop(two);
        fs::remove_dir_all(target).unwrap();
    }

    #[test]
    fn where_no_file_can_be_that_is_reported_before() {
        writable(Path::new("profile.svg")).unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        writable(&folder.join("new.svg")).unwrap();
        for (bad, cause) in [(folder.join("no/new.svg"), "there is no folder"), (folder.into(), "it is a folder")] {
            let error = writable(&bad).unwrap_err().to_string();
            assert!(error.contains(cause), "{error}");
        }
    }

    #[test]
    fn names_of_crates_do_not_climb() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf();
        let project = Project::in_folder(root);
        assert_eq!(project.bare_program("components", "../nucleus"), None);
        assert_eq!(project.bare_program("components", ""), None);
        assert_eq!(project.bare_program("components", "no-such"), None);
    }
}
