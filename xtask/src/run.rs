//! `./x run`

use crate::build::Checks;
use crate::command_line::{MachineOptions, RunOptions};
use crate::emulator::{self, Console, End, Machine, TimedOut};
use crate::forward::Forward;
use crate::image::{self, Image, System};
use crate::install;
use crate::project::{Project, write};
use anyhow::{Context, Result, bail};
use std::io::IsTerminal;
use std::time::Duration;

/// Seconds that commands may take when nobody says.
const EXEC_SECONDS: f64 = 300.0;

/// Builds, boots, connects; returns the exit status.
pub fn run(project: &Project, options: &RunOptions) -> Result<u8> {
    let seconds = options.timeout.or(options.exec.is_some().then_some(EXEC_SECONDS));
    let limit = seconds.map(Duration::try_from_secs_f64).transpose().context("--timeout takes seconds, as 60")?;
    install::emulator(project.isa)?;
    let image = image_of(project, &options.machine, options.exec.as_deref())?;
    let machine = Machine { icount: options.icount, ..machine_of(&options.machine) };
    if let Some(port) = image.web().map(|web| web.host) {
        eprintln!("http://localhost:{port}/ leads to Cairn's web server.");
    }
    let talks = options.exec.is_none() && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let console = if talks && options.log.is_none() {
        eprintln!("\nBooting Cairn. The terminal now belongs to it: Ctrl-A, then X leaves the emulator.\n");
        Console::Terminal
    } else if options.exec.is_some() {
        Console::Steps { steps: &[], echo: true }
    } else {
        Console::Streams
    };
    let interactive = matches!(console, Console::Terminal);
    let (end, output) = emulator::boot(&image, &machine, console, limit)?;
    if let Some(log) = &options.log {
        write(log, &output)?;
    }
    match end {
        End::Status(status) => Ok(status),
        End::Reset if interactive => Ok(0),
        End::Reset => bail!("the machine reset itself instead of stopping with a status"),
        End::TimedOut => Err(TimedOut(seconds.unwrap_or_default()).into()),
    }
}

/// The image that these options ask for.
pub fn image_of(project: &Project, options: &MachineOptions, exec: Option<&str>) -> Result<Image> {
    let checks = match (options.checked, options.measured) {
        (true, _) => Checks::On,
        (_, true) => Checks::Measured,
        _ => Checks::Off,
    };
    if options.nucleus_only {
        return image::nucleus_only(project, checks);
    }
    let system = System::read(project, &options.system)?;
    let mut image = image::make(project, &system, checks, frames_of(&options.memory)?, exec)?;
    if let Some(forwards) = &mut image.forwards {
        *forwards = vec![Forward::usual()?];
    }
    Ok(image)
}

/// The machine that these options ask for.
pub fn machine_of(options: &MachineOptions) -> Machine {
    Machine {
        cpus: options.cpus,
        append: options.append.clone(),
        board: options.board.clone(),
        cpu: options.cpu.clone(),
        ..Machine::new(&options.memory)
    }
}

/// Frames of a memory size such as `64M`.
pub fn frames_of(memory: &str) -> Result<u64> {
    let frames = system::host::size_in_frames(memory);
    frames.with_context(|| format!("--memory takes a size such as 64M, and \"{memory}\" is none"))
}
