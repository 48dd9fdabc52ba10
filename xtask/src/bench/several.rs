//! Rows that take several CPUs: each is measured on machines of its own.
//!
//! Under the clock of instructions CPUs take turns in one thread of the host, so these counts, too, are the same in every
//! run. The time-stamp counter says what all CPUs execute together. How long *one* of them holds the nucleus lock is
//! watched by the emulator's plugin, from addresses of the nucleus's symbols: `lock_taken…` stands before the first
//! instruction with the lock, `lock_given…` before the last.

use super::machine::{MEMORY, SECONDS, boot, output_of, run};
use super::measurement::{Measurement, find};
use super::network::{self, HTTP_GET, HTTP_GET_4};
use super::show::grouped;
use crate::build::Checks;
use crate::counter::{Holds, Places, Plugin, Watch};
use crate::elf;
use crate::emulator::{self, Machine};
use crate::image::{self, Size, System};
use crate::project::{Project, read};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::time::Duration;

/// The rows, as `tests/budgets.toml` names them.
const CALLS: &str = "call-return-8";
const PING_PONG: &str = "ping-pong-2";
const SHOOTDOWN: &str = "shootdown";
const HTTP: &str = "http-4";
const LOCK: &str = "lock-hold";
/// All of them.
pub const ROWS: [&str; 5] = [CALLS, PING_PONG, SHOOTDOWN, HTTP, LOCK];
/// The additional row.
pub const SPEED_UP: &str = "speed-up";

/// The load while the lock is watched.
const FUZZER: &str = "fuzzer --count 50000";
/// Functions that are named of the longest hold.
const NAMED: usize = 12;

/// The measurements, and lines that say more.
#[derive(Default)]
pub struct Several {
    pub rows: Vec<Measurement>,
    pub notes: Vec<String>,
}

/// Measures those rows that are wanted; `measured` = on one CPU, already. A row that cannot be measured is left out, and
/// a line says why: it does not keep the others from being measured.
pub fn measure(project: &Project, system: &System, wanted: &dyn Fn(&str) -> bool, measured: &[Measurement]) -> Several {
    let mut all = Several::default();
    for name in ROWS.into_iter().filter(|name| wanted(name)) {
        let row = match name {
            CALLS => calls(project, system),
            PING_PONG => value(project, system, 2, "bench --cpus 2 ping-pong", PING_PONG),
            SHOOTDOWN => value(project, system, 4, "bench --cpus 4 shootdown", SHOOTDOWN),
            HTTP => http(project, measured),
            _ => lock(project, system).map(|(row, note)| {
                all.notes.push(note);
                row
            }),
        };
        match row {
            Ok(row) => all.rows.push(row),
            Err(error) => all.notes.push(not_measured(name, &error)),
        }
    }
    all
}

/// Why something was not measured, in a line: the output of the machine comes with the error.
fn not_measured(name: &str, error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let (first, last) = (text.lines().next().unwrap_or_default(), text.trim_end().lines().last());
    let last = last.filter(|last| *last != first).unwrap_or_default();
    format!("{name}: not measured: {first} {last}").trim_end().into()
}

/// A call on each of eight CPUs at once, and alone.
fn calls(project: &Project, system: &System) -> Result<Measurement> {
    let one = value(project, system, 1, "bench --cpus 1 calls", "call-return-1")?;
    let eight = value(project, system, 8, "bench --cpus 8 calls", "call-return-8")?;
    share(CALLS, &[("alone", one.value, "of_8_cpus", eight.value)])
}

/// The one row that a machine with so many CPUs measures.
fn value(project: &Project, system: &System, cpus: u32, command: &str, row: &str) -> Result<Measurement> {
    let machine = Machine { icount: true, cpus, ..Machine::new(MEMORY) };
    let (_, rows) = run(project, system, machine, command)?;
    rows.into_iter().find(|found| found.name == row).with_context(|| format!("`{command}` measured no {row}"))
}

/// The row that says what something costs with several CPUs, in per cent of what it costs with one; of several such
/// things the dearest counts.
pub fn share(name: &str, pairs: &[(&str, u64, &str, u64)]) -> Result<Measurement> {
    let (mut most, mut counts) = (0, BTreeMap::new());
    for &(with_one, one, with_several, several) in pairs {
        ensure!(one > 0, "{name}: nothing was counted on one CPU");
        most = most.max((100 * several).div_ceil(one));
        counts.extend([(with_one.to_string(), one), (with_several.to_string(), several)]);
    }
    Ok(Measurement { name: name.into(), value: most, unit: "percent".into(), counts, ..Measurement::default() })
}

/// A request after the other, and four at a time.
fn http(project: &Project, measured: &[Measurement]) -> Result<Measurement> {
    let on = |cpus: u32, wanted: &(dyn Fn(&str) -> bool + Sync)| {
        let (_, image) = network::system_of_requests(project, Some(network::NETWORK_COMMAND))?;
        let plugin = Plugin::make(project)?.watching(&Places::of_nucleus(&read(&image.elf)?)?)?;
        let machine = Machine { cpus, ..Machine::new(MEMORY) };
        network::measure(image, machine, &plugin, Duration::from_secs_f64(SECONDS), wanted)
            .with_context(|| format!("requests to a machine with CPUs: {cpus}"))
    };
    let known = find(measured, HTTP_GET);
    let mut one = on(1, &|name| name == HTTP_GET_4 || name == HTTP_GET && known.is_none())?;
    one.extend(known.cloned());
    let four = on(4, &|name| name == HTTP_GET_4 || name == HTTP_GET)?;
    let count = |rows: &[Measurement], name| find(rows, name).map(|row| row.value).context("a row is missing");
    share(
        HTTP,
        &[
            ("alone", count(&one, HTTP_GET)?, "of_4_cpus", count(&four, HTTP_GET)?),
            ("four_at_once_alone", count(&one, HTTP_GET_4)?, "four_at_once_of_4_cpus", count(&four, HTTP_GET_4)?),
        ],
    )
}

