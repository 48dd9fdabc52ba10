//! The owner of an executed instruction's code, and the function in which it lies.
//!
//! Programs have the same addresses, but lie in different pages of this computer: the instructions in a page show whose it is. Code that
//! runs where it lies in the boot archive has all its pages in one piece, and is recognised by all of them at once. Two components that run
//! the same program share its pages, and are not distinguished.

use crate::build;
use crate::counter::{Executed, NUCLEUS_FROM};
use crate::elf;
use crate::image::System;
use crate::project::{Project, read};
use anyhow::Result;
use std::collections::BTreeMap;

/// Bits of an address within a page.
const PAGE_BITS: u32 = 12;

/// A program: its name, its file, its functions.
pub struct File {
    pub name: String,
    pub bytes: Vec<u8>,
    functions: Vec<(u64, String)>,
}

impl File {
    /// Reads what is to be notified of an ELF file.
    pub fn new(name: &str, bytes: Vec<u8>) -> Result<Self> {
        let functions = elf::functions(&bytes)?;
        Ok(Self::of(name, bytes, functions))
    }
    /// The same, with functions from elsewhere: where each begins, and its name.
    pub fn of(name: &str, bytes: Vec<u8>, functions: Vec<(u64, String)>) -> Self {
        Self { name: name.into(), bytes, functions }
    }
    fn has(&self, instruction: &Executed) -> bool {
        // The bytes that follow the last instruction of a page are not reported.
        let count = instruction.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        elf::loaded(&self.bytes, instruction.address, count) == Some(&instruction.bytes[..count])
    }
    /// Where the function begins that an address is in, and its name.
    pub fn function(&self, address: u64) -> Option<(u64, &str)> {
        elf::function_at(&self.functions, address).map(|(start, name)| (*start, name.as_str()))
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

/// Whether the nucleus executes what is at this address, portals included.
pub fn is_nucleus(address: u64) -> bool {
    address >= NUCLEUS_FROM
}

/// For each instruction, whose it is: the place of a file, of which the first is the nucleus's.
pub fn owners(executed: &[Executed], files: &[File]) -> Vec<Option<usize>> {
    let mut pieces: BTreeMap<(bool, u64), Vec<usize>> = BTreeMap::new();
    for (place, Executed { address, page, .. }) in executed.iter().enumerate() {
        let key = (is_nucleus(*address), page.wrapping_sub(address >> PAGE_BITS));
        pieces.entry(key).or_default().push(place);
    }
    let mut owners = vec![None; executed.len()];
    for ((is_nucleus, _), piece) in pieces {
        let of_all = owner(executed, files, is_nucleus, &piece);
        if of_all.is_some() {
            piece.iter().for_each(|place| owners[*place] = of_all);
            continue;
        }
        // Pages that lie so by accident.
        let mut pages: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for place in piece {
            pages.entry(executed[place].page).or_default().push(place);
        }
        for page in pages.values() {
            let of_page = owner(executed, files, is_nucleus, page);
            page.iter().for_each(|place| owners[*place] = of_page);
        }
    }
    owners
}

/// The owner of all these instructions.
fn owner(executed: &[Executed], files: &[File], is_nucleus: bool, places: &[usize]) -> Option<usize> {
    let is_whose = |file: &&(usize, &File)| {
        (file.0 == 0) == is_nucleus && places.iter().all(|place| file.1.has(&executed[*place]))
    };
    files.iter().enumerate().collect::<Vec<_>>().iter().find(is_whose).map(|(place, _)| *place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_identify_the_owner_of_a_page() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let start = elf::functions(&bytes).unwrap()[0].0;
        let code = |at| elf::loaded(&bytes, at, 4).unwrap().try_into().unwrap();
        let file = |name: &str| File::of(name, bytes.clone(), vec![(0, "main".into())]);
        let files = [file("nucleus"), file("other")];
        let executed = |address, page, bytes| Executed { address, page, bytes, times: 1 };
        let right = executed(start, 1, code(start));
        let wrong = || executed(start + 1, 1, code(start + 1).map(|byte: u8| !byte));
        assert_eq!(owners(&[right], &files), [Some(1)]);
        assert_eq!(owners(&[executed(start, 1, code(start)), wrong()], &files), [None, None]);
        // A page that lies after it by accident.
        let far = executed(start + 4096, 2, code(start + 4096).map(|byte: u8| !byte));
        assert_eq!(owners(&[executed(start, 1, code(start)), far], &files), [Some(1), None]);
        assert_eq!(owners(&[executed(NUCLEUS_FROM, 1, [0xff; 4])], &files), [None]);
    }
}
