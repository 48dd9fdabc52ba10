//! Compartments by their names.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use inspection::PROC;
use loader::startup::MAX_COMPARTMENTS;
use runtime::abi::level;
use runtime::stream::FILE_SYSTEM;
use runtime::{label, op, program};

use crate::files;

/// Where the directories of compartments are, by which the shell names them.
const ALL: &str = "/compartments";
/// Stands for no compartment.
pub const NONE: &str = "-";
/// Stands for a compartment whose name we may not know.
const UNKNOWN: &str = "?";

/// Gives up what we have at level 0, if anything. A program with such a privilege reads and writes no files; one that has looked at the
/// machine needs it no more, and its output may lead to a file.
pub fn give_up_privileges() {
    for (_, entry) in own().filter(|(_, entry)| entry & 7 == level::ZERO) {
        // It can only fail for want of room in our label, which has an entry for this handle.
        let _ = op::label_send(entry >> 3, level::ONE);
    }
}

/// The compartments that we were given: names, and 8 · handle + level.
fn own() -> impl Iterator<Item = (&'static str, u64)> {
    program::startup().into_iter().flat_map(|startup| startup.compartments())
}

/// Names of compartments, and their handles.
pub struct Names(Vec<(String, u64)>);

impl Default for Names {
    fn default() -> Self {
        Self::new()
    }
}

impl Names {
    /// Those that are there, as far as we may know, and those that we were given.
    pub fn new() -> Self {
        let all = files::directory(ALL).unwrap_or_default().into_iter().filter(|entry| entry.is_directory);
        let compartment = |name: &str| FILE_SYSTEM.compartment(&files::join(ALL, name)).ok();
        let all = all.filter_map(|entry| compartment(&entry.name).map(|it| (entry.name, it >> 3)));
        Self(all.chain(own().map(|(name, entry)| (name.to_string(), entry >> 3))).collect())
    }

    fn name(&self, handle: u64) -> &str {
        self.0.iter().find(|(_, known)| *known == handle).map_or(UNKNOWN, |(name, _)| name)
    }

    /// A line of the log with the names of the compartments whose handles it has: `0x5f:3` becomes `diary:3`.
    pub fn in_line(&self, line: &str) -> String {
        let mut words = line.split(' ').map(|word| {
            let start = if word.starts_with('{') { "{" } else { "" };
            let known = word[start.len()..].strip_prefix("0x").and_then(|word| word.split_once(':'));
            let handle = known.and_then(|(handle, _)| u64::from_str_radix(handle, 16).ok());
            match (handle.map(|handle| self.name(handle)), known) {
                (Some(name), Some((_, level))) if name != UNKNOWN => format!("{start}{name}:{level}"),
                _ => word.to_string(),
            }
        });
        let first = words.next().unwrap_or_default();
        words.fold(first, |line, word| format!("{line} {word}"))
    }

    /// The compartment of a file, or -. The system's files are not marked: everybody reads them.
    pub fn of_file(&self, compartment: u64) -> &str {
        if label::is_secret(compartment) { self.name(compartment >> 3) } else { NONE }
    }

    /// Compartments of a program or a component, as `with` takes them.
    pub fn texts(&self, compartments: &[u64]) -> String {
        let text = |compartment: u64| match compartment & 7 {
            _ if compartment == 0 => "all".to_string(),
            level::STAR => self.name(compartment >> 3).to_string(),
            level => format!("{}:{}", self.name(compartment >> 3), level - 1),
        };
        let texts: Vec<String> = compartments.iter().copied().map(text).collect();
        if texts.is_empty() { NONE.to_string() } else { texts.join(",") }
    }
}

/// The compartments of the program or the component whose domain has this number: 8 · handle + level each, 0 for all.
pub fn of_domain(number: u64) -> Vec<u64> {
    let mut bytes = [0; 8 * MAX_COMPARTMENTS];
    let reported = PROC.compartments(number, &mut bytes).unwrap_or(0);
    bytes[..reported].as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}
