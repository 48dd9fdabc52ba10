//! The console: lines in, text out.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::rights;
use idl::{Delegate, Failure};
use lineedit::{Completions, Editor, Outcome};
use protocols::console::{ConsoleClient, ConsoleError, Mode};
use runtime::connection::{Connection, Given, Name, Source};
use runtime::entry::Entry;
use runtime::thread;

/// The console, by the description: a client that finds it by its name may only write.
pub static CONSOLE: ConsoleClient<Connection<Given>> = ConsoleClient(Connection::new(Given("console")));

/// The console by its name. Output goes there: the console takes text written through [`CONSOLE`] for the row of the line editor.
static OUTPUT: ConsoleClient<Connection<Name<'static>>> = ConsoleClient(Connection::named("console"));

/// Bytes written at once.
const BLOCK: usize = 4000;

/// Writes a line of the shell's own.
macro_rules! say {
    ($($argument:tt)*) => { $crate::terminal::write(::alloc::format!("{}\n", ::core::format_args!($($argument)*)).as_bytes()) };
}
pub(crate) use say;

/// Writes bytes to the console. A failure cannot be reported anywhere.
pub fn write(bytes: &[u8]) {
    write_to(&OUTPUT, bytes);
}

/// Writes the row of the line editor.
fn draw(bytes: &[u8]) {
    write_to(&CONSOLE, bytes);
}

fn write_to(console: &ConsoleClient<Connection<impl Source>>, bytes: &[u8]) {
    for block in bytes.chunks(BLOCK) {
        if let Err(error) = console.write(block) {
            runtime::log!("console: {error}");
            return;
        }
    }
}

/// Waits until all output has left the machine.
pub fn flush() {
    let _ = CONSOLE.flush();
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

/// The input that a person typed.
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
    pub fn read(&mut self, prompt: &str, complete: &mut dyn FnMut(&str) -> Completions) -> Typed {
        let mut output = Vec::new();
        // Before the prompt: input typed when it is seen is echoed by the editor alone.
        let _ = CONSOLE.set_mode(Mode::Raw);
        self.editor.start(prompt, &mut output);
        draw(&output);
        loop {
            // One byte at a time: input typed ahead of a program belongs to the program.
            let mut byte = [0];
            match CONSOLE.read_raw(&mut byte) {
                Ok(0) => {
                    output.clear();
                    self.editor.redraw(&mut output);
                    draw(&output);
                    continue;
                }
                Ok(_) => {}
                Err(Failure::Refused(ConsoleError::Interrupted)) => continue,
                Err(error) => {
                    runtime::log!("console: {error}");
                    let _ = thread::sleep(100_000_000);
                    continue;
                }
            }
            output.clear();
            let outcome = self.editor.feed(byte[0], &mut output, complete);
            draw(&output);
            match outcome {
                None => {}
                Some(Outcome::Line(line)) => return Typed::Line(line),
                Some(Outcome::Cancelled) => return Typed::Cancelled,
                Some(Outcome::End) => return Typed::End,
            }
        }
    }
}
