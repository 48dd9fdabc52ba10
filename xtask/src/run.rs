//! `./x run`

use crate::build::Checks;
use crate::command_line::{MachineOptions, RunOptions};
use crate::deaths::Watch;
use crate::emulator::{self, Console, End, LEAVE, Machine, TimedOut};
use crate::forward::Forward;
use crate::image::{self, Image, Size, System, USUAL_MEMORY};
use crate::install;
use crate::project::{Project, write};
use abi::boot::{LABELS_OFF, has_word};
use anyhow::{Context, Result, bail};
use std::io::IsTerminal;
use std::time::Duration;

/// Seconds that commands may take when nobody says.
const EXEC_SECONDS: f64 = 300.0;

/// Lines of the kernel log that are shown when nothing else says why a run came to nothing.
const LOG_SHOWN: usize = 15;

/// Builds, boots, connects; returns the exit status.
pub fn run(project: &Project, options: &RunOptions) -> Result<u8> {
    let seconds = options.timeout.or(options.exec.is_some().then_some(EXEC_SECONDS));
    let limit = seconds.map(Duration::try_from_secs_f64).transpose().context("--timeout takes seconds, as 60")?;
    install::emulator(project.isa)?;
    let (image, machine) = prepare(project, &options.machine, options.exec.as_deref())?;
    let machine = Machine { icount: options.icount, ..machine };
    if let Some(port) = image.web().map(|web| web.host) {
        eprintln!("http://localhost:{port}/ leads to Cairn's web server.");
    }
    say_forwards(&options.machine.forward);
    if let Some(warning) = warning_of_labels(&image.command_line, &machine.append) {
        eprintln!("{warning}");
    }
    let talks = options.exec.is_none() && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let console = if talks && options.log.is_none() {
        eprintln!("\nBooting Cairn. The terminal now belongs to it: {LEAVE} leaves the emulator.\n");
        Console::Terminal
    } else if options.exec.is_some() {
        Console::Steps { steps: &[], echo: true }
    } else {
        Console::Streams
    };
    let interactive = matches!(console, Console::Terminal);
    let watch = Watch::new(project, &image)?;
    // A raw terminal needs a carriage return at each line.
    let say = |text: String| eprint!("{}", if interactive { text.replace('\n', "\r\n") } else { text });
    let machine = Machine { emulator: watch.arguments(&machine.memory), ..machine };
    let (result, last) = watch.during(say, || emulator::boot(&image, &machine, console, limit));
    let (end, output) = result?;
    // A system that comes to nothing before there is a console would else say nothing.
    let failed = matches!(end, End::TimedOut) || end != End::Status(0) && end != End::Reset && output.is_empty();
    if failed && !interactive && !last.is_empty() {
        let lines = &last[last.len().saturating_sub(LOG_SHOWN)..];
        eprintln!("The end of the kernel log:\n{}", lines.join("\n"));
    }
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

/// A warning if the words of the description or those of `--append` switch labels off.
fn warning_of_labels(described: &str, appended: &str) -> Option<&'static str> {
    let are_off = [described, appended].iter().any(|words| has_word(words.as_bytes(), LABELS_OFF));
    are_off.then_some("warning: labels are off: nothing is refused that they would forbid.")
}

/// Has ports of this computer lead to the machine: these, and the usual one.
fn lead(image: &mut Image, system: &System, wanted: &[Forward]) -> Result<()> {
    match &mut image.forwards {
        Some(forwards) => *forwards = Forward::usual_and(wanted)?,
        None if !wanted.is_empty() => {
            bail!("--forward: {} describes no network driver, so the machine has no network", system.path().display())
        }
        None => {}
    }
    Ok(())
}

/// As [`lead`], and says so. Nothing changes if nothing is wanted.
pub fn lead_wanted(image: &mut Image, system: &System, wanted: &[Forward]) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    lead(image, system, wanted)?;
    say_forwards(wanted);
    Ok(())
}

/// Where what is asked for leads.
pub fn say_forwards(wanted: &[Forward]) {
    for Forward { protocol, host, guest } in wanted {
        eprintln!("localhost:{host} ({protocol}) leads to port {guest} of the machine.");
    }
}

/// Memory for a machine, as [`image::memory_for`] has it; says so if that is more than the description says.
pub fn memory_for(system: &System, wanted: Option<&str>, cpus: u32) -> String {
    let memory = image::memory_for(system, wanted, cpus);
    if let Some(said) = said_of(system, wanted, cpus) {
        eprintln!("{said}");
    }
    memory
}

