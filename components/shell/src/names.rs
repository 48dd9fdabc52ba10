//! Names that are not those of programs.

/// The prefix that says on which CPUs a program may run.
pub const PIN: &str = "pin";
/// The prefix for a program that may end components.
pub const ALLOW: &str = "allow";

/// Commands of this shell that are not of the language.
pub const OWN: [&str; 6] = ["fg", "help", "history", "jobs", "kill", "wait"];

/// Commands of the shell itself, prefixes, and words that begin a compound command.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    let words = [ALLOW, PIN, "case", "for", "if", "time", "until", "while"];
    words.into_iter().chain(OWN).chain(shelleval::NAMES)
}
