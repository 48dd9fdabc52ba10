//! Machines that measure.

use super::measurement::{Measurement, costly, parse};
use crate::build::Checks;
use crate::counter::{Executed, Marks, Places};
use crate::emulator::{self, Console, End, Machine, TimedOut};
use crate::image::{self, Image, Size, System};
use crate::project::{Project, read};
use anyhow::{Context, Result, bail};
use std::time::Duration;

/// Memory of the machine that is measured.
pub const MEMORY: &str = "64M";
/// Seconds that measuring may take.
pub const SECONDS: f64 = 900.0;
/// The system whose network is measured.
pub const NETWORK_SYSTEM: &str = "systems/default.toml";

/// Runs the program `bench`; gives the image, and the rows with what they cost besides.
pub fn run(project: &Project, system: &System, machine: Machine, commands: &str) -> Result<(Image, Vec<Measurement>)> {
    let (image, rows, _) = run_and_follow(project, system, machine, commands, false)?;
    Ok((image, rows))
}

/// The instructions that were executed between marks, if they are wanted.
type Followed = Option<Vec<Executed>>;

/// The same, and says which instructions were executed, if that is wanted.
pub fn run_and_follow(
    project: &Project,
    system: &System,
    machine: Machine,
    commands: &str,
    follows: bool,
) -> Result<(Image, Vec<Measurement>, Followed)> {
    let image = image::make(project, system, Checks::Off, Size::of(MEMORY, machine.cpus)?, Some(commands))?;
    let marks = Marks::make(project, &Places::of_nucleus(&read(&image.elf)?)?, follows)?;
    let machine = Machine { counter: Some(marks.argument()), ..machine };
    let output = output_of(&image, &machine, commands)?;
    let (mut measured, counted) = (parse(&output)?, marks.counted()?);
    for row in &mut measured {
        if let (Some(number), Some(operations)) = (row.counts.remove("counted"), row.counts.remove("operations")) {
            let counts = counted.get(number as usize).with_context(|| format!("{}: no marks came", row.name))?;
            row.costly = Some(costly(counts, operations));
            row.operations = operations;
        }
    }
    let followed = follows.then(|| marks.executed()).transpose()?;
    Ok((image, measured, followed))
}

/// Boots this build with these commands; gives the image and what they printed.
pub fn boot(
    project: &Project,
    system: &System,
    checks: Checks,
    machine: Machine,
    commands: &str,
) -> Result<(Image, String)> {
    let image = image::make(project, system, checks, Size::of(MEMORY, machine.cpus)?, Some(commands))?;
    let output = output_of(&image, &machine, commands)?;
    Ok((image, output))
}

/// The output of a machine that boots this image and ends well.
pub fn output_of(image: &Image, machine: &Machine, commands: &str) -> Result<String> {
    let console = Console::Steps { steps: &[], echo: false };
    let (end, output) = emulator::boot(image, machine, console, Some(Duration::from_secs_f64(SECONDS)))?;
    let output = String::from_utf8_lossy(&output).into_owned();
    match end {
        End::Status(0) => Ok(output),
        End::Status(status) => bail!("`{commands}` ended with status {status}\n{output}"),
        End::Reset => bail!("the machine reset itself\n{output}"),
        End::TimedOut => Err(anyhow::Error::new(TimedOut(SECONDS)).context(output)),
    }
}