/// The message about the memory that a machine has because nobody wanted another.
fn said_of(system: &System, wanted: Option<&str>, cpus: u32) -> Option<String> {
    let [size, memory] = [1, cpus].map(|cpus| image::memory_for(system, None, cpus));
    let is_more = wanted.is_none() && memory != size;
    is_more.then(|| format!("{cpus} CPUs need more memory than the description's {size}: the machine has {memory}."))
}

/// The system description that these options name.
pub fn read_system(project: &Project, options: &MachineOptions) -> Result<System> {
    let system = &options.system;
    if options.tests { System::read_for_tests(project, system, "") } else { System::read(project, system) }
}

/// The image and the machine that these options ask for.
pub fn prepare(project: &Project, options: &MachineOptions, exec: Option<&str>) -> Result<(Image, Machine)> {
    let checks = match (options.checked, options.measured) {
        (true, _) => Checks::On,
        (_, true) => Checks::Measured,
        _ => Checks::Off,
    };
    let (wanted, cpus) = (options.memory.as_deref(), options.cpus);
    let machine = |memory: &str| Machine {
        cpus,
        append: options.append.clone(),
        board: options.board.clone(),
        cpu: options.cpu.clone(),
        ..Machine::new(memory)
    };
    if options.nucleus_only {
        return Ok((image::nucleus_only(project, checks)?, machine(wanted.unwrap_or(USUAL_MEMORY))));
    }
    let system = read_system(project, options)?;
    let memory = memory_for(&system, wanted, cpus);
    let mut image = image::make(project, &system, checks, Size::of(&memory, cpus)?, exec)?;
    lead(&mut image, &system, &options.forward)?;
    Ok((image, machine(&memory)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::read_text;
    use anyhow::{Result, anyhow};
    use std::path::Path;
    use system::host::Description;

    #[test]
    fn a_machine_has_the_memory_of_its_description() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let project = Project::in_folder(root);
        let mut system = System::read(&project, Path::new("systems/minimal.toml"))?;
        // Too little is not made more: the check says which line is too small.
        for (frames, memory) in [(128 * 256, "128M"), (128 * 256 + 1, "131076K"), (256, "1M")] {
            system.description.memory_frames.value = frames;
            assert_eq!((image::memory_for(&system, None, 1).as_str(), said_of(&system, None, 1)), (memory, None));
        }
        Ok(())
    }

    #[test]
    fn labels_that_are_off_are_warned_of() -> Result<()> {
        let project = Project::in_folder(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        let text = read_text(&project.root.join("systems/declared.toml"))?;
        let words = |boot: &str| -> Result<String> {
            let text = text.replace("[boot]\n", &format!("[boot]\n{boot}\n"));
            Ok(Description::read(&text).map_err(|problem| anyhow!("{problem:?}"))?.command_line)
        };
        let [on, off] = [words("labels = \"on\"")?, words("labels = \"off\"")?];
        for (described, appended, warns) in [
            (on.as_str(), "", false),
            (&on, "semihosting labels=offline", false),
            (&on, "semihosting labels=off", true),
            (&off, "", true),
            (&off, "semihosting", true),
        ] {
            let warning = warning_of_labels(described, appended);
            assert_eq!(warning.is_some(), warns, "{described:?}, {appended:?}");
            assert!(warning.is_none_or(|text| text.starts_with("warning: labels are off: ")));
        }
        Ok(())
    }

    #[test]
    fn a_machine_of_many_cpus_has_the_memory_that_they_need_and_that_is_said() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let project = Project::in_folder(root);
        let system = System::read(&project, Path::new("systems/default.toml"))?;
        for cpus in [1, 2, 4, 16] {
            let needed = system.description.frames_needed(cpus) * 4 / 1024;
            let memory = image::memory_for(&system, None, cpus);
            assert_eq!(
                memory, "64M",
                "with {cpus} CPUs the accounts and the reserve need {needed} MiB: make some smaller"
            );
            assert_eq!(said_of(&system, None, cpus), None);
        }
        for cpus in [48, 64] {
            let memory = image::memory_for(&system, None, cpus);
            assert!(image::Size::of(&memory, cpus)?.frames >= system.description.frames_needed(cpus), "{cpus} CPUs");
            let said = format!("{cpus} CPUs need more memory than the description's 64M: the machine has {memory}.");
            assert_eq!(said_of(&system, None, cpus), Some(said));
            assert_eq!(image::memory_for(&system, Some("100G"), cpus), "100G");
            assert_eq!(said_of(&system, Some("100G"), cpus), None);
        }
        Ok(())
    }
}
