//! The console: lines in, text out, Ctrl-C.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use abi::rights;
use interface::{Delegate, Failure};
use interfaces::console::{ConsoleClient, ConsoleError, Mode};
use lineedit::{Editor, Outcome};
use runtime::connection::{Connection, Given};
use runtime::entry::Entry;
use runtime::{op, thread};

use crate::session::Session;
use crate::{complete, jobs};

/// The console, by the description: who finds it by its name may only write.
static CONSOLE: ConsoleClient<Connection<Given>> = ConsoleClient(Connection::new(Given("console")));
/// The semaphore that the console raises at Ctrl-C; 0 = none.
static INTERRUPT: AtomicUsize = AtomicUsize::new(0);
/// Ctrl-C was pressed since [`forget_interrupt`].
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Nanoseconds after which a console that was started while a command runs is told of us.
const LOOK: u64 = 500_000_000;

/// Bytes written at once.
const BLOCK: usize = 4000;

/// Writes a line of the shell's own.
macro_rules! say {
    ($($argument:tt)*) => { $crate::terminal::write(::alloc::format!("{}\n", ::core::format_args!($($argument)*)).as_bytes()) };
}
pub(crate) use say;

/// Writes bytes to the console. What cannot be written has nobody to be told to.
pub fn write(bytes: &[u8]) {
    for block in bytes.chunks(BLOCK) {
        if let Err(error) = CONSOLE.write(block) {
            runtime::log!("console: {error}");
            return;
        }
    }
}

/// Waits until all output has left the machine.
pub fn flush() {
    let _ = CONSOLE.flush();
}

/// Starts the thread that ends what runs in the foreground when Ctrl-C is pressed.
pub fn watch_interrupts() -> Result<(), abi::Error> {
    let semaphore = op::semaphore_new(Entry::ACCOUNT, 0)?;
    INTERRUPT.store(semaphore.0, Ordering::Relaxed);
    let watch = move || {
        loop {
            match op::p(semaphore, op::clock() + LOOK) {
                Ok(()) => {
                    INTERRUPTED.store(true, Ordering::Relaxed);
                    jobs::kill_foreground();
                }
                // A console that was started meanwhile knows nothing of us yet.
                Err(abi::Error::Timeout) if jobs::has_foreground() => lend(semaphore),
                Err(abi::Error::Timeout) => {}
                Err(_) => return,
            }
        }
    };
    thread::spawn(watch).map(drop)
}

/// Was Ctrl-C pressed?
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Before commands run: the console works by lines and tells us of Ctrl-C (also if it was restarted meanwhile).
pub fn hand_over() {
    INTERRUPTED.store(false, Ordering::Relaxed);
    let semaphore = INTERRUPT.load(Ordering::Relaxed);
    if semaphore != 0 {
        lend(Entry(semaphore));
    }
    take_back();
}

/// After a program that had the console: if it died while it read, what is typed next is not for it.
pub fn take_back() {
    let _ = CONSOLE.set_mode(Mode::Cooked);
}

/// Has the console give a program its input, which ends with this instance of the console. A program that gets none runs
/// all the same, and cannot read.
pub fn give(domain: Entry, index: usize) {
    let domain = Delegate::entry(domain.0, rights::COPY | rights::WRITE);
    if let Err(error) = CONSOLE.give(domain, index as u64) {
        runtime::log!("console: {error}");
    }
}

/// Gives the console the semaphore that it raises at Ctrl-C.
fn lend(semaphore: Entry) {
    let _ = CONSOLE.set_interrupt_semaphore(Delegate::entry(semaphore.0, rights::COPY | rights::WRITE));
}

/// What a person typed.
pub enum Typed {
    /// A line.
    Line(String),
    /// Ctrl-C.
    Cancelled,
    /// Ctrl-D.
    End,
}

/// The line editor at the console.
pub struct Lines {
    editor: Editor,
}

impl Lines {
    /// For a terminal of so many columns.
    pub fn new(columns: usize, history: usize) -> Self {
        Self { editor: Editor::new(columns, history) }
    }

    /// Lines typed, oldest first.
    pub fn history(&self) -> Vec<String> {
        self.editor.history().lines().map(ToString::to_string).collect()
    }

    /// Reads a line.
    pub fn read(&mut self, prompt: &str, session: &Session) -> Typed {
        let mut output = Vec::new();
        // Before the prompt: what is typed when that is seen is echoed by the editor alone.
        let _ = CONSOLE.set_mode(Mode::Raw);
        self.editor.start(prompt, &mut output);
        write(&output);
        loop {
            // One byte at a time: what is typed ahead of a program belongs to the program.
            let mut byte = [0];
            match CONSOLE.read_raw(&mut byte) {
                Ok(0) | Err(Failure::Refused(ConsoleError::Interrupted)) => continue,
                Ok(_) => {}
                Err(error) => {
                    runtime::log!("console: {error}");
                    let _ = thread::sleep(100_000_000);
                    continue;
                }
            }
            output.clear();
            let outcome = self.editor.feed(byte[0], &mut output, &mut |before| complete::complete(session, before));
            write(&output);
            match outcome {
                None => {}
                Some(Outcome::Line(line)) => return Typed::Line(line),
                Some(Outcome::Cancelled) => return Typed::Cancelled,
                Some(Outcome::End) => return Typed::End,
            }
        }
    }
}
