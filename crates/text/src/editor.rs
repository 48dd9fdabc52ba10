//! The display and behaviour of `edit`, apart from terminal and files: keys in, a screen out.
//!
//! A line of the text takes a line of the screen; the screen moves to the right with the cursor. The last two lines of the screen are the
//! status, and a message, a question, or which keys there are.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::document::Document;
use crate::keys::{Key, Move};
use crate::memory::NoMemory;
use crate::pager::cell;

/// Which keys there are.
const KEYS: &str = "^S save  ^Q quit  ^Z undo  ^Y redo  ^F find  ^N next  ^G line  ^K cut line";
/// Sizes of a screen that are taken: lines, columns.
const LEAST: [usize; 2] = [3, 20];
const MOST: [usize; 2] = [200, 400];
/// Characters of what can be typed as an answer.
const ANSWER: usize = 100;

/// The action after a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The screen is drawn again.
    Draw,
    /// The text is saved, if the file is as it was.
    Save,
    /// The text is saved in any case.
    Overwrite,
    /// The terminal is asked how large it is, and the screen drawn again.
    Measure,
    /// It is over.
    Leave,
}

/// The question being asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    Find,
    Line,
    Leave,
    Overwrite,
}

/// A text on a screen.
pub struct Editor {
    name: String,
    document: Document,
    cursor: usize,
    /// The column that the cursor goes back to on longer lines.
    column: Option<usize>,
    /// Where the first line on the screen begins.
    top: usize,
    left: usize,
    size: [usize; 2],
    question: Option<(Question, String)>,
    sought: String,
    message: String,
    /// It is over once the text is saved.
    leaves: bool,
    /// Has room for all that is drawn.
    screen: Vec<u8>,
}

impl Editor {
    /// Shows a text that is called `name`.
    pub fn new(name: &str, document: Document, size: [usize; 2]) -> Result<Self, NoMemory> {
        let mut editor = Self {
            name: name.into(),
            document,
            cursor: 0,
            column: None,
            top: 0,
            left: 0,
            size: LEAST,
            question: None,
            sought: String::new(),
            message: String::new(),
            leaves: false,
            screen: Vec::new(),
        };
        editor.resize(size)?;
        Ok(editor)
    }

    fn resize(&mut self, [lines, columns]: [usize; 2]) -> Result<(), NoMemory> {
        let size = [lines.clamp(LEAST[0], MOST[0]), columns.clamp(LEAST[1], MOST[1])];
        // Characters of up to four bytes, and what moves and colours.
        self.screen.clear();
        self.screen.try_reserve_exact((size[0] + 1) * (4 * size[1] + 20)).map_err(|_| NoMemory)?;
        self.size = size;
        Ok(())
    }

    /// The text.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Shows this until the next key.
    pub fn say(&mut self, message: String) {
        self.message = message;
        self.leaves = false;
    }

    /// The file is not what it was (`how`): asks whether it is overwritten.
    pub fn ask_to_overwrite(&mut self, how: &str) {
        self.message = format!("the file {how}: save all the same? (y/n)");
        self.question = Some((Question::Overwrite, String::new()));
    }

    /// The text was saved.
    pub fn saved(&mut self) -> Next {
        self.document.set_saved();
        let count = self.document.len();
        self.message = format!("saved, {count} byte{}", if count == 1 { "" } else { "s" });
        if self.leaves { Next::Leave } else { Next::Draw }
    }

    /// Takes a key.
    pub fn key(&mut self, key: Key) -> Next {
        if let Key::Place(lines, columns) = key {
            if self.resize([lines.into(), columns.into()]).is_err() {
                self.say(format!("{NoMemory}"));
            }
            return Next::Draw;
        }
        self.message.clear();
        if let Some((question, answer)) = self.question.take() {
            return self.answer(question, answer, key);
        }
        self.command(key).unwrap_or_else(|refused| {
            self.say(format!("{refused}"));
            Next::Draw
        })
    }

