//! Why data may not go from one to another, and what would let it.

use alloc::string::String;
use alloc::vec::Vec;

use abi::level;
use loader::startup::MAX_COMPARTMENTS;
use runtime::label;
use runtime::stream::FILE_SYSTEM;

use crate::compartments;
use crate::launch::PROC;

/// The source of data, or its destination.
struct Side<'a> {
    text: &'a str,
    /// Handles of what taints it.
    taints: Vec<u64>,
    /// Handles of compartments that it owns, or whose taint it accepts.
    owns: Vec<u64>,
    /// The handle of the compartment that protects it: only owners write it. 0 = none.
    protected_by: u64,
    /// Handles of compartments that it owns, and whether it owns all.
    changes: Vec<u64>,
    changes_all: bool,
    /// It may have all data: the terminal, and owners of all compartments.
    takes_all: bool,
}

impl<'a> Side<'a> {
    fn new(directory: &str, text: &'a str) -> Result<Self, String> {
        let none = Vec::new;
        let nothing = Self {
            text,
            taints: none(),
            owns: none(),
            protected_by: 0,
            changes: none(),
            changes_all: false,
            takes_all: false,
        };
        if let Ok(number) = text.parse() {
            let mut bytes = [0; 8 * MAX_COMPARTMENTS];
            let reported = PROC.compartments(number, &mut bytes).map_err(|error| alloc::format!("{text}: {error}"))?;
            let entries = bytes[..reported].as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            let at = |wanted| -> Vec<u64> {
                entries.clone().filter(|entry| entry & 7 == wanted).map(|entry| entry >> 3).collect()
            };
            let owns_all = entries.clone().any(|entry| entry == 0);
            return Ok(Self {
                taints: at(level::THREE),
                owns: at(level::STAR).into_iter().chain(at(level::ONE)).collect(),
                changes: at(level::STAR),
                changes_all: owns_all,
                takes_all: owns_all,
                ..nothing
            });
        }
        Ok(match text {
            "network" => nothing,
            "terminal" => Self { takes_all: true, ..nothing },
            path if path.contains('/') => {
                let path = filetree::normalize(directory, path);
                FILE_SYSTEM.stat(&path).map_err(|error| alloc::format!("{text}: {error}"))?;
                let compartment = FILE_SYSTEM.compartment(&path).map_err(|error| alloc::format!("{text}: {error}"))?;
                let is_secret = label::is_secret(compartment);
                let protected_by = if is_secret { 0 } else { compartment >> 3 };
                Self { taints: Vec::from_iter(is_secret.then_some(compartment >> 3)), protected_by, ..nothing }
            }
            name => Self { taints: Vec::from([compartments::handle(name)?]), ..nothing },
        })
    }
}

/// Whether data may go from one to the other; what is to be said about it.
pub fn explain(directory: &str, from: &str, to: &str) -> Result<(bool, String), String> {
    let (from, to) = (Side::new(directory, from)?, Side::new(directory, to)?);
    let (one, other) = (from.text, to.text);
    let is_kept = |handle: &&u64| !to.takes_all && !to.taints.contains(handle) && !to.owns.contains(handle);
    let kept: Vec<String> = from.taints.iter().filter(is_kept).map(|handle| called(*handle)).collect();
    let is_protected = to.protected_by != 0 && !from.changes_all && !from.changes.contains(&to.protected_by);
    if kept.is_empty() && is_protected {
        let name = called(to.protected_by);
        let mut text = alloc::format!("no: {other} belongs to {name}, and {one} may not change that\n");
        text += &alloc::format!("  with {name} PROGRAM  runs a program that may\n");
        return Ok((false, text));
    }
    if kept.is_empty() {
        let text = match from.taints.as_slice() {
            [] => alloc::format!("yes: {one} is in no compartment\n"),
            _ if to.takes_all => alloc::format!("yes: {other} takes all that its owner has\n"),
            _ => alloc::format!("yes: {other} takes what {one} has\n"),
        };
        return Ok((true, text));
    }
    let names = kept.join(" and ");
    let mut text = alloc::format!("no: {one} is in {names}, and {other} may have nothing of that\n");
    text += &alloc::format!("  declassify FILE   gives a file to everybody: then it is in {names} no more\n");
    text += &alloc::format!("  with {} PROGRAM  runs a program that may tell it to anybody\n", kept[0]);
    Ok((false, text))
}

fn called(handle: u64) -> String {
    compartments::name(handle).unwrap_or_else(|| alloc::format!("compartment {handle:x}"))
}
