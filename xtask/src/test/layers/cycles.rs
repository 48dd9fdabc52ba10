//! Cycles of imports, folder by folder.
//!
//! A folder is a module with other files below it. Its parts are its own file (`mod.rs`, `main.rs`), the files beside that,
//! and the folders in it, each with all that is below. Imports between the parts of a folder must have one direction. If
//! they do in every folder, no files form a cycle, and no folders.

use super::imports::{File, Import};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A way around: each import leads to the part in which the next begins.
pub type Cycle = Vec<Import>;

/// A part of a folder, by the name of its module; the folder's own file has none.
type Part = Option<String>;

/// For each part the others to which imports lead, with the first such import.
type Edges<'i> = BTreeMap<Part, BTreeMap<Part, &'i Import>>;

/// The shortest cycle through each set of parts that import each other.
pub fn cycles(files: &[File], imports: &[Import]) -> Vec<Cycle> {
    let folders: BTreeSet<&[String]> =
        files.iter().flat_map(|file| (0..file.module.len()).map(|length| &file.module[..length])).collect();
    folders.into_iter().flat_map(|folder| in_folder(folder, files, imports)).collect()
}

/// Whether an import leads from one folder into another, neither of which is in the other.
pub fn is_between_folders(files: &[File], import: &Import) -> bool {
    let (from, to) = (&files[import.from].module, &files[import.to].module);
    let common = from.iter().zip(to).take_while(|(from, to)| from == to).count();
    let is_folder = |module: &Vec<String>| {
        let part = module.get(..=common);
        part.is_some_and(|part| files.iter().any(|file| file.module.starts_with(part) && file.module != part))
    };
    is_folder(from) && is_folder(to)
}

fn in_folder(folder: &[String], files: &[File], imports: &[Import]) -> Vec<Cycle> {
    let part =
        |file: usize| -> Option<Part> { files[file].module.strip_prefix(folder).map(|below| below.first().cloned()) };
    let mut edges = Edges::new();
    for import in imports {
        if let (Some(from), Some(to)) = (part(import.from), part(import.to))
            && from != to
        {
            edges.entry(from).or_default().entry(to).or_insert(import);
        }
    }
    let mut ways: Vec<(&Part, Cycle)> =
        edges.keys().filter_map(|start| Some((start, shortest(start, &edges)?))).collect();
    ways.sort_by_key(|(_, cycle)| cycle.len());
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (start, cycle) in ways {
        if !seen.contains(start) {
            let reached = reach(start, &edges);
            seen.extend(reached.into_iter().filter(|other| reach(other, &edges).contains(start)));
            found.push(cycle);
        }
    }
    found
}

/// The parts to which imports lead from here.
fn reach<'e>(start: &Part, edges: &'e Edges<'_>) -> BTreeSet<&'e Part> {
    let mut found = BTreeSet::new();
    let mut next = vec![start];
    while let Some(part) = next.pop() {
        for to in edges.get(part).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(to) {
                next.push(to);
            }
        }
    }
    found
}

/// The shortest way from a part back to it.
fn shortest(start: &Part, edges: &Edges<'_>) -> Option<Cycle> {
    let mut ways: BTreeMap<&Part, Cycle> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(part) = next.pop_front() {
        let way = ways.get(part).cloned().unwrap_or_default();
        for (to, import) in edges.get(part).into_iter().flatten() {
            let longer = [&way[..], &[(*import).clone()]].concat();
            if to == start {
                return Some(longer);
            }
            if !ways.contains_key(to) {
                ways.insert(to, longer);
                next.push_back(to);
            }
        }
    }
    None
}
