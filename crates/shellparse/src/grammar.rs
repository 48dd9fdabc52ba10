//! The grammar.
//!
//! It recurses, and a thread's stack is small: functions not on the way from a body to the body in it are not inlined there.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::cut::{Ahead, Parser, Token};
use crate::error::{Error, Problem};
use crate::tree::{
    Body, Command, Compound, Connector, Function, List, Part, Pipeline, Redirection, RedirectionKind, Simple, Word,
    is_name,
};

/// Words that mean something where a command may begin.
const RESERVED: [&str; 17] = [
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "case", "esac", "{", "}", "!", "time",
    "in",
];
/// Those that end a body.
const CLOSERS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];
/// Commands of other shells that would mean something else here, or nothing.
const REFUSED: [&str; 22] = [
    "[[", "alias", "bg", "command", "declare", "exec", "function", "getopts", "hash", "let", "readonly", "select",
    "source", "times", "trap", "type", "typeset", "ulimit", "umask", "unalias", "shopt", "coproc",
];
/// Levels that `$(…)` counts for: it takes more of the stack.
const SUBSTITUTION: usize = 2;
/// Characters of a background job's title.
const MAX_TITLE: usize = 60;

/// Parses a text. `room` is asked again and again whether there is memory.
pub fn parse(text: &str, room: &dyn Fn() -> bool) -> Result<Body, Error> {
    let mut parser = Parser { text, position: 0, ahead: None, end: 0, depth: 0, nodes: 0, room };
    let body = parser.body()?;
    match parser.peek()? {
        Token::End => Ok(body),
        _ => {
            let (what, position) = parser.shown()?;
            parser.error(position, Problem::Unexpected(what))
        }
    }
}

