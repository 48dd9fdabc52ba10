//! `./x bench --peer linux`: the rows of the network, measured on Cairn and on Debian's Linux with nginx.
//!
//! Both machines are the same but for their memory, both are asked by the same clients, and both are counted by the same
//! plugin. The figures that this prints for Linux stand as peers in `tests/budgets.toml`, by hand.

mod debian;
mod linux;

use super::budget::{self, Budget};
use super::measurement::{Measurement, find};
use super::network;
use super::results::found_problems;
use super::show::{grouped, right};
use crate::command_line::BenchOptions;
use crate::counter::Plugin;
use crate::emulator::Machine;
use crate::install;
use crate::project::{Project, read_text, write};
use anyhow::{Result, bail};
use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use serde::Serialize;
use std::time::Duration;

/// Memory of Linux's machine.
const MEMORY: &str = "256M";
/// Seconds that Linux may take to boot and to be measured.
const SECONDS: f64 = 900.0;

/// A row, as `--json` writes it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Row<'a> {
    name: &'a str,
    text: &'a str,
    unit: &'a str,
    cairn: Option<u64>,
    linux: u64,
    budget: Option<u64>,
}

/// Measures both and prints; the exit status is 1 if a budget is broken.
pub fn compare(project: &Project, options: &BenchOptions) -> Result<u8> {
    if options.arch.is_some_and(|isa| isa != project.isa) {
        bail!("Linux is measured on {} only: leave --arch out", project.isa.name());
    }
    let filter = options.filter.as_deref().unwrap_or_default();
    let wanted = |name: &str| network::ALL_ROWS.contains(&name) && name.contains(filter);
    if !network::ALL_ROWS.iter().any(|name| wanted(name)) {
        bail!("no row of the network matches `{filter}`: there are {}", network::ALL_ROWS.join(", "));
    }
    install::emulator(crate::isa::Isa::default())?;
    let budgets = budget::read(&read_text(&project.root.join("tests/budgets.toml"))?, project.isa)?;
    let budgets: Vec<Budget> = budgets
        .into_iter()
        .filter(|budget| network::ROWS.contains(&budget.name.as_str()) && wanted(&budget.name))
        .collect();
    let unpacked = debian::fetch(&project.target.join("peer/linux"))?;
    let image = linux::image(project, &unpacked)?;
    let plugin = Plugin::make(project)?;
    let limit = Duration::from_secs_f64(SECONDS);
    let linux = network::measure(image, Machine::new(MEMORY), &plugin, limit, &wanted)?;
    let cairn = network::measure_on_cairn(project, &budgets)?;
    let rows = rows(&budgets, &cairn, &linux);
    println!("{}", table(&rows));
    println!("Linux is made of Debian's packages");
    for package in &unpacked.packages {
        println!("  {} {}", package.name, package.version);
    }
    let problems = found_problems(&budgets, &cairn);
    for problem in &problems {
        println!("{problem}");
    }
    if let Some(path) = &options.json {
        let mut text = serde_json::to_string_pretty(&rows)?;
        text.push('\n');
        write(path, text.as_bytes())?;
    }
    println!("{} rows, {} problems", rows.len(), problems.len());
    Ok(u8::from(!problems.is_empty()))
}

fn rows<'a>(budgets: &'a [Budget], cairn: &[Measurement], linux: &'a [Measurement]) -> Vec<Row<'a>> {
    let row = |linux: &'a Measurement| {
        let budget = budgets.iter().find(|budget| budget.name == linux.name);
        Row {
            name: &linux.name,
            text: budget.map_or(&linux.name, |budget| &budget.text),
            unit: &linux.unit,
            cairn: find(cairn, &linux.name).map(|found| found.value),
            linux: linux.value,
            budget: budget.map(|budget| budget.budget),
        }
    };
    linux.iter().map(row).collect()
}

fn table(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY);
    table.set_header(["what", "unit", "Cairn", "Linux", "Cairn / Linux", "budget"]);
    let number = |number: Option<u64>| number.map_or("-".into(), grouped);
    for row in rows {
        let ratio = row.cairn.map(|cairn| format!("{:.2}", cairn as f64 / row.linux as f64));
        table.add_row([
            row.text.to_string(),
            row.unit.to_string(),
            number(row.cairn),
            grouped(row.linux),
            ratio.unwrap_or_default(),
            number(row.budget),
        ]);
    }
    right(&mut table, &[2, 3, 4, 5]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::parse;

    #[test]
    fn both_stand_side_by_side() {
        let budgets = "[[row]]\nname = \"http-get\"\ntext = \"a page\"\nunit = \"instructions\"\nbudget = 40000\n";
        let budgets = crate::bench::budget::read(budgets, crate::isa::Isa::X86_64).unwrap();
        let cairn = parse("bench http-get 20000 instructions").unwrap();
        let linux = parse("bench http-get 80000 instructions\nbench tcp-echo 30000 instructions").unwrap();
        let rows = rows(&budgets, &cairn, &linux);
        let echo =
            Row { name: "tcp-echo", text: "tcp-echo", unit: "instructions", cairn: None, linux: 30000, budget: None };
        assert_eq!((rows[0].cairn, rows[0].budget, &rows[1]), (Some(20000), Some(40000), &echo));
        let text = table(&rows).to_string();
        for part in ["a page", "20,000", "80,000", "0.25", "40,000", "30,000"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
