//! A line editor for a raw serial terminal, as a state machine.
//!
//! Bytes come in one at a time ([`Editor::feed`]), bytes to be written go out, and now and then a
//! line is finished ([`Outcome`]). Nothing blocks and nothing is assumed about how the input is cut:
//! a UTF-8 character or an escape sequence may arrive split anywhere.
//!
//! # Layout
//! [`keys`] turns bytes into keys, [`history`] remembers lines, [`screen`] draws. The editor itself
//! holds the characters of the line and a cursor, an index from 0 to their number.
//!
//! # What is on the screen
//! A line occupies one row of the terminal. If it is wider than the terminal, a window of it is
//! shown that follows the cursor. The cursor of the terminal stands where the next character goes.
//! The row is drawn again from its first column whenever something else than appending at the end
//! happens, so that noise on the line is repaired by the next key (or by Ctrl-L).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod history;
pub mod keys;
pub mod screen;

use alloc::string::String;
use alloc::vec::Vec;

use history::History;
use keys::{Decoder, Key};

/// Characters that a line may have; more are refused with a bell.
pub const MAX_CHARACTERS: usize = 2000;

/// The effect of a byte, apart from output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The line is finished.
    Line(String),
    /// Ctrl-C: the line was thrown away.
    Cancelled,
    /// Ctrl-D at an empty line.
    End,
}

/// The candidates for Tab.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Completions {
    /// Characters before the cursor that the candidates replace.
    pub replace: usize,
    /// Candidates, each complete: what comes after the last typed character of it included.
    pub candidates: Vec<String>,
}

/// A line being edited, and the lines before it.
pub struct Editor {
    prompt: String,
    columns: usize,
    line: Vec<char>,
    cursor: usize,
    first_shown: usize,
    history: History,
    decoder: Decoder,
    after_return: bool,
    tabs: usize,
    cut: Vec<char>,
    search: Option<Search>,
}

/// A search backwards in the history: the line shown is the one found.
struct Search {
    text: String,
    /// Which line of the history was found last; their number if none was yet.
    found: usize,
    /// The prompt and the line from before.
    prompt: String,
    line: Vec<char>,
}

/// Characters that are searched for.
const MAX_SEARCH: usize = 60;

impl Editor {
    /// An editor for a terminal of `columns` (at least 20 are assumed), that remembers up to `history_lines`.
    pub fn new(columns: usize, history_lines: usize) -> Self {
        Self {
            prompt: String::new(),
            columns: columns.max(20),
            line: Vec::new(),
            cursor: 0,
            first_shown: 0,
            history: History::new(history_lines),
            decoder: Decoder::default(),
            after_return: false,
            tabs: 0,
            cut: Vec::new(),
            search: None,
        }
    }

    /// Begins a new line with this prompt. Prompts wider than half the terminal lose their beginning.
    pub fn start(&mut self, prompt: &str, output: &mut Vec<u8>) {
        self.prompt = screen::shortened(prompt, self.columns / 2);
        self.search = None;
        self.clear_line();
        self.redraw(output);
    }

    /// Draws the line again in the current row, for use after something else was written.
    pub fn redraw(&mut self, output: &mut Vec<u8>) {
        let room = self.room();
        self.first_shown = screen::window(&self.line, self.cursor, self.first_shown, room);
        screen::draw(&self.prompt, &self.line[self.first_shown..], self.cursor - self.first_shown, room, output);
    }

    /// The line so far.
    pub fn text(&self) -> String {
        self.line.iter().collect()
    }

    /// Where the next character goes: characters before the cursor.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// First character shown and how many columns there are for the line: the values that tests compare with.
    pub fn shown(&self) -> (usize, usize) {
        (self.first_shown, self.room())
    }

    /// The prompt as it is drawn.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// The lines remembered.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Takes one byte from the terminal. Its output is appended to `output`. `complete`
    /// is asked when Tab is pressed, with the line up to the cursor.
    pub fn feed(
        &mut self,
        byte: u8,
        output: &mut Vec<u8>,
        complete: &mut dyn FnMut(&str) -> Completions,
    ) -> Option<Outcome> {
        // A terminal may send Return as CR, LF or both: the LF after a CR is not a second Return.
        let line_feed_of_return = self.after_return && byte == b'\n';
        self.after_return = byte == b'\r';
        if line_feed_of_return {
            return None;
        }
        let key = self.decoder.feed(byte)?;
        self.tabs = if key == Key::Tab { self.tabs + 1 } else { 0 };
        self.press(key, output, complete)
    }

