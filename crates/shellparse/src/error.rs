//! An error in a text, and where it is.

use core::fmt;

/// The kind of error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// The text ends before what begins here does: a quote, `$(`, `if`, …
    Unclosed(&'static str),
    /// The text ends where a command must follow this operator.
    Unfinished(&'static str),
    /// `${…}` with something else in it than a parameter.
    BadVariable,
    /// The text ends with `\`.
    NothingToEscape,
    /// A command was expected before or at this.
    MissingCommand(&'static str),
    /// This was expected here.
    Missing(&'static str),
    /// A name was expected after this.
    MissingName(&'static str),
    /// A file name was expected after this operator.
    MissingFile(&'static str),
    /// This stands where nothing of the kind may.
    Unexpected(&'static str),
    /// Something that other shells know and this one does not.
    Unsupported(&'static str),
    /// Commands in commands in commands, or words in words.
    TooDeep,
    /// More words and commands than a text may have, or than there is memory for.
    TooLong,
}

/// A problem and its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error {
    /// Bytes before the place that the problem is about.
    pub position: usize,
    /// The kind of error.
    pub problem: Problem,
}

impl Error {
    /// Whether a longer text may be right: a prompt then asks for more.
    pub fn is_incomplete(&self) -> bool {
        matches!(self.problem, Problem::Unclosed(_) | Problem::Unfinished(_) | Problem::NothingToEscape)
    }

    /// Line and column in the text that was parsed, each from 1 on; a column is a character.
    pub fn place(&self, text: &str) -> (usize, usize) {
        let before = text.get(..self.position).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        (line, before.get(start..).unwrap_or("").chars().count() + 1)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            Problem::Unclosed(what) => write!(f, "`{what}` is never closed"),
            Problem::Unfinished(operator) => write!(f, "a command is missing after `{operator}`"),
            Problem::BadVariable => write!(f, "no parameter that this shell knows stands between `${{` and `}}`"),
            Problem::NothingToEscape => write!(f, "nothing follows the `\\`"),
            Problem::MissingCommand(at) => write!(f, "a command is missing at `{}`", Shown(at)),
            Problem::Missing(what) => write!(f, "`{what}` is missing"),
            Problem::MissingName(after) => write!(f, "a name must follow `{after}`: letters, digits, `_`"),
            Problem::MissingFile(operator) => write!(f, "a file name must follow `{operator}`"),
            Problem::Unexpected(what) => write!(f, "`{}` has no place here", Shown(what)),
            Problem::Unsupported(what) => write!(f, "this shell does not know {what}"),
            Problem::TooDeep => write!(f, "nested deeper than {} levels (`$(` counts for two)", crate::MAX_NESTING),
            Problem::TooLong => {
                write!(f, "more than {} words and commands, or than memory has room for", crate::MAX_NODES)
            }
        }
    }
}

/// A newline is shown by its name.
struct Shown(&'static str);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 == "\n" { "end of line" } else { self.0 })
    }
}

impl core::error::Error for Error {}
