//! In which order instructions are executed: runs of those that were translated one after the other.
//!
//! It goes to a file: a line `i ADDRESS PAGE BYTES` for each instruction as it was translated (see the crate's text; all hexadecimal), then
//! a line `r FIRST COUNT` for each run (decimal): the instruction of the line with this number was executed, counted from 0, and those
//! of the lines after it, so many. If it was too much to keep, the last line is `full`.

use std::fmt::Write;

/// Most runs that are kept: 256 MiB.
const MAX_RUNS: usize = 1 << 25;

/// The runs so far.
pub struct Record {
    /// The first of each, and how many.
    runs: Vec<(u32, u32)>,
    is_full: bool,
}

impl Record {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { runs: Vec::new(), is_full: false }
    }

    /// Begins again.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The instruction with this number is executed.
    pub fn add(&mut self, number: u32) {
        if let Some((first, count)) = self.runs.last_mut()
            && first.checked_add(*count) == Some(number)
        {
            *count += 1;
        } else if self.runs.len() < MAX_RUNS {
            self.runs.push((number, 1));
        } else {
            self.is_full = true;
        }
    }

    /// The lines of runs.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (first, count) in &self.runs {
            // Writing to a text does not fail.
            let _ = writeln!(text, "r {first} {count}");
        }
        if self.is_full {
            text.push_str("full\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_numbers_extend_a_run() {
        let mut record = Record::new();
        [5, 6, 7, 6, 6, 7, 0].into_iter().for_each(|number| record.add(number));
        assert_eq!(record.text(), "r 5 3\nr 6 1\nr 6 2\nr 0 1\n");
        record.clear();
        assert_eq!(record.text(), "");
    }
}
