//! Commands that change the shell, and some that scripts call often.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use shellparse::{is_name, quote};

use crate::condition;
use crate::machine::{CLOSED, Frame, INTERRUPTED, MISUNDERSTOOD, Machine};
use crate::world::World;
use crate::{MAX_TEXT, state::State};

/// Their names.
pub const NAMES: [&str; 20] = [
    ".", ":", "[", "break", "cd", "continue", "eval", "exit", "export", "false", "local", "pwd", "read", "return",
    "set", "sh", "shift", "test", "true", "unset",
];
/// Before these, assignments stay.
const SPECIAL: [&str; 11] =
    [".", ":", "break", "continue", "eval", "exit", "export", "return", "set", "shift", "unset"];

impl<W: World> Machine<W> {
    pub(crate) fn is_builtin(&self, name: &str) -> bool {
        NAMES.contains(&name)
    }

    pub(crate) fn is_special(&self, name: &str) -> bool {
        SPECIAL.contains(&name)
    }

    /// Runs one; `words[0]` is its name.
    pub(crate) fn builtin(&mut self, words: &[String]) {
        let Some((name, arguments)) = words.split_first() else { return };
        let status = core::mem::replace(&mut self.state.status, 0);
        let first = arguments.first().map(String::as_str);
        let done = match name.as_str() {
            ":" | "true" => Ok(()),
            "false" => {
                self.state.status = 1;
                Ok(())
            }
            "test" => self.test(arguments),
            "[" => match arguments.split_last() {
                Some((last, arguments)) if last == "]" => self.test(arguments),
                _ => Err("`]` is missing".to_string()),
            },
            "pwd" => {
                let text = alloc::format!("{}\n", self.state.directory);
                self.print(&text)
            }
            "cd" => self.change_directory(first),
            "exit" | "return" | "shift" | "break" | "continue" => {
                match first.map_or(Ok(None), |text| text.parse().map(Some)) {
                    Err(_) => Err(alloc::format!("{}: not a number", first.unwrap_or_default())),
                    Ok(number) => self.go_elsewhere(name, number, status),
                }
            }
            "set" => self.set(arguments),
            "export" => self.export(arguments),
            "local" => self.local(arguments),
            "unset" => self.unset(arguments),
            "read" => self.read(arguments),
            "eval" => {
                let text = arguments.join(" ");
                self.state.status = 0;
                self.included(&text, "eval");
                Ok(())
            }
            "." => self.source(arguments),
            _ => self.shell(arguments),
        };
        if let Err(cause) = done {
            self.fail(MISUNDERSTOOD, &alloc::format!("{name}: {cause}"));
        }
    }

    fn print(&mut self, text: &str) -> Result<(), String> {
        let written = self.world.write(&self.streams[1], text.as_bytes());
        if written.is_err() && self.is_part {
            self.state.leave = Some(CLOSED);
            return Ok(());
        }
        written
    }

    fn test(&mut self, arguments: &[String]) -> Result<(), String> {
        let holds = condition::holds(arguments, &|path| self.stat(path))?;
        self.state.status = (!holds).into();
        Ok(())
    }

    fn change_directory(&mut self, to: Option<&str>) -> Result<(), String> {
        let to = to.or(self.state.variable("HOME")).unwrap_or("/").to_string();
        let path = self.world.absolute(&self.state.directory, &to);
        match self.world.stat(&path) {
            Some(stat) if stat.is_directory => {
                self.state.directory = path;
                Ok(())
            }
            Some(_) => Err(alloc::format!("{to}: not a directory")),
            None => Err(alloc::format!("{to}: no such directory")),
        }
    }

