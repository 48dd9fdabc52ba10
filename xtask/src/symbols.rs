//! `./x symbols PC NAME`: which function and source line an address in a log belongs to.

use crate::backtrace::{self, Place};
use crate::build::{self, Checks};
use crate::command_line::SymbolsOptions;
use crate::elf;
use crate::image::System;
use crate::project::{Project, read};
use crate::source::Lines;
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name of the nucleus.
const NUCLEUS: &str = "nucleus";

/// Prints where the address is, or each in a log.
pub fn symbols(project: &Project, options: &SymbolsOptions) -> Result<u8> {
    match (&options.log, options.pc, &options.name) {
        (Some(log), ..) => print!("{}", of_log(project, options, &text_of(log)?)?),
        (None, Some(pc), Some(name)) => {
            let file = read(&built(project, options, name)?)?;
            print!("{}", place(&file, pc, &project.root).with_context(|| name.clone())?);
        }
        _ => bail!("an address and a name, or --log FILE"),
    }
    Ok(0)
}

fn text_of(log: &Path) -> Result<String> {
    let bytes = match log == Path::new("-") {
        true => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
            bytes
        }
        false => read(log)?,
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The lines of a log about where somebody was, each with the backtrace instead of the addresses.
fn of_log(project: &Project, options: &SymbolsOptions, log: &str) -> Result<String> {
    let mut before: Vec<&str> = Vec::new();
    let mut text = String::new();
    for line in log.lines() {
        match Place::read(line) {
            None => before.push(line),
            Some(place) => {
                text += &place.cause(before.iter().copied());
                let trace = built(project, options, place.name)
                    .and_then(|file| backtrace::text(project.isa, &read(&file)?, &place, &project.root));
                text += &trace.unwrap_or_else(|error| format!("  no backtrace: {error:#}\n"));
            }
        }
    }
    if text.is_empty() {
        bail!("no line says where a domain was (as `domain 19 negtest was at 0x10a2c0, stack 0xfe9d0 ...`)");
    }
    Ok(text)
}

/// The file of a component, a program or the nucleus, built as `./x run` builds it.
fn built(project: &Project, options: &SymbolsOptions, name: &str) -> Result<PathBuf> {
    if name == NUCLEUS {
        return build::nucleus(project, Checks::from(options.checked));
    }
    let system = System::read(project, &options.system)?;
    let program = system.program_called(name, &[NUCLEUS])?;
    Ok(build::programs(project, &[program.clone()].into())?.file(&program)?.to_path_buf())
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
    for (line, function) in Lines::read(file)?.of(pc, root)? {
        writeln!(text, "  {line}  {function}")?;
    }
    Ok(text)
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
    fn an_address_outside_is_shown_where_code_is() {
        let error = place(&ourselves(), 1, Path::new("/")).unwrap_err().to_string();
        assert!(error.starts_with("0x1 is not in its code, which is from 0x"), "{error}");
        assert!(place(b"no file", 1, Path::new("/")).is_err());
    }
}
