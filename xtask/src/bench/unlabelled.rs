//! Rows that say what labels cost: something with labels over the same with labels off, in per cent.

use super::machine::{MEMORY, run};
use super::measurement::{Measurement, find};
use super::network::{self, HTTP_GET};
use super::several::share;
use crate::emulator::Machine;
use crate::image::System;
use crate::project::Project;
use anyhow::{Context, Result};

/// The rows, and those whose costs they compare.
const ROWS: [(&str, &str); 3] = [("file-labels", "file"), ("spawn-labels", "spawn"), ("http-get-labels", HTTP_GET)];
/// Boot words that switch labels off.
const OFF: &str = "labels=off";

/// Whether this row is measured here.
pub fn has(name: &str) -> bool {
    ROWS.iter().any(|(row, _)| *row == name)
}

/// Measures those rows that are wanted; `measured` = with labels, already.
pub fn measure(
    project: &Project,
    system: &System,
    wanted: &dyn Fn(&str) -> bool,
    measured: &[Measurement],
) -> Result<Vec<Measurement>> {
    let wanted = ROWS.iter().filter(|(row, _)| wanted(row));
    let rows = wanted.map(|(row, what)| {
        let with = match find(measured, what) {
            Some(known) => known.value,
            None => cost(project, system, what, "")?,
        };
        share(row, &[("labels_off", cost(project, system, what, OFF)?, "labels_on", with)])
    });
    rows.collect()
}

/// The cost of a row on a machine with these boot words.
fn cost(project: &Project, system: &System, row: &str, append: &str) -> Result<u64> {
    let machine = Machine { append: append.into(), ..Machine::new(MEMORY) };
    let rows = if row == HTTP_GET {
        network::measure_rows(project, machine, &|name| name == row)?
    } else {
        run(project, system, Machine { icount: true, ..machine }, &format!("bench {row}"))?.1
    };
    find(&rows, row).map(|found| found.value).with_context(|| format!("{row} was not measured ({append})"))
}
