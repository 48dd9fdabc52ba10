//! `./x portal`: the code of a portal as people read it.

use crate::bench::machine;
use crate::build::Checks;
use crate::command_line::PortalOptions;
use crate::emulator::Machine;
use crate::image::System;
use crate::install;
use crate::isa::Isa;
use crate::project::{Project, read_text};
use anyhow::{Context, Result};
use listing::{Portal, specification};
use std::io::Read;
use std::path::Path;

/// Prints the listing.
pub fn portal(project: &Project, options: &PortalOptions) -> Result<u8> {
    let portal = match (&options.code, options.shape, &options.specification) {
        (Some(path), ..) => Portal::running(of(project.isa), &printed(path)?)?,
        (None, Some(shape), _) => running(project, &options.system, shape)?,
        (None, None, text) => generated(project, text.as_deref().unwrap_or_default())?,
    };
    print!("{portal}");
    Ok(0)
}

/// The code that the generator writes for a specification.
pub fn generated(project: &Project, text: &str) -> Result<Portal> {
    Ok(Portal::generated(of(project.isa), &specification(text)?)?)
}

/// The text that `portals --code` printed into a file, or a pipe.
fn printed(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
        return Ok(text);
    }
    read_text(path)
}

/// The code of a shape in a running system.
pub fn running(project: &Project, system: &Path, shape: u64) -> Result<Portal> {
    install::emulator(project.isa)?;
    let system = System::read(project, system)?;
    let command = format!("portals --code {shape}");
    let (_, output) = machine::boot(project, &system, Checks::Off, Machine::new(machine::MEMORY), &command)?;
    Ok(Portal::running(of(project.isa), &output)?)
}

/// The same of the listing.
pub const fn of(isa: Isa) -> listing::Isa {
    match isa {
        Isa::X86_64 => listing::Isa::X86_64,
        Isa::Aarch64 => listing::Isa::AArch64,
    }
}