impl Parser<'_> {
    fn ahead(&mut self) -> Result<&mut Ahead, Error> {
        let ahead = match self.ahead.take() {
            Some(ahead) => ahead,
            None => {
                self.end = self.position;
                self.cut()?
            }
        };
        Ok(self.ahead.insert(ahead))
    }

    fn peek(&mut self) -> Result<&Token, Error> {
        Ok(&self.ahead()?.token)
    }

    fn start(&mut self) -> Result<usize, Error> {
        Ok(self.ahead()?.start)
    }

    /// Takes the operator if it is next.
    fn take(&mut self, operator: &str) -> Result<bool, Error> {
        let found = matches!(self.peek()?, Token::Operator(next) if *next == operator);
        if found {
            self.ahead = None;
        }
        Ok(found)
    }

    fn newlines(&mut self) -> Result<(), Error> {
        while self.take("\n")? {}
        Ok(())
    }

    fn word(&mut self) -> Result<Option<Word>, Error> {
        let Ahead { token, start } = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.cut()?,
        };
        match token {
            Token::Word(word) => Ok(Some(word)),
            token => {
                self.ahead = Some(Ahead { token, start });
                Ok(None)
            }
        }
    }

    /// The reserved word that is next.
    fn reserved(&mut self) -> Result<Option<&'static str>, Error> {
        let Token::Word(word) = self.peek()? else { return Ok(None) };
        let Some(text) = word.literal() else { return Ok(None) };
        Ok(RESERVED.into_iter().find(|reserved| *reserved == text))
    }

    fn take_reserved(&mut self, word: &str) -> Result<bool, Error> {
        let found = self.reserved()? == Some(word);
        if found {
            self.ahead = None;
        }
        Ok(found)
    }

    /// The next token, for messages, and where it stands.
    fn shown(&mut self) -> Result<(&'static str, usize), Error> {
        let reserved = self.reserved()?;
        let Ahead { token, start } = self.ahead()?;
        let what = match token {
            Token::Operator(operator) | Token::Redirection(_, operator) => operator,
            Token::Word(_) => reserved.unwrap_or("word"),
            Token::End => "end",
        };
        Ok((what, *start))
    }

    /// Takes the word that must come next inside of what was opened.
    fn expect(&mut self, word: &'static str, open: (&'static str, usize)) -> Result<(), Error> {
        if self.take_reserved(word)? {
            return Ok(());
        }
        if let Token::End = self.peek()? {
            return self.error(open.1, Problem::Unclosed(open.0));
        }
        let position = self.start()?;
        self.error(position, Problem::Missing(word))
    }

    /// Lists up to something that ends a body.
    fn body(&mut self) -> Result<Body, Error> {
        let mut lists = Vec::new();
        loop {
            self.newlines()?;
            if self.at_end_of_body()? {
                return Ok(lists.into());
            }
            let start = self.start()?;
            let pipelines = self.list()?;
            self.peek()?;
            let source = self.text.get(start..self.end).unwrap_or("");
            let background = matches!(self.peek()?, Token::Operator("&")).then(|| title(source));
            lists.push(List { pipelines, background });
            if self.take("&")? || self.take(";")? || self.take("\n")? || self.at_end_of_body()? {
                continue;
            }
            let (what, position) = self.shown()?;
            return self.error(position, Problem::Unexpected(what));
        }
    }

    fn at_end_of_body(&mut self) -> Result<bool, Error> {
        if let Token::End | Token::Operator(")" | ";;") = self.peek()? {
            return Ok(true);
        }
        Ok(self.reserved()?.is_some_and(|word| CLOSERS.contains(&word)))
    }

    /// A body with something in it.
    #[inline(never)]
    fn commands(&mut self, open: (&'static str, usize)) -> Result<Body, Error> {
        let body = self.body()?;
        if !body.is_empty() {
            return Ok(body);
        }
        match self.shown()? {
            ("end", _) => self.error(open.1, Problem::Unclosed(open.0)),
            (what, position) => self.error(position, Problem::MissingCommand(what)),
        }
    }

    /// After `$(`, which stands at `at`.
    pub(crate) fn substitution(&mut self, at: usize) -> Result<Body, Error> {
        self.descend(at, SUBSTITUTION)?;
        let body = self.body()?;
        self.close_parenthesis("$(", at)?;
        self.depth -= SUBSTITUTION;
        Ok(body)
    }

    fn close_parenthesis(&mut self, what: &'static str, at: usize) -> Result<(), Error> {
        if self.take(")")? {
            return Ok(());
        }
        match self.shown()? {
            ("end", _) => self.error(at, Problem::Unclosed(what)),
            (what, position) => self.error(position, Problem::Unexpected(what)),
        }
    }

    #[inline(never)]
    fn list(&mut self) -> Result<Vec<(Connector, Pipeline)>, Error> {
        let mut pipelines = alloc::vec![(Connector::And, self.pipeline()?)];
        loop {
            let (connector, operator) = match self.peek()? {
                Token::Operator("&&") => (Connector::And, "&&"),
                Token::Operator("||") => (Connector::Or, "||"),
                _ => return Ok(pipelines),
            };
            self.after_operator(operator)?;
            pipelines.push((connector, self.pipeline()?));
        }
    }

    /// Takes an operator that a command must follow, maybe in a further line.
    fn after_operator(&mut self, operator: &'static str) -> Result<(), Error> {
        let position = self.start()?;
        self.ahead = None;
        self.newlines()?;
        match self.peek()? {
            Token::End => self.error(position, Problem::Unfinished(operator)),
            _ => Ok(()),
        }
    }

    #[inline(never)]
    fn pipeline(&mut self) -> Result<Pipeline, Error> {
        let (mut negated, mut timed) = (false, false);
        loop {
            match self.reserved()? {
                Some("!") if !negated => negated = true,
                Some("time") if !timed => timed = true,
                _ => break,
            }
            self.ahead = None;
        }
        let mut commands = alloc::vec![self.command()?];
        while let Token::Operator("|") = self.peek()? {
            self.after_operator("|")?;
            commands.push(self.command()?);
        }
        Ok(Pipeline { commands, negated, timed })
    }

    fn command(&mut self) -> Result<Command, Error> {
        self.count()?;
        let start = self.start()?;
        if let Some(compound) = self.compound(start)? {
            let redirections = self.redirections()?;
            return Ok(Command::Compound(Arc::new(compound), redirections));
        }
        if let Some(word) = self.reserved()?
            && word != "in"
        {
            let problem = match word {
                "!" | "time" => Problem::MissingCommand(word),
                word => Problem::Unexpected(word),
            };
            return self.error(start, problem);
        }
        let simple = self.simple()?;
        if let Token::Operator("(") = self.peek()? {
            return self.function(simple, start);
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && simple.redirections.is_empty() {
            let (what, position) = self.shown()?;
            return self.error(position, Problem::MissingCommand(what));
        }
        Ok(Command::Simple(simple))
    }

    /// `NAME` is there, `(` is next.
    #[inline(never)]
    fn function(&mut self, simple: Simple, start: usize) -> Result<Command, Error> {
        let position = self.start()?;
        let name = match (&simple.words[..], simple.assignments.is_empty(), simple.redirections.is_empty()) {
            ([word], true, true) => word.literal().filter(|name| is_name(name)).map(String::from),
            _ => None,
        };
        let Some(name) = name else { return self.error(position, Problem::Unexpected("(")) };
        self.ahead = None;
        self.close_parenthesis("(", position)?;
        self.newlines()?;
        let at = self.start()?;
        let Some(compound) = self.compound(at)? else {
            return match self.shown()? {
                ("end", _) => self.error(start, Problem::Unclosed("()")),
                (_, position) => self.error(position, Problem::Missing("{")),
            };
        };
        let redirections = self.redirections()?;
        Ok(Command::Function(name, Arc::new(Function { compound: Arc::new(compound), redirections })))
    }

    fn compound(&mut self, at: usize) -> Result<Option<Compound>, Error> {
        if let Token::Operator("(") = self.peek()? {
            if self.text.get(at..).is_some_and(|rest| rest.starts_with("((")) {
                return self.error(at, Problem::Unsupported("`((` (arithmetic is `$((…))`)"));
            }
            self.ahead = None;
            self.descend(at, 1)?;
            let body = self.commands(("(", at))?;
            self.close_parenthesis("(", at)?;
            self.depth -= 1;
            return Ok(Some(Compound::Subshell(body)));
        }
        let word = match self.reserved()? {
            Some(word @ ("{" | "if" | "while" | "until" | "for" | "case")) => word,
            _ => return Ok(None),
        };
        self.ahead = None;
        self.descend(at, 1)?;
        let open = (word, at);
        let compound = match word {
            "{" => {
                let body = self.commands(open)?;
                self.expect("}", open)?;
                Compound::Group(body)
            }
            "if" => self.conditions(open)?,
            "for" => self.for_each(open)?,
            "case" => self.cases(open)?,
            word => {
                let condition = self.commands(open)?;
                Compound::Loop { until: word == "until", condition, body: self.turns(open)? }
            }
        };
        self.depth -= 1;
        Ok(Some(compound))
    }

    /// `do` … `done`
    #[inline(never)]
    fn turns(&mut self, open: (&'static str, usize)) -> Result<Body, Error> {
        self.expect("do", open)?;
        let body = self.commands(open)?;
        self.expect("done", open)?;
        Ok(body)
    }

    #[inline(never)]
    fn conditions(&mut self, open: (&'static str, usize)) -> Result<Compound, Error> {
        let mut clauses = Vec::new();
        loop {
            let condition = self.commands(open)?;
            self.expect("then", open)?;
            clauses.push((condition, self.commands(open)?));
            if self.take_reserved("elif")? {
                continue;
            }
            let otherwise = if self.take_reserved("else")? { Some(self.commands(open)?) } else { None };
            self.expect("fi", open)?;
            return Ok(Compound::If(clauses, otherwise));
        }
    }

    #[inline(never)]
    fn for_each(&mut self, open: (&'static str, usize)) -> Result<Compound, Error> {
        let position = self.start()?;
        let name = self.word()?;
        let name = match name.as_ref().and_then(Word::literal) {
            Some(name) if is_name(name) => String::from(name),
            _ if matches!(self.ahead, Some(Ahead { token: Token::End, .. })) => {
                return self.error(open.1, Problem::Unclosed(open.0));
            }
            _ => return self.error(position, Problem::MissingName(open.0)),
        };
        self.newlines()?;
        let mut words = None;
        if self.take_reserved("in")? {
            let mut list = Vec::new();
            while let Some(word) = self.word()? {
                list.push(word);
            }
            words = Some(list);
        }
        self.take(";")?;
        self.newlines()?;
        Ok(Compound::For { name, words, body: self.turns(open)? })
    }

    #[inline(never)]
    fn cases(&mut self, open: (&'static str, usize)) -> Result<Compound, Error> {
        let Some(word) = self.word()? else {
            return match self.shown()? {
                ("end", _) => self.error(open.1, Problem::Unclosed(open.0)),
                (_, position) => self.error(position, Problem::Missing("word")),
            };
        };
        self.newlines()?;
        self.expect("in", open)?;
        let mut cases = Vec::new();
        loop {
            self.newlines()?;
            if self.take_reserved("esac")? {
                return Ok(Compound::Case(word, cases));
            }
            self.take("(")?;
            let mut patterns = Vec::new();
            loop {
                match self.word()? {
                    Some(pattern) => patterns.push(pattern),
                    None => return self.missing("pattern", open),
                }
                if self.take("|")? {
                    continue;
                }
                break;
            }
            if !self.take(")")? {
                return self.missing(")", open);
            }
            let body = self.body()?;
            cases.push((patterns, body));
            if !self.take(";;")? {
                self.expect("esac", open)?;
                return Ok(Compound::Case(word, cases));
            }
        }
    }

    fn missing<T>(&mut self, what: &'static str, open: (&'static str, usize)) -> Result<T, Error> {
        match self.shown()? {
            ("end", _) => self.error(open.1, Problem::Unclosed(open.0)),
            (_, position) => self.error(position, Problem::Missing(what)),
        }
    }

    fn redirections(&mut self) -> Result<Vec<Redirection>, Error> {
        let mut redirections = Vec::new();
        while let Some(redirection) = self.redirection()? {
            redirections.push(redirection);
        }
        Ok(redirections)
    }

    #[inline(never)]
    fn redirection(&mut self) -> Result<Option<Redirection>, Error> {
        let position = self.start()?;
        let Token::Redirection(stream, operator) = *self.peek()? else { return Ok(None) };
        self.ahead = None;
        let (usual, kind) = match operator {
            "<" => (0, RedirectionKind::Input),
            ">>" => (1, RedirectionKind::Append),
            ">&" => (1, RedirectionKind::Duplicate),
            "<&" => (0, RedirectionKind::Duplicate),
            _ => (1, RedirectionKind::Output),
        };
        let Some(target) = self.word()? else {
            return self.error(position, Problem::MissingFile(operator));
        };
        if kind == RedirectionKind::Duplicate && !matches!(target.literal(), Some("0" | "1" | "2")) {
            return self.error(position, Problem::Unsupported("`>&` and `<&` with anything but 0, 1 or 2"));
        }
        Ok(Some(Redirection { stream: stream.unwrap_or(usual), kind, target }))
    }

    #[inline(never)]
    fn simple(&mut self) -> Result<Simple, Error> {
        let mut simple = Simple { assignments: Vec::new(), words: Vec::new(), redirections: Vec::new() };
        loop {
            if let Some(redirection) = self.redirection()? {
                simple.redirections.push(redirection);
                continue;
            }
            let position = self.start()?;
            let Some(word) = self.word()? else { return Ok(simple) };
            if simple.words.is_empty() {
                if let Some(assigned) = self.assignment(&word, position)? {
                    // The pieces after the first one are moved, not copied.
                    let (name, first) = assigned;
                    let mut parts: Vec<Part> = Vec::new();
                    parts.extend(first.filter(|text| !text.is_empty()).map(Part::Literal));
                    parts.extend(word.parts.into_iter().skip(1));
                    self.home(&mut parts, position)?;
                    simple.assignments.push((name, Word { parts }));
                    continue;
                }
                if let Some(name) = word.literal().and_then(|text| REFUSED.into_iter().find(|name| *name == text)) {
                    return self.error(position, Problem::Unsupported(name));
                }
            }
            simple.words.push(word);
        }
    }

    /// The name and the beginning of the value, if the word has the form of an assignment.
    #[inline(never)]
    fn assignment(&self, word: &Word, position: usize) -> Result<Option<(String, Option<String>)>, Error> {
        let Some(Part::Literal(text)) = word.parts.first() else { return Ok(None) };
        let Some((name, value)) = text.split_once('=') else { return Ok(None) };
        if let Some(name) = name.strip_suffix('+')
            && is_name(name)
        {
            return self.error(position, Problem::Unsupported("`NAME+=`"));
        }
        Ok(is_name(name).then(|| (name.into(), Some(value.into()))))
    }
}

/// The beginning of a job's text, in one line.
fn title(source: &str) -> String {
    let source = source.trim_end();
    let mut title: String = source.chars().take(MAX_TITLE).map(|c| if c == '\n' { ' ' } else { c }).collect();
    if title.len() < source.len() {
        title.push('…');
    }
    title
}
