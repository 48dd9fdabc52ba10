//! Where programs were when they died: the output of `./x run` beside the log.

use super::cases;
use super::report::Report;
use crate::build::Checks;
use crate::deaths::Watch;
use crate::elf;
use crate::emulator::{self, Console, Machine};
use crate::image::{self, Image, Size, System, USUAL_MEMORY};
use crate::install;
use crate::project::{Project, read};
use anyhow::{Context, Result, ensure};
use regex::Regex;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Name of the group and of its test.
pub const NAME: &str = "deaths";

/// Time for the machine.
const LIMIT: Duration = Duration::from_secs(60);
/// The commands that cause the deaths, and print the log.
const COMMANDS: &str =
    "negtest null; negtest panic; negtest null; negtest stack-overflow; kill httpd; sleep 0.1; dmesg";
/// The backtraces: a fault in a function that calls nothing, a panic, the same fault again, and the deepest recursion.
const EXPECTED: [&str; 4] = [
    r"(?m)^domain \d+ negtest died, status 0x300: page fault at 0x0, pc 0x[0-9a-f]+, .*$
   0  apps/negtest/src/deaths.rs:\d+  negtest::deaths::read
   1  apps/negtest/src/case.rs:\d+  .*
   2  apps/negtest/src/main.rs:\d+  negtest::main
   3  runtime/src/program.rs:\d+  .*run
      runtime/src/program.rs:\d+  cairn_program
   4  runtime/src/program.rs:\d+  runtime::program::start
   5  _start$",
    r"(?m)^domain \d+ negtest exited with 101$
negtest#\d+: panicked at apps/negtest/src/deaths.rs:\d+:\d+: on purpose$
   0  (?:.*\n    )+  runtime/src/startup.rs:\d+  runtime::startup::end
   1  runtime/src/panic.rs:\d+  __rustc::rust_begin_unwind
   2  core/src/panicking.rs:\d+  .*panic_fmt
   3  apps/negtest/src/deaths.rs:\d+  .*
   4  apps/negtest/src/case.rs:\d+  .*
   5  apps/negtest/src/main.rs:\d+  negtest::main
   6  runtime/src/program.rs:\d+  .*run
      runtime/src/program.rs:\d+  cairn_program
   7  runtime/src/program.rs:\d+  runtime::program::start
   8  _start$",
    r"(?m)^domain \d+ negtest died, status 0x300: .*$
  the same backtrace as domain \d+ negtest$",
    r"(?m)^domain \d+ negtest died, status 0x500: stack overflow at 0x[0-9a-f]+, pc 0x[0-9a-f]+$
   0  apps/negtest/src/deaths.rs:\d+  negtest::deaths::recurse
   1  apps/negtest/src/deaths.rs:\d+  negtest::deaths::recurse
      and \d+ times more$",
];

/// Runs the test.
pub fn check(project: &Project, report: &mut Report) {
    report.run(&cases::on(project.isa, NAME), || {
        install::emulator(project.isa)?;
        verdict(project)?
    });
}

/// Runs the test on a tree. The outer error: it could not be built. The inner one: the test failed.
pub fn verdict(project: &Project) -> Result<Result<()>> {
    let system = System::read(project, Path::new("systems/default.toml"))?;
    let size = Size::of(USUAL_MEMORY, 1)?;
    let image = image::make(project, &system, Checks::Off, size, Some(COMMANDS))?;
    Ok(judge(project, &image))
}

fn judge(project: &Project, image: &Image) -> Result<()> {
    let watch = Watch::new(project, image)?;
    let machine = Machine { emulator: watch.arguments(USUAL_MEMORY), ..Machine::new(USUAL_MEMORY) };
    let said = Mutex::new(String::new());
    let say = |text: String| said.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    let console = Console::Steps { steps: &[], echo: false };
    let (result, last) = watch.during(say, || emulator::boot(image, &machine, console, Some(LIMIT)));
    let (_, output) = result?;
    ensure!(last.iter().any(|line| line.contains("roottask: restarting httpd")), "the log ends otherwise: {last:?}");
    let said = said.into_inner().unwrap_or_else(PoisonError::into_inner);
    for expected in EXPECTED {
        ensure!(Regex::new(expected)?.is_match(&said), "{expected}\ndoes not match\n{said}");
    }
    // A killed program has no place where it died.
    ensure!(said.matches("\ndomain ").count() == EXPECTED.len(), "more than these died:\n{said}");
    let negtest = image.programs.iter().find(|(name, _)| name == "negtest").context("no program `negtest`")?;
    only_code(&String::from_utf8_lossy(&output), &read(&negtest.1)?)
}

/// Nothing of a stack is in the log but what could be a return address.
fn only_code(log: &str, file: &[u8]) -> Result<()> {
    let code = elf::code(file)?;
    let mut words = 0;
    for line in log.lines().filter(|line| line.contains(" was at ")) {
        let pairs = line.split_whitespace().filter_map(|pair| pair.split_once(":0x"));
        for (_, word) in pairs {
            let word = u64::from_str_radix(word, 16).with_context(|| line.to_string())?;
            let is_code = code.iter().any(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&word));
            ensure!(is_code, "{word:#x} is not code:\n{line}");
            words += 1;
        }
    }
    ensure!(words > 10, "the log has {words} words of stacks:\n{log}");
    Ok(())
}
