//! The shell's language: from a line of text to a tree of commands.
//!
//! ```text
//! script   = [ list { ( ";" | "&" | newline ) list } ]
//! list     = pipeline { ( "&&" | "||" ) pipeline }
//! pipeline = command { "|" command }
//! command  = ( word | redirection ) { word | redirection }
//! redirection = ( ">" | ">>" | "<" | "2>" | "2>>" ) word
//! ```
//! Words consist of literal characters, `'…'` (everything literal), `"…"` (variables are replaced,
//! `\` escapes `"`, `$`, `\`), `\x` (that character literally), `$NAME`, `${NAME}` and `$?`. `#` at
//! the start of a word begins a comment. The value of a variable is never split into words and never
//! read as syntax, unlike in POSIX shells; a word that consists only of unquoted variables and comes
//! out empty vanishes.
//!
//! Two steps: [`tokens`] cuts the text, [`parse`] builds the tree. Each error has a position (in
//! bytes) and says what was expected.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod error;
pub mod tokens;
mod tree;

pub use error::{Error, Problem};
pub use tokens::{Part, Word};
pub use tree::{Command, Connector, List, Pipeline, Redirection, RedirectionKind, parse, quote};
