//! Is what a running system has as portal code what the generator writes, and does the host say what each part is for? Does a call execute
//! the instructions of its listing, of the system call's entry and of its stubs, each once, and no others?

use super::report::Report;
use crate::bench::{self, Calls};
use crate::code::{self, File};
use crate::counter::Executed;
use crate::elf;
use crate::isa::Isa;
use crate::portal;
use crate::project::{Project, read_text};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::Path;

/// The group.
pub const NAME: &str = "portal";
/// A shape of the default system with a loop, or a copy of many words, and one without.
const SHAPES: [u64; 2] = [0, 1];

/// Runs it.
pub fn check(project: &Project, isas: &[Isa], report: &mut Report) {
    for (isa, shape) in isas.iter().flat_map(|isa| SHAPES.map(|shape| (*isa, shape))) {
        report.run(&format!("{NAME}: shape {shape} on {}", isa.name()), || {
            let text = portal::running(&project.on(isa), Path::new("systems/default.toml"), shape)?.to_string();
            for part in ["  ; the flow is allowed, both domains live", "domain.as_caller", "return:\n", "call:\n"] {
                ensure!(text.contains(part), "`{part}` is missing:\n{text}");
            }
            ensure!(text.lines().any(|line| line.starts_with("    000  ")), "there are no bytes:\n{text}");
            Ok(())
        });
    }
    for isa in isas {
        report.run(&format!("{NAME}: a call on {}", isa.name()), || a_call(&project.on(*isa)));
    }
}

/// A call and return executes each instruction of each part once, and no others. The book has their numbers.
fn a_call(project: &Project) -> Result<()> {
    let isa = project.isa;
    let Calls { count, row, executed, files } = bench::calls(project)?;
    let [jump, trap, from] = match isa {
        // The vector of exceptions of the lower level in AArch64 (Arm ARM D1.3.1).
        Isa::Aarch64 => ["br", "svc", "vectors"],
        Isa::X86_64 => ["jmp", "syscall", "system_call_entry"],
    };
    let vector = if isa == Isa::Aarch64 { 0x400 } else { 0 };
    let nucleus = &files[0];

    let text = portal::generated(project, "npciii>i")?.to_string();
    // A line after each half.
    let halves = text.lines().filter_map(|line| line.trim().strip_suffix(" instructions")?.parse().ok());
    let halves: Vec<i64> = halves.collect();
    let in_portals = executed.iter().filter(|(one, owner)| code::is_nucleus(one.address) && owner.is_none());
    let in_portals: Vec<u64> = in_portals.map(|(one, _)| one.times).collect();
    let [back, there] = *halves.as_slice() else { bail!("a listing without two halves") };
    ensure!(in_portals.len() as i64 == there + back, "{} of {} are executed", in_portals.len(), there + back);
    ensure!(in_portals.iter().all(|times| *times == count), "not each instruction once in each of {count} calls");

    let entry = path(isa, nucleus, elf::address(&nucleus.bytes, from)? + vector, jump)?;
    let leaving = path(isa, nucleus, elf::address(&nucleus.bytes, "entry_return")?, jump)?;
    let in_nucleus = times(&executed, |_, owner| owner == Some(0));
    let expected = entry.iter().map(|at| (*at, 2 * count)).chain(leaving.iter().map(|at| (*at, count))).collect();
    ensure!(in_nucleus == expected, "in the nucleus {in_nucleus:x?} instead of {expected:x?}");

    let function = |address, owner: Option<usize>| files[owner.filter(|place| *place > 0)?].function(address);
    let is_server = |name: &str| name.contains("::short_entry::<") || name.contains("::serve_short::<");
    let in_server = times(&executed, |one, owner| function(one, owner).is_some_and(|(_, name)| is_server(name)));
    let mut expected = BTreeMap::new();
    for (one, owner) in &executed {
        let Some((start, name)) = function(one.address, *owner).filter(|(_, name)| is_server(name)) else { continue };
        let last = if name.contains("short_entry") { trap } else { "ret" };
        let file = owner.map_or(nucleus, |place| &files[place]);
        expected.extend(path(isa, file, start, last)?.into_iter().map(|at| (at, count)));
    }
    ensure!(in_server == expected, "in the server {in_server:x?} instead of {expected:x?}");

    let in_client = times(&executed, |one, owner| function(one, owner).is_none_or(|(_, name)| !is_server(name)));
    let in_client = in_client.into_iter().filter(|(at, _)| !code::is_nucleus(*at)).map(|(_, times)| times);
    // The others stand before the loop or after it, where a part of its first round may be, too.
    let in_client: Vec<u64> = in_client.filter(|times| *times > 1).collect();
    let is_each_call = |times: &u64| (count - 1..=count).contains(times);
    ensure!(in_client.iter().all(is_each_call), "not once in each of {count} calls: {in_client:?}");

    let in_nucleus = 2 * entry.len() + leaving.len();
    let parts = [in_nucleus, in_client.len(), in_server.len()].map(|part| part as i64);
    let parts: Vec<i64> = [there, back].into_iter().chain(parts).collect();
    let sum: i64 = parts.iter().sum();
    let parts: Vec<i64> = parts.into_iter().chain([row as i64 - sum, row as i64]).collect();
    let in_book = in_book(project)?;
    ensure!(parts == in_book, "the parts of a call are {parts:?}, and in the book {in_book:?}");
    Ok(())
}

/// Bytes in which a path ends.
const PATH_BYTES: usize = 256;

/// Where the instructions are that are executed from an address on if no branch is taken, up to the first one with this mnemonic.
fn path(isa: Isa, file: &File, start: u64, last: &str) -> Result<Vec<u64>> {
    let bytes = elf::loaded(&file.bytes, start, PATH_BYTES).with_context(|| format!("no code at {start:#x}"))?;
    let places = listing::up_to(portal::of(isa), bytes, last).with_context(|| format!("no {last} after {start:#x}"))?;
    Ok(places.into_iter().map(|at| start + at as u64).collect())
}

/// How often each of these instructions was executed, by address.
fn times(executed: &[(Executed, Option<usize>)], is_wanted: impl Fn(u64, Option<usize>) -> bool) -> BTreeMap<u64, u64> {
    let wanted = executed.iter().filter(|(one, owner)| is_wanted(one.address, *owner));
    wanted.map(|(one, _)| (one.address, one.times)).collect()
}

/// The parts of a call and return in the book, in the order of its table.
fn in_book(project: &Project) -> Result<Vec<i64>> {
    let text = read_text(&project.root.join("docs/book/portals.md"))?;
    let column = if project.isa == Isa::Aarch64 { 3 } else { 2 };
    let rows = text.lines().skip_while(|line| !line.starts_with("| part | x86-64 | AArch64 |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|line| line.split('|').nth(column).unwrap_or_default().trim().parse().context("a row without number"))
        .collect()
}
