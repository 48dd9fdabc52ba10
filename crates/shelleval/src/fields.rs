//! Field splitting (POSIX.1-2024, Shell Command Language, 2.6.5): pieces of a word come in, fields come out.
//!
//! A field is kept as a pattern ([`crate::pattern`]), in which quoted characters are escaped: so it is known later which of
//! them were.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::pattern;
use crate::{MAX_TEXT, OVERHEAD};

/// Fields so far.
pub(crate) struct Fields {
    done: Vec<String>,
    current: Option<String>,
    /// Blanks of `IFS` ended the last field: another delimiter right after them is the same one.
    after_blanks: bool,
    /// The separators. `None`: nothing splits, all is one field.
    separators: Option<String>,
    bytes: usize,
}

impl Fields {
    pub(crate) fn new(separators: Option<&str>) -> Self {
        Self {
            done: Vec::new(),
            current: None,
            after_blanks: false,
            separators: separators.map(ToString::to_string),
            bytes: 0,
        }
    }

    pub(crate) fn count(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes > MAX_TEXT {
            return Err(alloc::format!("the words of a command may have {MAX_TEXT} bytes"));
        }
        Ok(())
    }

    fn current(&mut self) -> &mut String {
        self.after_blanks = false;
        self.current.get_or_insert_default()
    }

    /// The end of a field, if one was begun.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        if let Some(field) = self.current.take() {
            self.count(OVERHEAD)?;
            self.done.push(field);
        }
        Ok(())
    }

    /// Between two arguments of `$@`: the next one is another field, unless nothing splits.
    pub(crate) fn next(&mut self) -> Result<(), String> {
        match self.separators {
            Some(_) => self.end(),
            None => self.quoted(" "),
        }
    }

    /// Characters that stand for themselves; even none of them make a field.
    pub(crate) fn quoted(&mut self, text: &str) -> Result<(), String> {
        self.count(text.len())?;
        pattern::push_quoted(self.current(), text);
        Ok(())
    }

    /// Characters that were written without quotes.
    pub(crate) fn literal(&mut self, text: &str) -> Result<(), String> {
        self.count(text.len())?;
        self.current().push_str(text);
        Ok(())
    }

    /// The value of an expansion outside of quotes.
    pub(crate) fn value(&mut self, text: &str) -> Result<(), String> {
        self.count(text.len())?;
        for c in text.chars() {
            let is_separator = self.separators.as_ref().is_some_and(|separators| separators.contains(c));
            if !is_separator {
                let current = self.current();
                if c == '\\' {
                    current.push(c);
                }
                current.push(c);
            } else if matches!(c, ' ' | '\t' | '\n') {
                if self.current.is_some() {
                    self.end()?;
                    self.after_blanks = true;
                }
            } else if self.current.is_some() {
                self.end()?;
            } else if self.after_blanks {
                self.after_blanks = false;
            } else {
                self.quoted("")?;
                self.end()?;
            }
        }
        Ok(())
    }

    /// All fields, as patterns.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, String> {
        self.end()?;
        Ok(self.done)
    }
}
