//! `wc [FILE…]`: counts lines, words and bytes.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use core::ops::ControlFlow;

use tool::{Arguments, files, println};

runtime::entry!(main);

const HELP: &str = "\
usage: wc [-l] [-w] [-c] [FILE...]

Counts lines, words and bytes of files, or of standard input.

  -l  only lines
  -w  only words
  -c  only bytes
";

fn main() -> u8 {
    let mut arguments = Arguments::new("wc", HELP);
    let Some(options) = arguments.options("lwc") else { return tool::USAGE };
    let words = if arguments.words().is_empty() { &["-"][..] } else { arguments.words() };
    let mut status = 0;
    let mut total = [0u64; 3];
    for word in words {
        let mut counts = [0u64; 3];
        let mut in_word = false;
        let read = files::each_block(word, |bytes| {
            counts[2] += bytes.len() as u64;
            for byte in bytes {
                counts[0] += u64::from(*byte == b'\n');
                let space = byte.is_ascii_whitespace();
                counts[1] += u64::from(!space && !in_word);
                in_word = !space;
            }
            ControlFlow::Continue(())
        });
        if let Err(cause) = read {
            status = arguments.fail(word, cause);
            continue;
        }
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
        print(&options, counts, if *word == "-" { "" } else { word });
    }
    if words.len() > 1 {
        print(&options, total, "total");
    }
    status
}

fn print(options: &str, counts: [u64; 3], name: &str) {
    let mut line = String::new();
    for (letter, count) in ['l', 'w', 'c'].into_iter().zip(counts) {
        if options.is_empty() {
            line.push_str(&alloc::format!("{count:>8}"));
        } else if options.contains(letter) {
            line.push_str(&alloc::format!("{count} "));
        }
    }
    line.push_str(if options.is_empty() { " " } else { "" });
    line.push_str(name);
    println!("{}", line.trim_end());
}