    fn command(&mut self, key: Key) -> Result<Next, NoMemory> {
        let document = &mut self.document;
        match key {
            Key::Move(way) => self.go(way),
            Key::Delete | Key::Character('\x04') => {
                let (start, end) = (self.cursor, document.next(self.cursor));
                self.remove(start, end)?;
            }
            Key::Character('\x08' | '\x7f') => {
                let (start, end) = (document.previous(self.cursor), self.cursor);
                self.remove(start, end)?;
            }
            Key::Character('\r' | '\n') => self.insert("\n")?,
            Key::Character('\x0b') => {
                let (start, end) = (document.line_start(self.cursor), document.line_end(self.cursor));
                let end = document.next(end);
                document.close();
                self.remove(start, end)?;
                self.document.close();
            }
            Key::Character('\x1a') => match document.undo()? {
                Some(place) => self.stand(place),
                None => self.message = "nothing to undo".into(),
            },
            Key::Character('\x19') => match document.redo()? {
                Some(place) => self.stand(place),
                None => self.message = "nothing to redo".into(),
            },
            Key::Character('\x06') => self.question = Some((Question::Find, String::new())),
            Key::Character('\x07') => self.question = Some((Question::Line, String::new())),
            Key::Character('\x0e') => self.find(),
            Key::Character('\x0c') => return Ok(Next::Measure),
            Key::Character('\x13') => return Ok(Next::Save),
            Key::Character('\x11') if !document.is_changed() => return Ok(Next::Leave),
            Key::Character('\x11') => {
                self.message = "save before leaving? (y/n, other keys stay)".into();
                self.question = Some((Question::Leave, String::new()));
            }
            Key::Character('\t') => self.insert("\t")?,
            Key::Character(control) if control.is_control() => {
                let letter = char::from_u32(u32::from(control) ^ 0x40).unwrap_or('?');
                self.message = format!("^{letter} means nothing here: {KEYS}");
            }
            Key::Character(character) => self.insert(character.encode_utf8(&mut [0; 4]))?,
            Key::Unknown | Key::Place(..) => self.message = format!("this key means nothing here: {KEYS}"),
        }
        Ok(Next::Draw)
    }

