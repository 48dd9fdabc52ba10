//! The host tool's reader of ELF files: what loads of them, and their symbols.

use anyhow::{Context, Result, ensure};
use object::elf::{FileHeader64, PF_W, PT_LOAD, ProgramHeader64};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::fmt::Write;

/// The file without what does not load: symbols, debug information, section headers.
pub fn strip(file: &[u8]) -> Result<Vec<u8>> {
    let header = FileHeader64::<LittleEndian>::parse(file).context("not an ELF file of 64 bits")?;
    let endian = LittleEndian;
    let segments = header.program_headers(endian, file).context("bad program headers")?;
    let headers_end = header.e_phoff(endian) + segments.len() as u64 * u64::from(header.e_phentsize(endian));
    let loaded = segments.iter().filter(|segment| segment.p_type(endian) == PT_LOAD);
    let ends = loaded.map(|segment| segment.p_offset(endian) + segment.p_filesz(endian));
    let end = ends.chain([headers_end]).max().unwrap_or(0);
    let mut kept = file.get(..end as usize).context("a segment lies outside of the file")?.to_vec();
    // e_shoff (8 bytes at 40); e_shnum and e_shstrndx (2 bytes each at 60).
    kept[40..48].fill(0);
    kept[60..64].fill(0);
    Ok(kept)
}

/// The segments that load.
fn segments(file: &[u8]) -> Result<impl Iterator<Item = &ProgramHeader64<LittleEndian>>> {
    let header = FileHeader64::<LittleEndian>::parse(file).context("not an ELF file of 64 bits")?;
    let segments = header.program_headers(LittleEndian, file).context("bad program headers")?;
    Ok(segments.iter().filter(|segment| segment.p_type(LittleEndian) == PT_LOAD))
}

/// The loaded bytes of the file, from physical address 0 on; parts without bytes in it are left out at the end.
pub fn flat(file: &[u8]) -> Result<Vec<u8>> {
    let endian = LittleEndian;
    let mut image = Vec::new();
    for segment in segments(file)? {
        let data = segment.data(endian, file).ok().context("a segment lies outside of the file")?;
        let start = segment.p_paddr(endian) as usize;
        ensure!(start <= 1 << 24, "a segment is to be loaded at {start:#x}, far from the others");
        image.resize(image.len().max(start + data.len()), 0);
        image[start..start + data.len()].copy_from_slice(data);
    }
    Ok(image)
}

/// The bytes that load to an address, so many of them; none if they are in no segment's file.
pub fn loaded(file: &[u8], address: u64, count: usize) -> Option<&[u8]> {
    segments(file).ok()?.find_map(|segment| {
        let start = address.checked_sub(segment.p_vaddr(LittleEndian))? as usize;
        segment.data(LittleEndian, file).ok()?.get(start..start.checked_add(count)?)
    })
}

/// Pages of the segments that may be written: each instance has its own.
pub fn writable_pages(file: &[u8]) -> Result<u64> {
    let endian = LittleEndian;
    let writable = segments(file)?.filter(|segment| segment.p_flags(endian) & PF_W != 0);
    let pages = |segment: &ProgramHeader64<_>| {
        (segment.p_vaddr(endian) % 4096).saturating_add(segment.p_memsz(endian)).div_ceil(4096)
    };
    Ok(writable.map(pages).sum())
}

/// Where what has a virtual address is to be loaded.
pub fn physical(file: &[u8], address: u64) -> Option<u64> {
    let endian = LittleEndian;
    segments(file).ok()?.find_map(|segment| {
        let offset = address.checked_sub(segment.p_vaddr(endian))?;
        (offset < segment.p_memsz(endian)).then(|| segment.p_paddr(endian) + offset)
    })
}

/// Bytes of a file that are loaded and never written.
#[derive(Debug, PartialEq, Eq)]
pub struct Constant {
    /// Where they are loaded to.
    pub address: u64,
    /// Where they are in the file.
    pub place: u64,
    /// How many they are.
    pub count: u64,
}

