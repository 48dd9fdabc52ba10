//! `grep`: lines with something in them.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::call::{self, Call, Exit, Flow, Kind, shown};
use crate::matcher::{Extent, Matcher};
use crate::pattern::{Case, Syntax};

/// The text of `--help`.
pub const HELP: &str = "\
usage: grep [OPTION...] PATTERN [FILE...]

Writes the lines of files, or of standard input (-), in which there is what the
regular expression PATTERN describes.

  -E, -F    PATTERN is an extended expression, a text
  -e PATTERN  one of several
  -i        capital letters of ASCII are the same as small ones
  -w, -x    a whole word, a whole line is described
  -v        the other lines
  -c        how many there are
  -l, -L    files in which there are some, are none
  -n        with the number of each line
  -o        each part that is described, instead of the lines
  -m COUNT  at most so many lines of each file
  -A LINES, -B LINES, -C LINES  so many lines after, before, around it
  -r        what is in directories, too; of this one if no FILE is named
  -H, -h    always, never with the name of the file
  -q, -s    writes nothing; does not say which files cannot be read
  -a        shows lines also of what is not text

Status: 0 there are such lines, 1 there are none, 2 something went wrong.
";

/// The output for a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Lines,
    Parts,
    Count,
    /// Its name if there are such lines.
    NameWith,
    /// Its name if there are none.
    NameWithout,
    Nothing,
}

struct Manner {
    inverted: bool,
    shown: Shown,
    numbered: bool,
    named: bool,
    recursive: bool,
    quiet_errors: bool,
    any_bytes: bool,
    most: u64,
    before: u64,
    behind: u64,
}

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (options, mut words) = call.options("EFGe:iwxvclLnom:A:B:C:rRHhqsa#")?;
    let (mut syntax, mut case, mut extent) = (Syntax::Basic, Case::Distinct, Extent::Any);
    let mut patterns = Vec::new();
    let mut named = None;
    let mut manner = Manner {
        inverted: false,
        shown: Shown::Lines,
        numbered: false,
        named: false,
        recursive: false,
        quiet_errors: false,
        any_bytes: false,
        most: u64::MAX,
        before: 0,
        behind: 0,
    };
    for option in options {
        match option.0 {
            'E' => syntax = Syntax::Extended,
            'F' => syntax = Syntax::Fixed,
            'G' => syntax = Syntax::Basic,
            'e' => patterns.push(option.1),
            'i' => case = Case::Same,
            'w' if extent == Extent::Any => extent = Extent::Words,
            'x' => extent = Extent::Line,
            'v' => manner.inverted = true,
            'n' => manner.numbered = true,
            'm' => manner.most = call.number(option)?,
            'A' => manner.behind = call.number(option)?,
            'B' => manner.before = call.number(option)?,
            'C' | '#' => {
                manner.behind = call.number(option)?;
                manner.before = manner.behind;
            }
            'r' | 'R' => manner.recursive = true,
            'H' | 'h' => named = Some(option.0 == 'H'),
            's' => manner.quiet_errors = true,
            'a' => manner.any_bytes = true,
            'q' => manner.shown = Shown::Nothing,
            _ if manner.shown == Shown::Nothing => {}
            'l' => manner.shown = Shown::NameWith,
            'L' => manner.shown = Shown::NameWithout,
            'c' if !matches!(manner.shown, Shown::NameWith | Shown::NameWithout) => manner.shown = Shown::Count,
            'o' if manner.shown == Shown::Lines => manner.shown = Shown::Parts,
            _ => {}
        }
    }
    if patterns.is_empty() {
        if words.is_empty() {
            return Err(call.wrong("PATTERN is missing"));
        }
        patterns.push(words.remove(0));
    }
    let matcher = Matcher::new(&patterns, syntax, case, extent).map_err(|cause| call.fail(patterns[0], cause))?;
    manner.named = named.unwrap_or(words.len() > 1 || manner.recursive);
    let mut search = Search { call, manner, matcher, any: false, status: 0, separated: false };
    match words[..] {
        [] if search.manner.recursive => search.directory("")?,
        [] => search.file("-")?,
        _ => words.iter().try_for_each(|word| search.path(word))?,
    }
    // The answer is known when only the existence of matches counts.
    if search.any && search.manner.shown == Shown::Nothing {
        return Ok(0);
    }
    Ok(if search.status != 0 { search.status } else { u8::from(!search.any) })
}

struct Search<'c, 'a> {
    call: &'c Call<'a>,
    manner: Manner,
    matcher: Matcher,
    /// There was such a line.
    any: bool,
    status: u8,
    /// Lines were written: others that do not follow them are set apart.
    separated: bool,
}

impl Search<'_, '_> {
    fn is_done(&self) -> bool {
        self.any && self.manner.shown == Shown::Nothing
    }

    fn path(&mut self, path: &str) -> Result<(), Exit> {
        if self.is_done() {
            return Ok(());
        }
        if path == "-" || !self.manner.recursive || self.call.system.look(path) != Ok(Some(Kind::Directory)) {
            return self.file(path);
        }
        self.directory(path)
    }

    /// All files below a directory; "" is the current one, which is not shown.
    fn directory(&mut self, path: &str) -> Result<(), Exit> {
        let mut ahead = Vec::from([(String::from(path), Kind::Directory)]);
        while let Some((path, kind)) = ahead.pop() {
            if self.is_done() {
                break;
            }
            if kind != Kind::Directory {
                self.file(&path)?;
                continue;
            }
            match self.call.system.directory(if path.is_empty() { "." } else { &path }) {
                Ok(named) => {
                    let slash = if path.is_empty() || path.ends_with('/') { "" } else { "/" };
                    let inside = named.into_iter().rev();
                    ahead.extend(inside.map(|it| (format!("{path}{slash}{}", it.name), it.kind)));
                }
                Err(cause) => self.unreadable(&path, &cause),
            }
        }
        Ok(())
    }