    fn answer(&mut self, question: Question, mut answer: String, key: Key) -> Next {
        match (question, key) {
            (Question::Leave, Key::Character('y' | 'Y')) => {
                self.leaves = true;
                return Next::Save;
            }
            (Question::Leave, Key::Character('n' | 'N')) => return Next::Leave,
            (Question::Overwrite, Key::Character('y' | 'Y')) => return Next::Overwrite,
            (Question::Leave | Question::Overwrite, _) => {
                self.say("not saved".into());
                return Next::Draw;
            }
            (Question::Find, Key::Character('\r' | '\n')) => {
                if !answer.is_empty() {
                    self.sought = answer;
                }
                self.find();
                return Next::Draw;
            }
            (Question::Line, Key::Character('\r' | '\n')) => {
                match answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1)) {
                    Some(number) => self.stand(self.document.line(number)),
                    None => self.message = format!("{answer}: not the number of a line"),
                }
                return Next::Draw;
            }
            (_, Key::Character('\x08' | '\x7f')) if answer.pop().is_some() => {}
            (_, Key::Character(character)) if !character.is_control() && answer.len() < ANSWER => {
                answer.push(character)
            }
            (_, Key::Character(character)) if !character.is_control() => {}
            // Any other key takes the question back.
            _ => return Next::Draw,
        }
        self.question = Some((question, answer));
        Next::Draw
    }

    /// Goes somewhere; text typed there is undone by itself.
    fn stand(&mut self, place: usize) {
        self.cursor = place;
        self.column = None;
        self.document.close();
    }

    fn insert(&mut self, text: &str) -> Result<(), NoMemory> {
        self.document.replace(self.cursor, 0, text.as_bytes())?;
        self.cursor += text.len();
        self.column = None;
        if text == "\n" {
            self.document.close();
        }
        Ok(())
    }

    fn remove(&mut self, start: usize, end: usize) -> Result<(), NoMemory> {
        if start < end {
            self.document.replace(start, end - start, b"")?;
        }
        self.cursor = start;
        self.column = None;
        Ok(())
    }

    fn find(&mut self) {
        if self.sought.is_empty() {
            self.message = "nothing was sought yet".into();
            return;
        }
        match self.document.find(self.sought.as_bytes(), self.document.next(self.cursor)) {
            Some(place) => {
                if place <= self.cursor {
                    self.message = "found from the start on".into();
                }
                self.stand(place);
            }
            None => self.message = format!("{}: not found", self.sought),
        }
    }

    fn go(&mut self, way: Move) {
        let (document, cursor) = (&self.document, self.cursor);
        let page = self.size[0] - 2;
        match way {
            Move::Left => self.stand(document.previous(cursor)),
            Move::Right => self.stand(document.next(cursor)),
            Move::First => self.stand(document.line_start(cursor)),
            Move::Last => self.stand(document.line_end(cursor)),
            Move::Up => self.vertical(1, previous_line),
            Move::Down => self.vertical(1, next_line),
            Move::PageUp => self.vertical(page, previous_line),
            Move::PageDown => self.vertical(page, next_line),
        }
    }

    /// Goes so many lines up or down, to the column where it was.
    fn vertical(&mut self, count: usize, step: fn(&Document, usize) -> Option<usize>) {
        let document = &self.document;
        let mut start = document.line_start(self.cursor);
        let column = self.column.unwrap_or_else(|| self.column_of(start, self.cursor));
        for _ in 0..count {
            start = step(document, start).unwrap_or(start);
        }
        let end = document.line_end(start);
        let (mut at, mut here, mut cells) = (start, 0, Vec::new());
        while at < end {
            let (character, length) = document.character(at);
            cell(&character[..length], here, &mut cells);
            here += cells.len();
            if here > column {
                break;
            }
            at += length;
        }
        self.stand(at);
        self.column = Some(column);
    }

    /// The column of a place on the line that begins at `start`.
    fn column_of(&self, start: usize, place: usize) -> usize {
        let (mut at, mut column, mut cells) = (start, 0, Vec::new());
        while at < place {
            let (character, length) = self.document.character(at);
            cell(&character[..length], column, &mut cells);
            column += cells.len();
            at += length;
        }
        column
    }

    /// Moves the screen so that it shows the cursor.
    fn follow(&mut self, column: usize) {
        let page = self.size[0] - 2;
        self.top = self.document.line_start(self.top);
        if self.cursor < self.top {
            self.top = self.document.line_start(self.cursor);
        }
        let below = self.document.lines_before(self.cursor) - self.document.lines_before(self.top);
        for _ in page..=below {
            self.top = next_line(&self.document, self.top).unwrap_or(self.top);
        }
        let columns = self.size[1];
        if column < self.left || column >= self.left + columns - 1 {
            self.left = column.saturating_sub(columns / 2);
        }
    }

    /// The bytes that make the terminal show it.
    pub fn draw(&mut self) -> &[u8] {
        let start = self.document.line_start(self.cursor);
        let column = self.column_of(start, self.cursor);
        self.follow(column);
        let [lines, columns] = self.size;
        let mut screen = core::mem::take(&mut self.screen);
        screen.clear();
        screen.extend_from_slice(b"\x1b[H");
        let mut place = Some(self.top);
        for _ in 0..lines - 2 {
            match place {
                Some(at) => self.draw_line(at, &mut screen),
                None => screen.push(b'~'),
            }
            screen.extend_from_slice(b"\x1b[K\n");
            place = place.and_then(|at| next_line(&self.document, at));
        }
        let number = self.document.lines_before(self.cursor);
        let all = self.document.lines_before(self.document.len()) + 1;
        let changed = if self.document.is_changed() { " (changed)" } else { "" };
        let status = format!("line {} of {all}, column {}{changed}  {}", number + 1, column + 1, self.name);
        screen.extend_from_slice(b"\x1b[7m");
        show(&status, columns - 1, &mut screen);
        screen.extend_from_slice(b"\x1b[K\x1b[0m\n");
        let row = number - self.document.lines_before(self.top) + 1;
        let mut cursor = [row, column - self.left + 1];
        match &self.question {
            Some((question @ (Question::Find | Question::Line), answer)) => {
                let name = if *question == Question::Find { "find: " } else { "line: " };
                show(name, columns - 1, &mut screen);
                // The end of what is typed.
                let room = columns - 1 - name.len();
                let skipped = answer.chars().count().saturating_sub(room);
                let seen = answer.chars().skip(skipped);
                seen.clone().for_each(|character| put(character, &mut screen));
                cursor = [lines, name.len() + seen.count() + 1];
            }
            _ if self.message.is_empty() => show(KEYS, columns - 1, &mut screen),
            _ => show(&self.message, columns - 1, &mut screen),
        }
        screen.extend_from_slice(format!("\x1b[K\x1b[{};{}H", cursor[0], cursor[1]).as_bytes());
        self.screen = screen;
        &self.screen
    }

    /// A line, as far as it is on the screen.
    fn draw_line(&self, start: usize, screen: &mut Vec<u8>) {
        let seen = self.left..self.left + self.size[1] - 1;
        let (mut at, mut column, mut cells) = (start, 0, Vec::new());
        while column < seen.end && !matches!(self.document.byte(at), None | Some(b'\n')) {
            let (character, length) = self.document.character(at);
            cell(&character[..length], column, &mut cells);
            for shown in &cells {
                if seen.contains(&column) {
                    put(*shown, screen);
                }
                column += 1;
            }
            at += length;
        }
    }
}

