//! `./x profile`: in which functions the instructions of a command or a request are executed, with their callers.
//!
//! | module | what |
//! |---|---|
//! | [`session`] | the machine: the requests to it, and when it is recorded |
//! | [`peer`] | a client of a server in the machine |
//! | [`record`] | which instructions were executed, and in which order |
//! | [`calls`] | what an instruction does to a stack, and the tree of calls |
//! | [`stacks`] | the instructions in their order, each at its place in that tree |
//! | [`names`] | functions, those that were inlined, too |
//! | [`table`], [`picture`] | the result as tables, as a flame graph |
//!
//! The emulator's plugin records each instruction in order. So stacks are found afterwards, from calls and returns alone: the
//! machine runs the build that ships, and no instruction of it is for the profile.

mod calls;
mod names;
mod peer;
mod picture;
mod record;
mod session;
mod stacks;
mod table;

use crate::build::Checks;
use crate::code;
use crate::command_line::ProfileOptions;
use crate::image::{self, Size, System};
use crate::install;
use crate::isa::Isa;
use crate::project::{Project, read, writable, write};
use crate::run::{lead_wanted, memory_for};
use anyhow::{Context, Result, bail, ensure};
pub use names::{Names, Profile};
pub use peer::Sent;
pub use session::{Done, Work, boot};
use stacks::Stacks;
use std::time::Duration;

/// Profiles, and prints and draws it; the exit status is that of the command.
pub fn profile(project: &Project, options: &ProfileOptions) -> Result<u8> {
    let limit = Duration::try_from_secs_f64(options.timeout).context("--timeout takes seconds, as 60")?;
    ensure!((0.0..100.0).contains(&options.narrowest), "--narrowest takes percent of the picture's width, as 0.1");
    writable(&options.output)?;
    let command = options.commands.join(" ");
    let text = options.send.as_deref().map(peer::unescaped).transpose()?;
    let work = match (&options.web, &text) {
        (Some(path), _) => Work::Page(path.trim_start_matches('/')),
        (None, Some(text)) => {
            let [forward] = options.forward[..] else {
                bail!("--send takes one --forward, which says to which port of the machine: --forward 2007:7")
            };
            let command = (!command.is_empty()).then(|| session::checked(&command)).transpose()?;
            Work::Text(command, Sent { forward, text })
        }
        (None, None) => Work::Command(session::checked(&command)?),
    };
    install::emulator(project.isa)?;
    let system = &System::read(project, &options.system)?;
    if matches!(work, Work::Command(_) | Work::Text(Some(_), _)) && system.description.shell.is_none() {
        bail!("{}: a command needs a shell, and [boot] names none", options.system.display());
    }
    let memory = &memory_for(system, options.memory.as_deref(), 1);
    let mut image = image::make(project, system, Checks::Off, Size::of(memory, 1)?, None)?;
    lead_wanted(&mut image, system, &options.forward)?;
    if matches!(work, Work::Page(_)) && image.web().is_none() {
        bail!("{}: a page needs a network; systems/default.toml has one", options.system.display());
    }
    let (done, record) = boot(project, &image, memory, limit, |session| session.profile(work))?;
    eprintln!("Building the tree of calls.");
    let files = code::files(project, system, read(&image.elf)?)?;
    let profile = made(&Names::of(&files), project.isa, &record, &done)?;
    print!("{}", done.printed);
    let what = work.to_string();
    println!("{what} on {}: {}\n\n{}", project.isa.title(), done.reported, table::text(&profile));
    let title = format!("{what} on {}", project.isa.title());
    write(&options.output, &picture::draw(&title, &profile, options.narrowest)?)?;
    println!("{} shows the tree of calls: docs/book/trace.md says how to read it.", options.output.display());
    Ok(done.status)
}

/// Makes the profile of what was done. An error if the record has another number of instructions than the plugin counted.
pub fn made(names: &Names<'_>, isa: Isa, record: &record::Record, done: &Done) -> Result<Profile> {
    record.agrees_with(done.counted)?;
    names.profile(&Stacks::of(record, names.files(), isa, done.window)?)
}
