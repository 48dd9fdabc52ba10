//! `./x labels bench`: the cost of operations on labels on this computer, by the number of handles, drawn.
//!
//! Criterion measures (`crates/flow/benches/engine.rs`); its files are read, and the medians drawn. Nanoseconds of one computer are
//! no budget: how they grow with the number of handles is what the picture is for.

use crate::bench::plot::{Kind, Line, Plot, Scale};
use crate::command_line::EngineOptions;
use crate::project::{Project, read_text, write};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::process::Command;

/// The measurements, as criterion's folders are called, and whether it makes a label.
const LINES: [(&str, bool); 6] = [
    ("same label", false),
    ("one handle differs", false),
    ("other handles", false),
    ("one handle more", true),
    ("least upper bound", true),
    ("greatest lower bound", true),
];
/// Of so many handles.
const PLACES: [&str; 5] = ["10", "100", "1000", "10000", "100000"];

/// Measures and draws.
pub fn bench(project: &Project, options: &EngineOptions) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["bench", "--package", "flow", "--bench", "engine", "--target-dir"]).arg(&project.target);
    if !command.current_dir(&project.root).status().context("cannot start cargo")?.success() {
        bail!("the benchmark failed");
    }
    let lines: Result<Vec<Line>> = LINES
        .iter()
        .map(|(name, makes)| {
            let values = PLACES.iter().map(|place| median(project, name, place).map(Some)).collect::<Result<_>>()?;
            Ok(Line { name: (*name).into(), values, kind: if *makes { Kind::Two } else { Kind::One } })
        })
        .collect();
    let plot = Plot {
        title: "Operations of labels",
        unit: "nanoseconds on one computer; comparisons, and what makes a label",
        axis: "handles of each label",
        places: &PLACES,
        scale: Scale::Tenfold,
        lines: lines?,
    };
    write(&options.output, plot.draw().as_bytes())?;
    println!("{} shows the medians.", options.output.display());
    Ok(())
}

/// Nanoseconds.
fn median(project: &Project, name: &str, place: &str) -> Result<u64> {
    #[derive(Deserialize)]
    struct Estimates {
        median: Estimate,
    }
    #[derive(Deserialize)]
    struct Estimate {
        point_estimate: f64,
    }
    let path = project.target.join("criterion/labels").join(name).join(place).join("new/estimates.json");
    let estimates: Estimates =
        serde_json::from_str(&read_text(&path)?).with_context(|| format!("{} is not as expected", path.display()))?;
    Ok(estimates.median.point_estimate.round() as u64)
}
