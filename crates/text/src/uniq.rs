//! `uniq`: lines that are repeated.

use alloc::format;
use alloc::vec::Vec;

use crate::call::{Before, Call, Exit, Flow};

/// The text of `--help`.
pub const HELP: &str = "\
usage: uniq [-c] [-d] [-u] [-i] [FILE [TO]]

Writes each line of a file (standard input, -) once that comes several times one
after the other, to standard output or to the file TO.

  -c  how often it came, in front of it
  -d  only lines that came several times
  -u  only lines that came once
  -i  capital letters of ASCII are the same as small ones
";

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (options, files) = call.options("cdui")?;
    let has = |letter| options.iter().any(|option| option.0 == letter);
    let (from, to) = match files[..] {
        [] => ("-", None),
        [from] => (from, None),
        [from, to] => (from, Some(to)),
        _ => return Err(call.wrong("too many arguments")),
    };
    let mut sink = match to {
        Some(to) => Some((to, call.system.create(to, Before::Gone).map_err(|cause| call.fail(to, cause))?)),
        None => None,
    };
    let mut text = Vec::new();
    let mut write = |line: &[u8], count: u64| {
        if has('d') && count < 2 || has('u') && count > 1 {
            return Ok(());
        }
        text.clear();
        if has('c') {
            call.keep(from, &mut text, format!("{count:7} ").as_bytes())?;
        }
        call.keep(from, &mut text, line)?;
        call.keep(from, &mut text, b"\n")?;
        match &mut sink {
            Some((to, sink)) => sink.write(&text).map_err(|cause| call.fail(to, cause)),
            None => call.write(&text),
        }
    };
    let is_same = |one: &[u8], other: &[u8]| if has('i') { one.eq_ignore_ascii_case(other) } else { one == other };
    // The first of equal lines, and how many there are.
    let mut first = Vec::new();
    let mut count = 0;
    let status = call.each_line(from, &mut |line| {
        if count > 0 && is_same(&first, line) {
            count += 1;
            return Ok(Flow::More);
        }
        if count > 0 {
            write(&first, count)?;
        }
        first.clear();
        call.keep(from, &mut first, line)?;
        count = 1;
        Ok(Flow::More)
    })?;
    if count > 0 {
        write(&first, count)?;
    }
    Ok(status)
}
