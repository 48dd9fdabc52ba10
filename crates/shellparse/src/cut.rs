//! Cutting a text into operators and words. Words hold substitutions, for which the grammar begins again.

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Error, Problem};
use crate::tree::{Alternative, Change, Name, Part, Word, is_name_part, is_name_start};
use crate::{MAX_NESTING, MAX_NODES};

/// A token.
#[derive(Debug)]
pub(crate) enum Token {
    Word(Word),
    /// One of [`OPERATORS`].
    Operator(&'static str),
    /// One of [`REDIRECTIONS`], and the stream's number before it.
    Redirection(Option<usize>, &'static str),
    End,
}

/// Longer ones before their beginnings.
const OPERATORS: [&str; 9] = ["&&", "||", ";;", "&", "|", ";", "(", ")", "\n"];
const REDIRECTIONS: [&str; 6] = [">>", ">|", ">&", "<&", ">", "<"];
/// Operators of other shells.
const REFUSED: [(&str, &str); 8] = [
    ("<<", "`<<` (here-documents)"),
    ("<>", "`<>`"),
    ("<(", "`<(` (a pipe as a file)"),
    (">(", "`>(` (a pipe as a file)"),
    ("&>", "`&>` (write `> FILE 2>&1`)"),
    ("|&", "`|&` (write `2>&1 |`)"),
    (";&", "`;&`"),
    (";;&", "`;;&`"),
];

/// The token ahead.
pub(crate) struct Ahead {
    pub(crate) token: Token,
    pub(crate) start: usize,
}

/// A text that is parsed.
pub(crate) struct Parser<'t> {
    pub(crate) text: &'t str,
    pub(crate) position: usize,
    pub(crate) ahead: Option<Ahead>,
    /// Where the last token that was taken ends.
    pub(crate) end: usize,
    pub(crate) depth: usize,
    pub(crate) nodes: usize,
    pub(crate) room: &'t dyn Fn() -> bool,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.position..).unwrap_or("")
    }

    fn peek_char(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.peek_char()?;
        self.position += c.len_utf8();
        Some(c)
    }

