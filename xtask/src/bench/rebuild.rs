//! `./x bench --rebuild`: how long this computer takes from a change to the end of a boot. Printed, never judged: it depends on
//! the computer, and on what else that does.

use super::machine::{MEMORY, NETWORK_SYSTEM, output_of};
use crate::build::Checks;
use crate::emulator::Machine;
use crate::image::{self, Size, System};
use crate::project::Project;
use anyhow::{Context, Result};
use std::fs::File;
use std::path::Path;
use std::time::{Instant, SystemTime};

/// The changes: a description, a file of it, and the seconds that are aimed at with two CPUs that do nothing else.
const CHANGES: [(&str, &str, u32); 3] = [
    ("a program", "apps/wc/src/main.rs", 4),
    ("a component", "components/names/src/main.rs", 6),
    ("an interface", "crates/protocols/src/file.rs", 15),
];
/// The command that runs then.
const COMMAND: &str = "true";

/// Measures each change once, after everything was built.
pub fn rebuild(project: &Project) -> Result<u8> {
    let system = System::read(project, Path::new(NETWORK_SYSTEM))?;
    boot(project, &system)?;
    println!("{:>13}  {:>7}  {:>7}  file", "a change in", "seconds", "aim");
    for (what, file, aim) in CHANGES {
        // Cargo looks at the time of the last change.
        let path = project.root.join(file);
        let opened = File::options().append(true).open(&path).with_context(|| format!("cannot open {file}"))?;
        opened.set_modified(SystemTime::now()).with_context(|| format!("cannot change the time of {file}"))?;
        let start = Instant::now();
        boot(project, &system)?;
        println!("{what:>13}  {:>7.1}  {aim:>7}  {file}", start.elapsed().as_secs_f64());
    }
    Ok(0)
}

/// Builds, boots, runs a program, stops.
fn boot(project: &Project, system: &System) -> Result<()> {
    let image = image::make(project, system, Checks::Off, Size::of(MEMORY, 1)?, Some(COMMAND))?;
    output_of(&image, &Machine::new(MEMORY), COMMAND).map(drop)
}
