//! From words to fields: parameters, `$(…)`, arithmetic, splitting, patterns of file names.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use shellparse::{Alternative, Body, Change, Name, Part, Word};

use crate::fields::Fields;
use crate::machine::{Frame, Machine};
use crate::world::World;
use crate::{MAX_TEXT, OVERHEAD, arithmetic, pattern};

/// The field separators if `IFS` is not set.
const SEPARATORS: &str = " \t\n";

impl<W: World> Machine<W> {
    /// Separators between fields.
    pub(crate) fn separators(&self) -> String {
        self.state.variable("IFS").unwrap_or(SEPARATORS).into()
    }

    /// The fields of words, with the names of files that patterns match.
    pub(crate) fn fields(&mut self, words: &[Word]) -> Result<Vec<String>, String> {
        let mut fields = Fields::new(Some(&self.separators()));
        for word in words {
            self.pieces(&word.parts, false, &mut fields)?;
            fields.end()?;
        }
        let mut texts = Vec::new();
        let mut bytes = 0;
        for field in fields.finish()? {
            let mut found = Vec::new();
            if pattern::is_special(&field) {
                found = self.files(&field)?;
            }
            if found.is_empty() {
                found.push(pattern::unquoted(&field));
            }
            bytes += found.iter().map(|text| text.len() + OVERHEAD).sum::<usize>();
            if bytes > MAX_TEXT {
                return Err(alloc::format!("the words of a command may have {MAX_TEXT} bytes"));
            }
            texts.append(&mut found);
        }
        Ok(texts)
    }

    /// A word as one text, as in an assignment.
    pub(crate) fn joined(&mut self, word: &Word) -> Result<String, String> {
        self.pattern(word).map(|pattern| pattern::unquoted(&pattern))
    }

    /// A word as a pattern.
    pub(crate) fn pattern(&mut self, word: &Word) -> Result<String, String> {
        let mut fields = Fields::new(None);
        self.pieces(&word.parts, false, &mut fields)?;
        Ok(fields.finish()?.pop().unwrap_or_default())
    }

    /// `is_value`: characters without quotes are split like values, as in `${NAME-a b}`.
    fn pieces(&mut self, parts: &[Part], is_value: bool, fields: &mut Fields) -> Result<(), String> {
        for part in parts {
            match part {
                Part::Literal(text) if is_value => fields.value(text)?,
                Part::Literal(text) => fields.literal(text)?,
                Part::Quoted(text) => fields.quoted(text)?,
                Part::Home => fields.quoted(self.state.variable("HOME").unwrap_or("~"))?,
                Part::Parameter { quoted, name, change } => self.parameter(*quoted, name, change, fields)?,
                Part::Command { quoted, body } => {
                    let text = self.substitute(body)?;
                    place(&text, *quoted, fields)?;
                }
                Part::Arithmetic { quoted, expression } => {
                    let text = self.joined(expression)?;
                    let variable = |name: &str| self.state.variable(name).map(ToString::to_string);
                    let value = arithmetic::evaluate(&text, &variable)?;
                    place(&alloc::format!("{value}"), *quoted, fields)?;
                }
            }
        }
        Ok(())
    }

    /// The value of a parameter that is one text.
    fn value(&self, name: &Name) -> Option<String> {
        match name {
            Name::Variable(name) => self.state.variable(name).map(ToString::to_string),
            Name::Argument(0) => Some(self.state.name.clone()),
            Name::Argument(number) => self.state.arguments.get(number - 1).cloned(),
            Name::Status => Some(alloc::format!("{}", self.state.status)),
            Name::Count => Some(alloc::format!("{}", self.state.arguments.len())),
            Name::Each | Name::All if self.state.arguments.is_empty() => None,
            Name::Each => Some(self.state.arguments.join(" ")),
            Name::All => {
                let separators = self.separators();
                let first = separators.chars().next().map(String::from).unwrap_or_default();
                Some(self.state.arguments.join(&first))
            }
        }
    }

    fn parameter(&mut self, quoted: bool, name: &Name, change: &Change, fields: &mut Fields) -> Result<(), String> {
        let value = self.value(name);
        match change {
            Change::Default { what, or_empty, word } => {
                let is_there = value.as_ref().is_some_and(|value| !*or_empty || !value.is_empty());
                match (what, is_there) {
                    (Alternative::Instead, true) | (Alternative::Use, false) => {
                        if quoted {
                            fields.quoted("")?;
                        }
                        return self.pieces(&word.parts, !quoted, fields);
                    }
                    (Alternative::Instead, false) => return place("", quoted, fields),
                    (Alternative::Assign, false) => {
                        let Name::Variable(name) = name else {
                            return Err(alloc::format!("{}: cannot be assigned to", shown(name)));
                        };
                        let text = self.joined(word)?;
                        self.state.set(name, &text, false)?;
                        return place(&text, quoted, fields);
                    }
                    (Alternative::Refuse, false) => {
                        let text = self.joined(word)?;
                        let text = if text.is_empty() { "not set" } else { &text };
                        return Err(alloc::format!("{}: {text}", shown(name)));
                    }
                    (_, true) => {}
                }
            }
            Change::None if matches!(name, Name::Each | Name::All) => {}
            _ if value.is_none() && self.state.refuses_unset => return Err(alloc::format!("{}: not set", shown(name))),
            Change::Length => {
                let length = value.map_or(0, |value| value.chars().count());
                return place(&alloc::format!("{length}"), quoted, fields);
            }
            Change::Trim { at_end, longest, pattern } => {
                let pattern = self.pattern(pattern)?;
                let value = value.unwrap_or_default();
                return place(self.trimmed(&value, &pattern, *at_end, *longest), quoted, fields);
            }
            Change::None => {}
        }
        match name {
            Name::Each | Name::All if !(quoted && *name == Name::All) => {
                let arguments = self.state.arguments.clone();
                for (at, argument) in arguments.iter().enumerate() {
                    if at > 0 {
                        fields.next()?;
                    }
                    place(argument, quoted, fields)?;
                }
                Ok(())
            }
            _ => place(&value.unwrap_or_default(), quoted, fields),
        }
    }