    fn skip(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.position += text.len();
        }
        found
    }

    /// As many characters as are so; gives them.
    fn run(&mut self, is: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let end = rest.find(|c| !is(c)).unwrap_or(rest.len());
        let run = rest[..end].into();
        self.position += end;
        run
    }

    pub(crate) fn error<T>(&self, position: usize, problem: Problem) -> Result<T, Error> {
        Err(Error { position, problem })
    }

    fn unsupported<T>(&self, position: usize, what: &'static str) -> Result<T, Error> {
        self.error(position, Problem::Unsupported(what))
    }

    /// Counts something that is made.
    pub(crate) fn count(&mut self) -> Result<(), Error> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || !(self.room)() {
            return self.error(self.position, Problem::TooLong);
        }
        Ok(())
    }

    /// Descends so many levels; its caller comes back up with `self.depth -= levels`, unless it fails.
    pub(crate) fn descend(&mut self, position: usize, levels: usize) -> Result<(), Error> {
        self.depth += levels;
        if self.depth > MAX_NESTING {
            return self.error(position, Problem::TooDeep);
        }
        Ok(())
    }

    /// The next token, and where it starts.
    pub(crate) fn cut(&mut self) -> Result<Ahead, Error> {
        loop {
            if !self.skip("\\\n") && !self.peek_char().is_some_and(|c| c != '\n' && c.is_whitespace()) {
                break;
            }
            self.run(|c| c != '\n' && c.is_whitespace());
        }
        if self.peek_char() == Some('#') {
            self.run(|c| c != '\n');
        }
        let start = self.position;
        if self.peek_char().is_none() {
            return Ok(Ahead { token: Token::End, start });
        }
        for (operator, what) in REFUSED {
            if self.rest().starts_with(operator) {
                return self.unsupported(start, what);
            }
        }
        if let Some(operator) = OPERATORS.into_iter().find(|operator| self.skip(operator)) {
            return Ok(Ahead { token: Token::Operator(operator), start });
        }
        let digits = self.run(|c| c.is_ascii_digit());
        if let Some(operator) = REDIRECTIONS.into_iter().find(|operator| self.skip(operator)) {
            return match digits.parse() {
                Ok(stream @ 0..3) => Ok(Ahead { token: Token::Redirection(Some(stream), operator), start }),
                _ if digits.is_empty() => Ok(Ahead { token: Token::Redirection(None, operator), start }),
                _ => self.unsupported(start, "streams other than 0, 1 and 2"),
            };
        }
        self.position = start;
        self.count()?;
        let mut word = self.unquoted(false)?;
        self.home(&mut word.parts, start)?;
        Ok(Ahead { token: Token::Word(word), start })
    }

    /// A `~` at the beginning of a word becomes a piece of its own.
    pub(crate) fn home(&self, parts: &mut Vec<Part>, position: usize) -> Result<(), Error> {
        let more = parts.len() > 1;
        let Some(Part::Literal(text)) = parts.first_mut() else { return Ok(()) };
        match text.strip_prefix('~') {
            Some("") if !more => parts[0] = Part::Home,
            Some(rest) if rest.starts_with('/') => {
                *text = rest.into();
                parts.insert(0, Part::Home);
            }
            Some("") | None => {}
            Some(rest) if more && !rest.contains('/') => {}
            Some(_) => return self.unsupported(position, "`~NAME` (there are no users)"),
        }
        Ok(())
    }

    /// Pieces outside of `"`: a word, or up to a `}` that is left.
    #[inline(never)]
    fn unquoted(&mut self, in_braces: bool) -> Result<Word, Error> {
        let mut parts = Parts::default();
        while let Some(c) = self.peek_char() {
            let at = self.position;
            match c {
                '}' if in_braces => break,
                c if !in_braces && (c.is_whitespace() || "&|<>;()".contains(c)) => break,
                '\'' => {
                    self.next_char();
                    let text = self.run(|c| c != '\'');
                    if !self.skip("'") {
                        return self.error(at, Problem::Unclosed("'"));
                    }
                    parts.quoted(&text);
                }
                '"' => {
                    self.next_char();
                    let before = parts.0.len();
                    self.double(at, '"', &mut parts)?;
                    if parts.0.len() == before {
                        parts.quoted("");
                    }
                }
                '\\' => {
                    self.next_char();
                    match self.next_char() {
                        Some('\n') => {}
                        Some(c) => parts.quoted(c.encode_utf8(&mut [0; 4])),
                        None => return self.error(at, Problem::NothingToEscape),
                    }
                }
                '$' => self.dollar(false, &mut parts)?,
                '`' => return self.unsupported(at, "backquotes (write `$(…)`)"),
                c => {
                    self.next_char();
                    parts.literal(c);
                }
            }
        }
        Ok(Word { parts: parts.0 })
    }

    /// Pieces inside of `"`, up to `close`, which is taken too. The opening character stands at `start`.
    #[inline(never)]
    fn double(&mut self, start: usize, close: char, parts: &mut Parts) -> Result<(), Error> {
        loop {
            let at = self.position;
            match self.peek_char() {
                None => return self.error(start, Problem::Unclosed(if close == '"' { "\"" } else { "${" })),
                Some(c) if c == close => {
                    self.next_char();
                    return Ok(());
                }
                Some('"') => return self.unsupported(at, "`\"` between the braces of `\"${…}\"`"),
                Some('$') => self.dollar(true, parts)?,
                Some('`') => return self.unsupported(at, "backquotes (write `$(…)`)"),
                Some('\\') => {
                    self.next_char();
                    match self.peek_char() {
                        Some('\n') => {
                            self.next_char();
                        }
                        Some(c) if "\"$\\`".contains(c) || c == close => {
                            self.next_char();
                            parts.quoted(c.encode_utf8(&mut [0; 4]));
                        }
                        _ => parts.quoted("\\"),
                    }
                }
                Some(c) => {
                    self.next_char();
                    parts.quoted(c.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }

    /// At a `$`.
    fn dollar(&mut self, quoted: bool, parts: &mut Parts) -> Result<(), Error> {
        let at = self.position;
        self.next_char();
        self.count()?;
        if self.skip("((") {
            self.descend(at, 1)?;
            let expression = self.expression(at)?;
            self.depth -= 1;
            parts.0.push(Part::Arithmetic { quoted, expression });
            return Ok(());
        }
        if self.skip("(") {
            let body = self.substitution(at)?;
            parts.0.push(Part::Command { quoted, body });
            return Ok(());
        }
        let (name, change) = if self.skip("{") {
            self.descend(at, 1)?;
            let braces = self.braces(at, quoted)?;
            self.depth -= 1;
            braces
        } else {
            let Some(name) = self.parameter(at, false)? else {
                match quoted {
                    true => parts.quoted("$"),
                    false => parts.literal('$'),
                }
                return Ok(());
            };
            (name, Change::None)
        };
        parts.0.push(Part::Parameter { quoted, name, change });
        Ok(())
    }

    /// The name of a parameter, if one stands here; outside of braces a number has one digit.
    #[inline(never)]
    fn parameter(&mut self, at: usize, in_braces: bool) -> Result<Option<Name>, Error> {
        let name = match self.peek_char() {
            Some('?') => Name::Status,
            Some('#') => Name::Count,
            Some('@') => Name::Each,
            Some('*') => Name::All,
            Some('$') => return self.unsupported(at, "`$$`"),
            Some('!') => return self.unsupported(at, "`$!` (`jobs` lists the numbers)"),
            Some('-') => return self.unsupported(at, "`$-`"),
            Some(c) if c.is_ascii_digit() => {
                let digits = match in_braces {
                    true => self.run(|c| c.is_ascii_digit()),
                    false => self.next_char().into_iter().collect(),
                };
                return match digits.parse() {
                    Ok(number) => Ok(Some(Name::Argument(number))),
                    Err(_) => self.error(at, Problem::BadVariable),
                };
            }
            Some(c) if is_name_start(c) => return Ok(Some(Name::Variable(self.run(is_name_part)))),
            _ => return Ok(None),
        };
        self.next_char();
        Ok(Some(name))
    }

    /// After `${`.
    #[inline(never)]
    fn braces(&mut self, at: usize, quoted: bool) -> Result<(Name, Change), Error> {
        if self.rest().starts_with('#') && !self.rest().starts_with("#}") {
            self.next_char();
            return match self.parameter(at, true)? {
                None | Some(Name::Each | Name::All) => self.error(at, Problem::BadVariable),
                Some(name) => self.close_brace(at).map(|()| (name, Change::Length)),
            };
        }
        let Some(name) = self.parameter(at, true)? else {
            let problem = if self.rest().is_empty() { Problem::Unclosed("${") } else { Problem::BadVariable };
            return self.error(at, problem);
        };
        let or_empty = self.skip(":");
        let what = match self.peek_char() {
            None => return self.error(at, Problem::Unclosed("${")),
            Some('-') => Alternative::Use,
            Some('=') => Alternative::Assign,
            Some('+') => Alternative::Instead,
            Some('?') => Alternative::Refuse,
            Some('}') if !or_empty => {
                self.next_char();
                return Ok((name, Change::None));
            }
            Some(c @ ('#' | '%')) if !or_empty => {
                self.next_char();
                let longest = self.skip(c.encode_utf8(&mut [0; 4]));
                let pattern = self.unquoted(true)?;
                self.close_brace(at)?;
                return Ok((name, Change::Trim { at_end: c == '%', longest, pattern }));
            }
            Some('/') => return self.unsupported(at, "`${NAME/…}`"),
            _ if or_empty => return self.unsupported(at, "`${NAME:NUMBER}`"),
            _ => return self.error(at, Problem::BadVariable),
        };
        self.next_char();
        let word = if quoted {
            let mut parts = Parts::default();
            self.double(at, '}', &mut parts)?;
            Word { parts: parts.0 }
        } else {
            let word = self.unquoted(true)?;
            self.close_brace(at)?;
            word
        };
        Ok((name, Change::Default { what, or_empty, word }))
    }

    fn close_brace(&mut self, at: usize) -> Result<(), Error> {
        match self.peek_char() {
            None => self.error(at, Problem::Unclosed("${")),
            Some('}') => {
                self.next_char();
                Ok(())
            }
            Some(_) => self.error(at, Problem::BadVariable),
        }
    }

    /// After `$((`: all up to the `))` that belongs to it.
    #[inline(never)]
    fn expression(&mut self, at: usize) -> Result<Word, Error> {
        let mut parts = Parts::default();
        let mut open = 0;
        loop {
            match self.peek_char() {
                None => return self.error(at, Problem::Unclosed("$((")),
                Some('$') => {
                    self.dollar(true, &mut parts)?;
                    continue;
                }
                Some('`') => return self.unsupported(self.position, "backquotes (write `$(…)`)"),
                Some(')') if open == 0 => {
                    if !self.skip("))") {
                        return self.unsupported(at, "`$((` around anything but arithmetic (write `$( (`)");
                    }
                    return Ok(Word { parts: parts.0 });
                }
                Some('(') => open += 1,
                Some(')') => open -= 1,
                Some(_) => {}
            }
            if let Some(c) = self.next_char() {
                parts.quoted(c.encode_utf8(&mut [0; 4]));
            }
        }
    }
}

/// Pieces, of which neighbours of one kind become one.
#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn literal(&mut self, c: char) {
        match self.0.last_mut() {
            Some(Part::Literal(text)) => text.push(c),
            _ => self.0.push(Part::Literal(c.into())),
        }
    }

    fn quoted(&mut self, more: &str) {
        match self.0.last_mut() {
            Some(Part::Quoted(text)) => text.push_str(more),
            _ => self.0.push(Part::Quoted(more.into())),
        }
    }
}
