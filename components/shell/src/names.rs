//! Names that are not those of programs.

/// The prefix that says on which CPUs a program may run.
pub const PIN: &str = "pin";

/// The prefix for a program that is tainted by compartments.
pub const RUN: &str = "run";
/// Stands before each of them.
pub const TAINT: &str = "--taint";
/// The prefix for a program that has a level in a compartment.
pub const WITH: &str = "with";
/// Makes a compartment, and a directory of its own.
pub const NEW_COMPARTMENT: &str = "new-compartment";
/// Moves files to a compartment.
pub const CHLABEL: &str = "chlabel";
/// Moves files out of their compartments.
pub const DECLASSIFY: &str = "declassify";
/// Gives up the shell's ownership of a compartment.
pub const DROP: &str = "drop";
/// Says whether data may go from one to another.
pub const EXPLAIN: &str = "explain";

/// Commands of this shell that are not of the language.
pub const OWN: [&str; 11] =
    [CHLABEL, DECLASSIFY, DROP, EXPLAIN, "fg", "help", "history", "jobs", "kill", NEW_COMPARTMENT, "wait"];

/// Commands of the shell itself, prefixes, and words that begin a compound command.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    let words = [PIN, RUN, WITH, "case", "for", "if", "time", "until", "while"];
    words.into_iter().chain(OWN).chain(shelleval::NAMES)
}
