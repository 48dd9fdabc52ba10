//! The usual tools for texts and files, as programs: which one this is says the name it is started under.
//!
//! Their code is in the crate `text`, which is tested beside the tools of the same names. They have one binary: most of it is what they
//! share.
//!
//! | module | what |
//! |---|---|
//! | [`system`] | what they ask of the system |
//! | [`start`] | programs with another environment |
//! | [`edit`] | a text, changed on the terminal |
//! | [`less`] | pages on the terminal |
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod edit;
mod less;
mod start;
mod system;

use alloc::vec::Vec;

use text::TOOLS;
use tool::eprintln;

runtime::entry!(main);

fn main() -> u8 {
    let own = runtime::program::name();
    let words: Vec<&'static str> = runtime::program::arguments().skip(1).collect();
    match TOOLS.iter().find(|tool| tool.name == own) {
        _ if own == less::NAME => less::main(&words),
        _ if own == edit::NAME => edit::main(&words),
        Some(tool) => text::run(tool, &words, &system::Cairn),
        None => {
            eprintln!("{own}: started under a name that means nothing to it; start it as one of:");
            TOOLS.iter().map(|tool| tool.name).chain([edit::NAME, less::NAME]).for_each(|name| eprintln!("  {name}"));
            tool::USAGE
        }
    }
}
