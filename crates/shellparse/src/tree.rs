//! The tree: lists, pipelines, commands, words.
//!
//! Parts that an interpreter keeps while it runs something else are behind an `Arc`: bodies and compound commands.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Lists, one after the other: a script, or the inside of a compound command.
pub type Body = Arc<[List]>;

/// When the next pipeline of a list runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connector {
    /// `&&`: if the one before succeeded.
    And,
    /// `||`: if the one before failed.
    Or,
}

/// Pipelines connected by `&&` and `||`.
#[derive(PartialEq, Eq, Debug)]
pub struct List {
    /// In order, each with its condition, that of the first is not asked; evaluated from left to right with equal precedence.
    pub pipelines: Vec<(Connector, Pipeline)>,
    /// `&`: the shell does not wait for it. The text that it comes from.
    pub background: Option<String>,
}

/// Commands connected by `|`; at least one.
#[derive(PartialEq, Eq, Debug)]
pub struct Pipeline {
    /// In the order in which the bytes flow.
    pub commands: Vec<Command>,
    /// `!`: fails if it succeeds.
    pub negated: bool,
    /// `time`: says how long it took.
    pub timed: bool,
}

/// One part of a pipeline.
#[derive(PartialEq, Eq, Debug)]
pub enum Command {
    /// Words, redirections and assignments.
    Simple(Simple),
    /// `if`, `while`, `{`, …, and redirections for all of it.
    Compound(Arc<Compound>, Vec<Redirection>),
    /// `NAME() COMPOUND`.
    Function(String, Arc<Function>),
}

/// A simple command: assignments, words (the first one names it), redirections; at least one of the three.
#[derive(PartialEq, Eq, Debug)]
pub struct Simple {
    /// `NAME=value` before the name of the command.
    pub assignments: Vec<(String, Word)>,
    /// Name and arguments.
    pub words: Vec<Word>,
    /// In their order.
    pub redirections: Vec<Redirection>,
}

/// The body of a function.
#[derive(PartialEq, Eq, Debug)]
pub struct Function {
    /// Its body.
    pub compound: Arc<Compound>,
    /// Redirections for each call.
    pub redirections: Vec<Redirection>,
}

/// A compound command.
#[derive(PartialEq, Eq, Debug)]
pub enum Compound {
    /// `{ …; }`
    Group(Body),
    /// `( … )`
    Subshell(Body),
    /// `if`, `elif`: conditions and what they lead to; and `else`.
    If(Vec<(Body, Body)>, Option<Body>),
    /// `while`, `until`.
    Loop {
        /// Status of the condition at which it goes on: 0 of `while`.
        until: bool,
        /// Runs before each turn.
        condition: Body,
        /// Runs in each turn.
        body: Body,
    },
    /// `for`.
    For {
        /// The variable.
        name: String,
        /// The words that it goes through; none: the arguments.
        words: Option<Vec<Word>>,
        /// Runs in each turn.
        body: Body,
    },
    /// `case`: the word, and patterns with what they lead to.
    Case(Word, Vec<(Vec<Word>, Body)>),
}

/// The effect of a redirection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RedirectionKind {
    /// `<`: from a file.
    Input,
    /// `>`: into a file that is emptied first.
    Output,
    /// `>>`: to the end of a file.
    Append,
    /// `>&`, `<&`: where another stream leads.
    Duplicate,
}

/// A redirection.
#[derive(PartialEq, Eq, Debug)]
pub struct Redirection {
    /// 0, 1 or 2.
    pub stream: usize,
    /// Its effect.
    pub kind: RedirectionKind,
    /// The file, or the number of the other stream.
    pub target: Word,
}

/// A word: its pieces; `''` is one quoted piece without characters.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Word {
    /// In order.
    pub parts: Vec<Part>,
}

impl Word {
    /// Its text if it is one without quotes and without expansions.
    pub fn literal(&self) -> Option<&str> {
        match &self.parts[..] {
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }
}

/// A piece of a word.
#[derive(PartialEq, Eq, Debug)]
pub enum Part {
    /// Characters without quotes: `*`, `?` and `[` mean something.
    Literal(String),
    /// Characters that stand for themselves.
    Quoted(String),
    /// `~` at the beginning.
    Home,
    /// `$NAME`, `${NAME…}`.
    Parameter {
        /// Inside `"`.
        quoted: bool,
        /// Which one.
        name: Name,
        /// The change of its value.
        change: Change,
    },
    /// `$(…)`
    Command {
        /// Inside `"`.
        quoted: bool,
        /// The commands that run.
        body: Body,
    },
    /// `$((…))`
    Arithmetic {
        /// Inside `"`.
        quoted: bool,
        /// The expression, in which parameters are replaced first.
        expression: Word,
    },
}

/// A parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Name {
    /// `$NAME`
    Variable(String),
    /// `$1`, …; 0 is the name of the script.
    Argument(usize),
    /// `$?`
    Status,
    /// `$#`
    Count,
    /// `$@`: all arguments, each for itself.
    Each,
    /// `$*`: all arguments, in quotes as one.
    All,
}

/// The change of the value of a parameter.
#[derive(PartialEq, Eq, Debug)]
pub enum Change {
    /// Nothing.
    None,
    /// `${#NAME}`: its length.
    Length,
    /// `${NAME-word}`, `=`, `+`, `?`.
    Default {
        /// Of these four, which.
        what: Alternative,
        /// With a `:`, an empty value is as good as none.
        or_empty: bool,
        /// The other value, or the message.
        word: Word,
    },
    /// `${NAME#pattern}`, `##`, `%`, `%%`: without what matches at one of its ends.
    Trim {
        /// `%`: at its end.
        at_end: bool,
        /// Doubled: as much as can be.
        longest: bool,
        /// The pattern.
        pattern: Word,
    },
}

/// The effect of `${NAME-word}` and its kin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alternative {
    /// `-`: another value.
    Use,
    /// `=`: and the variable gets it.
    Assign,
    /// `+`: the other value if there is one, else nothing.
    Instead,
    /// `?`: an error.
    Refuse,
}

/// Is `name` a name that a variable may have?
pub fn is_name(name: &str) -> bool {
    name.starts_with(is_name_start) && name.chars().all(is_name_part)
}

pub(crate) fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

pub(crate) fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
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
