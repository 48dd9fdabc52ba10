//! Portable code does not ask for which ISA it is compiled, and holds no machine code.
//!
//! The one place of a crate that chooses is `arch/mod.rs`; machine code is in the folders beside it. Every other use of either
//! is listed here with the reason.

use super::parity::{ISAS, files, root};
use crate::project::read_text;
use crate::scan::{Texts, without_comments};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// Asks for the ISA.
const ASKS: [&str; 2] = ["target_arch", "CARGO_CFG_TARGET_ARCH"];
/// Is, or leads to, machine code.
const MACHINE_CODE: [&str; 7] = ["asm", "global_asm", "naked_asm", "naked", "_rdtsc", "__cpuid", "x86_64"];

/// The exceptions, with reasons. A folder stands for all in it.
const ALLOWED: [(&str, &str, &str); 9] = [
    ("nucleus/build.rs", "CARGO_CFG_TARGET_ARCH", "the link script is one of the ISA's folder"),
    ("xtask", "target_arch", "asks about this computer: whether its memory keeps writes in order"),
    ("xtask", "x86_64", "the host tool builds for each"),
    ("crates/portalgen", "x86_64", "writes machine code for each ISA, on whatever it runs"),
    ("tests/isa/nucleus/portals.rs", "x86_64", "stands for the module that a port has in `crates/portalgen`"),
    ("crates/listing", "x86_64", "lists machine code of each ISA"),
    ("crates/memfuncs", "target_arch", "on the other ISAs what the compiler brings along is good"),
    ("crates/memfuncs/src/aarch64.rs", "global_asm", "copies by pairs of registers"),
    ("apps/bench/src/pages.rs", "asm", "no instruction: the compiler may not see what an empty round does"),
];

/// The words of a list that stand in a source.
fn words_in<'w>(code: &str, words: &[&'w str]) -> BTreeSet<&'w str> {
    let parts: BTreeSet<_> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    words.iter().filter(|word| parts.contains(**word)).copied().collect()
}

/// Whether a file is part of what differs between ISAs.
fn is_of_an_isa(place: &Path) -> bool {
    let parts: Vec<_> = place.iter().filter_map(|part| part.to_str()).collect();
    let after_arch = parts.iter().position(|part| *part == "arch").and_then(|at| parts.get(at + 1));
    after_arch.is_some_and(|part| *part == "mod.rs" || ISAS.contains(&part.trim_end_matches(".rs")))
}

#[test]
fn portable_code_asks_for_no_isa() -> Result<()> {
    let root = root();
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    let words = [&ASKS[..], &MACHINE_CODE].concat();
    for ending in ["rs", "toml"] {
        for path in files(&root, ending)? {
            let place = path.strip_prefix(&root).context("a file elsewhere")?;
            if is_of_an_isa(place) {
                continue;
            }
            let text = read_text(&path)?;
            // In a build script and in a manifest the words are texts.
            let found = match ending {
                "rs" if place.ends_with("build.rs") => words_in(&without_comments(&text, Texts::Kept), &words),
                "rs" => words_in(&without_comments(&text, Texts::Blank), &words),
                _ => words_in(&text, &ASKS),
            };
            for word in found {
                match ALLOWED.iter().find(|(where_, what, _)| place.starts_with(where_) && *what == word) {
                    Some(allowed) => drop(used.insert(allowed)),
                    None => wrong.push(format!("{}: {word}", place.display())),
                }
            }
        }
    }
    wrong.extend(
        ALLOWED.iter().filter(|one| !used.contains(one)).map(|(place, word, _)| format!("{place} no more has {word}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn folders_of_isas_are_known() {
    for place in ["nucleus/src/arch/mod.rs", "runtime/src/arch/x86_64/call.rs", "components/sched/src/arch/aarch64.rs"]
    {
        assert!(is_of_an_isa(Path::new(place)), "{place}");
    }
    for place in ["nucleus/src/memory/space.rs", "nucleus/src/arch/other.rs", "arch.rs", "arch"] {
        assert!(!is_of_an_isa(Path::new(place)), "{place}");
    }
}

#[test]
fn words_are_whole() {
    assert_eq!(words_in("#[cfg(target_arch = )]", &ASKS), BTreeSet::from(["target_arch"]));
    assert!(words_in("asm_like!() my_asm", &["asm"]).is_empty());
}