    fn press(
        &mut self,
        key: Key,
        output: &mut Vec<u8>,
        complete: &mut dyn FnMut(&str) -> Completions,
    ) -> Option<Outcome> {
        if self.searches(key, output) {
            return None;
        }
        match key {
            Key::Character(character) => self.insert(character, output),
            Key::Return => return self.finish(output),
            Key::Interrupt => {
                output.extend_from_slice(b"^C\r\n");
                self.clear_line();
                self.history.leave();
                return Some(Outcome::Cancelled);
            }
            Key::EndOrDelete if self.line.is_empty() => {
                output.extend_from_slice(b"\r\n");
                return Some(Outcome::End);
            }
            Key::EndOrDelete | Key::Delete => self.remove(self.cursor, self.cursor + 1, false, output),
            Key::Backspace => self.remove(self.cursor.saturating_sub(1), self.cursor, false, output),
            Key::Left => self.move_to(self.cursor.saturating_sub(1), output),
            Key::Right => self.move_to(self.cursor + 1, output),
            Key::WordLeft => self.move_to(self.word_start(), output),
            Key::WordRight => self.move_to(self.word_end(), output),
            Key::Home => self.move_to(0, output),
            Key::End => self.move_to(self.line.len(), output),
            Key::CutToEnd => self.remove(self.cursor, self.line.len(), true, output),
            Key::CutToStart => self.remove(0, self.cursor, true, output),
            Key::CutWord => self.remove(self.word_start(), self.cursor, true, output),
            Key::Paste => self.paste(output),
            Key::Up => self.recall(true, output),
            Key::Down => self.recall(false, output),
            Key::ClearScreen => {
                output.extend_from_slice(b"\x1b[H\x1b[2J");
                self.redraw(output);
            }
            Key::Tab => self.complete(output, complete),
            Key::Search => self.search(output),
            Key::Abandon | Key::Unknown => {}
        }
        None
    }

    fn room(&self) -> usize {
        // One column stays free for the cursor, so that the terminal never wraps, and two for `^C`.
        self.columns - screen::text_width(&self.prompt) - 3
    }

    fn clear_line(&mut self) {
        self.line.clear();
        self.cursor = 0;
        self.first_shown = 0;
    }

    /// The line is done; with `!!` in it, it is shown as it will run.
    fn finish(&mut self, output: &mut Vec<u8>) -> Option<Outcome> {
        let mut text = self.text();
        if let Some(repeated) = self.history.repeated(&text) {
            if repeated.chars().count() > MAX_CHARACTERS {
                output.push(7);
                return None;
            }
            text = repeated;
            self.line = text.chars().collect();
            self.cursor = self.line.len();
            self.redraw(output);
        }
        output.extend_from_slice(b"\r\n");
        self.history.add(&text);
        self.clear_line();
        Some(Outcome::Line(text))
    }

    /// Begins a search.
    fn search(&mut self, output: &mut Vec<u8>) {
        let line = self.line.clone();
        self.search =
            Some(Search { text: String::new(), found: self.history.len(), prompt: self.prompt.clone(), line });
        self.show_search(output);
    }

    /// Draws the search for its prompt.
    fn show_search(&mut self, output: &mut Vec<u8>) {
        if let Some(search) = &self.search {
            self.prompt = screen::shortened(&alloc::format!("(find: {}) ", search.text), self.columns / 2);
        }
        self.redraw(output);
    }

