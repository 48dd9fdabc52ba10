//! Tables of TOML with the lines of their values, and the errors of reading them.

use super::{At, Problem};
use std::borrow::Cow;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A value with its place in the text.
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// The reader's state besides the value: the text, for lines, and the problems found so far.
pub(super) struct Reader<'t> {
    pub text: &'t str,
    pub problems: Vec<Problem>,
}

impl Reader<'_> {
    /// The line, from 1, of a byte of the text.
    pub fn line(&self, byte: usize) -> usize {
        let before = &self.text.as_bytes()[..byte.min(self.text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    pub fn problem(&mut self, line: usize, cause: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(Problem { line, cause: cause.into(), remedy: remedy.into() });
    }

    /// `value` is not what `key` takes.
    pub fn wrong_type(&mut self, value: &Value<'_>, key: &str, wanted: &str) {
        let line = self.line(value.span().start);
        let found = match value.get_ref() {
            DeValue::String(text) => format!("the text \"{text}\""),
            DeValue::Integer(number) => format!("the number {number}"),
            DeValue::Float(number) => format!("the number {number}"),
            DeValue::Boolean(value) => format!("{value}"),
            DeValue::Datetime(_) => "a date".into(),
            DeValue::Array(_) => "a list".into(),
            DeValue::Table(_) => "a table".into(),
        };
        self.problem(line, format!("`{key}` is {found}"), format!("write {wanted}"));
    }

    pub fn text(&mut self, value: &Value<'_>, key: &str, wanted: &str) -> Option<At<String>> {
        match value.get_ref() {
            DeValue::String(text) => Some(At { value: text.to_string(), line: self.line(value.span().start) }),
            _ => {
                self.wrong_type(value, key, wanted);
                None
            }
        }
    }

    /// A whole number from `least` to `most`.
    pub fn number(&mut self, value: &Value<'_>, key: &str, least: u64, most: u64) -> Option<At<u64>> {
        let line = self.line(value.span().start);
        let DeValue::Integer(number) = value.get_ref() else {
            self.wrong_type(value, key, &format!("a number from {least} to {most}"));
            return None;
        };
        match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) if (least..=most).contains(&number) => Some(At { value: number, line }),
            _ => {
                let remedy = format!("write a number from {least} to {most}");
                self.problem(line, format!("`{key}` is {number}, which is out of range"), remedy);
                None
            }
        }
    }

    pub fn boolean(&mut self, value: &Value<'_>, key: &str) -> Option<bool> {
        match value.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => {
                self.wrong_type(value, key, "true or false");
                None
            }
        }
    }

    pub fn array<'v, 't>(&mut self, value: &'v Value<'t>, key: &str, wanted: &str) -> Option<&'v DeArray<'t>> {
        match value.get_ref() {
            DeValue::Array(array) => Some(array),
            _ => {
                self.wrong_type(value, key, wanted);
                None
            }
        }
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&mut self, value: &Value<'_>, key: &str, choices: &[(&str, T)]) -> Option<At<T>> {
        let words = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>();
        let wanted = format!("one of {}", words.join(", "));
        let text = self.text(value, key, &wanted)?;
        match choices.iter().find(|(word, _)| *word == text.value) {
            Some(&(_, value)) => Some(At { value, line: text.line }),
            None => {
                self.problem(text.line, format!("`{key}` is \"{}\"", text.value), format!("write {wanted}"));
                None
            }
        }
    }

    /// Frames of a size such as `"4M"`; always at least one.
    pub fn frames(&mut self, value: &Value<'_>, key: &str) -> Option<At<u64>> {
        let line = self.line(value.span().start);
        let wanted = "a size such as \"512K\" or \"4M\", a multiple of 4K";
        match value.get_ref() {
            DeValue::String(text) => match size_in_frames(text) {
                Some(frames) if (1..1 << 31).contains(&frames) => return Some(At { value: frames, line }),
                _ => {
                    let cause = format!("`{key}` is \"{text}\", which is no amount of memory");
                    self.problem(line, cause, format!("write {wanted}"));
                }
            },
            DeValue::Integer(number) => {
                let cause = format!("`{key}` is {number}, without a unit");
                self.problem(
                    line,
                    cause,
                    format!("write \"{number}M\" for mebibytes, or another size such as \"512K\""),
                );
            }
            _ => self.wrong_type(value, key, wanted),
        }
        None
    }
}

/// Frames of a size such as `64M`; none if it is not one, or not a multiple of a frame.
pub fn size_in_frames(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let bytes = digits.parse::<u64>().ok()?.checked_mul(match unit {
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    })?;
    (bytes % 4096 == 0).then_some(bytes / 4096)
}

/// A table whose keys are taken one after the other; those left over are unknown.
pub(super) struct Keys<'v, 't> {
    table: &'v DeTable<'t>,
    /// The name of the table in errors.
    what: String,
    pub line: usize,
    known: Vec<&'static str>,
}

impl<'v, 't> Keys<'v, 't> {
    pub fn new(table: &'v DeTable<'t>, what: impl Into<String>, line: usize) -> Self {
        Self { table, what: what.into(), line, known: Vec::new() }
    }

    pub fn of(reader: &mut Reader<'_>, value: &'v Value<'t>, what: &str) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(table) => {
                let first = table.keys().map(|key| key.span().start).min();
                let line = reader.line(first.unwrap_or(value.span().start));
                Some(Self::new(table, what, line))
            }
            _ => {
                reader.wrong_type(value, what, "a table");
                None
            }
        }
    }

    pub fn take(&mut self, key: &'static str) -> Option<&'v Value<'t>> {
        self.known.push(key);
        self.table.get(key)
    }

    pub fn require(&mut self, reader: &mut Reader<'_>, key: &'static str, remedy: &str) -> Option<&'v Value<'t>> {
        let value = self.take(key);
        if value.is_none() {
            reader.problem(self.line, self.missing(key), remedy);
        }
        value
    }

    fn missing(&self, key: &str) -> String {
        format!("{} has no `{key}`", self.what)
    }

    /// Reports keys that nobody took.
    pub fn finish(self, reader: &mut Reader<'_>) {
        for key in self.table.keys() {
            let name: &Cow<'_, str> = key.get_ref();
            if self.known.contains(&name.as_ref()) {
                continue;
            }
            let remedy = match nearest(name, &self.known) {
                Some(meant) => {
                    // That it is missing is the same mistake.
                    let missing = self.missing(meant);
                    reader.problems.retain(|problem| problem.line != self.line || problem.cause != missing);
                    format!("did you mean `{meant}`?")
                }
                None => format!("known here are {}", self.known.join(", ")),
            };
            let line = reader.line(key.span().start);
            reader.problem(line, format!("{} has no key `{name}`", self.what), remedy);
        }
    }
}

/// By how many letters two words differ: those left out, added or changed (Levenshtein's distance).
pub fn distance(word: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in word.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

/// The known word that differs from `word` by at most two letters.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .copied()
        .map(|other| (distance(word, other), other))
        .filter(|(far, _)| *far <= 2)
        .min()
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size_in_frames("64M"), Some(16384));
        assert_eq!(size_in_frames("8K"), Some(2));
        for bad in ["", "64", "M", "6K", "64m", "64MB", "-4M", "99999999999999999999G", "18446744073709551615G"] {
            assert_eq!(size_in_frames(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_nearest_word() {
        assert_eq!(nearest("prioritty", &["priority", "portals"]), Some("priority"));
        assert_eq!(nearest("acount", &["priority", "account"]), Some("account"));
        assert_eq!(nearest("colour", &["priority", "account"]), None);
    }
}
