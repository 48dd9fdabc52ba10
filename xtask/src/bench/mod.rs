//! `./x bench`: boots the build that ships, with one tick per instruction, runs the program `bench`, and
//! compares what it prints with `tests/budgets.toml`.
//!
//! The cost of a request from the host is measured by [`network`], with another counter; rows that need several CPUs by
//! [`several`]. Each ISA is measured by itself; [`budget::Budget::on`] takes the limit of a row there from the file.
//!
//! The program prints lines `bench NAME VALUE UNIT [key=value …]`; the pairs are counts of what costs
//! more on hardware than an instruction (writes of the page-table root, TLB invalidations).

mod budget;
pub mod client;
mod functions;
pub mod machine;
mod measurement;
mod network;
mod paper;
mod peer;
pub mod plot;
mod rebuild;
mod report;
mod results;
mod several;
pub mod show;
mod unlabelled;

use crate::build::Checks;
use crate::code::{self, File};
use crate::command_line::{BenchOptions, Peer as PeerName};
use crate::counter::{COSTLY, Executed};
use crate::elf;
use crate::emulator::Machine;
use crate::image::System;
use crate::install;
use crate::isa::Isa;
use crate::project::{Project, read, read_text, write};
use anyhow::{Context, Result, bail};
use budget::{Budget, Peer};
use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
pub use machine::MEMORY;
use machine::{NETWORK_SYSTEM, boot, run, run_and_follow};
use measurement::{Measurement, find, parse};
pub use network::{PAGE, system_of_requests};
use results::{Results, found_problems};
use serde::Serialize;
pub use show::grouped;
use show::{right, shown};
use std::collections::BTreeMap;
use std::path::Path;

/// The row that the host measures.
const NUCLEUS: &str = "nucleus";
/// The row that takes a nucleus of its own.
const INTERRUPTS_OFF: &str = "interrupts-off";
/// The commands that run there.
const UNDER_FUZZER: &str = "fuzzer --count 100000; bench --interrupts-off";

/// The commands that measure the rows whose names contain this. Those that read the log come first: the log forgets.
fn command(filter: &str) -> String {
    format!("with admin bench {filter}; bench {filter}")
}

/// A row of the results, as `--json` writes it.
#[derive(Debug, Serialize)]
struct Row<'a> {
    name: &'a str,
    text: &'a str,
    value: u64,
    unit: &'a str,
    budget: u64,
    arch: &'static str,
    counts: &'a BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    costly: Option<BTreeMap<&'static str, f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    percent_with_the_lock: Option<f64>,
    peers: &'a [Peer],
}

/// Measures and prints; the exit status is 1 if a budget is broken or a row missing.
pub fn bench(project: &Project, options: &BenchOptions) -> Result<u8> {
    if let Some(PeerName::Linux) = options.peer {
        return peer::compare(project, options);
    }
    if options.rebuild {
        let project = project.on(options.arch.unwrap_or_default());
        install::emulator(project.isa)?;
        return rebuild::rebuild(&project);
    }
    let isas: Vec<Isa> = options.arch.map_or(Isa::ALL.to_vec(), |isa| vec![isa]);
    let mut all = Vec::new();
    let mut problems = 0;
    for isa in isas {
        if options.functions {
            println!("{}", followed(&project.on(isa), options)?);
            continue;
        }
        let results = on(&project.on(isa), options)?;
        println!("{}\n{}", isa.name(), table(&results.budgets, &results.measured));
        let found = found_problems(&results.budgets, &results.measured);
        for line in results.notes.iter().chain(&found) {
            println!("{line}");
        }
        println!("{}: {} rows, {} problems\n", isa.name(), results.budgets.len(), found.len());
        problems += found.len();
        all.push(results);
    }
    paper::tables(&all).for_each(|table| println!("{table}"));
    let found = paper::problems(&all, &read_text(&project.root.join(paper::BOOK))?);
    found.iter().for_each(|line| println!("{line}"));
    problems += found.len();
    if let Some(path) = &options.json {
        let rows: Vec<Row<'_>> = all.iter().flat_map(rows).collect();
        let mut text = serde_json::to_string_pretty(&rows)?;
        text.push('\n');
        write(path, text.as_bytes())?;
    }
    if options.report {
        report::write_all(project, &all)?;
    }
    if options.functions {
        return Ok(0);
    }
    println!("{} rows, {problems} problems", all.iter().map(|results| results.budgets.len()).sum::<usize>());
    Ok(u8::from(problems > 0))
}

