//! What is wrong with a line, and where.

use core::fmt;

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// A quote that never ends.
    UnclosedQuote(char),
    /// `${` without `}`.
    UnclosedBrace,
    /// `${}` or `${` followed by something that is no name.
    BadVariable,
    /// The line ends with `\`.
    NothingToEscape,
    /// A command was expected before or after this operator.
    MissingCommand(&'static str),
    /// A file name was expected after this operator.
    MissingFile(&'static str),
    /// The same stream is redirected twice.
    RedirectedTwice(&'static str),
    /// Something that other shells know and this one does not.
    Unsupported(&'static str),
}

/// A problem and its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error {
    /// Bytes before the place that the problem is about.
    pub position: usize,
    /// What it is.
    pub problem: Problem,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            Problem::UnclosedQuote(quote) => write!(f, "the quote {quote} is never closed"),
            Problem::UnclosedBrace => write!(f, "`${{` without `}}`"),
            Problem::BadVariable => write!(f, "between `${{` and `}}` stands a name: letters, digits, `_`, or `?`"),
            Problem::NothingToEscape => write!(f, "nothing follows the `\\`"),
            Problem::MissingCommand(operator) => write!(f, "a command is missing at `{operator}`"),
            Problem::MissingFile(operator) => write!(f, "a file name must follow `{operator}`"),
            Problem::RedirectedTwice(stream) => write!(f, "standard {stream} is redirected twice"),
            Problem::Unsupported(what) => write!(f, "this shell does not know {what}"),
        }?;
        write!(f, " (at character {})", self.position + 1)
    }
}

impl core::error::Error for Error {}
