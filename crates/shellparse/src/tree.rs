//! Commands, pipelines and lists.

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Error, Problem};
use crate::tokens::{Token, Word, tokens};

/// Which stream goes where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RedirectionKind {
    /// `<`: standard input from a file.
    Input,
    /// `>`: standard output into a file that is emptied first.
    Output,
    /// `>>`: standard output to the end of a file.
    Append,
    /// `2>`: standard error into a file that is emptied first.
    Error,
    /// `2>>`: standard error to the end of a file.
    ErrorAppend,
}

impl RedirectionKind {
    /// How it is written.
    pub fn operator(self) -> &'static str {
        match self {
            Self::Input => "<",
            Self::Output => ">",
            Self::Append => ">>",
            Self::Error => "2>",
            Self::ErrorAppend => "2>>",
        }
    }

    fn stream(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output | Self::Append => "output",
            Self::Error | Self::ErrorAppend => "error",
        }
    }

    fn of(operator: &str) -> Option<Self> {
        [Self::Input, Self::Output, Self::Append, Self::Error, Self::ErrorAppend]
            .into_iter()
            .find(|kind| kind.operator() == operator)
    }
}

/// A redirection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redirection {
    /// Which stream, and how.
    pub kind: RedirectionKind,
    /// The file.
    pub file: Word,
}

/// A command: words (the first one names it) and redirections. At least one of both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Name and arguments.
    pub words: Vec<Word>,
    /// Redirections, at most one per stream.
    pub redirections: Vec<Redirection>,
}

/// Commands connected by `|`; at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipeline {
    /// In the order in which the bytes flow.
    pub commands: Vec<Command>,
}

/// When the next pipeline of a list runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connector {
    /// `&&`: if the one before succeeded.
    And,
    /// `||`: if the one before failed.
    Or,
}

/// Pipelines connected by `&&` and `||`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List {
    /// The first pipeline.
    pub first: Pipeline,
    /// The others, each with its condition; evaluated from left to right with equal precedence.
    pub rest: Vec<(Connector, Pipeline)>,
    /// `&`: the shell does not wait for it.
    pub background: bool,
    /// The bytes of the line that it comes from: start and end.
    pub source: (usize, usize),
}

impl List {
    /// Its text in the line it was parsed from.
    pub fn text<'a>(&self, line: &'a str) -> &'a str {
        line.get(self.source.0..self.source.1).unwrap_or("")
    }
}

/// Parses a script: lines of commands.
pub fn parse(text: &str) -> Result<Vec<List>, Error> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, end: text.len() };
    let mut lists: Vec<List> = Vec::new();
    loop {
        while parser.take("\n") {}
        if parser.next == parser.tokens.len() {
            return Ok(lists);
        }
        let start = parser.position();
        let (first, rest) = parser.list()?;
        let source = (start, parser.end_before());
        let background = parser.take("&");
        lists.push(List { first, rest, background, source });
        if !background && !parser.take(";") && !parser.take("\n") && parser.next < parser.tokens.len() {
            // A list ends only at an operator that the grammar gives no place.
            return Err(parser.missing_command());
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    end: usize,
}

impl Parser {
    fn position(&self) -> usize {
        match self.tokens.get(self.next) {
            Some(Token::Word(word)) => word.position,
            Some(Token::Operator(_, position)) => *position,
            None => self.end,
        }
    }

    /// Where the last token that was taken ends.
    fn end_before(&self) -> usize {
        match self.next.checked_sub(1).and_then(|last| self.tokens.get(last)) {
            Some(Token::Word(word)) => word.end,
            Some(Token::Operator(operator, position)) => position + operator.len(),
            None => 0,
        }
    }

    fn operator(&self) -> Option<&'static str> {
        match self.tokens.get(self.next) {
            Some(Token::Operator(operator, _)) => Some(operator),
            _ => None,
        }
    }

    fn take(&mut self, operator: &str) -> bool {
        let found = self.operator() == Some(operator);
        if found {
            self.next += 1;
        }
        found
    }

    /// A command is missing here: the fault of the operator here, or of the one before the end.
    fn missing_command(&self) -> Error {
        let place = if self.next < self.tokens.len() { self.next } else { self.next.saturating_sub(1) };
        let (operator, position) = match self.tokens.get(place) {
            Some(Token::Operator("\n", _)) if place > 0 => match &self.tokens[place - 1] {
                Token::Operator(operator, position) => (*operator, *position),
                Token::Word(word) => ("end of line", word.position),
            },
            Some(Token::Operator(operator, position)) => (*operator, *position),
            Some(Token::Word(word)) => ("word", word.position),
            None => ("end", self.end),
        };
        Error { position, problem: Problem::MissingCommand(operator) }
    }

    fn list(&mut self) -> Result<(Pipeline, Vec<(Connector, Pipeline)>), Error> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            let connector = match self.operator() {
                Some("&&") => Connector::And,
                Some("||") => Connector::Or,
                _ => return Ok((first, rest)),
            };
            self.next += 1;
            while self.operator() == Some("\n") && self.next + 1 < self.tokens.len() {
                self.next += 1;
            }
            rest.push((connector, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, Error> {
        let mut commands = alloc::vec![self.command()?];
        while self.take("|") {
            commands.push(self.command()?);
        }
        Ok(Pipeline { commands })
    }

    fn command(&mut self) -> Result<Command, Error> {
        let mut command = Command { words: Vec::new(), redirections: Vec::new() };
        loop {
            match self.tokens.get(self.next) {
                Some(Token::Word(word)) => {
                    command.words.push(word.clone());
                    self.next += 1;
                }
                Some(Token::Operator(operator, position)) => {
                    let Some(kind) = RedirectionKind::of(operator) else { break };
                    let position = *position;
                    self.next += 1;
                    let Some(Token::Word(file)) = self.tokens.get(self.next) else {
                        return Err(Error { position, problem: Problem::MissingFile(kind.operator()) });
                    };
                    if command.redirections.iter().any(|r| r.kind.stream() == kind.stream()) {
                        return Err(Error { position, problem: Problem::RedirectedTwice(kind.stream()) });
                    }
                    command.redirections.push(Redirection { kind, file: file.clone() });
                    self.next += 1;
                }
                None => break,
            }
        }
        if command.words.is_empty() && command.redirections.is_empty() {
            return Err(self.missing_command());
        }
        Ok(command)
    }
}

/// A word written so that it is read as the same text again.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("'");
    for c in text.chars() {
        match c {
            '\'' => quoted.push_str("'\\''"),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}