    /// A text without what the pattern matches at its beginning or end.
    fn trimmed<'t>(&self, text: &'t str, pattern: &str, at_end: bool, longest: bool) -> &'t str {
        let mut found = None;
        let boundaries = (0..=text.len()).filter(|at| text.is_char_boundary(*at));
        for at in boundaries {
            if self.world.stopped() {
                break;
            }
            let (cut, rest) = if at_end { (&text[at..], &text[..at]) } else { (&text[..at], &text[at..]) };
            if pattern::matches(pattern, cut) {
                found = Some(rest);
                // From the beginning the first is the shortest, at the end the longest.
                if at_end == longest {
                    break;
                }
            }
        }
        found.unwrap_or(text)
    }

    /// Runs commands in a copy of the shell; gives their output, without newlines at its end.
    fn substitute(&mut self, body: &Body) -> Result<String, String> {
        let (reads, writes) = self.world.pipe()?;
        let mut streams = self.streams.clone();
        streams[1] = writes;
        let mut copy = self.fork(streams)?;
        copy.is_part = true;
        copy.lists(body);
        let thread = self.world.start(Box::new(move || copy.finish()))?;
        let mut bytes = Vec::new();
        let mut block = [0; 512];
        let read = loop {
            match self.world.read(&reads, &mut block) {
                Ok(0) => break Ok(()),
                Ok(count) if bytes.len() + count > MAX_TEXT => {
                    break Err(alloc::format!("`$(…)` printed more than {MAX_TEXT} bytes"));
                }
                Ok(count) => bytes.extend_from_slice(&block[..count]),
                Err(cause) => break Err(cause),
            }
        };
        // A remaining writer is notified that nobody reads.
        drop(reads);
        let status = self.world.join(thread);
        self.substituted = Some(status);
        read?;
        bytes.retain(|byte| *byte != 0);
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.trim_end_matches('\n').to_string())
    }

    /// Paths that match, sorted.
    fn files(&self, pattern: &str) -> Result<Vec<String>, String> {
        let mut found: Vec<String> = Vec::from([String::new()]);
        let mut rest = pattern;
        loop {
            let (part, after) = rest.split_once('/').map_or((rest, None), |(part, after)| (part, Some(after)));
            let mut next = Vec::new();
            let mut bytes = 0;
            for prefix in &found {
                let names = if pattern::is_special(part) {
                    let path = self.world.absolute(&self.state.directory, if prefix.is_empty() { "." } else { prefix });
                    let hidden = part.starts_with('.') || part.starts_with("\\.");
                    let mut names = self.world.names(&path);
                    names.retain(|name| (hidden || !name.starts_with('.')) && pattern::matches(part, name));
                    names
                } else {
                    Vec::from([pattern::unquoted(part)])
                };
                for name in names {
                    let path = alloc::format!("{prefix}{name}");
                    let is_there = match after {
                        None if name.is_empty() => true,
                        None => self.stat(&path).is_some(),
                        Some(_) => path.is_empty() || self.stat(&path).is_some_and(|stat| stat.is_directory),
                    };
                    if is_there {
                        bytes += path.len() + OVERHEAD;
                        next.push(path + if after.is_some() { "/" } else { "" });
                    }
                    if bytes > MAX_TEXT || self.world.stopped() {
                        return Err(alloc::format!("the words of a command may have {MAX_TEXT} bytes"));
                    }
                }
            }
            found = next;
            match after {
                Some(after) => rest = after,
                None => break,
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// The metadata of a path as it is written.
    pub(crate) fn stat(&self, path: &str) -> Option<crate::world::Stat> {
        self.world.stat(&self.world.absolute(&self.state.directory, path))
    }

    /// Whether a `return` has somewhere to go.
    pub(crate) fn is_called(frame: &Frame<W>) -> bool {
        matches!(frame, Frame::Call { .. } | Frame::Source | Frame::Subshell(_))
    }
}

fn place(text: &str, quoted: bool, fields: &mut Fields) -> Result<(), String> {
    if quoted { fields.quoted(text) } else { fields.value(text) }
}

/// A parameter's name in messages.
fn shown(name: &Name) -> String {
    match name {
        Name::Variable(name) => name.clone(),
        Name::Argument(number) => alloc::format!("{number}"),
        Name::Status => "?".to_string(),
        Name::Count => "#".to_string(),
        Name::Each => "@".to_string(),
        Name::All => "*".to_string(),
    }
}
