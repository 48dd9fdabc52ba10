//! Lists and pipelines.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::NEVER;
use abi::info::status;
use interface::Failure;
use interfaces::process::ProcessError;
use runtime::child::Child;
use runtime::entry::Owned;
use runtime::pipes::{self, PIPES};
use runtime::stream::Stream;
use runtime::sync::Mutex;
use runtime::{Entry, op, thread};
use shellparse::{Command, Connector, List, Pipeline, parse};

use crate::jobs::Running;
use crate::launch::{self, Launch, Prepared};
use crate::session::Session;
use crate::terminal::say;
use crate::{builtins, interrupt, jobs, terminal};

/// Status of a command that cannot be understood.
const MISUNDERSTOOD: u64 = 2;
/// How long a wait for several programs rests that has no semaphore, in nanoseconds.
const PAUSE: u64 = 20_000_000;
/// Status of what was ended by Ctrl-C.
const INTERRUPTED: u64 = 130;
/// Status of what was killed.
const KILLED: u64 = 137;
/// Status of what died of an exception or a page fault.
const DIED: u64 = 139;
/// Status of a program whose output nobody reads.
const CLOSED: u64 = 141;

/// Runs lines of commands.
pub fn script(session: &mut Session, text: &str) {
    let lists = match parse(text) {
        Ok(lists) => lists,
        Err(error) => {
            say!("shell: {error}");
            session.status = MISUNDERSTOOD;
            return;
        }
    };
    if session.interactive && !lists.is_empty() {
        interrupt::hand_over();
    }
    for parsed in lists {
        if parsed.background {
            let title = String::from(parsed.text(text));
            background(session, parsed, title);
            continue;
        }
        let running = Running::new(Mutex::new(Vec::new()));
        jobs::set_foreground(Some(running.clone()));
        list(session, &parsed, &running);
        jobs::set_foreground(None);
        if session.leave.is_some() {
            return;
        }
        if session.interactive && interrupt::interrupted() {
            session.status = INTERRUPTED;
            return;
        }
    }
}

/// Runs a list in a thread of its own, with a copy of the session.
fn background(session: &mut Session, list: List, title: String) {
    let mut copy = session.clone();
    let interactive = core::mem::replace(&mut copy.interactive, false);
    copy.background = true;
    match jobs::start(title, move |running| {
        self::list(&mut copy, &list, running);
        copy.leave.unwrap_or(copy.status)
    }) {
        Ok(number) => {
            session.status = 0;
            if interactive {
                say!("[{number}]");
            }
        }
        Err(error) => {
            say!("shell: no background job: {error}");
            session.status = 1;
        }
    }
}

fn list(session: &mut Session, list: &List, running: &Running) {
    pipeline(session, &list.first, running);
    for (connector, next) in &list.rest {
        let goes_on = session.leave.is_none() && !(session.interactive && interrupt::interrupted());
        if goes_on && (*connector == Connector::And) == (session.status == 0) {
            pipeline(session, next, running);
        }
    }
}

/// Runs the commands of a pipeline at the same time; the status is that of the last one.
fn pipeline(session: &mut Session, pipeline: &Pipeline, running: &Running) {
    let mut pipes = Vec::new();
    for _ in 1..pipeline.commands.len() {
        match PIPES.create() {
            Ok(pipe) => pipes.push(pipe),
            Err(error) => {
                say!("shell: pipe: {error}");
                pipes.into_iter().for_each(close);
                session.status = 1;
                return;
            }
        }
    }
    let alone = pipeline.commands.len() == 1;
    let mut started = Vec::new();
    // What built-in commands have to say to the next command: written when that runs.
    let mut outputs = Vec::new();
    for (index, command) in pipeline.commands.iter().enumerate() {
        let input = index.checked_sub(1).map(|before| pipes[before]);
        let output = pipes.get(index).copied();
        session.status = match start(session, command, input, output, alone) {
            Ok(Started::Program(child, name)) => {
                let child = Arc::new(child);
                running.lock().push(child.clone());
                started.push(Program { index, child, name });
                continue;
            }
            Ok(Started::Done(status, text)) => {
                outputs.push((output, text));
                status
            }
            Err(status) => {
                outputs.push((output, String::new()));
                status
            }
        };
        if let Some(pipe) = input {
            let _ = PIPES.close_read(pipe);
        }
    }
    for (pipe, text) in outputs {
        if let Some(pipe) = pipe {
            feed(pipe, text.as_bytes());
            let _ = PIPES.close_write(pipe);
        }
    }
    let last = pipeline.commands.len() - 1;
    let had_console = session.interactive && !started.is_empty();
    each_end(started, |program, ended| {
        running.lock().retain(|running| !Arc::ptr_eq(running, &program.child));
        let read = program.index.checked_sub(1).and_then(|before| pipes.get(before));
        read.map(|pipe| PIPES.close_read(*pipe));
        pipes.get(program.index).map(|pipe| PIPES.close_write(*pipe));
        let status = tell(ended, &program.name, session.interactive);
        if program.index == last {
            session.status = status;
        }
    });
    if had_console {
        terminal::take_back();
    }
}

