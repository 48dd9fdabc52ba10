//! The kernel stack has an end: in a copy of the tree the nucleus is made to call itself without end. It meets the page below its
//! stack, which is never mapped, reports so from another stack, with the names of its functions, and the machine stops.
//!
//! On x86-64 an NMI can come between the instruction of a system call and `swapgs`, while GS is still the user's: in another copy
//! an instruction that raises one stands there, and the nucleus says that place.

use super::report::Report;
use super::{cases, copy};
use crate::build::Checks;
use crate::elf;
use crate::emulator::{self, Console, End, Machine};
use crate::image::{self, Image, Size, System, USUAL_MEMORY};
use crate::install;
use crate::project::{Project, read, read_text, write};
use anyhow::{Context, Result, bail, ensure};
use regex::Regex;
use std::path::Path;
use std::time::Duration;

/// Name of the test, which runs on each ISA.
pub const NAME: &str = "overflow";
/// Name of the other test, which runs on x86-64.
pub const NMI: &str = "nmi";

/// Time for the machine.
const LIMIT: Duration = Duration::from_secs(20);
/// Exit status of the machine after a panic of the nucleus.
const PANIC: u8 = 100;
/// Bytes of a page: so near to the stack pointer is what is not mapped.
const PAGE: u64 = 4096;
/// From here on the nucleus knows the names of its functions.
const FILE: &str = "nucleus/src/start/loader.rs";
const FIND: &str = "    let root = account::root(held);\n";
const REPLACE: &str = "    overflow(0);\n    let root = account::root(held);\n";
const FUNCTION: &str = "
#[inline(never)]
#[allow(unconditional_recursion)]
fn overflow(depth: u64) -> u64 {
    let room = core::hint::black_box([depth; 16]);
    overflow(depth + 1) + core::hint::black_box(room)[7]
}
";

/// Runs the test on the project's ISA.
pub fn check(project: &Project, report: &mut Report) {
    report.run(&cases::on(project.isa, NAME), || {
        install::emulator(project.isa)?;
        let copy = copy::tree(project)?;
        change(&copy, FILE, FIND, REPLACE, FUNCTION)?;
        boot(&image::nucleus_only(&copy, Checks::On)?, judge)
    });
}

/// Runs the other test.
pub fn check_nmi(project: &Project, report: &mut Report) {
    report.run(NMI, || {
        install::emulator(project.isa)?;
        nmi(&copy::tree(project)?)?
    });
}

/// Runs the other test in a copy of the tree. The outer error: the copy could not be built. The inner one: the test failed.
pub fn nmi(copy: &Project) -> Result<Result<()>> {
    const FILE: &str = "nucleus/src/arch/x86_64/entry.s";
    const INT_BYTES: u64 = 2;
    const ENTRY: &str = "system_call_entry:\n    swapgs\n";
    let original = change(copy, FILE, ENTRY, "system_call_entry:\n    int 2\n    swapgs\n", "")?;
    let system = System::read(copy, Path::new("systems/minimal.toml"))?;
    let image = image::make(copy, &system, Checks::On, Size::of(USUAL_MEMORY, 1)?, None);
    write(&copy.root.join(FILE), original.as_bytes())?;
    let image = image?;
    Ok(boot(&image, |output| {
        let entry = elf::addresses(&read(&image.elf)?, "system_call_entry")?;
        let place = entry.first().context("no entry of system calls")? + INT_BYTES;
        ensure!(output.contains(&format!("nucleus: trap 2, code 0x0, pc {place:#x}, ")), "its place is not reported");
        Ok(())
    }))
}

/// Changes a file of a copy of the tree, and adds more at its end; gives what stood there.
fn change(copy: &Project, file: &str, find: &str, replace: &str, more: &str) -> Result<String> {
    let path = copy.root.join(file);
    let text = read_text(&path)?;
    ensure!(text.matches(find).count() == 1, "{file} has changed: this test must follow it");
    write(&path, (text.replace(find, replace) + more).as_bytes())?;
    Ok(text)
}

/// Boots what panics, and has what it printed judged.
fn boot(image: &Image, judge: impl Fn(&str) -> Result<()>) -> Result<()> {
    let console = Console::Steps { steps: &[], echo: false };
    let (end, output) = emulator::boot(image, &Machine::new(USUAL_MEMORY), console, Some(LIMIT))?;
    let output = String::from_utf8_lossy(&output);
    let ended = || if end == End::Status(PANIC) { Ok(()) } else { bail!("it ended with {end:?}") };
    ended().and_then(|()| judge(&output)).with_context(|| format!("it printed\n{output}"))
}

fn judge(output: &str) -> Result<()> {
    let trap = Regex::new(r"nucleus: trap \d+, code \S+, pc \S+, sp 0x([0-9a-f]+), address 0x([0-9a-f]+)")?;
    let found = trap.captures(output).context("no trap is reported")?;
    let [sp, address] = [1, 2].map(|group| u64::from_str_radix(&found[group], 16));
    let (sp, address) = (sp?, address?);
    ensure!(sp.abs_diff(address) < PAGE, "that is not the end of the stack");
    let named = output.lines().filter(|line| line.contains("nucleus::start::loader::overflow + ")).count();
    ensure!(named >= 9, "the backtrace names the function {named} times");
    Ok(())
}
