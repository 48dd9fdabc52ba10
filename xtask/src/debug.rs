//! `./x debug`

use crate::command_line::DebugOptions;
use crate::emulator::{self, Console, End, LEAVE, Machine};
use crate::install;
use crate::project::Project;
use crate::run::{prepare, say_forwards};
use anyhow::Result;

/// Boots, halts before the first instruction, and says how to attach gdb.
pub fn debug(project: &Project, options: &DebugOptions) -> Result<u8> {
    install::emulator(project.isa)?;
    let (image, machine) = prepare(project, &options.machine, options.exec.as_deref())?;
    let machine = Machine { gdb_port: Some(options.port), ..machine };
    say_forwards(&options.machine.forward);
    eprintln!("\nThe machine halts before its first instruction. In a second terminal, in this folder:\n");
    let gdb = project.isa.debugger();
    eprintln!("  {gdb} -ex 'target remote :{}' {}\n", options.port, image.elf.display());
    eprintln!("Useful there: `hbreak boot_rust` (a hardware breakpoint: paging is still off), `continue`, `bt`.");
    let programs = project.target.join(project.isa.folder()).join("programs").join(project.isa.target());
    eprintln!("Symbols of a component: `add-symbol-file {}/release/NAME`.", programs.display());
    eprintln!("Here, {LEAVE} leaves the emulator.\n");
    match emulator::boot(&image, &machine, Console::Terminal, None)?.0 {
        End::Status(status) => Ok(status),
        End::Reset | End::TimedOut => Ok(0),
    }
}
