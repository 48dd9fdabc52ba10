//! Lines typed before, and where Up and Down stand among them.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};

/// A bounded list of lines, oldest first.
pub struct History {
    lines: VecDeque<String>,
    limit: usize,
    /// Index of the line shown, while one is; and the line that was being typed.
    place: Option<(usize, String)>,
}

impl History {
    /// Remembers up to `limit` lines.
    pub fn new(limit: usize) -> Self {
        Self { lines: VecDeque::new(), limit, place: None }
    }

    /// Adds a finished line. Blank lines and repetitions of the line before are not kept.
    pub fn add(&mut self, line: &str) {
        self.place = None;
        if self.limit == 0 || line.trim().is_empty() || self.lines.back().is_some_and(|last| last == line) {
            return;
        }
        if self.lines.len() == self.limit {
            self.lines.pop_front();
        }
        self.lines.push_back(line.to_string());
    }

    /// The line before the one shown; `now` is what stands in the editor, kept when this is the first step.
    pub fn older(&mut self, now: &str) -> Option<String> {
        let index = match &self.place {
            Some((index, _)) => index.checked_sub(1)?,
            None => self.lines.len().checked_sub(1)?,
        };
        match &mut self.place {
            Some((place, _)) => *place = index,
            None => self.place = Some((index, now.to_string())),
        }
        self.lines.get(index).cloned()
    }

    /// The line after the one shown; after the newest, what was being typed.
    pub fn newer(&mut self) -> Option<String> {
        let (index, typed) = self.place.take()?;
        match self.lines.get(index + 1) {
            Some(line) => {
                self.place = Some((index + 1, typed));
                Some(line.clone())
            }
            None => Some(typed),
        }
    }

    /// Forgets where Up and Down stand.
    pub fn leave(&mut self) {
        self.place = None;
    }

    /// The lines, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}