fn previous_line(document: &Document, start: usize) -> Option<usize> {
    start.checked_sub(1).map(|end| document.line_start(end))
}

fn next_line(document: &Document, start: usize) -> Option<usize> {
    let end = document.line_end(start);
    (end < document.len()).then_some(end + 1)
}

fn put(character: char, screen: &mut Vec<u8>) {
    screen.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// The start of a text; control characters are shown as `?`.
fn show(text: &str, columns: usize, screen: &mut Vec<u8>) {
    text.chars().take(columns).for_each(|character| put(if character.is_control() { '?' } else { character }, screen));
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::keys::Keys;
    use crate::memory;

    extern crate std;
    use proptest::prelude::*;
    use std::string::ToString;

    fn editor(text: &str) -> Editor {
        Editor::new("it", Document::new(text.as_bytes().to_vec()).unwrap(), [6, 30]).unwrap()
    }

    fn text(it: &Editor) -> String {
        String::from_utf8(it.document().parts().concat()).unwrap()
    }

    fn press(it: &mut Editor, bytes: &str) -> Next {
        let mut keys = Keys::default();
        let pressed: Vec<Key> = bytes.bytes().filter_map(|byte| keys.feed(byte)).collect();
        pressed.into_iter().map(|key| it.key(key)).last().unwrap_or(Next::Draw)
    }

    /// The visible text, line by line, and where the cursor stands.
    fn seen(it: &mut Editor) -> (Vec<String>, String) {
        let mut screen = String::from_utf8(it.draw().to_vec()).unwrap();
        for nothing in ["\x1b[H", "\x1b[K", "\x1b[7m", "\x1b[0m"] {
            screen = screen.replace(nothing, "");
        }
        let (lines, cursor) = screen.rsplit_once("\x1b[").unwrap();
        (lines.split('\n').map(ToString::to_string).collect(), cursor.to_string())
    }

    fn message(it: &mut Editor) -> String {
        seen(it).0[5].clone()
    }

    #[test]
    fn text_is_typed_moved_in_and_removed() {
        let mut it = editor("one\ntwo");
        assert_eq!(seen(&mut it).0[..5], ["one", "two", "~", "~", "line 1 of 2, column 1  it"]);
        press(&mut it, "a\t\u{fc}\r\x1b[B\x1b[F!\x1b[H\x1b[3~");
        assert_eq!(text(&it), "a\tü\none\nwo!");
        assert_eq!(seen(&mut it).0[..5], ["a       ü", "one", "wo!", "~", "line 3 of 3, column 1 (change"]);
        // Up and down keep the column.
        press(&mut it, "\x1b[A\x1b[A\x1b[F\x1b[B");
        assert_eq!(seen(&mut it).1, "2;4H");
        press(&mut it, "\x1b[A");
        assert_eq!(seen(&mut it).1, "1;10H");
        press(&mut it, "\x0b\x7f");
        assert_eq!(text(&it), "one\nwo!");
    }

    #[test]
    fn long_documents_and_lines_scroll() {
        let mut it = editor("1\n2\n3\n4\n5\n6\n7\n8\n");
        press(&mut it, "\x1b[6~");
        assert_eq!(seen(&mut it).0[..4], ["2", "3", "4", "5"]);
        press(&mut it, "\x1b[6~\x1b[6~");
        assert_eq!(seen(&mut it).0[..5], ["6", "7", "8", "", "line 9 of 9, column 1  it"]);
        press(&mut it, "\x1b[5~");
        assert_eq!(seen(&mut it).0[..4], ["5", "6", "7", "8"]);
        let mut it = editor(&"0123456789".repeat(5));
        press(&mut it, "\x1b[F");
        assert_eq!(
            seen(&mut it),
            (
                ["567890123456789", "~", "~", "~", "line 1 of 1, column 51  it", &KEYS[..29]]
                    .map(String::from)
                    .to_vec(),
                "1;16H".into()
            )
        );
        press(&mut it, "\x1b[9;40R");
        assert_eq!(seen(&mut it).0.len(), 9);
    }

    #[test]
    fn undo_and_redo() {
        let mut it = editor("");
        press(&mut it, "ab\x1b[Dc\x1a");
        assert_eq!(text(&it), "ab");
        press(&mut it, "\x1a");
        assert_eq!(text(&it), "");
        press(&mut it, "\x1a");
        assert_eq!(message(&mut it), "nothing to undo");
        press(&mut it, "\x19\x19");
        assert_eq!(text(&it), "acb");
        press(&mut it, "\x19");
        assert_eq!(message(&mut it), "nothing to redo");
    }

    #[test]
    fn finds_and_goes_to_lines() {
        let mut it = editor("an apple\na pear\nan egg\n");
        press(&mut it, "\x0e");
        assert_eq!(message(&mut it), "nothing was sought yet");
        press(&mut it, "\x06anx\x7f");
        assert_eq!(
            seen(&mut it),
            (
                ["an apple", "a pear", "an egg", "", "line 1 of 4, column 1  it", "find: an"]
                    .map(String::from)
                    .to_vec(),
                "6;9H".into()
            )
        );
        press(&mut it, "\r");
        assert_eq!(seen(&mut it).1, "3;1H");
        press(&mut it, "\x0e");
        assert_eq!((message(&mut it), seen(&mut it).1), ("found from the start on".into(), "1;1H".into()));
        press(&mut it, "\x06none\r");
        assert_eq!(message(&mut it), "none: not found");
        press(&mut it, "\x072\r");
        assert_eq!(seen(&mut it).1, "2;1H");
        press(&mut it, "\x0799\r");
        assert_eq!(seen(&mut it).1, "4;1H");
        press(&mut it, "\x070\r");
        assert_eq!(message(&mut it), "0: not the number of a line");
        press(&mut it, "\x061\x1b[A");
        assert_eq!(message(&mut it), KEYS[..29]);
    }

    #[test]
    fn leaving_and_saving() {
        let mut it = editor("");
        assert_eq!(press(&mut it, "\x11"), Next::Leave);
        assert_eq!(press(&mut it, "a\x11"), Next::Draw);
        assert_eq!(message(&mut it), "save before leaving? (y/n, ot");
        assert_eq!(press(&mut it, "x"), Next::Draw);
        assert_eq!((message(&mut it), text(&it)), ("not saved".into(), "a".into()));
        assert_eq!(press(&mut it, "\x11n"), Next::Leave);
        assert_eq!(press(&mut it, "\x11y"), Next::Save);
        it.ask_to_overwrite("was changed");
        assert_eq!(message(&mut it), "the file was changed: save al");
        assert_eq!(press(&mut it, "y"), Next::Overwrite);
        assert_eq!(it.saved(), Next::Leave);
        // A save that fails, or is not wanted, does not leave.
        press(&mut it, "b\x11y");
        it.say("not saved: no room".into());
        press(&mut it, "\x13");
        assert_eq!(it.saved(), Next::Draw);
        assert_eq!(message(&mut it), "saved, 2 bytes");
        assert_eq!(press(&mut it, "\x11"), Next::Leave);
    }

    #[test]
    fn keys_without_a_meaning_say_so() {
        let mut it = editor("");
        press(&mut it, "\x1b[15~");
        assert!(message(&mut it).starts_with("this key means nothing here:"));
        press(&mut it, "\x02");
        assert!(message(&mut it).starts_with("^B means nothing here:"));
        assert_eq!(text(&it), "");
        assert_eq!(memory::NoMemory.to_string(), "there is no memory for so much");
    }

    proptest! {
        #[test]
        fn any_keys_leave_a_text_and_a_whole_screen(first in "[aü\t\n\u{9b}]{0,60}", typed in "([ab€\t\r\u{1}-\u{1f}\u{7f}]|\u{1b}\\[[A-H]|\u{1b}\\[[3-6]~|\u{1b}\\[[0-9]{1,3};[0-9]{1,3}R){0,60}") {
            let mut it = editor(&first);
            let mut keys = Keys::default();
            for key in typed.bytes().filter_map(|byte| keys.feed(byte)) {
                it.key(key);
                let lines = it.size[0];
                prop_assert!(text(&it).is_char_boundary(it.cursor));
                let capacity = it.screen.capacity();
                prop_assert_eq!(it.draw().iter().filter(|byte| **byte == b'\n').count(), lines - 1);
                prop_assert_eq!(it.screen.capacity(), capacity, "there is room for the whole screen");
                prop_assert!(it.screen.iter().all(|byte| !matches!(byte, 0..=9 | 11..=26 | 28..=31 | 127)));
            }
        }
    }
}
