//! Cutting a line into words and operators.

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Error, Problem};

/// A piece of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// Characters that stand for themselves.
    Literal(String),
    /// `$NAME`.
    Variable(String),
    /// `$?`: the status of the last command.
    Status,
}

/// A word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// Its pieces; empty for `''`.
    pub parts: Vec<Part>,
    /// Some of it was quoted: then it stays even if it comes out empty.
    pub quoted: bool,
    /// Bytes before it.
    pub position: usize,
    /// Bytes up to its end.
    pub end: usize,
}

impl Word {
    /// The text of the word, with `variable` asked for values. `None` if the word vanishes.
    pub fn expand(&self, status: u64, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Variable(name) => text.push_str(&variable(name).unwrap_or_default()),
                Part::Status => {
                    let _ = core::fmt::Write::write_fmt(&mut text, format_args!("{status}"));
                }
            }
        }
        (self.quoted || !text.is_empty()).then_some(text)
    }
}

/// A token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Token {
    /// A word.
    Word(Word),
    /// One of [`OPERATORS`], or a newline, and the bytes before it.
    Operator(&'static str, usize),
}

/// Operators, longer ones before their beginnings.
pub const OPERATORS: [&str; 8] = ["&&", "||", ">>", "&", "|", ">", "<", ";"];

/// Cuts a text.
pub fn tokens(text: &str) -> Result<Vec<Token>, Error> {
    let mut cutter = Cutter { text, position: 0 };
    let mut tokens = Vec::new();
    while let Some(token) = cutter.token()? {
        tokens.push(token);
    }
    Ok(tokens)
}

/// Is `name` a name that a variable may have?
pub fn is_name(name: &str) -> bool {
    name.starts_with(is_name_start) && name.chars().all(is_name_part)
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

struct Cutter<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Cutter<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
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

    fn token(&mut self) -> Result<Option<Token>, Error> {
        while self.peek().is_some_and(|c| c != '\n' && c.is_whitespace()) {
            self.next();
        }
        let position = self.position;
        if self.peek() == Some('#') {
            self.position += self.rest().find('\n').unwrap_or(self.rest().len());
        }
        if self.peek().is_none() {
            return Ok(None);
        }
        if self.skip("\n") {
            return Ok(Some(Token::Operator("\n", position)));
        }
        // A digit directly before `>`: only 2, and `2>&1`-like forms are refused with a reason.
        if self.rest().starts_with("2>") {
            self.position += 1;
            let operator = if self.skip(">>") {
                "2>>"
            } else {
                self.skip(">");
                "2>"
            };
            if self.peek() == Some('&') {
                return Err(Error { position, problem: Problem::Unsupported("`>&`") });
            }
            return Ok(Some(Token::Operator(operator, position)));
        }
        for operator in OPERATORS {
            if self.skip(operator) {
                if operator == "<" && self.peek() == Some('<') {
                    return Err(Error { position, problem: Problem::Unsupported("`<<`") });
                }
                return Ok(Some(Token::Operator(operator, position)));
            }
        }
        self.word(position).map(|word| Some(Token::Word(word)))
    }

    fn word(&mut self, position: usize) -> Result<Word, Error> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut quoted = false;
        while let Some(c) = self.peek() {
            let at = self.position;
            match c {
                c if c.is_whitespace() => break,
                '&' | '|' | '>' | '<' | ';' => break,
                '(' | ')' | '`' => {
                    let what = if c == '`' { "command substitution" } else { "parentheses (quote them)" };
                    return Err(Error { position: at, problem: Problem::Unsupported(what) });
                }
                '\'' => {
                    self.next();
                    quoted = true;
                    let Some(end) = self.rest().find('\'') else {
                        return Err(Error { position: at, problem: Problem::UnclosedQuote('\'') });
                    };
                    literal.push_str(&self.rest()[..end]);
                    self.position += end + 1;
                }
                '"' => {
                    self.next();
                    quoted = true;
                    self.double_quoted(at, &mut literal, &mut parts)?;
                }
                '\\' => {
                    self.next();
                    quoted = true;
                    match self.next() {
                        Some('\n') => {}
                        Some(c) => literal.push(c),
                        None => return Err(Error { position: at, problem: Problem::NothingToEscape }),
                    }
                }
                '$' => self.dollar(&mut literal, &mut parts)?,
                c => {
                    literal.push(c);
                    self.next();
                }
            }
        }
        flush(&mut literal, &mut parts);
        Ok(Word { parts, quoted, position, end: self.position })
    }

    fn double_quoted(&mut self, start: usize, literal: &mut String, parts: &mut Vec<Part>) -> Result<(), Error> {
        loop {
            match self.peek() {
                None => return Err(Error { position: start, problem: Problem::UnclosedQuote('"') }),
                Some('"') => {
                    self.next();
                    return Ok(());
                }
                Some('$') => self.dollar(literal, parts)?,
                Some('\\') => {
                    self.next();
                    match self.peek() {
                        Some(c @ ('"' | '$' | '\\' | '`')) => {
                            literal.push(c);
                            self.next();
                        }
                        _ => literal.push('\\'),
                    }
                }
                Some(c) => {
                    literal.push(c);
                    self.next();
                }
            }
        }
    }

    /// At a `$`: a variable, the status, or a plain dollar sign.
    fn dollar(&mut self, literal: &mut String, parts: &mut Vec<Part>) -> Result<(), Error> {
        let position = self.position;
        self.next();
        let part = if self.skip("?") {
            Part::Status
        } else if self.skip("(") {
            return Err(Error { position, problem: Problem::Unsupported("command substitution") });
        } else if self.skip("{") {
            let Some(end) = self.rest().find('}') else {
                return Err(Error { position, problem: Problem::UnclosedBrace });
            };
            let name = &self.rest()[..end];
            self.position += end + 1;
            match name {
                "?" => Part::Status,
                name if is_name(name) => Part::Variable(name.into()),
                _ => return Err(Error { position, problem: Problem::BadVariable }),
            }
        } else if self.peek().is_some_and(is_name_start) {
            let rest = self.rest();
            let end = rest.find(|c| !is_name_part(c)).unwrap_or(rest.len());
            self.position += end;
            Part::Variable(rest[..end].into())
        } else {
            literal.push('$');
            return Ok(());
        };
        flush(literal, parts);
        parts.push(part);
        Ok(())
    }
}

fn flush(literal: &mut String, parts: &mut Vec<Part>) {
    if !literal.is_empty() {
        parts.push(Part::Literal(core::mem::take(literal)));
    }
}
