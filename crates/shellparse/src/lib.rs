//! The shell's language, a part of that of POSIX: from a text to a tree of commands.
//!
//! ```text
//! body     = { newline } [ list { ( ";" | "&" | newline ) list } ]
//! list     = pipeline { ( "&&" | "||" ) pipeline }
//! pipeline = { "!" | "time" } command { "|" command }
//! command  = simple | compound { redirection } | name "(" ")" compound { redirection }
//! compound = "{" body "}" | "(" body ")" | "if" … "fi" | "while" … | "until" … | "for" … | "case" … "esac"
//! simple   = ( assignment | word | redirection ) { … }
//! redirection = [ number ] ( "<" | ">" | ">|" | ">>" | ">&" | "<&" ) word
//! ```
//! Words consist of literal characters, `'…'`, `"…"`, `\x`, parameters, `$(…)` and `$((…))`. `#` at the start of a word begins
//! a comment. Further syntax of other shells is refused by its name ([`Problem::Unsupported`]).
//!
//! [`parse`] is a recursive descent over the characters: `$(` in a word begins the grammar again. How deep it descends and how
//! much it makes has a limit. Each error has a position (in bytes) and says what was expected.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cut;
mod error;
mod grammar;
mod tree;

pub use error::{Error, Problem};
pub use grammar::parse;
pub use tree::*;

/// Levels of compound commands and `${…}` in each other, and of `$(…)`, which counts for two: the stack of a thread must suffice
/// for them.
pub const MAX_NESTING: usize = 8;
/// Words, commands and redirections of a text.
pub const MAX_NODES: usize = 4000;
