//! Names of functions, those that were inlined, too; the profile that is made of them.

use super::stacks::{Function, Stacks};
use crate::code::File;
use crate::source::Lines;
use anyhow::{Context, Result};
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The instructions of a window of time, as a tree of calls.
pub struct Profile {
    /// Paths from the program to the function, with how many instructions were executed right there, in the order of the paths.
    pub paths: Vec<(Vec<String>, u64)>,
    /// For each function, its program's and its own name, how many: those with most first.
    pub functions: Vec<(String, String, u64)>,
    /// For each program, how many of its own, and how many of the nucleus since it ran last: those with most first.
    pub programs: Vec<(String, u64, u64)>,
}

impl Profile {
    /// All instructions.
    pub fn total(&self) -> u64 {
        self.functions.iter().map(|(_, _, instructions)| instructions).sum()
    }
}

/// Names of all files; their debug information is read when it is needed.
pub struct Names<'f> {
    files: &'f [File],
    lines: Vec<OnceCell<Lines<'f>>>,
}

impl<'f> Names<'f> {
    /// Those of these files.
    pub fn of(files: &'f [File]) -> Self {
        Self { files, lines: files.iter().map(|_| OnceCell::new()).collect() }
    }

    /// The nucleus, and the programs.
    pub fn files(&self) -> &'f [File] {
        self.files
    }

    fn lines(&self, file: usize) -> Result<&Lines<'f>> {
        if let Some(lines) = self.lines[file].get() {
            return Ok(lines);
        }
        let lines = Lines::read(&self.files[file].bytes).with_context(|| self.files[file].name.clone())?;
        Ok(self.lines[file].get_or_init(|| lines))
    }

    fn program(&self, function: Function) -> &str {
        match function.file {
            Some(file) => &self.files[file].name,
            None if function.is_nucleus => "nucleus",
            None => "?",
        }
    }

    fn function(&self, function: Function) -> &str {
        match function.file {
            Some(file) => self.files[file].function(function.start).map_or("?", |(_, name)| name),
            None if function.is_nucleus => "code of portals",
            None => "?",
        }
    }

    /// A function, and what was inlined into it where this address is: outermost first.
    fn chain(&self, function: Function, address: u64) -> Result<Vec<String>> {
        let mut chain = vec![self.function(function).to_string()];
        if let Some(file) = function.file.filter(|_| address != 0) {
            chain.extend(self.lines(file)?.inlined_at(address)?);
        }
        Ok(chain)
    }

    /// The profile.
    pub fn profile(&self, stacks: &Stacks) -> Result<Profile> {
        let mut chains: HashMap<(usize, u64), Vec<String>> = HashMap::new();
        let mut paths: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        let mut functions: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let mut programs: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (&(node, address), &times) in &stacks.counts {
            let nodes = stacks.calls.path(node);
            // Where each function is: where it called the next one.
            let places = nodes.iter().skip(1).map(|node| node.site).chain([address]);
            let mut path: Vec<String> = Vec::new();
            let mut whose = "";
            for (node, place) in nodes.iter().zip(places) {
                let function = stacks.functions[node.function];
                if self.program(function) != whose {
                    whose = self.program(function);
                    path.push(whose.into());
                }
                let chain = match chains.get(&(node.function, place)) {
                    Some(chain) => chain,
                    None => chains.entry((node.function, place)).or_insert(self.chain(function, place)?),
                };
                path.extend_from_slice(chain);
            }
            let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { continue };
            let [first, last] = [first, last].map(|node| stacks.functions[node.function]);
            let (own, of_nucleus) = programs.entry(self.program(first)).or_default();
            *if last.is_nucleus && !first.is_nucleus { of_nucleus } else { own } += times;
            *functions.entry((self.program(last), self.function(last))).or_default() += times;
            *paths.entry(path).or_default() += times;
        }
        let mut programs: Vec<_> =
            programs.into_iter().map(|(name, (own, of_nucleus))| (name.to_string(), own, of_nucleus)).collect();
        programs.sort_by_key(|(_, own, of_nucleus)| Reverse(own + of_nucleus));
        let mut functions: Vec<_> = functions
            .into_iter()
            .map(|((program, function), times)| (program.to_string(), function.to_string(), times))
            .collect();
        functions.sort_by_key(|(_, _, times)| Reverse(*times));
        Ok(Profile { paths: paths.into_iter().collect(), functions, programs })
    }
}
