//! The shell: reads commands from the console, or runs those of `/etc/exec`.
//!
//! | module | what |
//! |---|---|
//! | [`world`] | Cairn as the language's world: programs, files, streams |
//! | [`stream`] | where streams lead, pipes |
//! | [`launch`] | from words to a program |
//! | [`terminal`] | the console: lines in, text out |
//! | [`interrupt`] | Ctrl-C |
//! | [`jobs`], [`threads`] | what runs in the background, threads |
//! | [`commands`], [`names`] | commands of this shell that are not of the language |
//! | [`compartments`] | compartments by their names |
//! | [`explain`] | why data may not go somewhere |
//! | [`complete`] | what Tab finds |
//! | [`files`] | texts in files |
//!
//! The language is the crates `shellparse` and `shelleval`, the line editor the crate `lineedit`.
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

mod commands;
mod compartments;
mod complete;
mod explain;
mod files;
mod interrupt;
mod jobs;
mod launch;
mod names;
mod stream;
mod terminal;
mod threads;
mod world;

use alloc::string::String;
use alloc::sync::Arc;

use runtime::stream::FILE_SYSTEM;
use shelleval::{Machine, Shell, State};

use jobs::Work;
use launch::PROC;
use stream::Stream;
use world::Cairn;

runtime::entry!(main);

/// Commands to run before all others, and what the file is called from then on.
const RUN: &str = "/etc/run";
const HAS_RUN: &str = "/etc/has-run";
/// The prefix of messages about them: their place in the system description.
const OF_RUN: &str = "[boot] run";
/// Commands to run instead of those of a person.
const EXEC: &str = "/etc/exec";
/// The file that is printed at the start.
const GREETING: &str = "/etc/motd";
/// Lines remembered.
const HISTORY: usize = 200;
/// Columns that a serial terminal is taken to have.
const COLUMNS: usize = 80;
/// The prompt for a further line of a command.
const MORE: &str = "> ";
/// Bytes from which on a command is taken for finished.
const MAX_COMMAND: usize = 16 * 1024;
/// Bytes of the heap that are there to finish what is under way when there is no more memory.
const KEPT: usize = 64 * 1024;

fn main() -> u8 {
    if !runtime::server::keep_memory(KEPT) {
        runtime::log!("no memory is kept for what is under way");
    }
    match files::text(EXEC) {
        Ok(script) => exec(&script),
        Err(_) => interactive(),
    }
}

fn new_state() -> State {
    State::new("shell", &[("PATH", "/bin"), ("HOME", "/home")])
}

/// Runs a text in the foreground.
fn run(state: State, text: &str, interactive: bool, history: &Arc<[String]>) -> State {
    if interactive {
        interrupt::hand_over();
    }
    let running = Work::running();
    jobs::set_foreground(Some(running.clone()));
    let input = if interactive { Stream::Terminal } else { Stream::Null };
    let world = Cairn::new(running, interactive, history.clone());
    let mut machine = Machine::new(world, state, [input, Stream::Console, Stream::Console]);
    machine.text(text);
    jobs::set_foreground(None);
    machine.state
}

fn exec(script: &str) -> u8 {
    let history = Arc::from([]);
    let mut state = begin(new_state(), false);
    note_ready();
    if state.leave.is_none() {
        state = run(state, script, false, &history);
    }
    let status = stop(state.leave.unwrap_or(state.status));
    if status != 0 {
        // The next shell would run all again.
        terminal::say!("shell: the machine goes on: a shell that may stop it has the portal `proc`");
        runtime::server::park();
    }
    status
}

/// Runs the commands for the start of the system, unless a shell before us did.
fn begin(mut state: State, interactive: bool) -> State {
    let Ok(script) = files::text(RUN) else { return state };
    if let Err(error) = FILE_SYSTEM.rename(RUN, HAS_RUN) {
        terminal::say!("shell: {RUN}: {error}");
    }
    let name = core::mem::replace(&mut state.name, String::from(OF_RUN));
    let mut state = run(state, &script, interactive, &Arc::from([]));
    state.name = name;
    // Programs that run since the start are no jobs of the user: `wait` would not end.
    state.shell = Shell::new();
    state
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
    match files::text(GREETING) {
        Ok(greeting) => terminal::write(greeting.as_bytes()),
        Err(_) => terminal::say!("help shows the commands. Ctrl-] X leaves the emulator, exit stops the machine."),
    }
    let mut state = begin(new_state(), true);
    let mut lines = terminal::Lines::new(COLUMNS, HISTORY);
    note_ready();
    loop {
        if let Some(status) = state.leave.take() {
            terminal::say!("The machine stops.");
            stop(status);
        }
        jobs::report_ended();
        match command(&mut lines, &state) {
            Some(text) => state = run(state, &text, true, &lines.history().into()),
            None => state.status = 130,
        }
    }
}

/// Reads a command: lines, until nothing of it is missing. `None`: Ctrl-C.
fn command(lines: &mut terminal::Lines, state: &State) -> Option<String> {
    let mut text = String::new();
    let mut prompt = alloc::format!("cairn:{}$ ", state.directory);
    loop {
        let line = match lines.read(&prompt, &mut |before| complete::complete(state, before)) {
            terminal::Typed::Line(line) => line,
            terminal::Typed::Cancelled => return None,
            terminal::Typed::End if text.is_empty() => return Some("exit".into()),
            terminal::Typed::End => return Some(text),
        };
        text.push_str(&line);
        match shellparse::parse(&text, &|| true) {
            Err(error) if error.is_incomplete() && text.len() < MAX_COMMAND => {}
            _ => return Some(text),
        }
        text.push('\n');
        prompt = MORE.into();
    }
}
