//! `./x symbols PC NAME`: which function and source line an address in a log belongs to.

use crate::build::{self, Checks};
use crate::command_line::SymbolsOptions;
use crate::elf;
use crate::image::System;
use crate::project::{Project, read};
use addr2line::Context as Lines;
use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian};
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::path::Path;

/// What the nucleus is called.
const NUCLEUS: &str = "nucleus";

/// Prints where the address is.
pub fn symbols(project: &Project, options: &SymbolsOptions) -> Result<u8> {
    let file = read(&built(project, options)?)?;
    print!("{}", place(&file, options.pc, &project.root).with_context(|| options.name.clone())?);
    Ok(0)
}

/// The file of a component, a program or the nucleus, built as `./x run` builds it.
fn built(project: &Project, options: &SymbolsOptions) -> Result<std::path::PathBuf> {
    if options.name == NUCLEUS {
        return build::nucleus(project, Checks::from(options.checked));
    }
    let system = System::read(project, &options.system)?;
    let domains = system.domains();
    let Some((_, program)) = domains.iter().find(|(name, _)| *name == options.name) else {
        let mut names: Vec<&str> = domains.iter().map(|(name, _)| name.as_str()).chain([NUCLEUS]).collect();
        names.sort_unstable();
        bail!("{} has no `{}`; there are {}", options.system.display(), options.name, names.join(", "));
    };
    Ok(build::programs(project, &[program.clone()].into())?.file(program)?.to_path_buf())
}

/// The function of an address, and its lines: innermost first, if functions were inlined.
fn place(file: &[u8], pc: u64, root: &Path) -> Result<String> {
    let code = elf::code(file)?;
    let within = |(start, bytes): &(u64, &[u8])| (*start..*start + bytes.len() as u64).contains(&pc);
    if !code.iter().any(within) {
        let pieces: Vec<String> =
            code.iter().map(|(start, bytes)| format!("{start:#x} to {:#x}", start + bytes.len() as u64)).collect();
        bail!("{pc:#x} is not in its code, which is from {}", pieces.join(", "));
    }
    let functions = elf::functions(file)?;
    let (start, name) = elf::function_at(&functions, pc).context("it has no symbols")?;
    let mut text = format!("{name} + {:#x}\n", pc - start);
    let lines = lines(file)?;
    let mut frames = lines.find_frames(pc).skip_all_loads().context("bad debug information")?;
    while let Some(frame) = frames.next().context("bad debug information")? {
        let name = frame.function.and_then(|function| Some(function.demangle().ok()?.into_owned()));
        let line = frame.location.and_then(|place| Some((place.file?, place.line?)));
        if let Some((file, line)) = line {
            let file = Path::new(file);
            let file = file.strip_prefix(root).unwrap_or(file);
            writeln!(text, "  {}:{line}  {}", file.display(), name.as_deref().unwrap_or("?"))?;
        }
    }
    Ok(text)
}

/// The functions and lines of a file, from its debug information.
pub type LinesOf<'f> = Lines<EndianSlice<'f, LittleEndian>>;

/// Reads them.
pub fn lines(file: &[u8]) -> Result<LinesOf<'_>> {
    let section = |name: &str| elf::section(file, name).unwrap_or_default();
    let dwarf = Dwarf::load(|id| Ok::<_, anyhow::Error>(EndianSlice::new(section(id.name()), LittleEndian)))?;
    Lines::from_dwarf(dwarf).context("bad debug information")
}

/// Functions that were inlined where an address is, outermost first; without those of Rust's own libraries.
pub fn inlined_at(lines: &LinesOf<'_>, pc: u64) -> Result<Vec<String>> {
    const RUST: &str = "/rustc/";
    let mut frames = lines.find_frames(pc).skip_all_loads().context("bad debug information")?;
    let mut names = Vec::new();
    while let Some(frame) = frames.next().context("bad debug information")? {
        let ours = frame.location.and_then(|place| place.file).is_some_and(|file| !file.starts_with(RUST));
        let name = frame.function.and_then(|function| Some(function.demangle().ok()?.into_owned()));
        names.push(name.filter(|_| ours));
    }
    // The last is the function itself.
    names.pop();
    Ok(names.into_iter().rev().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ourselves() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn an_address_has_its_function_and_line() {
        let file = ourselves();
        let functions = elf::functions(&file).unwrap();
        let (start, _) = functions.iter().find(|(_, name)| name == "xtask::symbols::place").expect("this function");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
        let found = place(&file, start + 4, &root).unwrap();
        let mut lines = found.lines();
        assert_eq!(lines.next(), Some("xtask::symbols::place + 0x4"));
        let line = lines.next().expect("a line");
        assert!(line.starts_with("  xtask/src/symbols.rs:"), "{line}");
        assert!(line.ends_with("  xtask::symbols::place"), "{line}");
    }

    #[test]
    fn an_address_outside_is_told_where_code_is() {
        let error = place(&ourselves(), 1, Path::new("/")).unwrap_err().to_string();
        assert!(error.starts_with("0x1 is not in its code, which is from 0x"), "{error}");
        assert!(place(b"no file", 1, Path::new("/")).is_err());
    }
}