    /// Runs a built-in that takes frames away, or `shift`. `status` is that of the command before.
    fn go_elsewhere(&mut self, name: &str, number: Option<u64>, status: u64) -> Result<(), String> {
        let count = usize::try_from(number.unwrap_or(1)).unwrap_or(usize::MAX);
        match name {
            "exit" => self.state.leave = Some(number.unwrap_or(status) & 0xff),
            "return" => {
                self.unwind(Self::is_called);
                if let Some(frame) = self.frames.pop_if(|frame| !matches!(frame, Frame::Subshell(_))) {
                    self.put_back(frame);
                }
                self.state.status = number.unwrap_or(status) & 0xff;
            }
            "shift" => match self.state.arguments.get(count..) {
                Some(rest) => self.state.arguments = rest.into(),
                None => return Err("there are not so many arguments".to_string()),
            },
            _ => {
                let is_loop = |frame: &Frame<W>| matches!(frame, Frame::Loop { .. } | Frame::For { .. });
                let here = self.frames.iter().rev().take_while(|frame| !Self::is_called(frame));
                let loops = here.filter(|frame| is_loop(frame)).count().min(count.max(1));
                for further in (0..loops).rev() {
                    self.unwind(is_loop);
                    if further > 0 || name == "break" {
                        self.frames.pop();
                    } else if let Some(Frame::Loop { tested, .. }) = self.frames.last_mut() {
                        *tested = false;
                    }
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, arguments: &[String]) -> Result<(), String> {
        if arguments.is_empty() {
            let lines = self.state.variables().map(|(name, variable)| {
                let export = if variable.exported { "export " } else { "" };
                alloc::format!("{export}{name}={}\n", quote(&variable.value))
            });
            let text = lines.collect::<String>();
            return self.print(&text);
        }
        for (at, word) in arguments.iter().enumerate() {
            let options = match word.as_str() {
                "--" => {
                    self.state.arguments = arguments[at + 1..].into();
                    return Ok(());
                }
                word => word.strip_prefix(['-', '+']).filter(|options| !options.is_empty()),
            };
            let Some(options) = options else {
                self.state.arguments = arguments[at..].into();
                return Ok(());
            };
            for option in options.chars() {
                match option {
                    'e' => self.state.stops_at_failure = word.starts_with('-'),
                    'u' => self.state.refuses_unset = word.starts_with('-'),
                    _ => return Err(alloc::format!("{word}: this shell knows -e, -u and `-- WORD…`")),
                }
            }
        }
        Ok(())
    }

    /// `NAME` or `NAME=value`, checked.
    fn split(word: &str) -> Result<(&str, Option<&str>), String> {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        if is_name(name) { Ok((name, value)) } else { Err(alloc::format!("{name}: not a name")) }
    }

    fn export(&mut self, arguments: &[String]) -> Result<(), String> {
        for word in arguments {
            let (name, value) = Self::split(word)?;
            let value = value.or(self.state.variable(name)).unwrap_or_default().to_string();
            self.state.set(name, &value, true)?;
        }
        Ok(())
    }

    fn local(&mut self, arguments: &[String]) -> Result<(), String> {
        for word in arguments {
            let (name, value) = Self::split(word)?;
            let calls = self.frames.iter_mut().rev().find_map(|frame| match frame {
                Frame::Call { locals, .. } => Some(locals),
                _ => None,
            });
            let locals = calls.ok_or("only in a function")?;
            if locals.iter().all(|(known, _)| known != name) {
                locals.push((name.to_string(), self.state.get(name)));
            }
            if let Some(value) = value {
                self.state.set(name, value, false)?;
            }
        }
        Ok(())
    }

    fn unset(&mut self, arguments: &[String]) -> Result<(), String> {
        let (functions, names) = match arguments.split_first() {
            Some((option, names)) if option == "-f" => (true, names),
            Some((option, names)) if option == "-v" => (false, names),
            _ => (false, arguments),
        };
        for name in names {
            if functions {
                alloc::sync::Arc::make_mut(&mut self.state.functions).remove(name);
            } else {
                self.state.put(name, None)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, arguments: &[String]) -> Result<(), String> {
        let (raw, names) = match arguments.split_first() {
            Some((option, names)) if option == "-r" => (true, names),
            _ => (false, arguments),
        };
        if names.is_empty() {
            return Err("a name is missing".to_string());
        }
        for name in names {
            if !is_name(name) {
                return Err(alloc::format!("{name}: not a name"));
            }
        }
        let mut bytes = Vec::new();
        loop {
            let mut byte = [0];
            match self.world.read(&self.streams[0], &mut byte) {
                _ if self.world.stopped() => {
                    self.state.status = INTERRUPTED;
                    return Ok(());
                }
                Ok(0) => {
                    self.state.status = 1;
                    break;
                }
                Ok(_) if byte == *b"\n" && (raw || bytes.last() != Some(&b'\\')) => break,
                Ok(_) => bytes.extend(byte),
                Err(cause) => return Err(cause),
            }
            if bytes.len() > MAX_TEXT {
                return Err(alloc::format!("a line may have {MAX_TEXT} bytes"));
            }
        }
        let line = String::from_utf8_lossy(&bytes);
        let separators = self.separators();
        assign(&mut self.state, &characters(&line, raw), names, &separators)
    }

    /// Runs a text here, once what is under way is done.
    fn included(&mut self, text: &str, name: &str) {
        match self.parsed(text, Some(name)) {
            Some(body) => self.lists(&body),
            None => self.aborted = true,
        }
    }

    fn source(&mut self, arguments: &[String]) -> Result<(), String> {
        let Some(name) = arguments.first() else { return Err("a file is missing".to_string()) };
        let mut path = self.world.absolute(&self.state.directory, name);
        if !name.contains('/') && self.world.stat(&path).is_none() {
            let directories = self.state.variable("PATH").unwrap_or_default();
            let paths = directories.split(':').map(|directory| self.world.absolute(directory, name));
            path = paths.into_iter().find(|path| self.world.stat(path).is_some()).unwrap_or(path);
        }
        let text = self.world.script(&path).map_err(|cause| alloc::format!("{name}: {cause}"))?;
        self.push(Frame::Source);
        if !self.aborted {
            self.included(&text, name);
        }
        Ok(())
    }

    /// `sh FILE [ARGUMENT…]`, `sh -c TEXT [NAME [ARGUMENT…]]`
    fn shell(&mut self, arguments: &[String]) -> Result<(), String> {
        match arguments {
            [option, text, rest @ ..] if option == "-c" => {
                let Some(body) = self.parsed(text, Some("sh")) else { return Ok(()) };
                let name = rest.first().map_or("sh", String::as_str);
                self.subshell(&body, name, rest.get(1..).unwrap_or_default());
                Ok(())
            }
            [option, ..] if option.starts_with('-') => Err(alloc::format!("{option}: this shell knows -c")),
            [] => Err("a script is missing".to_string()),
            [file, rest @ ..] => {
                let path = self.world.absolute(&self.state.directory, file);
                self.script(&path, file, rest);
                Ok(())
            }
        }
    }
}

/// The characters of a line, and whether each was escaped.
fn characters(line: &str, raw: bool) -> Vec<(char, bool)> {
    let mut list = Vec::new();
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' if !raw => list.extend(characters.next().filter(|c| *c != '\n').map(|c| (c, true))),
            c => list.push((c, false)),
        }
    }
    list
}

/// Fields of a line to variables; the last one gets all that is left.
fn assign(state: &mut State, line: &[(char, bool)], names: &[String], separators: &str) -> Result<(), String> {
    let separates = |(c, escaped): &(char, bool)| !escaped && separators.contains(*c);
    let is_blank = |pair: &(char, bool)| separates(pair) && matches!(pair.0, ' ' | '\t' | '\n');
    let skip_blanks = |line: &mut &[(char, bool)]| {
        while let [first, rest @ ..] = line
            && is_blank(first)
        {
            *line = rest;
        }
    };
    let mut rest = line;
    skip_blanks(&mut rest);
    for (at, name) in names.iter().enumerate() {
        let mut field = rest;
        if at + 1 < names.len() {
            let end = rest.iter().position(separates).unwrap_or(rest.len());
            (field, rest) = rest.split_at(end);
            skip_blanks(&mut rest);
            if let [first, after @ ..] = rest
                && separates(first)
            {
                rest = after;
                skip_blanks(&mut rest);
            }
        } else {
            while let [before @ .., last] = field
                && is_blank(last)
            {
                field = before;
            }
        }
        state.set(name, &field.iter().map(|(c, _)| c).collect::<String>(), false)?;
    }
    Ok(())
}
