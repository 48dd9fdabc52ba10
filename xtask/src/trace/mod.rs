//! `./x trace`: boots with a nucleus that records what it does, and makes of the records what people read.
//!
//! | module | what |
//! |---|---|
//! | [`window`] | which part of the trace |
//! | [`mod@read`], [`recorder`], [`chains`] | from records to a story |
//! | [`story`] | calls, spans of time and what happened in them |
//! | [`labels`] | names of services and methods |
//! | [`perfetto`], [`picture`], [`summary`] | the story as JSON, as SVG, as tables |
//!
//! The records are those of the crate `trace`; they come through the emulator's debug console into a file.
//! An instruction is a tick of the clock, so times are counts of instructions; with several CPUs, of all of them.

mod chains;
mod labels;
mod perfetto;
mod picture;
mod read;
mod recorder;
mod story;
mod summary;
#[cfg(test)]
mod tests;
mod window;

use crate::bench::client::Web;
use crate::build::{self, Checks, Programs};
use crate::command_line::TraceOptions;
use crate::emulator::{self, Console, End, Machine, TimedOut};
use crate::forward::Forward;
use crate::image::{self, Image, Size, System};
use crate::install;
use crate::project::{Project, read, writable, write};
use crate::run::{lead_wanted, memory_for};
use anyhow::{Context, Result, bail};
pub use labels::Labels;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
pub use story::{Call, Ended, Span, Story, Who};
use window::Window;

/// Between two looks at whether the machine answers, or has become idle.
const PAUSE: Duration = Duration::from_millis(50);
/// After the answer came: its acknowledgement comes a little later.
const TAIL: Duration = Duration::from_millis(20);
/// How often to look whether the machine is idle, at most: something may go on for ever.
const MOST_PAUSES: usize = 40;

/// A traced run.
pub struct Traced {
    /// The events that it records.
    pub story: Story,
    /// The names of services and methods.
    pub labels: Labels,
    /// Status of the commands.
    pub status: u8,
}

/// The work of a run.
#[derive(Clone, Copy)]
pub enum Work<'a> {
    /// Commands for the shell.
    Commands(&'a str),
    /// This page is asked for.
    Page(&'a str),
}

/// A run.
pub struct Run<'a> {
    /// The system to boot.
    pub system: &'a System,
    /// Memory of the machine, as QEMU takes it.
    pub memory: &'a str,
    /// CPUs of the machine.
    pub cpus: u32,
    /// The work to do.
    pub work: Work<'a>,
    /// From the nucleus's first steps on, not only the work.
    pub from_boot: bool,
    /// Print what the commands print.
    pub echo: bool,
    /// Ports of this computer that lead to the machine.
    pub forward: &'a [Forward],
    /// Time for all of it.
    pub limit: Duration,
}

/// Runs, and writes what was asked for; the exit status is that of the commands.
pub fn trace(project: &Project, options: &TraceOptions) -> Result<u8> {
    let limit = Duration::try_from_secs_f64(options.timeout).context("--timeout takes seconds, as 60")?;
    for file in options.svg.iter().chain([&options.output]) {
        writable(file)?;
    }
    install::emulator(project.isa)?;
    let commands = options.commands.join(" ");
    let work = match &options.web {
        Some(path) => Work::Page(path),
        None => Work::Commands(&commands),
    };
    let system = &System::read(project, &options.system)?;
    // Before anything is built: checks the description.
    let memory = &memory_for(system, options.memory.as_deref(), options.cpus);
    system.plan(project, Some(Size::of(memory, options.cpus)?))?;
    let nucleus = build::nucleus(project, Checks::Traced)?;
    let programs = build::programs(project, &system.programs())?;
    let run = Run {
        system,
        memory,
        cpus: options.cpus,
        work,
        from_boot: options.boot,
        echo: true,
        forward: &options.forward,
        limit,
    };
    let traced = record(project, &run, nucleus, &programs)?;
    write(&options.output, traced.json().as_bytes())?;
    if let Some(picture) = &options.svg {
        write(picture, picture::draw(&title(options), &traced.story, &traced.labels)?.as_bytes())?;
    }
    println!("{}\n", summary::text(&traced.story, &traced.labels));
    println!(
        "{} opens in https://ui.perfetto.dev (Open trace file); nothing is sent anywhere.",
        options.output.display()
    );
    let whose = if traced.story.cpu_count() > 1 { "of any CPU: they take turns" } else { "here" };
    println!("A nanosecond there is an instruction {whose}. How to read it: docs/book/trace.md");
    Ok(traced.status)
}