/// The longest time that a CPU holds the nucleus lock, of four, and where it does.
fn lock(project: &Project, system: &System) -> Result<(Measurement, String)> {
    let image = image::make(project, system, Checks::Off, Size::of(MEMORY, 4)?, Some(FUZZER))?;
    let nucleus = read(&image.elf)?;
    let places = Places::of_nucleus(&nucleus)?;
    let watch = Watch::make(project, &places)?;
    let machine = Machine { icount: true, cpus: 4, counter: Some(watch.argument()), ..Machine::new(MEMORY) };
    output_of(&image, &machine, FUZZER)?;
    let holds = watch.holds()?;
    ensure!(
        holds.strayed == 0,
        "the lock was taken twice or given back by others {} times: {places:x?}",
        holds.strayed
    );
    let counts = [("holds", holds.times), ("on_average", holds.instructions / holds.times)];
    let counts = counts.into_iter().map(|(name, count)| (name.to_string(), count)).collect();
    let note = story(&holds, &elf::functions(&nucleus)?);
    Ok((
        Measurement {
            name: LOCK.into(),
            value: holds.longest,
            unit: "instructions".into(),
            counts,
            ..Measurement::default()
        },
        note,
    ))
}

/// Where the lock was held longest, for people.
fn story(holds: &Holds, functions: &[(u64, String)]) -> String {
    let name = |address| elf::function_at(functions, address).map_or("?", |(_, name)| name.as_str());
    let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
    for &address in &holds.samples {
        *parts.entry(name(address)).or_default() += 1;
    }
    let mut parts: Vec<(&str, usize)> = parts.into_iter().collect();
    parts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let all = holds.samples.len().max(1);
    let parts: Vec<String> =
        parts.iter().take(NAMED).map(|(name, count)| format!("{} % {name}", count * 100 / all)).collect();
    let (first, last) = holds.within;
    format!(
        "{LOCK}: {} instructions, by CPU {}, from {first:#x} ({}) to {last:#x} ({}): {}",
        grouped(holds.longest),
        holds.cpu,
        name(first),
        name(last),
        parts.join(", ")
    )
}

/// How much faster this computer's CPUs are together than one: lines to be printed, whatever they say.
pub fn speed_up(project: &Project, system: &System) -> Vec<String> {
    let cpus = emulator::host_cpus().min(8) as u32;
    if cpus == 1 {
        return vec![format!("{SPEED_UP}: this computer has one CPU, so there is none to be seen")];
    }
    let machine = Machine { cpus, ..Machine::new(MEMORY) };
    match boot(project, system, Checks::Off, machine, &format!("with admin bench --cpus {cpus} {SPEED_UP}")) {
        Ok((_, output)) => output.lines().filter(|line| line.starts_with(SPEED_UP)).map(String::from).collect(),
        Err(error) => vec![not_measured(SPEED_UP, &error)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_up_and_the_dearest_counts() {
        let row = share("r", &[("a", 140, "b", 147), ("c", 1000, "d", 1001)]).unwrap();
        assert_eq!((row.value, row.unit.as_str()), (105, "percent"));
        assert_eq!(row.counts.len(), 4);
        assert_eq!(share("r", &[("a", 140, "b", 148)]).unwrap().value, 106);
        assert_eq!(share("r", &[("a", 140, "b", 130), ("c", 1000, "d", 1001)]).unwrap().value, 101);
        assert!(share("r", &[("a", 0, "b", 1)]).is_err());
    }

    #[test]
    fn a_missing_measurement_gives_its_reason_in_a_line() {
        let error = anyhow::anyhow!("`fuzzer` ended with status 1\nseed 1\nfuzzer: 3 frames lost\n");
        assert_eq!(not_measured("r", &error), "r: not measured: `fuzzer` ended with status 1 fuzzer: 3 frames lost");
        assert_eq!(not_measured("r", &anyhow::anyhow!("no symbol")), "r: not measured: no symbol");
    }

    #[test]
    fn the_longest_hold_is_reported_with_names() {
        let functions = [(0x100, "enter".to_string()), (0x200, "unmap".into()), (0x300, "leave".into())];
        let holds = Holds {
            times: 5,
            longest: 1234,
            within: (0x110, 0x302),
            cpu: 3,
            samples: vec![0x110, 0x200, 0x210, 0x2ff],
            ..Holds::default()
        };
        let text = story(&holds, &functions);
        let expected =
            "lock-hold: 1,234 instructions, by CPU 3, from 0x110 (enter) to 0x302 (leave): 75 % unmap, 25 % enter";
        assert_eq!(text, expected);
        assert!(story(&Holds { samples: vec![0x1], ..holds }, &functions).ends_with("100 % ?"));
    }
}
