//! `./x debug`: a machine that waits for gdb, and gdb's commands for the program that is debugged.

use crate::build::{self, Program};
use crate::command_line::{DebugOptions, GDB_PORT};
use crate::elf::{self, Constant};
use crate::emulator::{self, Console, End, LEAVE, Machine};
use crate::image::Image;
use crate::install;
use crate::project::{Project, read, write};
use crate::run::{prepare, read_system, say_forwards};
use anyhow::{Context, Result, bail};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// The commands of gdb to debug one program.
const PROGRAM: &str = "xtask/src/debug/program.py";

/// A machine that can be debugged, and how gdb is started for it.
pub struct Session {
    /// The image that boots.
    pub image: Image,
    /// Halts before its first instruction.
    pub machine: Machine,
    /// gdb's command: its first word, and the others.
    pub gdb: (&'static str, Vec<String>),
}

/// Boots, halts before the first instruction, and says how to attach gdb.
pub fn debug(project: &Project, options: &DebugOptions) -> Result<u8> {
    install::emulator(project.isa)?;
    if let Err(error) = install::debugger(project.isa) {
        // Another debugger may be there.
        eprintln!("warning: {error:#}");
    }
    let Session { image, machine, gdb: (gdb, words) } = session(project, options)?;
    say_forwards(&options.machine.forward);
    eprintln!("\nThe machine halts before its first instruction. In a second terminal, in this folder:\n");
    eprintln!("  {gdb} {}\n", words.join(" "));
    match &options.component {
        Some(name) => {
            eprintln!(
                "There `continue` goes on until `main` of {name} runs. `break`, `bt`, `info locals` and `finish` work as"
            );
            eprintln!(
                "usual, in its address space only; `detach` lets the machine go on. More: docs/book/debugging.md"
            );
        }
        None => {
            eprintln!(
                "There `hbreak boot_rust` stops in the nucleus (a hardware breakpoint: paging is still off), after"
            );
            eprintln!("`continue`. For a component or a program: `./x debug --component NAME`.");
        }
    }
    eprintln!("Here, {LEAVE} leaves the emulator.\n");
    match emulator::boot(&image, &machine, Console::Terminal, None)?.0 {
        End::Status(status) => Ok(status),
        End::Reset | End::TimedOut => Ok(0),
    }
}

/// Builds what boots, and writes gdb's commands.
pub fn session(project: &Project, options: &DebugOptions) -> Result<Session> {
    let port = options.port;
    check_port(port)?;
    let component = options.component.as_deref();
    // An unknown name is reported before anything is built.
    let program =
        component.map(|name| read_system(project, &options.machine)?.program_called(name, &[])).transpose()?;
    let (image, machine) = prepare(project, &options.machine, options.exec.as_deref())?;
    let machine = Machine { gdb_port: Some(port), ..machine };
    let words = match component.zip(program) {
        Some((name, program)) => {
            let script = script(project, name, &program, &image.elf, port)?;
            vec!["-q".into(), "-x".into(), relative(project, &script).display().to_string()]
        }
        None => vec!["-ex".into(), format!("'target remote :{port}'"), image.elf.display().to_string()],
    };
    Ok(Session { image, machine, gdb: (project.isa.debugger(), words) })
}

/// Refuses a port on which the emulator could not wait.
fn check_port(port: u16) -> Result<()> {
    if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() {
        bail!(
            "port {port} of this computer is taken, or not ours to take: end the other `./x debug`, or choose another one, \
             as --port {}",
            port.checked_add(1).unwrap_or(GDB_PORT)
        );
    }
    Ok(())
}

/// Writes the script that gdb runs first, for the component or program of this name.
fn script(project: &Project, name: &str, program: &Program, nucleus: &Path, port: u16) -> Result<PathBuf> {
    let programs = build::programs(project, &[program.clone()].into())?;
    let file = programs.file(program)?;
    let constants = elf::constants(&read(file)?)?;
    let text = text(&Reported { name, package: &program.0, file, constants: &constants, nucleus, port }, &project.root);
    let folder = project.target.join(project.isa.folder()).join("debugger");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let script = folder.join(format!("{name}.gdb"));
    write(&script, text.as_bytes())?;
    Ok(script)
}

/// The facts passed to gdb.
struct Reported<'a> {
    name: &'a str,
    package: &'a str,
    file: &'a Path,
    constants: &'a [Constant],
    nucleus: &'a Path,
    port: u16,
}

/// The text of the script; texts in quotes mean the same to gdb and Python as to Rust.
fn text(reported: &Reported, root: &Path) -> String {
    let constants = reported
        .constants
        .iter()
        .map(|Constant { address, place, count }| format!("({address:#x}, {place:#x}, {count:#x})"));
    format!(
        "file {:?}\nadd-symbol-file {:?}\nset breakpoint pending off\n\
         python\nNAME = {:?}\nCRATE = {:?}\nFILE = {:?}\nCONSTANTS = [{}]\nend\n\
         source {}\ntarget remote localhost:{}\n",
        reported.nucleus,
        reported.file,
        reported.name,
        reported.package.replace('-', "_"),
        reported.file,
        constants.collect::<Vec<_>>().join(", "),
        root.join(PROGRAM).display(),
        reported.port
    )
}

/// The path as it is typed in the project's folder.
fn relative<'a>(project: &Project, path: &'a Path) -> &'a Path {
    path.strip_prefix(&project.root).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_refused() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = check_port(port).unwrap_err().to_string();
        assert!(error.starts_with(&format!("port {port} ")) && error.contains("--port "), "{error}");
        drop(taken);
        check_port(port).unwrap();
    }

    #[test]
    fn gdb_learns_what_is_debugged() {
        let constants = [Constant { address: 0x10_0000, place: 0x1000, count: 28767 }];
        let reported = Reported {
            name: "nic",
            package: "virtio-net",
            file: Path::new("/a b/virtio-net"),
            constants: &constants,
            nucleus: Path::new("/nucleus"),
            port: 77,
        };
        let expected = "file \"/nucleus\"\nadd-symbol-file \"/a b/virtio-net\"\nset breakpoint pending off\npython\n\
            NAME = \"nic\"\nCRATE = \"virtio_net\"\nFILE = \"/a b/virtio-net\"\nCONSTANTS = [(0x100000, 0x1000, 0x705f)]\nend\n\
            source /root/xtask/src/debug/program.py\ntarget remote localhost:77\n";
        assert_eq!(text(&reported, Path::new("/root")), expected);
    }
}