/// The title of a picture.
fn title(options: &TraceOptions) -> String {
    match &options.web {
        Some(path) => format!("GET /{}", path.trim_start_matches('/')),
        None if options.commands.is_empty() => "from reset on".into(),
        None => options.commands.join(" "),
    }
}

impl Traced {
    /// As JSON for Perfetto.
    pub fn json(&self) -> String {
        perfetto::write(&self.story, &self.labels)
    }
}

/// Boots with a nucleus that traces, lets it do the work, reads the trace.
pub fn record(project: &Project, run: &Run<'_>, nucleus: PathBuf, programs: &Programs) -> Result<Traced> {
    let exec = match run.work {
        Work::Commands(commands) => Some(commands),
        Work::Page(_) => None,
    };
    let plan = run.system.plan(project, Some(Size::of(run.memory, run.cpus)?))?;
    let mut image = image::pack(project, run.system, &plan, nucleus, programs, exec)?;
    lead_wanted(&mut image, run.system, run.forward)?;
    let labels = Labels::of(project, run.system, programs)?;
    let scratch = project.scratch()?;
    let file = scratch.file("trace");
    let machine = Machine { icount: true, cpus: run.cpus, trace: Some(file.clone()), ..Machine::new(run.memory) };
    let shell = run.system.description.shell.as_ref().map(|shell| shell.value.clone()).unwrap_or_default();
    let (window, status) = match run.work {
        Work::Commands(_) => {
            let status = commands(&image, &machine, run)?;
            (if run.from_boot { Window::Everything } else { Window::Commands(shell) }, status)
        }
        Work::Page(path) => {
            let web = image.web().context("a page needs a system with a network; systems/default.toml is one")?;
            let (begin, end) =
                emulator::boot_for(image.isa, &emulator::arguments(&image, &machine), run.limit, |over| {
                    page(web, path.trim_start_matches('/'), &file, over)
                })?;
            (Window::Bytes(if run.from_boot { 0 } else { begin }, end), 0)
        }
    };
    let bytes = read(&file).context("the emulator wrote no trace")?;
    Ok(Traced { story: Story::read(&bytes, &window)?, labels, status })
}

/// Runs the commands to the end; gives their status.
fn commands(image: &Image, machine: &Machine, run: &Run<'_>) -> Result<u8> {
    let console = Console::Steps { steps: &[], echo: run.echo };
    match emulator::boot(image, machine, console, Some(run.limit))?.0 {
        End::Status(status) => Ok(status),
        End::Reset => bail!("the machine reset itself instead of stopping with a status"),
        End::TimedOut => Err(TimedOut(run.limit.as_secs_f64()).into()),
    }
}

/// Asks for the page until it comes, then once more when all is idle; gives from where to where this is in the trace.
fn page(web: Forward, path: &str, trace: &Path, over: &AtomicBool) -> Result<(usize, usize)> {
    let ask = || Web::connect(web.address()).and_then(|mut web| web.get(path).map(|_| web));
    loop {
        match ask() {
            Ok(_) => break,
            // An answer that is no page will be none the next time, either.
            Err(error) if over.load(Ordering::Relaxed) || format!("{error:#}").contains("HTTP/") => {
                return Err(error.context(format!("/{path} did not come")));
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
    let begin = wait_until_idle(trace)?;
    let _connection = ask().with_context(|| format!("/{path} came once, and not again"))?;
    thread::sleep(TAIL);
    Ok((begin, length(trace)?))
}

/// Waits until nothing happens for a while, or not much longer than that; gives the length of the trace.
fn wait_until_idle(trace: &Path) -> Result<usize> {
    let mut last = length(trace)?;
    for _ in 0..MOST_PAUSES {
        thread::sleep(PAUSE);
        let now = length(trace)?;
        if now == last {
            break;
        }
        last = now;
    }
    Ok(last)
}

/// Bytes of the whole records that are there.
fn length(trace: &Path) -> Result<usize> {
    let length = fs::metadata(trace).context("the emulator writes no trace")?.len() as usize;
    Ok(length / ::trace::BYTES * ::trace::BYTES)
}