fn close(pipe: u64) {
    let _ = PIPES.close_read(pipe);
    let _ = PIPES.close_write(pipe);
}

fn feed(pipe: u64, bytes: &[u8]) {
    if let Ok(end) = pipes::end(0, pipe) {
        let _ = Stream::entry(end.entry()).write_all(bytes);
    }
}

/// A program of a pipeline.
struct Program {
    /// Its place there.
    index: usize,
    child: Arc<Child>,
    name: String,
}

type Ended = Result<u64, Failure<ProcessError>>;

/// Waits for the end of all, and does something at each.
fn each_end(mut programs: Vec<Program>, mut work: impl FnMut(&Program, Ended)) {
    let semaphore = match &programs[..] {
        [] => return,
        [one] => return work(one, one.child.wait()),
        _ => op::semaphore_new(Entry::ACCOUNT, 0).map(Owned::new).ok(),
    };
    let semaphore =
        semaphore.filter(|semaphore| programs.iter().all(|program| program.child.notify(semaphore.entry()).is_ok()));
    while !programs.is_empty() {
        // Without a semaphore they are asked again and again.
        let _ = match &semaphore {
            Some(semaphore) => op::p(semaphore.entry(), NEVER),
            None => thread::sleep(PAUSE),
        };
        programs.retain(|program| match program.child.ended().transpose() {
            None => true,
            Some(ended) => {
                work(program, ended);
                false
            }
        });
    }
}

enum Started {
    /// A program runs.
    Program(Child, String),
    /// A command of the shell itself: its status, and what it says to a pipe.
    Done(u64, String),
}

/// Starts a command. `Err` = status of one that could not be started; it was said why.
fn start(
    session: &mut Session,
    command: &Command,
    input: Option<u64>,
    output: Option<u64>,
    alone: bool,
) -> Result<Started, u64> {
    let Prepared { words, streams } = launch::prepare(session, command, input, output)?;
    if words.is_empty() {
        return Ok(Started::Done(0, String::new()));
    }
    if let Some(done) = builtins::run(session, &words, alone) {
        if output.is_none() || streams.redirected_output {
            streams.write(&done.text);
            return Ok(Started::Done(done.status, String::new()));
        }
        return Ok(Started::Done(done.status, done.text));
    }
    let (prefixes, words) = launch::prefixes(&words).map_err(|cause| {
        say!("shell: {cause}");
        MISUNDERSTOOD
    })?;
    let Some(name) = words.first() else { return Ok(Started::Done(0, String::new())) };
    let launch = Launch {
        words,
        streams: &streams,
        environment: &session.environment(),
        cpus: prefixes.cpus,
        may_use_kept: !session.background,
        allowed: prefixes.allowed,
        pipes: (input.unwrap_or(0), output.unwrap_or(0)),
        interactive: session.interactive,
    };
    match launch::spawn(session, &launch) {
        Ok(child) => Ok(Started::Program(child, name.clone())),
        Err(Failure::Refused(ProcessError::NotFound)) => {
            say!("shell: {name}: no such command or program (help lists them)");
            Err(127)
        }
        Err(error) => {
            say!("shell: {name}: {error}");
            Err(126)
        }
    }
}

/// Tells what a program died of, if it did not end by itself; gives its status.
fn tell(ended: Ended, name: &str, interactive: bool) -> u64 {
    let ended = match ended {
        Ok(status) => status,
        Err(error) => {
            say!("shell: {name}: {error}");
            return 1;
        }
    };
    match ended {
        CLOSED => CLOSED,
        0..=255 => ended,
        status::KILLED.. if ended < status::EXCEPTION => {
            if !(interactive && interrupt::interrupted()) {
                say!("shell: {name}: killed");
            }
            KILLED
        }
        _ => {
            say!("shell: {name}: died: {}", cause(ended));
            DIED
        }
    }
}

/// What a status word means, for people.
pub fn cause(ended: u64) -> String {
    match ended {
        0..=255 => alloc::format!("exit {ended}"),
        status::EXCEPTION..status::PAGE_FAULT => {
            let vector = ended - status::EXCEPTION;
            match runtime::arch::exception(vector) {
                Some(text) => text.into(),
                None => alloc::format!("exception {vector}"),
            }
        }
        status::PAGE_FAULT => "page fault: nothing is mapped there, or not with that right".into(),
        status::STACK_OVERFLOW => "stack overflow".into(),
        status::NO_CALLER => "it returned, and nobody had called".into(),
        ended if (status::KILLED..status::EXCEPTION).contains(&ended) => "killed".into(),
        ended => alloc::format!("cause {ended:#x}"),
    }
}
