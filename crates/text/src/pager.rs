//! The display and behaviour of `less`, apart from the terminal: a text that comes piece by piece, keys in, a screen out.
//!
//! A line of the text takes a line of the screen; the rest is seen by going to the right.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::keys::{Key, Move};
use crate::matcher::{Extent, Matcher};
use crate::memory;
use crate::pattern::{Case, Syntax};

/// The text that `h` shows.
const KEYS: &str = "space/b: page, arrows: line, d/u: half, g/G: start/end, /: search, n/N: next, q: leave";

/// The action after a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The screen is drawn again.
    Draw,
    /// It is over.
    Leave,
}

/// Which way a search goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Forward,
    Backward,
}

impl Way {
    fn reversed(self) -> Self {
        if self == Self::Forward { Self::Backward } else { Self::Forward }
    }
}

/// A text on a screen.
pub struct Pager {
    name: String,
    text: Vec<u8>,
    /// Where lines begin.
    starts: Vec<u32>,
    /// Nothing more comes.
    is_whole: bool,
    /// There was no memory for the rest.
    is_cut: bool,
    rows: usize,
    columns: usize,
    top: usize,
    left: usize,
    /// A search that is being typed.
    typed: Option<(Way, String)>,
    sought: Option<(Way, Matcher)>,
    /// A search that goes on when more of the text is there: from this line on.
    seeks: Option<(usize, Way)>,
    /// The end is asked for.
    wants_end: bool,
    message: String,
}

/// Sizes of a screen that are taken.
const LEAST: usize = 2;
const MOST: usize = 500;

impl Pager {
    /// Shows what is called `name`.
    pub fn new(name: &str, rows: usize, columns: usize) -> Self {
        let mut pager = Self {
            name: name.into(),
            text: Vec::new(),
            starts: Vec::new(),
            is_whole: false,
            is_cut: false,
            rows: LEAST,
            columns: LEAST,
            top: 0,
            left: 0,
            typed: None,
            sought: None,
            seeks: None,
            wants_end: false,
            message: String::new(),
        };
        pager.resize(rows, columns);
        pager
    }

    fn resize(&mut self, rows: usize, columns: usize) {
        self.rows = rows.clamp(LEAST, MOST);
        self.columns = columns.clamp(LEAST, MOST);
    }

    /// Lines of the text on the screen.
    fn page(&self) -> usize {
        self.rows - 1
    }

    /// Whether more of the text is needed for what is to be shown.
    pub fn wants_more(&self) -> bool {
        let seeks = self.seeks.is_some() || self.wants_end;
        !self.is_whole && (seeks || self.starts.len() <= self.top.saturating_add(self.page()))
    }