/// Measures on the project's ISA.
fn on(project: &Project, options: &BenchOptions) -> Result<Results> {
    let isa = project.isa;
    let budgets = budget::read(&read_text(&project.root.join("tests/budgets.toml"))?, isa)?;
    let wanted = |name: &str| options.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()));
    let budgets: Vec<Budget> = budgets.into_iter().filter(|budget| wanted(&budget.name)).collect();
    if budgets.is_empty() && !wanted(several::SPEED_UP) {
        bail!("no row of tests/budgets.toml matches `{}`", options.filter.as_deref().unwrap_or_default());
    }
    install::emulator(isa)?;
    let mut measured = network::measure_on_cairn(project, &budgets)?;
    let elsewhere =
        |name: &str| network::ROWS.contains(&name) || several::ROWS.contains(&name) || unlabelled::has(name);
    if budgets.iter().any(|budget| !elsewhere(&budget.name)) {
        measured.extend(measure(project, options)?);
    }
    let system = System::read(project, &options.system)?;
    let of_several = |name: &str| budgets.iter().any(|budget| budget.name == name);
    let of_several = several::measure(project, &system, &of_several, &measured);
    measured.extend(of_several.rows);
    measured.extend(unlabelled::measure(
        project,
        &system,
        &|name| budgets.iter().any(|budget| budget.name == name),
        &measured,
    )?);
    let mut notes = of_several.notes;
    if wanted(several::SPEED_UP) {
        notes.extend(several::speed_up(project, &system));
    }
    measured.retain(|row| wanted(&row.name));
    Ok(Results { isa, budgets, measured, notes })
}

/// Measures what the default machine can, which has one CPU.
fn measure(project: &Project, options: &BenchOptions) -> Result<Vec<Measurement>> {
    let system = System::read(project, &options.system)?;
    let filter = options.filter.as_deref().unwrap_or_default();
    let machine = || Machine { icount: true, ..Machine::new(MEMORY) };
    let (image, mut measured) = run(project, &system, machine(), &command(filter))?;
    let nucleus = read(&image.elf)?;
    // Without what fills the last pages.
    let bytes = |part: &str| -> Result<u64> {
        Ok(elf::address(&nucleus, &format!("{part}_end"))? - elf::address(&nucleus, &format!("image_{part}"))?)
    };
    let bytes = bytes("text")? + bytes("rodata")?;
    measured.push(Measurement { name: NUCLEUS.into(), value: bytes, unit: "bytes".into(), ..Measurement::default() });
    if INTERRUPTS_OFF.contains(filter) {
        let (_, output) = boot(project, &system, Checks::Measured, machine(), UNDER_FUZZER)?;
        measured.extend(parse(&output)?);
    }
    Ok(measured)
}

/// A row, the instructions executed for it, and the files that have them.
struct Followed {
    row: Measurement,
    executed: Vec<Executed>,
    files: Vec<File>,
}

/// Measures the row of this name.
fn follow(project: &Project, system: &Path, name: &str) -> Result<Followed> {
    install::emulator(project.isa)?;
    let system = System::read(project, system)?;
    let machine = Machine { icount: true, ..Machine::new(MEMORY) };
    let (image, mut rows, executed) = run_and_follow(project, &system, machine, &command(name), true)?;
    if rows.len() != 1 {
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        bail!("--functions takes one row at a time, and `{name}` names {}", names.join(", "));
    }
    let row = rows.remove(0);
    if row.operations == 0 {
        bail!("{}: a row measured elsewhere, or not in instructions, has no functions", row.name);
    }
    let files = code::files(project, &system, read(&image.elf)?)?;
    Ok(Followed { row, executed: executed.unwrap_or_default(), files })
}

