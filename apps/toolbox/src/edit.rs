//! `edit`: a text, changed on the terminal.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use runtime::idl::Failure;
use runtime::protocols::file::{EXCLUSIVE, EXECUTABLE, FileError, Kind, Stat};
use runtime::stream::FILE_SYSTEM;
use text::call::{Call, Exit};
use text::document::Document;
use text::editor::{Editor, Next};
use text::keys::{ASK_SIZE, Keys};
use tool::files::{self, File};
use tool::terminal::Terminal;

use crate::system::Cairn;

/// Its name.
pub const NAME: &str = "edit";

/// The text of `--help`.
const HELP: &str = "\
usage: edit FILE

Changes a text on the terminal; a file that is not there is made when the text
is saved. Arrows, Home, End, PageUp and PageDown move, Backspace and Delete
remove.

  Ctrl-S, Ctrl-Q      saves, leaves
  Ctrl-Z, Ctrl-Y      undoes, does it again
  Ctrl-F, Ctrl-N      finds a text, finds it again
  Ctrl-G              goes to the line of a number
  Ctrl-K              removes the line
  Ctrl-L              asks the terminal again how large it is
  Ctrl-C              ends the program; what was not saved is lost
";

/// Lines and columns of a terminal that does not say how large it is.
const USUAL: [usize; 2] = [24, 80];
/// Names that a new text may have until it takes the place of the old one.
const ATTEMPTS: usize = 100;

/// The program.
pub fn main(words: &[&str]) -> u8 {
    let call = Call::new(NAME, HELP, 1, words, &Cairn);
    let outcome = if words.first() == Some(&"--help") { call.print(HELP).map(|()| 0) } else { run(&call) };
    outcome.unwrap_or_else(|Exit(status)| status)
}

fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (_, files) = call.options("")?;
    let [name] = files[..] else {
        return Err(call.wrong(if files.is_empty() { "FILE is missing" } else { "too many arguments" }));
    };
    let Some(terminal) = Terminal::open() else { return Err(call.fail("standard output", "not a terminal")) };
    let place = Place::look(name).map_err(|cause| call.fail(name, cause))?;
    let mut bytes = Vec::new();
    if place.known.is_some() {
        match call.whole_file(&place.path, &mut bytes)? {
            0 => {}
            status => return Err(Exit(status)),
        }
    }
    let document = Document::new(bytes).map_err(|cause| call.fail(name, cause))?;
    let editor = Editor::new(name, document, USUAL).map_err(|cause| call.fail(name, cause))?;
    converse(call, &terminal, editor, place)
}

fn converse(call: &Call<'_>, terminal: &Terminal, mut editor: Editor, mut place: Place) -> Result<u8, Exit> {
    let mut keys = Keys::default();
    call.write(ASK_SIZE)?;
    loop {
        call.write(editor.draw())?;
        call.flush()?;
        let typed = terminal.read().map_err(|cause| gone(call, &editor, &place, &cause))?;
        for key in typed.iter().filter_map(|byte| keys.feed(*byte)) {
            let next = match editor.key(key) {
                Next::Save => match place.differs() {
                    Ok(None) => place.save(&mut editor),
                    Ok(Some(how)) => {
                        editor.ask_to_overwrite(how);
                        Next::Draw
                    }
                    Err(cause) => {
                        editor.say(format!("not saved: {cause}"));
                        Next::Draw
                    }
                },
                Next::Overwrite => place.save(&mut editor),
                next => next,
            };
            match next {
                Next::Leave => {
                    call.print("\x1b[999H\r\x1b[K")?;
                    return call.flush().map(|()| 0);
                }
                Next::Measure => call.write(ASK_SIZE)?,
                _ => {}
            }
        }
    }
}

/// The terminal is gone: unsaved text goes to a file beside the other one.
fn gone(call: &Call<'_>, editor: &Editor, place: &Place, cause: &str) -> Exit {
    if editor.document().is_changed() {
        let beside = format!("{}.saved", place.path);
        match write(&beside, editor.document(), 0) {
            Ok(()) => drop(call.fail(&beside, "has what was not saved")),
            Err(cause) => drop(call.fail(&beside, cause)),
        }
    }
    call.fail("terminal", cause)
}

/// Where the text stands, and what is known of the file there.
struct Place {
    path: String,
    known: Option<Stat>,
}

impl Place {
    fn look(name: &str) -> Result<Self, String> {
        let path = files::absolute(name);
        let known = stat(&path)?;
        match &known {
            Some(stat) if stat.kind == Kind::Directory => Err("is a directory".to_string()),
            _ => Ok(Self { path, known }),
        }
    }

    /// The change of the file since, if there was one.
    fn differs(&self) -> Result<Option<&'static str>, String> {
        Ok(match (&self.known, stat(&self.path)?) {
            (None, Some(_)) => Some("was made by somebody else"),
            (Some(_), None) => Some("was removed"),
            (Some(known), Some(now)) if (known.size, known.modified) != (now.size, now.modified) => Some("was changed"),
            _ => None,
        })
    }

    fn save(&mut self, editor: &mut Editor) -> Next {
        let executable = self.known.as_ref().is_some_and(|known| known.executable);
        let outcome = write(&self.path, editor.document(), if executable { EXECUTABLE } else { 0 });
        match outcome.and_then(|()| stat(&self.path)) {
            Ok(known) => {
                self.known = known;
                editor.saved()
            }
            Err(cause) => {
                editor.say(format!("not saved: {cause}"));
                Next::Draw
            }
        }
    }
}

fn stat(path: &str) -> Result<Option<Stat>, String> {
    match files::stat(path) {
        Ok(stat) => Ok(Some(stat)),
        Err(Failure::Refused(FileError::NotFound)) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Writes a new file, which then takes the place of the old one: there is always one of them, whole.
fn write(path: &str, document: &Document, flags: u64) -> Result<(), String> {
    let directory = path.strip_suffix(files::last(path)).unwrap_or("/");
    for attempt in 0..ATTEMPTS {
        let new = files::join(directory, &format!(".edit-{attempt}"));
        let file = match File::create(&new, EXCLUSIVE | flags) {
            Err(Failure::Refused(FileError::Exists)) => continue,
            file => file.map_err(|error| error.to_string())?,
        };
        let [first, second] = document.parts();
        let written = file.write(0, first).and_then(|()| file.write(first.len() as u64, second));
        return written.and_then(|()| FILE_SYSTEM.rename(&new, path)).map_err(|error| {
            // It is of no use; that it may stay is no further error.
            let _ = FILE_SYSTEM.remove(&new);
            error.to_string()
        });
    }
    Err(format!("there are .edit-0 to .edit-{} in {directory}: remove them", ATTEMPTS - 1))
}