    /// Handles a key while a search is under way. False if it is to do what it does without one.
    fn searches(&mut self, key: Key, output: &mut Vec<u8>) -> bool {
        let Some(search) = &mut self.search else { return false };
        let count = match key {
            Key::Character(c) if search.text.chars().count() < MAX_SEARCH => {
                search.text.push(c);
                search.found + 1
            }
            Key::Search => search.found,
            Key::Backspace => {
                search.text.pop();
                search.found = self.history.len();
                search.found
            }
            Key::Unknown | Key::Character(_) => {
                output.push(7);
                return true;
            }
            key => {
                let Some(search) = self.search.take() else { return false };
                self.prompt = search.prompt;
                if key == Key::Abandon {
                    self.line = search.line;
                }
                self.cursor = self.line.len();
                self.redraw(output);
                return key == Key::Abandon;
            }
        };
        match self.history.find(&search.text, count) {
            Some((found, line)) if !search.text.is_empty() => {
                search.found = found;
                self.line = line.chars().collect();
                self.cursor = self.line.len();
                self.first_shown = 0;
            }
            _ => output.push(7),
        }
        self.show_search(output);
        true
    }

    fn insert(&mut self, character: char, output: &mut Vec<u8>) {
        if self.line.len() >= MAX_CHARACTERS {
            output.push(7);
            return;
        }
        let appended = self.cursor == self.line.len();
        self.line.insert(self.cursor, character);
        self.cursor += 1;
        let fits = screen::width(&self.line[self.first_shown..]) <= self.room();
        if appended && fits {
            output.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            self.redraw(output);
        }
    }

    fn remove(&mut self, from: usize, to: usize, keep: bool, output: &mut Vec<u8>) {
        if from >= to || to > self.line.len() {
            return;
        }
        let removed: Vec<char> = self.line.drain(from..to).collect();
        if keep {
            self.cut = removed;
        }
        self.cursor = from;
        self.redraw(output);
    }

    fn paste(&mut self, output: &mut Vec<u8>) {
        if self.line.len() + self.cut.len() > MAX_CHARACTERS {
            output.push(7);
            return;
        }
        self.line.splice(self.cursor..self.cursor, self.cut.iter().copied());
        self.cursor += self.cut.len();
        self.redraw(output);
    }

    fn move_to(&mut self, position: usize, output: &mut Vec<u8>) {
        if position <= self.line.len() && position != self.cursor {
            self.cursor = position;
            self.redraw(output);
        }
    }

    /// Start of the word before the cursor.
    fn word_start(&self) -> usize {
        let before = &self.line[..self.cursor];
        let end = before.iter().rposition(|c| !c.is_whitespace()).map_or(0, |last| last + 1);
        before[..end].iter().rposition(|c| c.is_whitespace()).map_or(0, |space| space + 1)
    }

    /// End of the word after the cursor.
    fn word_end(&self) -> usize {
        let length = self.line.len();
        let start = (self.cursor..length).find(|&i| !self.line[i].is_whitespace()).unwrap_or(length);
        (start..length).find(|&i| self.line[i].is_whitespace()).unwrap_or(length)
    }

    fn recall(&mut self, older: bool, output: &mut Vec<u8>) {
        let now = self.text();
        let found = if older { self.history.older(&now) } else { self.history.newer() };
        match found {
            Some(text) => {
                self.line = text.chars().collect();
                self.cursor = self.line.len();
                self.first_shown = 0;
                self.redraw(output);
            }
            None => output.push(7),
        }
    }

    fn complete(&mut self, output: &mut Vec<u8>, complete: &mut dyn FnMut(&str) -> Completions) {
        let before: String = self.line[..self.cursor].iter().collect();
        let Completions { replace, candidates } = complete(&before);
        let replace = replace.min(self.cursor);
        let Some(first) = candidates.first() else {
            output.push(7);
            return;
        };
        let mut common: Vec<char> = first.chars().filter(|c| !c.is_control()).collect();
        for candidate in &candidates[1..] {
            let same = common.iter().zip(candidate.chars()).take_while(|(a, b)| **a == *b).count();
            common.truncate(same);
        }
        let longer = common.len() > replace || candidates.len() == 1;
        if longer && self.line.len() - replace + common.len() <= MAX_CHARACTERS {
            let start = self.cursor - replace;
            self.cursor = start + common.len();
            self.line.splice(start..start + replace, common);
            self.redraw(output);
        } else if self.tabs > 1 && candidates.len() > 1 {
            output.extend_from_slice(b"\r\n");
            screen::columns(&candidates, self.columns, output);
            self.redraw(output);
        } else {
            output.push(7);
        }
    }
}