/// In which functions the instructions of a row are executed.
fn followed(project: &Project, options: &BenchOptions) -> Result<String> {
    let Followed { row, executed, files } =
        follow(project, &options.system, options.filter.as_deref().unwrap_or_default())?;
    let text = functions::table(&executed, &files, row.operations);
    Ok(format!("{}, {}: {} {}\n{text}", project.isa.name(), row.name, grouped(row.value), row.unit))
}

/// The instructions that calls and returns by portals of the specification `npciii>i` executed.
pub struct Calls {
    /// How many there were.
    pub count: u64,
    /// Instructions of each, as the machine counts them.
    pub row: u64,
    /// Each instruction, and the place of the file that has it: none of portals' code.
    pub executed: Vec<(Executed, Option<usize>)>,
    /// The nucleus, and the programs.
    pub files: Vec<File>,
}

/// Has some calls executed.
pub fn calls(project: &Project) -> Result<Calls> {
    let Followed { row, executed, files } = follow(project, Path::new(NETWORK_SYSTEM), "npciii")?;
    let owners = code::owners(&executed, &files);
    Ok(Calls { count: row.operations, row: row.value, executed: executed.into_iter().zip(owners).collect(), files })
}

/// The cost of a portal call and return, of each kind of [`COSTLY`], and the book's figures.
pub fn costs_of_a_call(project: &Project) -> Result<[Vec<String>; 2]> {
    let system = System::read(project, Path::new(NETWORK_SYSTEM))?;
    let machine = Machine { icount: true, ..Machine::new(MEMORY) };
    let (_, measured) = run(project, &system, machine, "bench call-return")?;
    let (costly, _) = measured.first().and_then(|row| row.costly).context("no row of costs was measured")?;
    let book = read_text(&project.root.join(paper::BOOK))?;
    let row = format!("| {} | ", project.isa.title());
    let reported = book.lines().find_map(|line| line.trim().strip_prefix(&row)).context("the book has no such row")?;
    Ok([costly.map(shown).to_vec(), reported.split(" | ").take(COSTLY.len()).map(String::from).collect()])
}

/// Instructions of a request for [`PAGE`], as a row has them.
pub fn http_get(project: &Project) -> Result<u64> {
    let rows = network::measure_rows(project, Machine::new(MEMORY), &|name| name == network::HTTP_GET)?;
    find(&rows, network::HTTP_GET).map(|row| row.value).context("a request was not measured")
}

fn rows(results: &Results) -> impl Iterator<Item = Row<'_>> {
    results.budgets.iter().filter_map(|budget| {
        let found = find(&results.measured, &budget.name)?;
        Some(Row {
            name: &budget.name,
            text: &budget.text,
            value: found.value,
            unit: &budget.unit,
            budget: budget.budget,
            arch: results.isa.name(),
            counts: &found.counts,
            costly: found.costly.map(|(costly, _)| COSTLY.into_iter().zip(costly).collect()),
            percent_with_the_lock: found.costly.map(|(_, locked)| locked),
            peers: &budget.peers,
        })
    })
}

