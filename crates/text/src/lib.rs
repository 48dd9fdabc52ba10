//! The usual tools for texts and files (`grep`, `sort`, `diff`, …): their behaviour, apart from the system they run on.
//!
//! A tool gets its words and a [`System`], and gives a status. Cairn's programs pass one made of the runtime, the host tests one made
//! of the standard library; these run each tool beside the tool of that name of this computer, and compare what both print.
//!
//! | module | what |
//! |---|---|
//! | [`call`] | a call of a tool: options, messages, lines of files |
//! | [`memory`] | vectors that refuse instead of panicking |
//! | [`pattern`], [`matcher`] | regular expressions of POSIX; the search for them |
//! | [`order`], [`numbers`], [`edits`], [`glob`], [`pager`], [`keys`] | the logic of `sort`, `seq`, `diff`, `find`, `less` |
//! | [`document`], [`editor`] | the text that `edit` changes, and the rest of its logic |
//! | the others | a tool each |
//!
//! Memory is bounded by what the caller has: a tool that finds none says so and ends with a status. Nothing here panics, whatever is read.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod call;
pub mod diff;
pub mod document;
pub mod editor;
pub mod edits;
pub mod env;
pub mod find;
pub mod glob;
pub mod grep;
pub mod head;
pub mod hexdump;
pub mod keys;
pub mod matcher;
pub mod memory;
pub mod numbers;
pub mod order;
pub mod pager;
pub mod pattern;
pub mod seq;
pub mod sort;
pub mod tail;
pub mod tee;
pub mod touch;
pub mod uniq;
pub mod which;

use call::{Call, Exit};

pub use call::{Flow, Kind, Lost, Named, Sink, System};

/// A tool.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// The text of `--help`; its first line is how it is called.
    pub help: &'static str,
    /// The status when something goes wrong.
    pub trouble: u8,
    /// Its function.
    pub run: fn(&Call<'_>) -> Result<u8, Exit>,
}

/// All tools, by name.
pub const TOOLS: [Tool; 13] = [
    Tool { name: "diff", help: diff::HELP, trouble: 2, run: diff::run },
    Tool { name: "find", help: find::HELP, trouble: 1, run: find::run },
    Tool { name: "grep", help: grep::HELP, trouble: 2, run: grep::run },
    Tool { name: "head", help: head::HELP, trouble: 1, run: head::run },
    Tool { name: "hexdump", help: hexdump::HELP, trouble: 1, run: hexdump::run },
    Tool { name: "seq", help: seq::HELP, trouble: 1, run: seq::run },
    Tool { name: "sort", help: sort::HELP, trouble: 2, run: sort::run },
    Tool { name: "tail", help: tail::HELP, trouble: 1, run: tail::run },
    Tool { name: "tee", help: tee::HELP, trouble: 1, run: tee::run },
    Tool { name: "touch", help: touch::HELP, trouble: 1, run: touch::run },
    Tool { name: "uniq", help: uniq::HELP, trouble: 1, run: uniq::run },
    Tool { name: "which", help: which::HELP, trouble: 1, run: which::run },
    Tool { name: "env", help: env::HELP, trouble: env::TROUBLE, run: env::run },
];

/// Runs the tool with these words and gives its status.
pub fn run(tool: &Tool, words: &[&str], system: &dyn System) -> u8 {
    let call = Call::new(tool.name, tool.help, tool.trouble, words, system);
    let outcome = if words.first() == Some(&"--help") { call.print(tool.help).map(|()| 0) } else { (tool.run)(&call) };
    // The collected output may find no room.
    outcome.and_then(|status| call.flush().map(|()| status)).unwrap_or_else(|Exit(status)| status)
}
