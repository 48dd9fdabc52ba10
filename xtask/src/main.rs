//! The host tool behind `./x`: builds the nucleus and the components, packs the boot archive, runs
//! the emulator, tests, measures.
//!
//! | module | what |
//! |---|---|
//! | [`project`] | where things lie: the tree, the target folder, folders that live as long as a run |
//! | [`build`] | cargo with the flags of nucleus and components |
//! | [`image`] | the system description and the boot archive |
//! | [`emulator`] | QEMU: installing, starting, input, output, time limit, exit status |
//! | [`forward`] | ports of this host that lead to the machine |
//! | [`source`], [`backtrace`], [`deaths`] | source lines of addresses, and of what died while the emulator runs |
//! | [`counter`] | the emulator's plugin that counts instructions |
//! | [`code`] | whose code an executed instruction is |
//! | [`run`], [`mod@test`], [`mod@bench`], [`debug`], [`docs`], [`graph`], [`lines`], [`memory`], [`new`], [`portal`], [`profile`] | the commands |
#![forbid(unsafe_code)]

mod backtrace;
mod bench;
mod browser;
mod build;
mod code;
mod command_line;
mod conversation;
mod counter;
mod deaths;
mod debug;
mod docs;
mod elf;
mod emulator;
mod engine;
mod forward;
mod graph;
mod http;
mod image;
mod install;
mod isa;
mod labels;
mod lines;
mod memory;
mod nearest;
mod new;
mod portal;
mod profile;
mod project;
mod replay;
mod run;
mod scan;
mod services;
mod source;
mod symbols;
mod test;
mod trace;
mod workspace;

use clap::Parser;
use command_line::{Command, CommandLine, New};
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = CommandLine::parse().command;
    let result = project::Project::find().and_then(|mut project| match command {
        Command::Run(options) => {
            project.isa = options.machine.arch;
            run::run(&project, &options)
        }
        Command::Debug(options) => {
            project.isa = options.machine.arch;
            debug::debug(&project, &options)
        }
        Command::Bench(options) => bench::bench(&project, &options),
        Command::New(New::Component(options)) => new::component(&project, &options),
        Command::New(New::Interface(options)) => new::interface(&project, &options),
        Command::New(New::Program(options)) => new::program(&project, &options),
        Command::Graph(options) => {
            project.isa = options.arch;
            graph::graph(&project, &options)
        }
        Command::Memory(options) => {
            project.isa = options.arch;
            memory::memory(&project, &options)
        }
        Command::Symbols(options) => {
            project.isa = options.arch;
            symbols::symbols(&project, &options)
        }
        Command::Docs => docs::docs(&project),
        Command::Lines(options) => lines::lines(&project, &options),
        Command::Labels(command) => labels::labels(&project, &command),
        Command::Portal(options) => {
            project.isa = options.arch;
            portal::portal(&project, &options)
        }
        Command::Trace(options) => {
            project.isa = options.arch;
            trace::trace(&project, &options)
        }
        Command::Profile(options) => {
            project.isa = options.arch;
            profile::profile(&project, &options)
        }
        Command::Pictures => test::browser::pictures(&project),
        Command::Test(options) => test::test(&project, &options),
    });
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.is::<emulator::TimedOut>() { emulator::TIMED_OUT } else { 1 })
        }
    }
}
