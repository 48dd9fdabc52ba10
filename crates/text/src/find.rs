//! `find`: files and directories below a path.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::call::{Call, Exit, Kind};
use crate::glob::{self, Case};

/// The text of `--help`.
pub const HELP: &str = "\
usage: find [PATH...] [TEST...]

Shows what is at the paths (.) and below, by name. With tests, only what passes
all of them.

  -name PATTERN   the last part of the path is like PATTERN: * is anything,
                  ? a character, [a-z] one of these, [!a-z] none of these
  -iname PATTERN  the same, with capital letters of ASCII like small ones
  -path PATTERN   the whole path is like PATTERN
  -type f|d       it is a file, a directory
  -not TEST, !    it does not pass the test
  -maxdepth N     nothing more than N directories below the paths
";

enum Test<'a> {
    Name(&'a str, Case),
    Path(&'a str),
    Type(&'a str),
}

impl Test<'_> {
    fn passes(&self, path: &str, kind: Kind) -> bool {
        match self {
            Self::Name(pattern, case) => glob::matches(pattern, last(path), *case),
            Self::Path(pattern) => glob::matches(pattern, path, Case::Distinct),
            Self::Type(letter) => (kind == Kind::Directory) == (*letter == "d"),
        }
    }
}

/// The tests to pass, and whether each is to be true or not.
type Tests<'a> = Vec<(Test<'a>, bool)>;

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let words = call.words();
    let is_test = |word: &str| word.starts_with('-') && word.len() > 1 || word == "!";
    let (paths, tests) = words.split_at(words.iter().position(|word| is_test(word)).unwrap_or(words.len()));
    let (tests, depth) = self::tests(call, tests)?;
    let mut status = 0;
    for path in if paths.is_empty() { &["."] } else { paths } {
        match call.system.look(path) {
            Ok(Some(kind)) => status = below(call, String::from(*path), kind, &tests, depth)?.max(status),
            Ok(None) => status = call.fail(path, "no such file or directory").0,
            Err(cause) => status = call.fail(path, cause).0,
        }
    }
    Ok(status)
}

/// The tests, and how deep it goes.
fn tests<'a>(call: &Call<'a>, mut words: &'a [&'a str]) -> Result<(Tests<'a>, u64), Exit> {
    let mut tests = Vec::new();
    let mut depth = u64::MAX;
    let mut wanted = true;
    while let [name, rest @ ..] = words {
        words = rest;
        match *name {
            "-not" | "!" => {
                wanted = !wanted;
                continue;
            }
            "-print" => continue,
            _ => {}
        }
        let known = ["-name", "-iname", "-path", "-type", "-maxdepth"];
        if !known.contains(name) {
            return Err(call.wrong(&format!("unknown test {name}")));
        }
        let [value, rest @ ..] = words else { return Err(call.wrong(&format!("{name} needs a value"))) };
        words = rest;
        let test = match *name {
            "-name" => Test::Name(value, Case::Distinct),
            "-iname" => Test::Name(value, Case::Same),
            "-path" => Test::Path(value),
            "-type" if matches!(*value, "f" | "d") => Test::Type(value),
            "-type" => return Err(call.wrong(&format!("-type: {value} is neither f nor d"))),
            _ => {
                let wrong = || call.wrong(&format!("-maxdepth: {value} is not a number"));
                depth = value.parse().map_err(|_| wrong())?;
                continue;
            }
        };
        tests.push((test, wanted));
        wanted = true;
    }
    if !wanted {
        return Err(call.wrong("-not needs a test"));
    }
    Ok((tests, depth))
}

/// Shows what passes at a path and below.
fn below(call: &Call<'_>, path: String, kind: Kind, tests: &Tests<'_>, depth: u64) -> Result<u8, Exit> {
    let mut status = 0;
    // The paths still to be looked at, the next one last: no stack grows with the depth of directories.
    let mut ahead = Vec::from([(path, kind, 0)]);
    while let Some((path, kind, level)) = ahead.pop() {
        if tests.iter().all(|(test, wanted)| test.passes(&path, kind) == *wanted) {
            call.print(&format!("{path}\n"))?;
        }
        if kind != Kind::Directory || level >= depth {
            continue;
        }
        match call.system.directory(&path) {
            Ok(named) => {
                let slash = if path.ends_with('/') { "" } else { "/" };
                let inside = named.into_iter().rev();
                ahead.extend(inside.map(|it| (format!("{path}{slash}{}", it.name), it.kind, level + 1)));
            }
            Err(cause) => status = call.fail(&path, cause).0,
        }
    }
    Ok(status)
}

/// The part after the last `/`.
fn last(path: &str) -> &str {
    let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}
