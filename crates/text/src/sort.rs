//! `sort`: lines in order.

use alloc::format;
use alloc::vec::Vec;

use crate::call::{Before, Call, Exit, shown};
use crate::memory;
use crate::order::{Key, Order};

/// The text of `--help`.
pub const HELP: &str = "\
usage: sort [OPTION...] [FILE...]

Writes the lines of all files, or of standard input (-), in the order of their
bytes.

  -n       in the order of the numbers that they begin with
  -r       the other way round
  -f       capital letters of ASCII are the same as small ones
  -b       without blanks in front
  -u       of lines that are equal so only the first
  -s       lines that are equal so stay in their order
  -c       writes nothing; the status is 1 if a line is not in its place
  -k KEY   compares a part of the line: FROM[,TO], each FIELD[.CHARACTER] and
           letters of the options above, as -k 2,2n; of several the first counts
  -t C     fields end at the character C, instead of where blanks begin
  -o FILE  writes to FILE, which may be one that is read
";

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (options, mut files) = call.options("nrfbusck:t:o:")?;
    let mut order = Order::default();
    let (mut unique, mut checks, mut to) = (false, false, None);
    for (letter, value) in options {
        match letter {
            'u' => unique = true,
            's' => order.only_keys = true,
            'c' => checks = true,
            'o' => to = Some(value),
            'k' => order.keys.push(Key::parse(value).map_err(|cause| call.wrong(&format!("-k: {cause}")))?),
            't' => match value.as_bytes() {
                [separator] => order.separator = Some(*separator),
                _ => return Err(call.wrong("-t: one character of ASCII")),
            },
            letter => drop(order.manner.option(letter)),
        }
    }
    order.only_keys |= unique;
    if files.is_empty() {
        files.push("-");
    }
    if checks {
        return match files[..] {
            [file] => check(call, file, &order, unique),
            _ => Err(call.wrong("-c takes one file")),
        };
    }
    let mut text = Vec::new();
    for file in &files {
        // Of files that cannot all be read nothing is written.
        match call.whole_file(file, &mut text)? {
            0 => {}
            trouble => return Err(Exit(trouble)),
        }
        if text.last().is_some_and(|last| *last != b'\n') {
            call.keep(file, &mut text, b"\n")?;
        }
    }
    let mut lines = lines(&text).map_err(|cause| call.fail(shown(files[0]), cause))?;
    let line = |start: u32| line(&text, start as usize);
    // Equal lines keep their order, without the memory that a stable sort takes.
    lines.sort_unstable_by(|one, other| order.compare(line(*one), line(*other)).then(one.cmp(other)));
    if unique {
        lines.dedup_by(|one, other| order.compare(line(*one), line(*other)).is_eq());
    }
    let mut sink = match to {
        Some(to) => Some((to, call.system.create(to, Before::Gone).map_err(|cause| call.fail(to, cause))?)),
        None => None,
    };
    for start in lines {
        let bytes = &text[start as usize..=start as usize + line(start).len()];
        match &mut sink {
            Some((to, sink)) => sink.write(bytes).map_err(|cause| call.fail(to, cause))?,
            None => call.write(bytes)?,
        }
    }
    Ok(0)
}

/// Where the lines of a text begin, each of which ends. Where one ends is looked for again and again: there may be more lines than room to
/// keep both.
fn lines(text: &[u8]) -> Result<Vec<u32>, memory::NoMemory> {
    memory::place(text.len())?;
    let mut lines = Vec::new();
    memory::reserve(&mut lines, text.iter().filter(|byte| **byte == b'\n').count())?;
    let mut start = 0;
    while start < text.len() {
        memory::push(&mut lines, start as u32)?;
        start += line(text, start).len() + 1;
    }
    Ok(lines)
}

/// The line that begins there, without its end.
fn line(text: &[u8], start: usize) -> &[u8] {
    let rest = &text[start..];
    &rest[..rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())]
}

/// Whether a file is in order.
fn check(call: &Call<'_>, file: &str, order: &Order, unique: bool) -> Result<u8, Exit> {
    let mut text = Vec::new();
    match call.whole_file(file, &mut text)? {
        0 => {}
        trouble => return Err(Exit(trouble)),
    }
    let mut lines = text.strip_suffix(b"\n").unwrap_or(&text).split(|byte| *byte == b'\n').enumerate();
    let Some((_, mut before)) = lines.next() else { return Ok(0) };
    for (number, line) in lines {
        let order = order.compare(before, line);
        if order.is_gt() || unique && order.is_eq() {
            let line = alloc::string::String::from_utf8_lossy(line);
            call.fail(shown(file), format!("line {}: not in its place: {line}", number + 1));
            return Ok(1);
        }
        before = line;
    }
    Ok(0)
}
