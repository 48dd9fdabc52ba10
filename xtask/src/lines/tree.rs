//! The files of a crate that become code, and whose they are.

use super::count::{of_assembly, of_rust, test_modules};
use crate::isa::Isa;
use crate::project::read_text;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A file.
#[derive(Debug)]
pub struct Module {
    /// Its path below `src`; of what belongs to an ISA below its folder, without the ending, so that it is the same for all.
    pub name: String,
    /// The first sentence of what it says about itself.
    pub about: String,
    /// The ISA that it belongs to, if not all.
    pub isa: Option<Isa>,
    /// It chooses between the ISAs.
    pub chooses: bool,
    /// Lines of code.
    pub lines: usize,
}

/// The files of the crate in a folder.
pub fn modules(folder: &Path) -> Result<Vec<Module>> {
    let source = folder.join("src");
    let mut paths = Vec::new();
    collect(&source, &mut paths)?;
    paths.sort();
    let mut of_tests = BTreeSet::new();
    for path in paths.iter().filter(|path| is(path, "rs")) {
        let beside = beside(path);
        for name in test_modules(&read_text(path)?) {
            of_tests.extend([beside.join(format!("{name}.rs")), beside.join(name)]);
        }
    }
    let counts = |path: &&PathBuf| !path.ancestors().any(|above| of_tests.contains(above));
    paths.iter().filter(counts).map(|path| module(&source, path)).collect()
}

fn collect(folder: &Path, all: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, all)?;
        } else if ["rs", "s", "ld"].iter().any(|ending| is(&path, ending)) {
            all.push(path);
        }
    }
    Ok(())
}

fn is(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension == ending)
}

/// The folder of the modules that a file declares.
fn beside(path: &Path) -> PathBuf {
    let is_root = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| path.ends_with(name));
    if is_root { path.with_file_name("") } else { path.with_extension("") }
}

fn module(source: &Path, path: &Path) -> Result<Module> {
    let text = read_text(path)?;
    let place = path.strip_prefix(source).unwrap_or(path);
    let lines = if is(path, "rs") { of_rust(&text) } else { of_assembly(&text) };
    let (name, isa) = owner(place);
    Ok(Module { name, about: about(&text), isa, chooses: place.ends_with("arch/mod.rs"), lines })
}

/// The first sentence of what a file says about itself, without what it refers to in brackets.
pub fn about(text: &str) -> String {
    let lines =
        text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).take_while(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join(" ");
    let first = text.split_once(". ").map_or(text.trim_end_matches('.'), |(first, _)| first);
    first.split_once(" (").map_or(first, |(before, _)| before).to_string()
}

/// The name of a file, and whose it is.
fn owner(place: &Path) -> (String, Option<Isa>) {
    let parts: Vec<&str> = place.iter().filter_map(|part| part.to_str()).collect();
    for (at, part) in parts.iter().enumerate() {
        let name = part.strip_suffix(".rs").unwrap_or(part);
        if let Some(isa) = Isa::ALL.into_iter().find(|isa| isa.name() == name) {
            let place = [&parts[..at], &parts[at + 1..]].concat().join("/");
            return (place.rsplit_once('.').map_or(place.as_str(), |(name, _)| name).into(), Some(isa));
        }
    }
    (parts.join("/"), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_files_belong_to_their_isa() {
        let owner = |place: &str| owner(Path::new(place));
        assert_eq!(owner("arch/x86_64/trap.rs"), ("arch/trap".into(), Some(Isa::X86_64)));
        assert_eq!(owner("arch/aarch64/trap.s"), ("arch/trap".into(), Some(Isa::Aarch64)));
        assert_eq!(owner("arch/aarch64.rs"), ("arch".into(), Some(Isa::Aarch64)));
        assert_eq!(owner("arch/mod.rs"), ("arch/mod.rs".into(), None));
        assert_eq!(owner("operation/x86_64_only.rs"), ("operation/x86_64_only.rs".into(), None));
    }

    #[test]
    fn the_nucleus_is_of_every_isa() -> Result<()> {
        let modules = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../nucleus"))?;
        let of = |isa| modules.iter().filter(|module| module.isa == isa).map(|module| module.lines).sum::<usize>();
        for isa in [None, Some(Isa::X86_64), Some(Isa::Aarch64)] {
            assert!(of(isa) > 500, "{isa:?}");
        }
        assert_eq!(modules.iter().filter(|module| module.chooses).count(), 2);
        assert!(modules.iter().all(|module| !module.about.contains('\n')));
        Ok(())
    }

    #[test]
    fn the_first_sentence_shows_what_a_file_is() {
        assert_eq!(about("//! Entries\n//! of tables (SDM). More.\n//!\n//! And more.\n\nuse a;"), "Entries of tables");
        assert_eq!(about("//! One."), "One");
        assert_eq!(about("use a;"), "");
    }

    #[test]
    fn modules_of_tests_do_not_count() -> Result<()> {
        let modules = modules(Path::new(env!("CARGO_MANIFEST_DIR")))?;
        assert!(modules.iter().any(|module| module.name == "test/checks.rs"));
        assert!(!modules.iter().any(|module| module.name == "test/ready.rs"));
        Ok(())
    }
}