    fn unreadable(&mut self, path: &str, cause: &str) {
        self.status = 2;
        if !self.manner.quiet_errors {
            self.call.fail(shown(path), cause);
        }
    }

    fn file(&mut self, path: &str) -> Result<(), Exit> {
        let name = if path == "-" { "(standard input)" } else { path };
        let mut found = Found { name, number: 0, count: 0, behind: 0, last_shown: 0, before: VecDeque::new() };
        let call = self.call;
        let mut hidden = false;
        let mut failed = None;
        // An error in the middle of a file is reported after the lines before.
        let read = call::each_line(call.system, path, &mut |line| {
            let is_binary = line.is_binary && !self.manner.any_bytes;
            match self.line(&mut found, line.bytes, is_binary) {
                Ok(Next::More) => Flow::More,
                Ok(Next::Enough) => Flow::Enough,
                Ok(Next::Hidden) => {
                    hidden = true;
                    Flow::Enough
                }
                Err(exit) => {
                    failed = Some(exit);
                    Flow::Enough
                }
            }
        });
        if let Some(exit) = failed {
            return Err(exit);
        }
        if let Err(cause) = read {
            self.unreadable(path, &cause);
        }
        let there_are = found.count > 0;
        self.any |= there_are;
        let named = if self.manner.named { format!("{name}:") } else { String::new() };
        match self.manner.shown {
            Shown::Count => call.print(&format!("{named}{}\n", found.count)),
            Shown::NameWith if there_are => call.print(&format!("{name}\n")),
            Shown::NameWithout if !there_are && self.status == 0 => call.print(&format!("{name}\n")),
            _ => {
                if hidden {
                    call.fail(name, "binary file matches");
                }
                Ok(())
            }
        }
    }

    fn line(&mut self, found: &mut Found<'_>, line: &[u8], is_binary: bool) -> Result<Next, Exit> {
        found.number += 1;
        if found.count >= self.manner.most {
            // Only what is shown after the last line is still to come.
            return match found.behind {
                0 => Ok(Next::Enough),
                _ if self.matcher.is_in(line) != self.manner.inverted => Ok(Next::Enough),
                _ => self.beside(found, line),
            };
        }
        if self.matcher.is_in(line) == self.manner.inverted {
            return self.beside(found, line);
        }
        found.count += 1;
        match self.manner.shown {
            Shown::Lines | Shown::Parts if is_binary => return Ok(Next::Hidden),
            Shown::Lines => self.show_found(found, line)?,
            Shown::Parts if !self.manner.inverted => self.show_parts(found, line)?,
            Shown::Parts | Shown::Count => {}
            _ => return Ok(Next::Enough),
        }
        let is_last = found.count >= self.manner.most && found.behind == 0;
        Ok(if is_last { Next::Enough } else { Next::More })
    }

    /// A line that is not described: it may be one before or after such a one.
    fn beside(&mut self, found: &mut Found<'_>, line: &[u8]) -> Result<Next, Exit> {
        if self.manner.shown != Shown::Lines {
            return Ok(Next::More);
        }
        if found.behind > 0 {
            found.behind -= 1;
            self.show(found, found.number, b'-', line)?;
        } else if self.manner.before > 0 {
            if found.before.len() as u64 >= self.manner.before {
                found.before.pop_front();
            }
            let mut kept = Vec::new();
            self.call.keep(found.name, &mut kept, line)?;
            found.before.push_back(kept);
        }
        Ok(Next::More)
    }

    fn show_found(&mut self, found: &mut Found<'_>, line: &[u8]) -> Result<(), Exit> {
        let before = core::mem::take(&mut found.before);
        let first = found.number - before.len() as u64;
        let around = self.manner.before + self.manner.behind > 0;
        if around && self.separated && (found.last_shown == 0 || first > found.last_shown + 1) {
            self.call.print("--\n")?;
        }
        for (number, line) in (first..).zip(before) {
            self.show(found, number, b'-', &line)?;
        }
        found.behind = self.manner.behind;
        self.show(found, found.number, b':', line)
    }

    fn show_parts(&mut self, found: &mut Found<'_>, line: &[u8]) -> Result<(), Exit> {
        let mut from = 0;
        while let Some(part) = self.matcher.find(line, from) {
            // Nothing is shown of an empty part.
            from = part.end.max(part.start + 1);
            if part.is_empty() {
                continue;
            }
            self.show(found, found.number, b':', &line[part])?;
        }
        Ok(())
    }

    fn show(&mut self, found: &mut Found<'_>, number: u64, sign: u8, line: &[u8]) -> Result<(), Exit> {
        self.separated = true;
        found.last_shown = number;
        if self.manner.named {
            self.call.print(found.name)?;
            self.call.write(&[sign])?;
        }
        if self.manner.numbered {
            self.call.print(&format!("{number}"))?;
            self.call.write(&[sign])?;
        }
        self.call.write(line)?;
        self.call.print("\n")
    }
}

/// The action after a line.
enum Next {
    More,
    Enough,
    /// There is such a line, in a file that is not text.
    Hidden,
}

/// The matches in a file.
struct Found<'n> {
    name: &'n str,
    /// Of the line.
    number: u64,
    /// Lines that are described, or not.
    count: u64,
    /// Lines that are still to be shown after one.
    behind: u64,
    /// Number of the last line that was shown.
    last_shown: u64,
    /// Lines that come before, should one come.
    before: VecDeque<Vec<u8>>,
}
