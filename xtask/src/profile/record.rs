//! The plugin's records: see `xtask/counter/src/record.rs`.

use crate::counter::Executed;
use anyhow::{Context, Result, bail, ensure};

/// Which instructions were executed, and in which order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Each once, as often as it was translated.
    pub instructions: Vec<Executed>,
    /// Places of those that were executed one after the other: the first, and how many.
    pub runs: Vec<(usize, usize)>,
}

impl Record {
    /// Reads the plugin's text.
    pub fn parse(text: &str) -> Result<Self> {
        let mut record = Self::default();
        for line in text.lines() {
            if line == "full" {
                bail!("so much was executed that the record is full: profile something shorter");
            }
            record.line(line).with_context(|| format!("`{line}` is no line of a record"))?;
        }
        Ok(record)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match *words.as_slice() {
            ["i", address, page, bytes] => {
                let number = |word| u64::from_str_radix(word, 16).ok();
                let bytes = u32::from_str_radix(bytes, 16).ok()?.to_be_bytes();
                self.instructions.push(Executed { address: number(address)?, page: number(page)?, bytes, times: 0 });
            }
            ["r", first, count] => {
                let (first, count) = (first.parse::<usize>().ok()?, count.parse::<usize>().ok()?);
                for instruction in self.instructions.get_mut(first..first.checked_add(count)?)? {
                    instruction.times += 1;
                }
                self.runs.push((first, count));
            }
            _ => return None,
        }
        Some(())
    }

    /// How many were executed.
    pub fn total(&self) -> u64 {
        self.runs.iter().map(|(_, count)| *count as u64).sum()
    }

    /// An error unless so many were recorded as the plugin counted.
    pub fn agrees_with(&self, counted: u64) -> Result<()> {
        let total = self.total();
        ensure!(total == counted, "{total} instructions were recorded, and {counted} counted: profile it again");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read() {
        let record = Record::parse("i 1000 7f 8b0001 \n".trim_end_matches(" \n")).unwrap();
        assert_eq!(record.instructions, [Executed { address: 0x1000, page: 0x7f, bytes: [0, 0x8b, 0, 1], times: 0 }]);
        let record = Record::parse("i 1000 7f 90\ni 1001 7f 90\nr 0 2\nr 1 1\n").unwrap();
        assert_eq!(record.runs, [(0, 2), (1, 1)]);
        assert_eq!(record.instructions.iter().map(|one| one.times).collect::<Vec<_>>(), [1, 2]);
        record.agrees_with(3).unwrap();
        assert!(record.agrees_with(4).unwrap_err().to_string().contains("3 instructions were recorded, and 4 counted"));
    }

    #[test]
    fn malformed_records_are_refused() {
        for (bad, cause) in [
            ("r 0 1", "no line of a record"),
            ("i 1 1 1\nr 0 2", "no line of a record"),
            ("i 1 1 1\nr 0 18446744073709551615", "no line of a record"),
            ("i 1 1", "no line of a record"),
            ("", "no line of a record"),
            ("full", "something shorter"),
        ] {
            let error = format!("{:#}", Record::parse(&format!("{bad}\n")).unwrap_err());
            assert!(error.contains(cause), "{bad:?}: {error}");
        }
    }
}