fn table(budgets: &[Budget], measured: &[Measurement]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY);
    let header = ["what", "ours", "budget", "peers", "ours / best peer", ""].into_iter();
    // A word below the other.
    let kinds = COSTLY.map(|kind| kind.replace(' ', "\n")).into_iter().chain(["with the\nlock".to_string()]);
    table.set_header(header.map(String::from).chain(kinds));
    for budget in budgets {
        let found = find(measured, &budget.name);
        let mut ours = found.map_or("-".into(), |found| grouped(found.value));
        for (key, count) in found.iter().flat_map(|found| &found.counts) {
            ours += &format!("\n{count} {key}");
        }
        let peers: Vec<String> = budget.peers.iter().map(Peer::shown).collect();
        let best = budget.best_peer();
        let ratio = match (found, best) {
            (Some(found), Some(best)) => format!("{:.2}", found.value as f64 / best as f64),
            _ => String::new(),
        };
        let holds = |found: &Measurement| {
            found.value <= budget.budget && found.unit == budget.unit && budget.worse_than_peers(found.value).is_none()
        };
        let holds = found.is_some_and(holds);
        let unit = if budget.unit == "instructions" { "" } else { budget.unit.as_str() };
        let row = [
            budget.text.clone(),
            ours,
            format!("{} {unit}", grouped(budget.budget)).trim_end().into(),
            peers.join("\n"),
            ratio,
            if holds { "ok" } else { "BROKEN" }.into(),
        ];
        let costly = found
            .and_then(|found| found.costly)
            .map(|(costly, locked)| costly.map(shown).into_iter().chain([format!("{locked:.0} %")]));
        table.add_row(row.into_iter().chain(costly.into_iter().flatten()));
    }
    right(&mut table, &[1, 2, 4, 6, 7, 8, 9, 10, 11]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGETS: &str = "[[row]]\nname = \"call\"\ntext = \"a call\"\nunit = \"instructions\"\nbudget = 150\n\
                           peers = [{ who = \"NOVA\", value = 283 }]\n";

    fn budgets(text: &str) -> Vec<Budget> {
        budget::read(text, Isa::X86_64).unwrap()
    }

    fn verdict(output: &str) -> Vec<String> {
        found_problems(&budgets(BUDGETS), &parse(output).unwrap())
    }

    #[test]
    fn lines_are_read() {
        let measured = parse("hello\nbench call 149 instructions root_writes=2 invalidations=0\n").unwrap();
        let counts = [("root_writes".to_string(), 2), ("invalidations".to_string(), 0)].into();
        let expected = Measurement {
            name: "call".into(),
            value: 149,
            unit: "instructions".into(),
            counts,
            ..Measurement::default()
        };
        assert_eq!(measured, [expected]);
        for bad in ["bench call", "bench call many instructions", "bench call 1 instructions x", "bench call -1 i"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse("bench a 1 x\nbench a 2 x").is_err());
    }

    #[test]
    fn broken_budgets_are_seen() {
        assert!(verdict("bench call 150 instructions").is_empty());
        assert_eq!(verdict("bench call 152 instructions"), ["call: 152 instructions, 2 above the budget"]);
        assert_eq!(verdict(""), ["call: not measured"]);
        assert_eq!(verdict("bench call 1 bytes"), ["call: measured in bytes, the budget is in instructions"]);
        assert_eq!(verdict("bench call 1 instructions\nbench more 1 instructions").len(), 1);
    }

    #[test]
    fn peers_bound_as_well() {
        let text = format!("{BUDGETS}times_peer = 0.5\n");
        let verdict = |output| found_problems(&budgets(&text), &parse(output).unwrap());
        assert!(verdict("bench call 141 instructions").is_empty());
        assert_eq!(verdict("bench call 142 instructions"), ["call: 0.50 times the best peer, which may be 0.50"]);
        let table = table(&budgets(&text), &parse("bench call 142 instructions").unwrap());
        assert!(table.to_string().contains("BROKEN"));
    }

    #[test]
    fn the_table_shows_ratio_and_verdict() {
        let text = table(&budgets(BUDGETS), &parse("bench call 142 instructions root_writes=2").unwrap());
        let text = text.to_string();
        for part in ["142", "150", "NOVA 283", "0.50", "ok", "2 root_writes"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn thousands() {
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(60_000_000), "60,000,000");
    }
}
