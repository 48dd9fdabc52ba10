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

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The newest line with this text in it among the first `count`: which it is, and the line.
    pub fn find(&self, text: &str, count: usize) -> Option<(usize, &str)> {
        let lines = self.lines.iter().enumerate().take(count).rev();
        lines.map(|(index, line)| (index, line.as_str())).find(|(_, line)| line.contains(text))
    }

    /// A line with the last one in the place of each `!!` that is not in `'` or after `\\`. `None` if there is nothing to do.
    pub fn repeated(&self, line: &str) -> Option<String> {
        let last = self.lines.back()?;
        let mut result = String::new();
        let (mut quoted, mut double, mut found) = (false, false, false);
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            if !quoted && let Some(after) = rest.strip_prefix("!!") {
                result.push_str(last);
                found = true;
                rest = after;
                continue;
            }
            let mut taken = c.len_utf8();
            match c {
                '\'' if !double => quoted = !quoted,
                '"' if !quoted => double = !double,
                '\\' if !quoted => taken += rest[1..].chars().next().map_or(0, char::len_utf8),
                _ => {}
            }
            result.push_str(&rest[..taken]);
            rest = &rest[taken..];
        }
        found.then_some(result)
    }

    /// The lines, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}
