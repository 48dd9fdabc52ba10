//! Does each kernel operation end with each error of its contract in some test? A nucleus that checks itself says so (its
//! `report::refusals`); this adds up the runs, and compares them with the table of operations.

use super::report::Report;
use crate::isa::Isa;
use crate::project::{self, Project, read_text};
use abi::Error;
use abi::op::{COUNT, ERRORS, NAMES};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The group.
pub const NAME: &str = "refusals";
/// The list of errors that no test provokes, with reasons.
const UNSEEN: &str = "tests/unseen.toml";
/// In that file: all operations that can end with the error.
const EVERY: &str = "every";

/// An operation and an error, by their numbers.
pub type Pair = (u8, u8);

/// The pairs that were seen.
pub type Refusals = BTreeSet<Pair>;

/// Reads the pairs that the nucleus of a run wrote; none if it wrote nothing. Early last words go to the same console: they are given
/// instead.
pub fn read(file: &Path) -> Result<(Refusals, String)> {
    Ok(parse(&if file.exists() { project::read(file)? } else { Vec::new() }))
}

fn parse(bytes: &[u8]) -> (Refusals, String) {
    let (pairs, rest) = bytes.as_chunks();
    let is_pair = |[operation, error]: &[u8; 2]| {
        let known = Error::from_status((*error).into());
        usize::from(*operation) < COUNT && known.is_err_and(|known| known != Error::Unknown)
    };
    if rest.is_empty() && pairs.iter().all(is_pair) {
        (pairs.iter().map(|[operation, error]| (*operation, *error)).collect(), String::new())
    } else {
        (Refusals::new(), String::from_utf8_lossy(bytes).into())
    }
}

/// An entry of [`UNSEEN`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Excuse {
    operations: Vec<String>,
    errors: Vec<String>,
    /// None: on each ISA.
    isa: Option<Isa>,
    why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Excuses {
    unseen: Vec<Excuse>,
}

/// Compares what came on each of these ISAs with the contract.
pub fn check(project: &Project, isas: &[Isa], came: &BTreeMap<Isa, Refusals>, report: &mut Report) {
    for isa in isas {
        report.run(&format!("{NAME} on {}", isa.name()), || {
            let excused = excused(&read_text(&project.root.join(UNSEEN))?, *isa)?;
            let came =
                came.get(isa).context("no test booted: `./x test boot refusals` runs those that boot, and this")?;
            let wrong = compare(came, &excused);
            ensure!(wrong.is_empty(), "{}", wrong.join("\n  "));
            Ok(())
        });
    }
}

/// The pairs that are excused on an ISA.
fn excused(text: &str, isa: Isa) -> Result<Refusals> {
    let mut all = Refusals::new();
    for Excuse { operations, errors, isa: only, why } in toml::from_str::<Excuses>(text)?.unseen {
        ensure!(!why.trim().is_empty(), "{UNSEEN}: {operations:?} {errors:?} has no reason");
        for name in &errors {
            let error = Error::ALL.iter().find(|known| format!("{known:?}") == *name);
            let error = *error.with_context(|| format!("{UNSEEN}: there is no error {name}"))?;
            for operation in &operations {
                let named = (0..COUNT).filter(|number| ends_with(*number, error));
                let named: Refusals = named
                    .filter(|number| operation == EVERY || NAMES[*number] == operation)
                    .map(|number| (number as u8, error as u8))
                    .collect();
                ensure!(!named.is_empty(), "{UNSEEN}: no operation `{operation}` ends with {name}");
                if only.is_none_or(|only| only == isa) {
                    all.extend(named);
                }
            }
        }
    }
    Ok(all)
}

/// Whether the contract names the error.
fn ends_with(operation: usize, error: Error) -> bool {
    ERRORS[operation] >> error as u32 & 1 != 0
}

/// A line for each pair that never came and is not excused, or came and is not in the contract.
fn compare(came: &Refusals, excused: &Refusals) -> Vec<String> {
    let every = (0..COUNT).flat_map(|number| Error::ALL.iter().map(move |error| (number, *error)));
    let verdict = |(number, error): (usize, Error)| {
        let pair = (number as u8, error as u8);
        let text = match (came.contains(&pair), ends_with(number, error)) {
            (true, false) => "came, and the contract does not name it",
            (false, true) if !excused.contains(&pair) => "came in no test",
            _ => return None,
        };
        Some(format!("{} {error:?}: {text}", NAMES[number]))
    };
    every.filter_map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::op::MAP;

    const FLOW: Pair = (MAP as u8, Error::Flow as u8);

    fn all_of_the_contract() -> Refusals {
        let every = (0..COUNT).flat_map(|number| Error::ALL.iter().map(move |error| (number, *error)));
        let named = every.filter(|(number, error)| ends_with(*number, *error));
        named.map(|(number, error)| (number as u8, error as u8)).collect()
    }

    #[test]
    fn a_pair_is_seen_or_excused() {
        let mut came = all_of_the_contract();
        assert!(compare(&came, &BTreeSet::new()).is_empty());
        assert!(came.remove(&FLOW));
        assert_eq!(compare(&came, &BTreeSet::new()), ["map Flow: came in no test"]);
        let excused = BTreeSet::from([FLOW]);
        assert!(compare(&came, &excused).is_empty());
        came.insert(FLOW);
        came.insert((MAP as u8, Error::Timeout as u8));
        let wrong = compare(&came, &BTreeSet::new());
        assert_eq!(wrong, ["map Timeout: came, and the contract does not name it"]);
    }

    #[test]
    fn last_words_are_no_pairs() {
        assert_eq!(parse(&[]), (Refusals::new(), String::new()));
        assert_eq!(parse(&[FLOW.0, FLOW.1]), (Refusals::from([FLOW]), String::new()));
        for text in ["nucleus: panicked", "nucleus: panicked."] {
            assert_eq!(parse(text.as_bytes()), (Refusals::new(), text.into()));
        }
    }

    #[test]
    fn an_excuse_is_of_the_contract() {
        let excuse = |operation: &str, error: &str, why: &str| {
            let text = format!(
                "[[unseen]]\noperations = [\"{operation}\"]\nerrors = [\"{error}\"]\nisa = \"aarch64\"\nwhy = \"{why}\"\n"
            );
            assert!(
                excused(&text, Isa::X86_64).is_ok_and(|pairs| pairs.is_empty())
                    || excused(&text, Isa::Aarch64).is_err()
            );
            excused(&text, Isa::Aarch64)
        };
        assert_eq!(excuse("map", "Flow", "because").unwrap(), BTreeSet::from([FLOW]));
        assert!(excuse("every", "Flow", "because").unwrap().len() > 10);
        for (operation, error, why) in
            [("map", "Flow", " "), ("maps", "Flow", "x"), ("map", "Flows", "x"), ("map", "Timeout", "x")]
        {
            assert!(excuse(operation, error, why).is_err(), "{operation} {error}");
        }
    }
}
