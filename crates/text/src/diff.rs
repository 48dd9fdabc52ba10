//! `diff`: the changes from one file to another.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::call::{Call, Exit, Kind, shown};
use crate::edits::{self, Changes};
use crate::memory::NoMemory;

/// The text of `--help`.
pub const HELP: &str = "\
usage: diff [-u] [-U LINES] [-q] [-s] [-a] [-L NAME]... FILE FILE

Shows what to change in the first file to make it the second: lines to take away
begin with -, lines to add with +, and lines around them with a space. - is
standard input. Of a directory and a file it compares the file of that name.

  -u        is the default
  -U LINES  so many lines around a change (3)
  -q        only says whether they differ
  -s        says also if they do not
  -a        compares also what is not text
  -L NAME   instead of the file's name

Of files that are not text it says only that they differ.

Status: 0 no difference, 1 differences, 2 something went wrong.
";

/// How it is shown.
struct Manner<'a> {
    around: usize,
    brief: bool,
    says_same: bool,
    any_bytes: bool,
    labels: Vec<&'a str>,
}

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (options, files) = call.options("uU:qsaL:")?;
    let mut manner = Manner { around: 3, brief: false, says_same: false, any_bytes: false, labels: Vec::new() };
    for option in options {
        match option.0 {
            'U' => manner.around = usize::try_from(call.number(option)?).unwrap_or(usize::MAX / 4).min(usize::MAX / 4),
            'q' => manner.brief = true,
            's' => manner.says_same = true,
            'a' => manner.any_bytes = true,
            'L' => manner.labels.push(option.1),
            _ => {}
        }
    }
    let (one, other) = match files[..] {
        [one, other] => beside(call, one, other)?,
        [] | [_] => return Err(call.wrong("two files are needed")),
        _ => return Err(call.wrong("too many arguments")),
    };
    compare(call, &one, &other, &manner)
}

/// The names of two files, of which one may have been named by its directory.
fn beside(call: &Call<'_>, one: &str, other: &str) -> Result<(String, String), Exit> {
    let is_directory = |path: &str| path != "-" && call.system.look(path) == Ok(Some(Kind::Directory));
    let within = |directory: &str, file: &str| {
        let name = file.trim_end_matches('/').rsplit('/').next().unwrap_or(file);
        format!("{}/{name}", directory.trim_end_matches('/'))
    };
    match (is_directory(one), is_directory(other)) {
        (true, true) => Err(call.fail(one, "both are directories")),
        (true, false) if other != "-" => Ok((within(one, other), other.into())),
        (false, true) if one != "-" => Ok((one.into(), within(other, one))),
        _ => Ok((one.into(), other.into())),
    }
}

fn compare(call: &Call<'_>, one: &str, other: &str, manner: &Manner<'_>) -> Result<u8, Exit> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let read = call.whole_file(one, &mut first)?.max(call.whole_file(other, &mut second)?);
    if read != 0 {
        return Ok(read);
    }
    if first == second {
        if manner.says_same {
            call.print(&format!("Files {one} and {other} are identical\n"))?;
        }
        return Ok(0);
    }
    let is_text = |text: &[u8]| manner.any_bytes || !text.contains(&0);
    if manner.brief {
        return call.print(&format!("Files {one} and {other} differ\n")).map(|()| 1);
    }
    if !is_text(&first) || !is_text(&second) {
        return call.print(&format!("Binary files {one} and {other} differ\n")).map(|()| 1);
    }
    let no_memory = |cause: NoMemory| call.fail(shown(one), cause);
    let first = edits::lines(&first).map_err(no_memory)?;
    let second = edits::lines(&second).map_err(no_memory)?;
    let changes = edits::changes(&first, &second, edits::PATIENCE).map_err(no_memory)?;
    let label = |number: usize, name| *manner.labels.get(number).unwrap_or(&name);
    call.print(&format!("--- {}\n+++ {}\n", label(0, one), label(1, other)))?;
    let hunks = Hunks { changes: &changes, around: manner.around, at: (0, 0) };
    for hunk in hunks {
        hunk.write(call, &first, &second, &changes)?;
    }
    Ok(1)
}

/// Lines of both files that are shown together.
struct Hunk {
    one: Range<usize>,
    other: Range<usize>,
}

/// Finds changes that are near each other.
struct Hunks<'c> {
    changes: &'c Changes,
    around: usize,
    /// The lines that were looked at.
    at: (usize, usize),
}

impl Hunks<'_> {
    /// The changed lines at this place.
    fn run(&self, (one, other): (usize, usize)) -> (usize, usize) {
        let length = |changed: &[bool], from: usize| changed[from..].iter().take_while(|changed| **changed).count();
        (length(&self.changes.removed, one), length(&self.changes.added, other))
    }

    /// How many lines are the same from here on.
    fn same(&self, (one, other): (usize, usize)) -> usize {
        let both = self.changes.removed[one..].iter().zip(&self.changes.added[other..]);
        both.take_while(|(removed, added)| !**removed && !**added).count()
    }
}

impl Iterator for Hunks<'_> {
    type Item = Hunk;

    fn next(&mut self) -> Option<Hunk> {
        let before = self.same(self.at);
        let begin = (self.at.0 + before, self.at.1 + before);
        if self.run(begin) == (0, 0) {
            return None;
        }
        let shown = before.min(self.around);
        let mut end = begin;
        let behind = loop {
            let (removed, added) = self.run(end);
            end = (end.0 + removed, end.1 + added);
            let same = self.same(end);
            let next = (end.0 + same, end.1 + same);
            if same > 2 * self.around || self.run(next) == (0, 0) {
                break same.min(self.around);
            }
            end = next;
        };
        self.at = (end.0 + behind, end.1 + behind);
        Some(Hunk { one: begin.0 - shown..self.at.0, other: begin.1 - shown..self.at.1 })
    }
}

impl Hunk {
    fn write(&self, call: &Call<'_>, one: &[&[u8]], other: &[&[u8]], changes: &Changes) -> Result<(), Exit> {
        let lines = |range: &Range<usize>| match range.len() {
            0 => format!("{},0", range.start),
            1 => format!("{}", range.start + 1),
            count => format!("{},{count}", range.start + 1),
        };
        call.print(&format!("@@ -{} +{} @@\n", lines(&self.one), lines(&self.other)))?;
        let (mut at, mut beside) = (self.one.start, self.other.start);
        while at < self.one.end || beside < self.other.end {
            let (sign, line) = if at < self.one.end && changes.removed[at] {
                at += 1;
                (b"-", one[at - 1])
            } else if beside < self.other.end && changes.added[beside] {
                beside += 1;
                (b"+", other[beside - 1])
            } else {
                at += 1;
                beside += 1;
                (b" ", one[at - 1])
            };
            call.write(sign)?;
            call.write(line)?;
            if !line.ends_with(b"\n") {
                call.print("\n\\ No newline at end of file\n")?;
            }
        }
        Ok(())
    }
}
