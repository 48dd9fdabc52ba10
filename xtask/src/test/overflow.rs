//! The kernel stack has an end: in a copy of the tree the nucleus is made to call itself without end. It meets the page below its
//! stack, which is never mapped, tells so from another stack, with the names of its functions, and the machine stops.

use super::report::Report;
use super::{cases, copy};
use crate::build::Checks;
use crate::emulator::{self, Console, End, Machine};
use crate::image;
use crate::install;
use crate::project::{Project, read_text, write};
use anyhow::{Context, Result, ensure};
use regex::Regex;
use std::time::Duration;

/// Name of the test, which runs on each ISA.
pub const NAME: &str = "overflow";

/// Time for the machine.
const LIMIT: Duration = Duration::from_secs(20);
/// Exit status of the machine after a panic of the nucleus.
const PANIC: u8 = 100;
/// Bytes of a page: so near to the stack pointer is what is not mapped.
const PAGE: u64 = 4096;
/// From here on the nucleus knows the names of its functions.
const FILE: &str = "nucleus/src/loader.rs";
const FIND: &str = "    let root = account::root();\n";
const REPLACE: &str = "    overflow(0);\n    let root = account::root();\n";
const FUNCTION: &str = "
#[inline(never)]
#[allow(unconditional_recursion)]
fn overflow(depth: u64) -> u64 {
    let room = core::hint::black_box([depth; 32]);
    overflow(depth + 1) + core::hint::black_box(room)[7]
}
";

/// Runs the test on the project's ISA.
pub fn check(project: &Project, report: &mut Report) {
    report.run(&cases::on(project.isa, NAME), || {
        install::emulator(project.isa)?;
        let copy = copy::tree(project)?;
        let file = copy.root.join(FILE);
        let text = read_text(&file)?;
        ensure!(text.matches(FIND).count() == 1, "{FILE} has changed: this test must follow it");
        write(&file, (text.replace(FIND, REPLACE) + FUNCTION).as_bytes())?;
        let image = image::nucleus_only(&copy, Checks::On)?;
        let console = Console::Steps { steps: &[], echo: false };
        let (end, output) = emulator::boot(&image, &Machine::new("64M"), console, Some(LIMIT))?;
        let output = String::from_utf8_lossy(&output);
        judge(&output, &end).with_context(|| format!("it printed\n{output}"))
    });
}

fn judge(output: &str, end: &End) -> Result<()> {
    ensure!(*end == End::Status(PANIC), "it ended with {end:?}");
    let trap = Regex::new(r"nucleus: trap \d+, code \S+, pc \S+, sp 0x([0-9a-f]+), address 0x([0-9a-f]+)")?;
    let found = trap.captures(output).context("no trap is told of")?;
    let [sp, address] = [1, 2].map(|group| u64::from_str_radix(&found[group], 16));
    let (sp, address) = (sp?, address?);
    ensure!(sp.abs_diff(address) < PAGE, "that is not the end of the stack");
    let named = output.lines().filter(|line| line.contains("nucleus::loader::overflow + ")).count();
    ensure!(named >= 9, "the backtrace names the function {named} times");
    Ok(())
}