/// The parts of the file that are loaded and never written.
pub fn constants(file: &[u8]) -> Result<Vec<Constant>> {
    let endian = LittleEndian;
    let kept = segments(file)?.filter(|segment| segment.p_flags(endian) & PF_W == 0);
    let constant = |segment: &ProgramHeader64<LittleEndian>| Constant {
        address: segment.p_vaddr(endian),
        place: segment.p_offset(endian),
        count: segment.p_filesz(endian),
    };
    Ok(kept.map(constant).collect())
}

/// The executable parts of the file, each with its address.
pub fn code(file: &[u8]) -> Result<Vec<(u64, &[u8])>> {
    let file = ElfFile64::<LittleEndian>::parse(file).context("not an ELF file of 64 bits")?;
    let sections = file.sections().filter(|section| section.kind() == SectionKind::Text);
    sections
        .map(|section| Ok((section.address(), section.data().context("a section lies outside of the file")?)))
        .collect()
}

/// Functions of the file, as sorted lines `hexadecimal address, space, name`.
pub fn symbols(file: &[u8]) -> Result<String> {
    symbols_with(file, |_| true)
}

/// As [`symbols`], of functions with these mangled names: to demangle all names of a large program takes long.
pub fn symbols_with(file: &[u8], is_wanted: impl Fn(&str) -> bool) -> Result<String> {
    let file = ElfFile64::<LittleEndian>::parse(file).context("not an ELF file of 64 bits")?;
    let mut symbols: Vec<(u64, String)> = file
        .symbols()
        .filter(|symbol| is_code(&file, symbol))
        .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_string())))
        .filter(|(_, name)| !name.is_empty() && is_wanted(name) && !name.starts_with(".L") && !name.starts_with('$'))
        // Places within functions; see `bench::several`.
        .filter(|(_, name)| !name.starts_with("lock_taken_") && !name.starts_with("lock_given_"))
        .map(|(address, name)| (address, format!("{:#}", rustc_demangle::demangle(&name))))
        .collect();
    symbols.sort();
    symbols.dedup_by_key(|(address, _)| *address);
    let mut text = String::new();
    for (address, name) in symbols {
        writeln!(text, "{address:x} {name}")?;
    }
    Ok(text)
}

/// Whether it is a function, or a label of assembly.
fn is_code<'a>(file: &ElfFile64<'a, LittleEndian>, symbol: &impl ObjectSymbol<'a>) -> bool {
    let section = || file.section_by_index(symbol.section_index()?).ok();
    match symbol.kind() {
        SymbolKind::Text => symbol.is_definition(),
        SymbolKind::Unknown => section().is_some_and(|section| section.kind() == SectionKind::Text),
        _ => false,
    }
}

/// The same, as numbers and names.
pub fn functions(file: &[u8]) -> Result<Vec<(u64, String)>> {
    let text = symbols(file)?;
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let parts = lines.map(|(address, name)| Ok((u64::from_str_radix(address, 16)?, name.to_string())));
    parts.collect()
}

/// Of functions in the order of their addresses, the one that an address is in: the last that begins there or before.
pub fn function_at(functions: &[(u64, String)], address: u64) -> Option<&(u64, String)> {
    functions[..functions.partition_point(|(start, _)| *start <= address)].last()
}

/// Addresses of all symbols whose names begin so, sorted. An error if there are none.
pub fn addresses(file: &[u8], prefix: &str) -> Result<Vec<u64>> {
    let file = ElfFile64::<LittleEndian>::parse(file).context("not an ELF file of 64 bits")?;
    let named = file.symbols().filter(|symbol| symbol.name().is_ok_and(|name| name.starts_with(prefix)));
    let mut addresses: Vec<u64> = named.map(|symbol| symbol.address()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    ensure!(!addresses.is_empty(), "no symbol begins with `{prefix}`");
    Ok(addresses)
}

/// The address of the symbol of this name.
pub fn address(file: &[u8], name: &str) -> Result<u64> {
    let file = ElfFile64::<LittleEndian>::parse(file).context("not an ELF file of 64 bits")?;
    let is_it = |found: &str| found == name || format!("{:#}", rustc_demangle::demangle(found)) == name;
    let symbol = file.symbols().find(|symbol| symbol.name().is_ok_and(is_it));
    Ok(symbol.with_context(|| format!("no symbol {name}"))?.address())
}

/// The content of a section.
pub fn section<'f>(file: &'f [u8], name: &str) -> Result<&'f [u8]> {
    let file = ElfFile64::<LittleEndian>::parse(file).context("not an ELF file of 64 bits")?;
    let section = file.section_by_name(name).with_context(|| format!("no section {name}"))?;
    section.data().with_context(|| format!("the section {name} lies outside of the file"))
}

