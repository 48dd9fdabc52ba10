//! A measurement, and the lines that report it.

use crate::counter::{COSTLY, Counts};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;

/// Something that was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    pub name: String,
    pub value: u64,
    pub unit: String,
    pub counts: BTreeMap<String, u64>,
    /// Its further costs, per operation.
    pub costly: Option<Costly>,
    /// How many operations that was counted for; 0 = it was not.
    pub operations: u64,
}

/// Of each kind of [`COSTLY`], and of a hundred instructions those with the nucleus lock.
pub type Costly = ([f64; COSTLY.len()], f64);

/// The cost of one of so many operations.
pub fn costly(counts: &Counts, operations: u64) -> Costly {
    let each = counts.costly.map(|count| count as f64 / operations as f64);
    (each, 100.0 * counts.locked as f64 / counts.instructions.max(1) as f64)
}

/// The measurements among the lines of an output.
pub fn parse(output: &str) -> Result<Vec<Measurement>> {
    let mut measured: Vec<Measurement> = Vec::new();
    for line in output.lines().filter(|line| line.starts_with("bench ")) {
        let measurement =
            parse_line(line).with_context(|| format!("not `bench NAME VALUE UNIT [key=value …]`: {line}"))?;
        if measured.iter().any(|other| other.name == measurement.name) {
            bail!("`{}` was measured twice", measurement.name);
        }
        measured.push(measurement);
    }
    Ok(measured)
}

fn parse_line(line: &str) -> Option<Measurement> {
    let mut words = line.split_whitespace().skip(1);
    let (name, value, unit) = (words.next()?.into(), words.next()?.parse().ok()?, words.next()?.into());
    let pair = |word: &str| {
        let (key, value) = word.split_once('=')?;
        Some((key.to_string(), value.parse().ok()?))
    };
    Some(Measurement { name, value, unit, counts: words.map(pair).collect::<Option<_>>()?, ..Measurement::default() })
}

/// The measurement with this name.
pub fn find<'m>(measured: &'m [Measurement], name: &str) -> Option<&'m Measurement> {
    measured.iter().find(|measurement| measurement.name == name)
}
