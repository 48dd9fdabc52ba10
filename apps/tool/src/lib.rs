//! Code that all programs share: arguments, help, and messages about failures.
//!
//! A program has a name and a help text. `--help` prints it and ends well. Errors are printed as
//! `name: what: cause` on standard error output; the status is then 1, or 2 if the program was called wrongly.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod command;
pub mod compartments;
pub mod files;
pub use inspection as inspect;
pub mod random;
pub mod table;
pub mod terminal;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Display;

pub use runtime::{eprintln, print, println};

use compartments::give_up_privileges;

/// Status of a program that was called wrongly.
pub const USAGE: u8 = 2;
/// Status of a program that met something wrong.
pub const FAILED: u8 = 1;

/// How a program was called.
pub struct Arguments {
    name: &'static str,
    help: &'static str,
    words: Vec<&'static str>,
}

impl Arguments {
    /// Reads the arguments. Prints the help and ends the program if it is asked for.
    pub fn new(name: &'static str, help: &'static str) -> Self {
        let words: Vec<&'static str> = runtime::program::arguments().skip(1).collect();
        if words.first() == Some(&"--help") {
            give_up_privileges();
            print!("{help}");
            runtime::program::exit(0);
        }
        Self { name, help, words }
    }

    /// The words.
    pub fn words(&self) -> &[&'static str] {
        &self.words
    }

    /// Takes options away: those of one letter that are `known`, also several after one dash, and
    /// returns those that were there. `None` (and it is said) if there is another one.
    pub fn options(&mut self, known: &str) -> Option<String> {
        let mut found = String::new();
        let mut rest = Vec::new();
        let mut over = false;
        for word in core::mem::take(&mut self.words) {
            match word.strip_prefix('-') {
                Some("-") if !over => over = true,
                Some(letters) if !over && !letters.is_empty() => {
                    if let Some(letter) = letters.chars().find(|letter| !known.contains(*letter)) {
                        self.wrong(&alloc::format!("unknown option -{letter}"));
                        return None;
                    }
                    found.push_str(letters);
                }
                _ => rest.push(word),
            }
        }
        self.words = rest;
        Some(found)
    }

    /// Takes an option and its value away: for `--count VALUE` the name is `"--count"`. `Err` (and it is said) if the value is missing or no number.
    pub fn number(&mut self, name: &str) -> Result<Option<u64>, u8> {
        let Some(place) = self.words.iter().position(|word| *word == name) else { return Ok(None) };
        self.words.remove(place);
        if place >= self.words.len() {
            return Err(self.wrong(&alloc::format!("{name} needs a number")));
        }
        let value = self.words.remove(place);
        match parse(value) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(&alloc::format!("{name}: {value} is not a number"))),
        }
    }

    /// Takes an option and its value away: for `--to VALUE` the name is `"--to"`. `Err` (and it is said) if the value is missing.
    pub fn value(&mut self, name: &str) -> Result<Option<&'static str>, u8> {
        let Some(place) = self.words.iter().position(|word| *word == name) else { return Ok(None) };
        self.words.remove(place);
        if place >= self.words.len() {
            return Err(self.wrong(&alloc::format!("{name} needs a value")));
        }
        Ok(Some(self.words.remove(place)))
    }

    /// Takes an option away: for `--all` the name is `"--all"`. True if it was there.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| *word != name);
        self.words.len() != before
    }

    /// The only word. `None` (and it is said) if there are none or several.
    pub fn one(&self, what: &str) -> Option<&'static str> {
        match self.words[..] {
            [word] => Some(word),
            [] => {
                self.wrong(&alloc::format!("{what} is missing"));
                None
            }
            _ => {
                self.wrong("too many arguments");
                None
            }
        }
    }

    /// Refuses words where none belong. True if there are none.
    pub fn none(&self) -> bool {
        match self.words.first() {
            Some(word) => {
                self.wrong(&alloc::format!("unexpected argument {word}"));
                false
            }
            None => true,
        }
    }

    /// Says that the program was called wrongly, and how to call it.
    pub fn wrong(&self, cause: &str) -> u8 {
        give_up_privileges();
        let usage = self.help.lines().next().unwrap_or_default();
        eprintln!("{}: {cause}\n{usage}\ntry {} --help", self.name, self.name);
        USAGE
    }

    /// Says `name: what: cause`.
    pub fn fail(&self, what: &str, cause: impl Display) -> u8 {
        give_up_privileges();
        eprintln!("{}: {what}: {cause}", self.name);
        FAILED
    }
}

/// A number, decimal or with `0x` hexadecimal; `_` may stand between digits.
pub fn parse(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}