    /// Takes more of the text. Text without memory for it is not shown.
    pub fn append(&mut self, bytes: &[u8]) {
        if self.take(bytes).is_err() {
            self.is_cut = true;
            self.end();
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), memory::NoMemory> {
        let first = memory::place(self.text.len())?;
        memory::place(self.text.len() + bytes.len())?;
        let mut begins = self.text.last().is_none_or(|last| *last == b'\n');
        memory::extend(&mut self.text, bytes)?;
        for (at, byte) in (first..).zip(bytes) {
            if begins {
                memory::push(&mut self.starts, at)?;
            }
            begins = *byte == b'\n';
        }
        Ok(())
    }

    /// Shows this until the next key.
    pub fn say(&mut self, message: &str) {
        self.message = message.into();
    }

    /// The text is over.
    pub fn end(&mut self) {
        self.is_whole = true;
    }

    /// A line of the text, without what ends it.
    fn line(&self, number: usize) -> Option<&[u8]> {
        let start = *self.starts.get(number)? as usize;
        let end = self.starts.get(number + 1).map_or(self.text.len(), |end| *end as usize);
        let line = self.text.get(start..end)?;
        Some(line.strip_suffix(b"\n").unwrap_or(line))
    }

    /// The first line of the last page.
    fn last_top(&self) -> usize {
        self.starts.len().saturating_sub(self.page())
    }

    /// Resumes a jump or a search that waited for more of the text, if it is there.
    pub fn resume(&mut self) {
        if self.is_whole && core::mem::take(&mut self.wants_end) {
            self.top = self.last_top();
        }
        if let Some((from, way)) = self.seeks.take() {
            self.seek(from, way);
        }
        if self.is_whole {
            self.top = self.top.min(self.last_top());
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: Key) -> Next {
        self.message.clear();
        if let Key::Place(rows, columns) = key {
            self.resize(rows.into(), columns.into());
            return Next::Draw;
        }
        if self.typed.is_some() {
            self.type_search(key);
            return Next::Draw;
        }
        let (page, half) = (self.page(), (self.page() / 2).max(1));
        match key {
            Key::Character('q' | 'Q' | '\x03') => return Next::Leave,
            Key::Character(' ' | 'f' | '\x06') | Key::Move(Move::PageDown) => self.forward(page),
            Key::Character('b' | '\x02') | Key::Move(Move::PageUp) => self.backward(page),
            Key::Character('\r' | '\n' | 'j' | 'e') | Key::Move(Move::Down) => self.forward(1),
            Key::Character('k' | 'y') | Key::Move(Move::Up) => self.backward(1),
            Key::Character('d' | '\x04') => self.forward(half),
            Key::Character('u' | '\x15') => self.backward(half),
            Key::Character('g' | '<') | Key::Move(Move::First) => self.top = 0,
            Key::Character('G' | '>') | Key::Move(Move::Last) => self.wants_end = true,
            Key::Move(Move::Left) => self.left = self.left.saturating_sub(self.columns / 2),
            Key::Move(Move::Right) => self.left = self.left.saturating_add(self.columns / 2),
            Key::Character('/') => self.typed = Some((Way::Forward, String::new())),
            Key::Character('?') => self.typed = Some((Way::Backward, String::new())),
            Key::Character('n') => self.seek_again(false),
            Key::Character('N') => self.seek_again(true),
            Key::Character('h') => self.message = KEYS.into(),
            _ => {}
        }
        Next::Draw
    }

    fn forward(&mut self, lines: usize) {
        self.top = self.top.saturating_add(lines);
        if self.is_whole {
            self.top = self.top.min(self.last_top());
        }
    }

    fn backward(&mut self, lines: usize) {
        self.top = self.top.saturating_sub(lines);
    }

    fn type_search(&mut self, key: Key) {
        let Some((way, mut text)) = self.typed.take() else { return };
        match key {
            Key::Character('\r' | '\n') => return self.search(way, &text),
            // Nothing left to erase: no search.
            Key::Character('\x08' | '\x7f') if text.is_empty() => return,
            Key::Character('\x08' | '\x7f') => drop(text.pop()),
            Key::Character('\x15') => text.clear(),
            Key::Character(character) if !character.is_control() && text.len() < 200 => text.push(character),
            _ => {}
        }
        self.typed = Some((way, text));
    }

    fn search(&mut self, way: Way, text: &str) {
        if !text.is_empty() {
            match Matcher::new(&[text], Syntax::Extended, Case::Distinct, Extent::Any) {
                Ok(matcher) => self.sought = Some((way, matcher)),
                Err(cause) => {
                    self.message = cause;
                    return;
                }
            }
        } else if let Some((before, _)) = &mut self.sought {
            *before = way;
        }
        self.seek_again(false);
    }

    fn seek_again(&mut self, reversed: bool) {
        let Some((way, _)) = &self.sought else {
            self.message = "nothing was sought yet".into();
            return;
        };
        let way = if reversed { way.reversed() } else { *way };
        match way {
            Way::Forward => self.seek(self.top + 1, way),
            Way::Backward => self.seek(self.top, way),
        }
    }

    /// Goes to the next line that has it: from this one on, or before it.
    fn seek(&mut self, from: usize, way: Way) {
        let Some((remembered, mut matcher)) = self.sought.take() else { return };
        let mut has = |number: usize| self.line(number).is_some_and(|line| matcher.is_in(line));
        let found = match way {
            Way::Forward => (from..self.starts.len()).find(|number| has(*number)),
            Way::Backward => (0..from).rev().find(|number| has(*number)),
        };
        self.sought = Some((remembered, matcher));
        match found {
            Some(line) => self.top = line,
            // The last line may have come in part.
            None if way == Way::Forward && !self.is_whole => {
                self.seeks = Some((from.max(self.starts.len().saturating_sub(1)), way));
            }
            None => self.message = "not found".into(),
        }
    }

    /// The screen, as bytes for the terminal.
    pub fn draw(&mut self) -> Vec<u8> {
        let mut screen = Vec::from(*b"\x1b[H");
        let mut sought = self.sought.take();
        for number in self.top..self.top + self.page() {
            match self.line(number) {
                Some(line) => self.draw_line(line, sought.as_mut().map(|(_, matcher)| matcher), &mut screen),
                None => screen.push(b'~'),
            }
            screen.extend_from_slice(b"\x1b[K\n");
        }
        self.sought = sought;
        let status = match &self.typed {
            Some((Way::Forward, text)) => format!("/{text}"),
            Some((Way::Backward, text)) => format!("?{text}"),
            None if !self.message.is_empty() => self.message.clone(),
            None => self.place(),
        };
        // The last column stays free: a terminal may go on to the next line there.
        let status: String = status.chars().take(self.columns - 1).collect();
        let (begin, end) = if self.typed.is_some() { ("", "\x1b[K") } else { ("\x1b[7m", "\x1b[0m\x1b[K") };
        screen.extend_from_slice(format!("{begin}{status}{end}").as_bytes());
        screen
    }

    /// Where we are, for people.
    fn place(&self) -> String {
        let last = (self.top + self.page()).min(self.starts.len());
        let first = (self.top + 1).min(last);
        let name = &self.name;
        match (self.is_whole && last == self.starts.len(), self.is_cut) {
            (true, true) => format!("{name} {first}-{last} (there is no memory for more)"),
            (true, false) => format!("{name} {first}-{last} (END)"),
            (false, _) if self.is_whole => format!("{name} {first}-{last}/{}", self.starts.len()),
            (false, _) => format!("{name} {first}-{last}"),
        }
    }

    /// Draws the part of a line that is on the screen; matches are shown in reverse.
    fn draw_line(&self, line: &[u8], sought: Option<&mut Matcher>, screen: &mut Vec<u8>) {
        let mut found = Vec::new();
        if let Some(matcher) = sought {
            let mut from = 0;
            while let Some(part) = matcher.find(line, from) {
                from = part.end.max(part.start + 1);
                found.push(part);
                // More are not seen on a line.
                if found.len() >= MOST {
                    break;
                }
            }
        }
        let (mut column, mut at, mut is_reverse) = (0, 0, false);
        let mut found = found.into_iter().peekable();
        let end = self.left + self.columns - 1;
        let mut cells = Vec::new();
        while at < line.len() && column < end {
            let length = cell(&line[at..], column, &mut cells);
            found.next_if(|part| part.end <= at);
            let reverse = found.peek().is_some_and(|part| part.contains(&at));
            if reverse != is_reverse {
                screen.extend_from_slice(if reverse { b"\x1b[7m" } else { b"\x1b[0m" });
                is_reverse = reverse;
            }
            for shown in &cells {
                if (self.left..end).contains(&column) {
                    screen.extend_from_slice(shown.encode_utf8(&mut [0; 4]).as_bytes());
                }
                column += 1;
            }
            at += length;
        }
        if is_reverse {
            screen.extend_from_slice(b"\x1b[0m");
        }
    }
}

/// Columns between two stops of the tabulator.
const TAB: usize = 8;

/// Shows the first character: `^X` for one that would do something to the terminal, `<XX>` for a byte that is none. Gives how
/// many bytes that is.
pub(crate) fn cell(text: &[u8], column: usize, cells: &mut Vec<char>) -> usize {
    cells.clear();
    let Some(first) = text.first() else { return 1 };
    match *first {
        b'\t' => cells.extend(core::iter::repeat_n(' ', TAB - column % TAB)),
        control @ (0..0x20 | 0x7f) => cells.extend(['^', char::from(control ^ 0x40)]),
        ascii @ 0x20..0x7f => cells.push(char::from(ascii)),
        byte => {
            let part = &text[..text.len().min(4)];
            let valid = match core::str::from_utf8(part) {
                Ok(valid) => valid,
                Err(error) => core::str::from_utf8(&part[..error.valid_up_to()]).unwrap_or_default(),
            };
            match valid.chars().next().filter(|character| !character.is_control()) {
                Some(character) => {
                    cells.push(character);
                    return character.len_utf8();
                }
                None => cells.extend(format!("<{byte:02X}>").chars()),
            }
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::keys::Keys;

    extern crate std;
    use std::string::ToString;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut keys = Keys::default();
        bytes.iter().filter_map(|byte| keys.feed(*byte)).collect()
    }

    /// The visible text, line by line, without escapes that only move or colour.
    fn seen(pager: &mut Pager) -> Vec<String> {
        let screen = String::from_utf8(pager.draw()).expect("a terminal gets characters");
        let mut text = screen.replace("\x1b[7m", "{").replace("\x1b[0m", "}");
        for nothing in ["\x1b[H", "\x1b[K"] {
            text = text.replace(nothing, "");
        }
        text.split('\n').map(ToString::to_string).collect()
    }

    fn pager(text: &str) -> Pager {
        let mut pager = Pager::new("it", 4, 20);
        pager.append(text.as_bytes());
        pager.end();
        pager.resume();
        pager
    }

    fn press(pager: &mut Pager, bytes: &str) -> Vec<String> {
        for key in keys(bytes.as_bytes()) {
            assert_eq!(pager.key(key), Next::Draw);
            pager.resume();
        }
        seen(pager)
    }

    const LINES: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

    #[test]
    fn pages_and_lines() {
        let mut it = pager(LINES);
        assert_eq!(seen(&mut it), ["one", "two", "three", "{it 1-3/7}"]);
        assert_eq!(press(&mut it, " "), ["four", "five", "six", "{it 4-6/7}"]);
        assert_eq!(press(&mut it, " "), ["five", "six", "seven", "{it 5-7 (END)}"]);
        assert_eq!(press(&mut it, "j\x1b[B "), ["five", "six", "seven", "{it 5-7 (END)}"]);
        assert_eq!(press(&mut it, "b\x1b[A")[0], "one");
        assert_eq!(press(&mut it, "\r")[0], "two");
        assert_eq!(press(&mut it, "G")[0], "five");
        assert_eq!(press(&mut it, "g")[0], "one");
        assert_eq!(press(&mut it, "\x1b[30;100R").len(), 30);
        assert_eq!(it.key(Key::Character('q')), Next::Leave);
    }

    #[test]
    fn searches() {
        let mut it = pager(LINES);
        assert_eq!(press(&mut it, "/f"), ["one", "two", "three", "/f"]);
        assert_eq!(press(&mut it, "\r"), ["{f}our", "{f}ive", "six", "{it 4-6/7}"]);
        assert_eq!(press(&mut it, "n")[0], "{f}ive");
        assert_eq!(press(&mut it, "N")[0], "{f}our");
        assert_eq!(press(&mut it, "/nothing\r")[3], "{not found}");
        assert_eq!(press(&mut it, "/(\r")[3], "{unmatched ( or \\(}");
        assert_eq!(press(&mut it, "?t.*e\r"), ["{three}", "four", "five", "{it 3-5/7}"]);
        assert_eq!(press(&mut it, "/x\x7f\x7fg")[0], "one");
        assert_eq!(press(&mut pager(LINES), "n")[3], "{nothing was sought }");
    }

    #[test]
    fn a_text_comes_as_far_as_it_is_needed() {
        let mut it = Pager::new("it", 4, 20);
        let mut blocks = LINES.split_inclusive('\n').enumerate();
        let mut fill = |it: &mut Pager| {
            let mut taken = 0;
            while it.wants_more() {
                match blocks.next() {
                    Some((number, block)) => {
                        it.append(block.as_bytes());
                        taken = number + 1;
                    }
                    None => it.end(),
                }
                it.resume();
            }
            taken
        };
        assert_eq!(fill(&mut it), 4);
        assert_eq!(seen(&mut it)[3], "{it 1-3}");
        for key in "/five\r".chars() {
            it.key(Key::Character(key));
        }
        assert_eq!(fill(&mut it), 7);
        assert_eq!(seen(&mut it), ["{five}", "six", "seven", "{it 5-7 (END)}"]);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let mut it = Pager::new("it", 2, 40);
        it.append(b"a\tb\x1b[2J\x7f\xff\xc3\xbc\xc2\x9b");
        it.end();
        assert_eq!(seen(&mut it)[0], "a       b^[[2J^?<FF>ü<C2><9B>");
        assert_eq!(press(&mut it, "\x1b[C")[0], "ü<C2><9B>".to_string());
        assert_eq!(press(&mut pager(""), " bG")[..2], ["~", "~"]);
    }
}
