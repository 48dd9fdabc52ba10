//! Is what a running system has as portal code what the generator writes, and does the host say what each part is for? Does a call execute
//! the instructions of its listing, each once?

use super::report::Report;
use crate::bench;
use crate::isa::Isa;
use crate::portal;
use crate::project::Project;
use anyhow::ensure;
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
        report.run(&format!("{NAME}: a call on {}", isa.name()), || {
            let project = project.on(*isa);
            let text = portal::generated(&project, "npciii>i")?.to_string();
            // A line after each half.
            let halves = text.lines().filter_map(|line| line.trim().strip_suffix(" instructions")?.parse::<u64>().ok());
            let (executed, calls) = bench::in_portals(&project)?;
            let listed = halves.sum::<u64>() as usize;
            ensure!(listed > 0 && executed.len() == listed, "{} of {listed} instructions are executed", executed.len());
            ensure!(executed.iter().all(|times| *times == calls), "not each instruction once in each of {calls} calls");
            Ok(())
        });
    }
}
