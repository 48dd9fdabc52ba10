//! Source lines of addresses, from the debug information of a program.

use crate::elf;
use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian};
use anyhow::{Context, Result};
use std::path::Path;

/// A function without a name in the debug information.
pub const UNKNOWN: &str = "?";

/// Debug information that was read.
pub struct Lines<'a>(addr2line::Context<EndianSlice<'a, LittleEndian>>);

impl<'a> Lines<'a> {
    /// Of an ELF file.
    pub fn read(file: &'a [u8]) -> Result<Self> {
        let section = |name: &str| elf::section(file, name).unwrap_or_default();
        let dwarf = Dwarf::load(|id| Ok::<_, anyhow::Error>(EndianSlice::new(section(id.name()), LittleEndian)))?;
        addr2line::Context::from_dwarf(dwarf).map(Self).context("bad debug information")
    }

    /// Lines, as `file:line`, and functions of an address: innermost first, if functions were inlined. Files below `root` are
    /// named from there, those of Rust's libraries by the library.
    pub fn of(&self, pc: u64, root: &Path) -> Result<Vec<(String, String)>> {
        let mut found = Vec::new();
        self.each(pc, |file, line, name| {
            // The compiler's own, such as a single instruction.
            if line == 0 {
                return;
            }
            let own = Path::new(file).strip_prefix(root).ok().and_then(Path::to_str);
            let file = own.or_else(|| library(file)).unwrap_or(file);
            found.push((format!("{file}:{line}"), name.map_or_else(|| UNKNOWN.into(), |name| plain(&name).into())));
        })?;
        Ok(found)
    }

    /// Functions that were inlined where an address is, outermost first; without those of Rust's own libraries.
    pub fn inlined_at(&self, pc: u64) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.each(pc, |file, _, name| names.push(name.filter(|_| library(file).is_none())))?;
        // The last is the function itself.
        names.pop();
        Ok(names.into_iter().rev().flatten().collect())
    }

    fn each(&self, pc: u64, mut take: impl FnMut(&str, u32, Option<String>)) -> Result<()> {
        let mut frames = self.0.find_frames(pc).skip_all_loads().context("bad debug information")?;
        while let Some(frame) = frames.next().context("bad debug information")? {
            let name = frame.function.and_then(|function| Some(function.demangle().ok()?.into_owned()));
            let (file, line) = frame.location.map_or((None, None), |place| (place.file, place.line));
            take(file.unwrap_or(UNKNOWN), line.unwrap_or(0), name);
        }
        Ok(())
    }
}

/// The path of a file of Rust's own libraries, from the library on.
fn library(file: &str) -> Option<&str> {
    let (path, file) = file.split_once("/library/")?;
    // As the compiler was built, or where its sources are installed.
    (path.starts_with("/rustc/") || path.ends_with("/rustlib/src/rust")).then_some(file)
}

/// A function's name without its types.
pub fn plain(name: &str) -> &str {
    match name.find('<') {
        Some(0) | None => name,
        Some(end) => name[..end].trim_end_matches("::"),
    }
}

#[cfg(test)]
mod tests {
    use super::{library, plain};

    #[test]
    fn libraries_are_known_wherever_their_sources_are() {
        assert_eq!(library("/rustc/0123/library/core/src/cell.rs"), Some("core/src/cell.rs"));
        assert_eq!(library("/home/a/lib/rustlib/src/rust/library/alloc/src/vec.rs"), Some("alloc/src/vec.rs"));
        assert_eq!(library("/home/a/library/b.rs"), None);
        assert_eq!(library("apps/ls/src/main.rs"), None);
    }

    #[test]
    fn types_are_left_out() {
        assert_eq!(plain("call_once<fn() -> u8, ()>"), "call_once");
        assert_eq!(plain("main"), "main");
        assert_eq!(plain("core::ptr::read_volatile::<u8>"), "core::ptr::read_volatile");
        assert_eq!(plain("<u8 as core::fmt::Display>::fmt"), "<u8 as core::fmt::Display>::fmt");
    }
}