/// The shared libraries that the file names as needed.
pub fn needed(file: &[u8]) -> Result<Vec<String>> {
    /// An entry of the table: what it is and, for this kind, where its name begins.
    const NEEDED: u64 = 1;
    let names = section(file, ".dynstr")?;
    let mut libraries = Vec::new();
    for entry in section(file, ".dynamic")?.chunks_exact(16) {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        if number(&entry[..8]) == NEEDED {
            let name = usize::try_from(number(&entry[8..])).ok().and_then(|start| names.get(start..));
            let name =
                name.and_then(|name| name.split(|&byte| byte == 0).next()).context("a name outside of .dynstr")?;
            libraries.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ourselves() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn stripping_keeps_loaded_segments_only() {
        let file = ourselves();
        let kept = strip(&file).unwrap();
        assert!(kept.len() < file.len());
        let (before, after) = (FileHeader64::<LittleEndian>::parse(&file[..]), FileHeader64::parse(&kept[..]));
        let (before, after): (_, &FileHeader64<LittleEndian>) = (before.unwrap(), after.unwrap());
        let segments = |header: &FileHeader64<LittleEndian>, file: &[u8]| {
            let segments = header.program_headers(LittleEndian, file).unwrap().to_vec();
            let loaded = segments.iter().filter(|segment| segment.p_type(LittleEndian) == PT_LOAD);
            loaded.map(|segment| segment.data(LittleEndian, file).unwrap().len()).collect::<Vec<_>>()
        };
        assert_eq!(segments(before, &file), segments(after, &kept));
        assert_eq!(after.e_shnum(LittleEndian), 0);
    }

    #[test]
    fn files_that_are_not_elf_are_refused() {
        assert!(strip(b"#!/bin/sh").is_err());
        assert!(symbols(b"").is_err());
        assert!(strip(&ourselves()[..4096]).is_err());
    }

    #[test]
    fn constants_of_a_file_are_found() {
        let file = ourselves();
        let constants = constants(&file).unwrap();
        for Constant { address, place, count } in &constants {
            let bytes = &file[*place as usize..][..*count as usize];
            assert_eq!(loaded(&file, *address, bytes.len()), Some(bytes));
        }
        let (code, has) =
            (code(&file).unwrap(), |at: u64| constants.iter().any(|c| (c.address..c.address + c.count).contains(&at)));
        assert!(code.iter().all(|(address, _)| has(*address)));
        assert!(!has(ElfFile64::<LittleEndian>::parse(&file[..]).unwrap().section_by_name(".data").unwrap().address()));
    }

    #[test]
    fn libraries_are_named() {
        assert!(needed(&ourselves()).unwrap().iter().any(|library| library.starts_with("libc.so")));
        assert!(needed(b"\x7fELF").is_err());
    }

    #[test]
    fn symbols_are_sorted_and_readable() {
        let text = symbols(&ourselves()).unwrap();
        let addresses: Vec<u64> =
            text.lines().map(|line| u64::from_str_radix(line.split_once(' ').unwrap().0, 16).unwrap()).collect();
        assert!(addresses.is_sorted());
        assert!(text.contains("xtask::elf::strip\n"), "names are demangled, without hash");
        assert!(functions(&ourselves()).unwrap().iter().any(|(_, name)| name == "xtask::elf::strip"));
    }

    #[test]
    fn addresses_are_found_by_the_beginning_of_names() {
        let file = ourselves();
        let main = addresses(&file, "main").unwrap();
        assert!(main.contains(&functions(&file).unwrap().iter().find(|(_, name)| name == "main").unwrap().0));
        assert!(main.is_sorted());
        assert!(addresses(&file, "there_is_no_such_symbol").unwrap_err().to_string().contains("no_such"));
    }
}
