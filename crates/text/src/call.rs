//! A call of a tool: its words, its messages, and what it reads and writes through the system.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Display;

use crate::memory::{self, NoMemory};

/// The end of the tool, with this status. The error was printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit(pub u8);

/// Status of a tool that was called wrongly.
pub const USAGE: Exit = Exit(2);
/// Status of a tool whose output nobody reads any more.
pub const CLOSED: Exit = Exit(141);

/// Whether a reader wants more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// It goes on.
    More,
    /// It has seen enough.
    Enough,
}

/// Why output was not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lost {
    /// Nobody reads it any more, which is no error.
    Closed,
    /// Another cause.
    Failed(String),
}

/// The kind of node that a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file.
    File,
    /// A file that can be started.
    Program,
    /// A directory.
    Directory,
}

/// A name in a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Its kind; of a file not whether it can be started.
    pub kind: Kind,
}

/// The treatment of a file's old content when it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before {
    /// It goes.
    Gone,
    /// It stays; new output comes after it.
    Kept,
}

/// A file that is written.
pub trait Sink {
    /// Writes all of it. `Err` = the cause.
    fn write(&mut self, bytes: &[u8]) -> Result<(), String>;
}

/// The function that takes blocks.
pub type Take<'t> = &'t mut dyn FnMut(&[u8]) -> Flow;

/// A tool's requests to the system it runs on. Paths may be relative; causes are texts for people.
pub trait System {
    /// Reads standard input (`-`) or a file from its start, block by block, to its end or until it is enough.
    fn each_block(&self, path: &str, take: Take<'_>) -> Result<(), String>;
    /// Reads a file from an offset; 0 = at its end.
    fn read_at(&self, path: &str, offset: u64, into: &mut [u8]) -> Result<usize, String>;
    /// Writes to standard output, which may collect it.
    fn write(&self, bytes: &[u8]) -> Result<(), Lost>;
    /// Writes out what standard output has collected.
    fn flush(&self) -> Result<(), Lost>;
    /// Writes a line to standard error output.
    fn complain(&self, line: &str);
    /// The kind of node at a path; `None` = nothing is there.
    fn look(&self, path: &str) -> Result<Option<Kind>, String>;
    /// Bytes of a file, if it is known how many come.
    fn size(&self, path: &str) -> Option<u64>;
    /// The entries of a directory, by name.
    fn directory(&self, path: &str) -> Result<Vec<Named>, String>;
    /// Opens a file for writing; makes it if there is none.
    fn create(&self, path: &str, before: Before) -> Result<Box<dyn Sink + '_>, String>;
    /// Marks a file or directory that is there as changed now.
    fn mark(&self, path: &str) -> Result<(), String>;
    /// Variables of the environment, as `NAME=value`.
    fn environment(&self) -> Vec<String>;
    /// Runs a program with this environment to its end; gives its status.
    fn start(&self, words: &[&str], environment: &[String]) -> Result<u8, Unstarted>;
    /// Waits a moment. It is enough if that was interrupted.
    fn pause(&self) -> Flow;
}

/// Why a program was not started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unstarted {
    /// There is none of the name.
    NotFound(String),
    /// Another cause.
    Failed(String),
}

/// A call of a tool.
pub struct Call<'a> {
    name: &'a str,
    help: &'a str,
    trouble: u8,
    words: &'a [&'a str],
    /// The system.
    pub system: &'a dyn System,
}

/// An option: its letter, and its value, or "".
pub type Found<'a> = (char, &'a str);

/// The letter under which [`Call::options`] gives a number after a dash.
pub const NUMBER: char = '#';

