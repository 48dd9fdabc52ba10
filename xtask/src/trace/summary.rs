//! The counts of events, as tables for a person.

use super::labels::Labels;
use super::story::{Ended, Happening, Step, Story, Who};
use crate::bench::grouped;
use comfy_table::{CellAlignment, Table, presets};
use std::collections::BTreeMap;

/// Sums over a story.
#[derive(Default)]
struct Sums {
    /// Ticks that each domain had the CPU.
    running: BTreeMap<u32, u64>,
    idle: u64,
    /// By the number of the CPU.
    cpus: BTreeMap<u8, OfCpu>,
    /// By caller, callee and what was called: how often, ticks that the threads ran between call and return, how many returned.
    pairs: BTreeMap<(u32, u32, String), (u64, u64, u64)>,
    switches: u64,
    page_faults: u64,
    exceptions: u64,
    interrupts: u64,
    refused: u64,
}

/// Sums over what one CPU did.
#[derive(Default)]
struct OfCpu {
    running: u64,
    idle: u64,
    switches: u64,
    interrupts: u64,
}

impl Sums {
    fn of(story: &Story, labels: &Labels) -> Self {
        let mut sums = Self::default();
        for span in &story.spans {
            let ticks = span.end - span.begin;
            let cpu = sums.cpus.entry(span.cpu).or_default();
            match span.who {
                Who::Idle => cpu.idle += ticks,
                Who::Thread(_, domain) => {
                    *sums.running.entry(domain).or_default() += ticks;
                    cpu.running += ticks;
                }
            }
            cpu.switches += u64::from(span.switch && span.who != Who::Idle);
        }
        for call in story.calls.iter().filter(|call| !call.before) {
            let key = (call.from, call.to, labels.method(story, call));
            let (count, ticks, returned) = sums.pairs.entry(key).or_default();
            *count += 1;
            if call.ended == Ended::Returned {
                *ticks += call.ran;
                *returned += 1;
            }
        }
        for (_, step) in &story.steps {
            match step {
                Step::Happens(_, Happening::PageFault(..)) => sums.page_faults += 1,
                Step::Happens(_, Happening::Exception(_)) => sums.exceptions += 1,
                Step::Happens(cpu, Happening::Interrupt(_)) => sums.cpus.entry(*cpu).or_default().interrupts += 1,
                Step::Happens(_, Happening::Refused(..)) => sums.refused += 1,
                _ => {}
            }
        }
        sums.idle = sums.cpus.values().map(|cpu| cpu.idle).sum();
        sums.switches = sums.cpus.values().map(|cpu| cpu.switches).sum();
        sums.interrupts = sums.cpus.values().map(|cpu| cpu.interrupts).sum();
        sums
    }
}

/// The tables as text.
pub fn text(story: &Story, labels: &Labels) -> String {
    let sums = Sums::of(story, labels);
    let unit = story.unit();
    let heads = [unit.to_uppercase(), format!("{} EACH", unit.to_uppercase())];
    let busy: u64 = sums.running.values().sum();
    let crossings: u64 = sums.pairs.values().map(|(count, ..)| count).sum();
    let mut text = format!(
        "{} {unit}: {crossings} calls and their returns, {} switches, {} interrupts, {} page faults",
        grouped(busy),
        sums.switches,
        sums.interrupts,
        sums.page_faults
    );
    if sums.exceptions > 0 {
        text += &format!(", {} exceptions", sums.exceptions);
    }
    if sums.refused > 0 {
        text += &format!(", {} refused calls", sums.refused);
    }
    if sums.idle > 0 {
        let who = if story.cpu_count() == 1 { "the CPU was" } else { "the CPUs were" };
        text += &format!("; besides, {who} idle for {} ticks", grouped(sums.idle));
    }
    if story.cpu_count() > 1 {
        let mut cpus = new_table(["CPU", &heads[0], "SHARE", "IDLE", "SWITCHES", "INTERRUPTS"]);
        for (number, cpu) in &sums.cpus {
            let share = format!("{:.1} %", cpu.running as f64 * 100.0 / busy.max(1) as f64);
            let counts = [cpu.idle, cpu.switches, cpu.interrupts].map(grouped);
            cpus.add_row([number.to_string(), grouped(cpu.running), share].into_iter().chain(counts));
        }
        right(&mut cpus, 0..6);
        text += &format!("\n\n{cpus}");
    }
    let mut domains: Vec<_> = sums.running.iter().collect();
    domains.sort_by_key(|(number, ticks)| (u64::MAX - **ticks, **number));
    let mut table = new_table(["DOMAIN", &heads[0], "SHARE"]);
    for (number, ticks) in domains {
        let share = format!("{:.1} %", *ticks as f64 * 100.0 / busy.max(1) as f64);
        table.add_row([story.name(*number).to_string(), grouped(*ticks), share]);
    }
    right(&mut table, 1..3);
    let mut pairs: Vec<_> = sums.pairs.iter().collect();
    pairs.sort_by_key(|(key, (count, ..))| (u64::MAX - count, *key));
    let mut calls = new_table(["FROM", "TO", "CALL", "TIMES", &heads[1]]);
    for ((from, to, what), (count, ticks, returned)) in pairs {
        let mean = if *returned == 0 { "-".into() } else { grouped(ticks / returned) };
        let row = [story.name(*from), story.name(*to), what, &count.to_string(), &mean];
        calls.add_row(row);
    }
    right(&mut calls, 3..5);
    format!("{text}\n\n{table}\n\n{calls}")
}

fn new_table<const N: usize>(head: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(head);
    table
}

fn right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}
