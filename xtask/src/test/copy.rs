//! A copy of the tree below the target folder, for tests that change it: mutants, and the tutorial.

use crate::project::{Project, files, read, write};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Copies what git knows, and what it would add, to a folder with its own target folder. Only files that
/// differ are written, so that cargo builds nothing twice.
pub fn tree(project: &Project) -> Result<Project> {
    let folder = project.target.join("copy");
    let copy = Project { root: folder.join("tree"), target: folder.join("target"), ..project.clone() };
    let names: BTreeSet<PathBuf> = files(&project.root, &[]).context("a copy of the tree")?.into_iter().collect();
    for name in &names {
        let (from, to) = (project.root.join(name), copy.root.join(name));
        let content = read(&from)?;
        if fs::read(&to).is_ok_and(|old| old == content) {
            continue;
        }
        let parent = to.parent().context("a file without a folder")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        write(&to, &content)?;
        let permissions = fs::metadata(&from).and_then(|data| fs::set_permissions(&to, data.permissions()));
        permissions.with_context(|| format!("cannot give {} its permissions", to.display()))?;
    }
    remove_others(&copy.root, &copy.root, &|name| names.contains(name))?;
    Ok(copy)
}

fn remove_others(root: &Path, folder: &Path, keep: &dyn Fn(&Path) -> bool) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(root, &path, keep)?;
            if fs::read_dir(&path).is_ok_and(|mut listing| listing.next().is_none()) {
                fs::remove_dir(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
        } else if !keep(path.strip_prefix(root).unwrap_or(&path)) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}
