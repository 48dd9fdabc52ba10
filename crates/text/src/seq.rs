//! `seq`: numbers.

use alloc::format;
use alloc::string::String;

use crate::call::{Call, Exit};
use crate::numbers::Fixed;

/// The text of `--help`.
pub const HELP: &str = "\
usage: seq [-w] [-s TEXT] [FIRST [STEP]] LAST

Writes the numbers from FIRST (1) to LAST, each STEP (1) more than the one
before. They may have a sign, and digits after a point.

  -s TEXT  between two numbers, instead of the end of a line
  -w       fills them with zeros to the same width
";

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    // A number with a sign is no option.
    let (mut between, mut same_width) = ("\n", false);
    let mut words = call.words();
    loop {
        words = match words {
            ["-w", rest @ ..] => {
                same_width = true;
                rest
            }
            ["-s", text, rest @ ..] => {
                between = text;
                rest
            }
            ["-s"] => return Err(call.wrong("-s needs a value")),
            ["--", rest @ ..] => {
                words = rest;
                break;
            }
            _ => break,
        };
    }
    let number = |word: &str| match Fixed::parse(word) {
        None if word.starts_with('-') => Err(call.wrong(&format!("unknown option {word}"))),
        None => Err(call.wrong(&format!("{word} is not a number, or one of more than 18 digits"))),
        Some(number) => Ok(number),
    };
    let one = Fixed { units: 1, digits: 0 };
    let (first, step, last) = match words {
        [last] => (one, one, number(last)?),
        [first, last] => (number(first)?, one, number(last)?),
        [first, step, last] => (number(first)?, number(step)?, number(last)?),
        [] => return Err(call.wrong("LAST is missing")),
        _ => return Err(call.wrong("too many arguments")),
    };
    if step.units == 0 {
        return Err(call.wrong("STEP is not 0"));
    }
    let digits = first.digits.max(step.digits);
    // No number has the digits that LAST has after these.
    let scale = digits.max(last.digits);
    let [first, step, last] = [first, step, last].map(|number| number.scaled(scale));
    let shown = |number: i128| text(number / 10_i128.pow(scale - digits), digits);
    let count = if (last - first) * step.signum() < 0 { return Ok(0) } else { (last - first) / step };
    let end = first + count * step;
    let width = if same_width { shown(first).len().max(shown(end).len()) } else { 0 };
    let mut current = first;
    loop {
        let text = shown(current);
        let zeros = width.saturating_sub(text.len());
        let (sign, amount) = text.split_at(usize::from(text.starts_with('-')));
        call.print(&format!("{sign}{:0<zeros$}{amount}{}", "", if current == end { "\n" } else { between }))?;
        if current == end {
            return Ok(0);
        }
        current += step;
    }
}

/// A number of units of so many digits after the point.
fn text(number: i128, digits: u32) -> String {
    let unit = 10_i128.pow(digits);
    let (sign, amount) = (if number < 0 { "-" } else { "" }, number.abs());
    match digits as usize {
        0 => format!("{sign}{amount}"),
        width => format!("{sign}{}.{:0width$}", amount / unit, amount % unit),
    }
}