impl<'a> Call<'a> {
    /// A call.
    pub fn new(name: &'a str, help: &'a str, trouble: u8, words: &'a [&'a str], system: &'a dyn System) -> Self {
        Self { name, help, trouble, words, system }
    }

    /// The words.
    pub fn words(&self) -> &'a [&'a str] {
        self.words
    }

    /// Options and other words. `known` has the letters; one that takes a value stands before `:`, and `#` allows a number after
    /// the dash (`-5`). Options may stand after other words, but not after `--`.
    pub fn options(&self, known: &str) -> Result<(Vec<Found<'a>>, Vec<&'a str>), Exit> {
        let mut found = Vec::new();
        let mut rest = Vec::new();
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            let Some(mut letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
                rest.push(*word);
                continue;
            };
            if letters == "-" {
                rest.extend(words);
                break;
            }
            if known.contains(NUMBER) && letters.bytes().all(|byte| byte.is_ascii_digit()) {
                found.push((NUMBER, letters));
                continue;
            }
            while let Some(letter) = letters.chars().next() {
                letters = &letters[letter.len_utf8()..];
                let place = known.find(letter).filter(|_| !matches!(letter, ':' | NUMBER));
                let Some(place) = place else { return Err(self.wrong(&format!("unknown option -{letter}"))) };
                if !known[place + 1..].starts_with(':') {
                    found.push((letter, ""));
                    continue;
                }
                let value = if letters.is_empty() { words.next().copied() } else { Some(letters) };
                let Some(value) = value else { return Err(self.wrong(&format!("-{letter} needs a value"))) };
                found.push((letter, value));
                break;
            }
        }
        Ok((found, rest))
    }

    /// The number that is the value of an option.
    pub fn number(&self, (letter, value): Found<'_>) -> Result<u64, Exit> {
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        value.parse().ok().filter(|_| digits).ok_or_else(|| self.wrong(&format!("-{letter}: {value} is not a number")))
    }

    /// Says that the tool was called wrongly, and how to call it.
    pub fn wrong(&self, cause: &str) -> Exit {
        let usage = self.help.lines().next().unwrap_or_default();
        self.system.complain(&format!("{}: {cause}\n{usage}\ntry {} --help", self.name, self.name));
        USAGE
    }

    /// Says `name: what: cause`.
    pub fn fail(&self, what: &str, cause: impl Display) -> Exit {
        self.system.complain(&format!("{}: {what}: {cause}", self.name));
        Exit(self.trouble)
    }

    /// Writes to standard output.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Exit> {
        self.system.write(bytes).map_err(|lost| self.lost(lost))
    }

    /// Writes text to standard output.
    pub fn print(&self, text: &str) -> Result<(), Exit> {
        self.write(text.as_bytes())
    }

    /// Writes out what standard output has collected.
    pub fn flush(&self) -> Result<(), Exit> {
        self.system.flush().map_err(|lost| self.lost(lost))
    }

    fn lost(&self, lost: Lost) -> Exit {
        match lost {
            Lost::Closed => CLOSED,
            Lost::Failed(cause) => self.fail("standard output", cause),
        }
    }

    /// Reads a file or standard input block by block. Gives the status: 0, or that of trouble if it cannot be read, which was said.
    pub fn each_block(&self, path: &str, take: &mut dyn FnMut(&[u8]) -> Result<Flow, Exit>) -> Result<u8, Exit> {
        let mut exit = None;
        let read = self.system.each_block(path, &mut |block| flow_or_exit(take(block), &mut exit));
        self.read(path, exit, read)
    }

    /// The same by lines, without what ends them.
    pub fn each_line(&self, path: &str, take: &mut dyn FnMut(&[u8]) -> Result<Flow, Exit>) -> Result<u8, Exit> {
        let mut exit = None;
        let read = each_line(self.system, path, &mut |line| flow_or_exit(take(line.bytes), &mut exit));
        self.read(path, exit, read)
    }

    /// The result of reading: the function that took it wants to end, or it could not be read.
    fn read(&self, path: &str, exit: Option<Exit>, read: Result<(), String>) -> Result<u8, Exit> {
        match (exit, read) {
            (Some(exit), _) => Err(exit),
            (None, Ok(())) => Ok(0),
            (None, Err(cause)) => Ok(self.fail(shown(path), cause).0),
        }
    }

    /// Appends bytes of a file to what is kept of it.
    pub fn keep(&self, path: &str, kept: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Exit> {
        memory::extend(kept, bytes).map_err(|cause| {
            *kept = Vec::new();
            self.fail(shown(path), cause)
        })
    }

    /// All of a file or of standard input, after what `kept` has. Gives a status as [`Self::each_block`].
    pub fn whole_file(&self, path: &str, kept: &mut Vec<u8>) -> Result<u8, Exit> {
        // To make room again and again would take twice as much.
        if let Some(size) = self.system.size(path).and_then(|size| usize::try_from(size).ok()) {
            let reserved = kept.try_reserve_exact(size);
            reserved.map_err(|_| self.fail(shown(path), NoMemory))?;
        }
        self.each_block(path, &mut |block| self.keep(path, kept, block).map(|()| Flow::More))
    }
}

/// A line of a file.
pub struct Line<'l> {
    /// Without what ends it.
    pub bytes: &'l [u8],
    /// There was a zero in what was read up to now: the file is not text.
    pub is_binary: bool,
}

/// The lines of a file or of standard input, to its end or until it is enough. `Err` = why it cannot be read.
pub fn each_line(system: &dyn System, path: &str, take: &mut dyn FnMut(Line<'_>) -> Flow) -> Result<(), String> {
    // The start of a line whose end has not come.
    let mut begun = Vec::new();
    let mut outcome = Ok(Flow::More);
    let mut is_binary = false;
    system.each_block(path, &mut |mut block| {
        is_binary |= block.contains(&0);
        while let Some(end) = block.iter().position(|byte| *byte == b'\n') {
            outcome = line(&mut begun, &block[..end], |bytes| take(Line { bytes, is_binary }));
            block = &block[end + 1..];
            if outcome != Ok(Flow::More) {
                return Flow::Enough;
            }
        }
        match memory::extend(&mut begun, block) {
            Ok(()) => Flow::More,
            Err(cause) => {
                outcome = Err(cause);
                Flow::Enough
            }
        }
    })?;
    match outcome {
        Ok(Flow::More) if !begun.is_empty() => drop(take(Line { bytes: &begun, is_binary })),
        Ok(_) => {}
        Err(cause) => {
            drop(begun);
            return Err(format!("{cause}"));
        }
    }
    Ok(())
}

/// Goes on, or ends reading with the status that the caller's function gave.
fn flow_or_exit(taken: Result<Flow, Exit>, exit: &mut Option<Exit>) -> Flow {
    taken.unwrap_or_else(|status| {
        *exit = Some(status);
        Flow::Enough
    })
}

/// Hands over a line whose start may have come before.
fn line(begun: &mut Vec<u8>, end: &[u8], take: impl FnOnce(&[u8]) -> Flow) -> Result<Flow, NoMemory> {
    if begun.is_empty() {
        return Ok(take(end));
    }
    memory::extend(begun, end)?;
    let flow = take(begun);
    begun.clear();
    Ok(flow)
}

/// A path as messages show it.
pub fn shown(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}
