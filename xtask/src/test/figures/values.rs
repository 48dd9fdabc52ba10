//! Rows of what was printed, and comparisons.

use anyhow::{Context, Result, ensure};
use std::fmt::Debug;

pub fn same<T: PartialEq + Debug, const COUNT: usize>(what: &str, values: [T; COUNT]) -> Result<()> {
    ensure!(values.windows(2).all(|pair| pair[0] == pair[1]), "{what}: {values:?}");
    Ok(())
}

/// The middle one lies between the others, or no further from them than this.
pub fn near(what: &str, values: [u64; 3], slack: u64) -> Result<()> {
    let [first, reported, second] = values;
    let (least, most) = (first.min(second).saturating_sub(slack), first.max(second) + slack);
    ensure!((least..=most).contains(&reported), "{what}: {values:?}");
    Ok(())
}

/// The rows below the last line that begins so, each as words, as far as they are some.
pub fn table<'a>(lines: &[&'a str], head: &str, is_row: impl Fn(&[&str]) -> bool) -> Result<Vec<Vec<&'a str>>> {
    let is_head = |line: &&str| line.trim_start().starts_with(head);
    let start = lines.iter().rposition(is_head).with_context(|| format!("no table begins with `{head}`"))?;
    let rows = lines[start + 1..].iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows: Vec<_> = rows.take_while(|row| is_row(row)).collect();
    ensure!(!rows.is_empty(), "the table `{head}` has no rows");
    Ok(rows)
}

/// The first word of a row of domains.
pub fn is_number(row: &[&str]) -> bool {
    row.first().is_some_and(|text| text.parse::<u64>().is_ok())
}
