//! Where things lie.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The tree that is worked on and the folder for everything that is built.
#[derive(Clone, Debug)]
pub struct Project {
    /// The repository.
    pub root: PathBuf,
    /// `CARGO_TARGET_DIR`, or `target` in the repository.
    pub target: PathBuf,
}

impl Project {
    /// The project in the current folder; `./x` starts us in it.
    pub fn find() -> Result<Self> {
        let root = std::env::current_dir().context("no current folder")?;
        if !root.join("nucleus/Cargo.toml").is_file() {
            bail!("{} is not the root of Cairn's repository: start this tool as ./x", root.display());
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        Ok(Self { target: root.join(target), root })
    }

    /// The folder of a crate that makes a program for Cairn.
    pub fn bare_program(&self, group: &str, name: &str) -> Option<PathBuf> {
        let folder = self.root.join(group).join(name);
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        (plain && folder.join("src/main.rs").is_file()).then_some(folder)
    }

    /// A new folder that goes when the value does; parallel runs get different ones.
    pub fn scratch(&self) -> Result<Scratch> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = self.target.join(format!("run/{}-{number}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Scratch { path })
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
