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
        let mut frames = self.0.find_frames(pc).skip_all_loads().context("bad debug information")?;
        while let Some(frame) = frames.next().context("bad debug information")? {
            let name = frame.function.and_then(|function| Some(function.demangle().ok()?.into_owned()));
            if let Some((file, line)) = frame.location.and_then(|place| Some((place.file?, place.line?))) {
                let own = Path::new(file).strip_prefix(root).ok().and_then(Path::to_str);
                let library = || {
                    file.split_once("/library/").filter(|(path, _)| path.contains("/rustc/") || path.ends_with("/rust"))
                };
                let file = own.or_else(|| library().map(|(_, file)| file)).unwrap_or(file);
                found.push((format!("{file}:{line}"), name.map_or_else(|| UNKNOWN.into(), |name| plain(&name).into())));
            }
        }
        Ok(found)
    }
}

/// A function's name without its types.
pub fn plain(name: &str) -> &str {
    match name.find('<') {
        Some(0) | None => name,
        Some(end) => &name[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn types_are_left_out() {
        assert_eq!(plain("call_once<fn() -> u8, ()>"), "call_once");
        assert_eq!(plain("main"), "main");
        assert_eq!(plain("<u8 as core::fmt::Display>::fmt"), "<u8 as core::fmt::Display>::fmt");
    }
}
