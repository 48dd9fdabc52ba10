//! The shell: reads commands from the console, or runs those of `/etc/exec`.
//!
//! | module | what |
//! |---|---|
//! | [`session`] | variables, current directory, status |
//! | [`terminal`] | the console: lines in, text out |
//! | [`interrupt`] | Ctrl-C |
//! | [`run`] | lists and pipelines |
//! | [`launch`] | from a command to a program's streams and arguments |
//! | [`jobs`] | what runs in the background |
//! | [`builtins`], [`names`] | commands of the shell itself |
//! | [`complete`] | what Tab finds |
//!
//! The language is the crate `shellparse`, the line editor the crate `lineedit`.
//!
//! # At the start
//! If the boot archive has a file `/etc/run`, its commands are run first, once: a shell that is started again does not.
//!
//! # Without a terminal
//! If the boot archive has a file `/etc/exec`, its commands are run and the machine is stopped with the
//! status of the last one. Nothing but their output appears on the serial line.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod builtins;
mod complete;
mod interrupt;
mod jobs;
mod launch;
mod names;
mod run;
mod session;
mod terminal;

use alloc::string::String;

use runtime::stream::FILE_SYSTEM;

use launch::PROC;
use session::Session;

runtime::entry!(main);

/// Commands to run before all others, and what the file is called from then on.
const RUN: &str = "/etc/run";
const HAS_RUN: &str = "/etc/has-run";
/// Commands to run instead of those of a person.
const EXEC: &str = "/etc/exec";
/// What is said at the start.
const GREETING: &str = "/etc/motd";
/// Lines remembered.
const HISTORY: usize = 200;
/// Columns that a serial terminal is taken to have.
const COLUMNS: usize = 80;
/// Bytes that a file with commands or a greeting may have.
const MAX_TEXT: u64 = 64 * 1024;

fn main() -> u8 {
    match read_text(EXEC) {
        Some(script) => exec(&script),
        None => interactive(),
    }
}

fn exec(script: &str) -> u8 {
    let mut session = Session::new(false);
    begin(&mut session);
    note_ready();
    if session.leave.is_none() {
        run::script(&mut session, script);
    }
    let status = session.leave.unwrap_or(session.status);
    stop(status)
}

/// Runs the commands for the start of the system, unless a shell before us did.
fn begin(session: &mut Session) {
    let Some(script) = read_text(RUN) else { return };
    if let Err(error) = FILE_SYSTEM.rename(RUN, HAS_RUN) {
        terminal::say!("shell: {RUN}: {error}");
    }
    run::script(session, &script);
}

/// Notes in the log that from here on commands are taken, and how long it took from reset; `bench` reads it.
fn note_ready() {
    runtime::log!("ready after {} ticks", runtime::arch::ticks());
}

/// Stops the machine when all output is out.
fn stop(status: u64) -> u8 {
    terminal::flush();
    // A status has 7 bits in the emulator; a failure must stay one.
    let status = if status & 0x7f == 0 && status != 0 { 1 } else { status & 0x7f };
    match PROC.stop_machine(status) {
        Ok(()) => 0,
        Err(error) => {
            terminal::say!("shell: stop: {error}");
            1
        }
    }
}

fn interactive() -> u8 {
    if let Err(error) = interrupt::watch() {
        terminal::say!("shell: Ctrl-C will not work: {error}");
    }
    terminal::say!("");
    match read_text(GREETING) {
        Some(greeting) => terminal::write(greeting.as_bytes()),
        None => terminal::say!("help shows the commands. Ctrl-] X leaves the emulator, exit stops the machine."),
    }
    let mut session = Session::new(true);
    begin(&mut session);
    let mut lines = terminal::Lines::new(COLUMNS, HISTORY);
    note_ready();
    loop {
        if let Some(status) = session.leave.take() {
            terminal::say!("The machine stops.");
            stop(status);
        }
        jobs::tell_ended();
        let prompt = alloc::format!("cairn:{}$ ", session.directory);
        let line = match lines.read(&prompt, &session) {
            terminal::Typed::Line(line) => line,
            terminal::Typed::Cancelled => {
                session.status = 130;
                continue;
            }
            terminal::Typed::End => String::from("exit"),
        };
        session.history = lines.history();
        run::script(&mut session, &line);
    }
}

/// A small file as text; `None` if there is none.
fn read_text(path: &str) -> Option<String> {
    use interfaces::file::FileClient;
    use runtime::connection::Direct;
    use runtime::entry::Owned;

    let file = Owned::new(FILE_SYSTEM.open(path, 0).ok()?.into());
    let file = FileClient(Direct(file.entry()));
    let size = file.stat().ok()?.size.min(MAX_TEXT) as usize;
    let mut bytes = alloc::vec![0; size];
    let mut done = 0;
    while done < size {
        let end = size.min(done + 4000);
        match file.read(done as u64, &mut bytes[done..end]) {
            Ok(0) | Err(_) => break,
            Ok(count) => done += count,
        }
    }
    bytes.truncate(done);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
