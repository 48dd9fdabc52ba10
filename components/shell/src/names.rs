//! Names that are not those of programs.

/// The prefix that says on which CPUs a program may run.
pub const PIN: &str = "pin";
/// The prefix for a program that may end components.
pub const ALLOW: &str = "allow";

/// Commands of the shell itself, and the prefixes.
pub const NAMES: [&str; 14] =
    [ALLOW, "cd", "exit", "export", "fg", "help", "history", "jobs", "kill", PIN, "pwd", "set", "unset", "wait"];
