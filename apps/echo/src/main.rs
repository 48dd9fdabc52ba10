//! `echo [-n] [WORD…]`: writes its arguments.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use tool::{Arguments, print, println};

runtime::entry!(main);

const HELP: &str = "\
usage: echo [-n] [WORD...]

Writes the words with a space between them and a new line at the end.

  -n  without the new line
";

fn main() {
    let arguments = Arguments::new("echo", HELP);
    let words = arguments.words();
    let (words, line_end) = match words.split_first() {
        Some((&"-n", rest)) => (rest, false),
        _ => (words, true),
    };
    for (index, word) in words.iter().enumerate() {
        print!("{}{word}", if index > 0 { " " } else { "" });
    }
    if line_end {
        println!();
    }
}
