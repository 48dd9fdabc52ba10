//! `./x bench --functions`: in which functions the instructions of a row are executed.
//!
//! The emulator's plugin tells of each instruction how often it is executed between the marks of the program `bench`. Programs have the same
//! addresses, but lie in different pages of this computer: whose page it is, the instructions in it tell.

use super::machine::MEMORY;
use super::show::grouped;
use crate::build;
use crate::counter::{Executed, NUCLEUS_FROM};
use crate::elf;
use crate::image::System;
use crate::project::{Project, read};
use anyhow::Result;
use std::collections::BTreeMap;

/// Functions that are shown.
const SHOWN: usize = 60;
/// Bits of an address within a page.
const PAGE_BITS: u32 = 12;

/// A program: its name, its file, its functions.
pub struct File {
    name: String,
    bytes: Vec<u8>,
    functions: Vec<(u64, String)>,
}

impl File {
    /// Reads what is to be told of an ELF file.
    pub fn new(name: &str, bytes: Vec<u8>) -> Result<Self> {
        let functions = elf::functions(&bytes)?;
        Ok(Self { name: name.into(), bytes, functions })
    }
    fn has(&self, instruction: &Executed) -> bool {
        // What follows the last instruction of a page is not told.
        let count = instruction.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        elf::loaded(&self.bytes, instruction.address, count) == Some(&instruction.bytes[..count])
    }
    fn function(&self, address: u64) -> &str {
        elf::function_at(&self.functions, address).map_or("?", |(_, name)| name)
    }
}

/// The nucleus, and the programs of a system.
pub fn files(project: &Project, system: &System, nucleus: Vec<u8>) -> Result<Vec<File>> {
    let built = build::programs(project, &system.programs())?;
    let mut files = vec![File::new("nucleus", nucleus)?];
    for program in system.programs() {
        files.push(File::new(&program.0, read(built.file(&program)?)?)?);
    }
    Ok(files)
}

/// The functions in which most instructions of so many operations are, with how many for each operation.
pub fn table(executed: &[Executed], files: &[File], operations: u64) -> String {
    let mut pages: BTreeMap<(u64, u64), Vec<&Executed>> = BTreeMap::new();
    for instruction in executed {
        pages.entry((instruction.address >> PAGE_BITS, instruction.page)).or_default().push(instruction);
    }
    let mut all: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for ((page, _), instructions) in &pages {
        let is_nucleus = page << PAGE_BITS >= NUCLEUS_FROM;
        let (candidates, unknown) = match is_nucleus {
            true => (&files[..1], ("nucleus", "code of portals")),
            false => (&files[1..], ("?", "?")),
        };
        let file = candidates.iter().find(|file| instructions.iter().all(|instruction| file.has(instruction)));
        for Executed { address, times, .. } in instructions {
            let place = file.map_or(unknown, |file| (file.name.as_str(), file.function(*address)));
            *all.entry(place).or_default() += times;
        }
    }
    let total: u64 = all.values().sum();
    let mut sorted: Vec<_> = all.into_iter().collect();
    sorted.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let each = |times: u64| format!("{:.1}", times as f64 / operations as f64);
    let lines = sorted
        .iter()
        .take(SHOWN)
        .map(|((file, function), times)| format!("{:>10}  {file:12}  {function}\n", each(*times)));
    let lines: String = lines.collect();
    format!("{:>10}  of {} operations, on a machine of {MEMORY}\n{lines}", each(total), grouped(operations))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, functions: &[(u64, &str)]) -> File {
        let functions = functions.iter().map(|(at, name)| (*at, name.to_string())).collect();
        File { name: name.into(), bytes: std::fs::read(std::env::current_exe().unwrap()).unwrap(), functions }
    }

    fn executed(address: u64, bytes: [u8; 4], times: u64) -> Executed {
        Executed { address, page: 1, bytes, times }
    }

    #[test]
    fn instructions_are_their_functions() {
        let mut other = file("other", &[]);
        let start = elf::functions(&other.bytes).unwrap()[0].0;
        other.functions = vec![(start, "first".into()), (start + 8, "second".into())];
        let bytes = |at| elf::loaded(&other.bytes, at, 4).unwrap().try_into().unwrap();
        let mut all = [(0, 3), (4, 4), (8, 30)]
            .map(|(place, times)| executed(start + place, bytes(start + place), times))
            .into_iter()
            .collect::<Vec<_>>();
        all.push(executed(NUCLEUS_FROM, [0xff; 4], 5));
        let text = table(&all, &[file("nucleus", &[]), other], 2);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][0], "21.0");
        assert_eq!(lines[1], ["15.0", "other", "second"]);
        assert_eq!(lines[2], ["3.5", "other", "first"]);
        assert_eq!(lines[3], ["2.5", "nucleus", "code", "of", "portals"]);
    }

    #[test]
    fn whose_page_it_is_its_bytes_tell() {
        let other = file("other", &[(0, "main")]);
        let start = elf::functions(&other.bytes).unwrap()[0].0;
        let bytes: [u8; 4] = elf::loaded(&other.bytes, start, 4).unwrap().try_into().unwrap();
        let files = || [file("nucleus", &[]), file("other", &[(0, "main")])];
        assert!(table(&[executed(start, bytes, 1)], &files(), 1).contains("other         main"));
        let wrong = bytes.map(|byte| !byte);
        assert!(table(&[executed(start, bytes, 1), executed(start + 1, wrong, 1)], &files(), 1).contains("?"));
    }
}
