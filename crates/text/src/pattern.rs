//! Regular expressions as POSIX writes them (XBD 9, "Regular Expressions"), with what GNU adds: `\+ \? \|` in basic ones, and
//! `\w \W \s \S \< \> \b \B` in both.
//!
//! They are read into the form of `regex-syntax`. Classes and `-i` know the letters of ASCII; a character is one of UTF-8. There are no
//! back references.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, Look, Repetition};

/// How an expression is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syntax {
    /// `\(` begins a group, `(` means itself.
    Basic,
    /// `(` begins a group.
    Extended,
    /// Each character means itself.
    Fixed,
}

pub use crate::glob::Case;

/// Groups in each other; a stack is needed for each.
const MAX_DEPTH: usize = 60;
/// Most repetitions that a number can ask for.
const MAX_REPETITIONS: u32 = 32767;

/// Parses an expression. `Err` = what is wrong with it.
pub fn parse(pattern: &str, syntax: Syntax, case: Case) -> Result<Hir, String> {
    let mut parser = Parser { rest: pattern, syntax, case, depth: 0 };
    if syntax == Syntax::Fixed {
        return Ok(Hir::concat(pattern.chars().map(|character| parser.literal(character)).collect()));
    }
    let whole = parser.alternatives()?;
    if parser.rest.is_empty() { Ok(whole) } else { Err("unmatched ) or \\)".into()) }
}

/// An element of an expression.
enum Token {
    Literal(char),
    Any,
    Class(ClassUnicode),
    Look(Look),
    Open,
    Close,
    Or,
    Repeat(u32, Option<u32>),
}

struct Parser<'p> {
    rest: &'p str,
    syntax: Syntax,
    case: Case,
    depth: usize,
}

/// Where the next element stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// At the start of an alternative.
    Start,
    /// After the `^` there.
    Anchored,
    /// After something that can be repeated.
    Behind,
}

impl<'p> Parser<'p> {
    fn alternatives(&mut self) -> Result<Hir, String> {
        let mut alternatives = Vec::from([self.sequence()?]);
        loop {
            let before = self.rest;
            match self.token(At::Behind)? {
                Some(Token::Or) => alternatives.push(self.sequence()?),
                _ => {
                    self.rest = before;
                    return Ok(Hir::alternation(alternatives));
                }
            }
        }
    }

    fn sequence(&mut self) -> Result<Hir, String> {
        let mut parts: Vec<Hir> = Vec::new();
        let mut at = At::Start;
        loop {
            let before = self.rest;
            let part = match self.token(at)? {
                None | Some(Token::Or | Token::Close) => {
                    self.rest = before;
                    return Ok(Hir::concat(parts));
                }
                Some(Token::Repeat(min, max)) => {
                    let sub = Box::new(parts.pop().unwrap_or(Hir::empty()));
                    Hir::repetition(Repetition { min, max, greedy: true, sub })
                }
                Some(Token::Open) => self.group()?,
                Some(Token::Literal(character)) => self.literal(character),
                Some(Token::Any) => {
                    let mut none = ClassUnicode::empty();
                    none.negate();
                    Hir::class(Class::Unicode(none))
                }
                Some(Token::Class(class)) => Hir::class(Class::Unicode(class)),
                Some(Token::Look(look)) => {
                    parts.push(Hir::look(look));
                    at = if look == Look::Start { At::Anchored } else { At::Behind };
                    continue;
                }
            };
            parts.push(part);
            at = At::Behind;
        }
    }

    fn group(&mut self) -> Result<Hir, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} groups in each other"));
        }
        let group = self.alternatives()?;
        let end = self.token(At::Behind)?;
        self.depth -= 1;
        match end {
            Some(Token::Close) => Ok(group),
            _ => Err("unmatched ( or \\(".into()),
        }
    }

    fn literal(&self, character: char) -> Hir {
        let other = if character.is_ascii_lowercase() {
            character.to_ascii_uppercase()
        } else {
            character.to_ascii_lowercase()
        };
        if self.case == Case::Same && other != character {
            let both = [character, other].map(|letter| ClassUnicodeRange::new(letter, letter));
            return Hir::class(Class::Unicode(ClassUnicode::new(both)));
        }
        Hir::literal(character.encode_utf8(&mut [0; 4]).as_bytes())
    }

    /// The next element; `None` at the end.
    fn token(&mut self, at: At) -> Result<Option<Token>, String> {
        let mut characters = self.rest.chars();
        let Some(first) = characters.next() else { return Ok(None) };
        self.rest = characters.as_str();
        let extended = self.syntax == Syntax::Extended;
        let token = match first {
            '\\' => return self.escaped(at).map(Some),
            '.' => Token::Any,
            '[' => Token::Class(self.bracket()?),
            '*' if extended || at == At::Behind => Token::Repeat(0, None),
            '^' if extended || at == At::Start => Token::Look(Look::Start),
            '$' if extended || self.ends_here() => Token::Look(Look::End),
            '(' if extended => Token::Open,
            ')' if extended && self.depth > 0 => Token::Close,
            '|' if extended => Token::Or,
            '+' if extended => Token::Repeat(1, None),
            '?' if extended => Token::Repeat(0, Some(1)),
            // Text that is no number of repetitions means itself there.
            '{' if extended => match self.interval("}") {
                Some(interval) => return interval.map(Some),
                None => Token::Literal('{'),
            },
            literal => Token::Literal(literal),
        };
        Ok(Some(token))
    }

    /// Whether an alternative of a basic expression ends here.
    fn ends_here(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with("\\)") || self.rest.starts_with("\\|")
    }

    /// Reads what follows a backslash.
    fn escaped(&mut self, at: At) -> Result<Token, String> {
        let mut characters = self.rest.chars();
        let character = characters.next().ok_or("trailing backslash")?;
        self.rest = characters.as_str();
        let basic = self.syntax == Syntax::Basic;
        Ok(match character {
            '(' if basic => Token::Open,
            ')' if basic => Token::Close,
            '|' if basic => Token::Or,
            '+' if basic && at == At::Behind => Token::Repeat(1, None),
            '?' if basic && at == At::Behind => Token::Repeat(0, Some(1)),
            '{' if basic && at != At::Behind => return Err("nothing before \\{ that could be repeated".into()),
            '{' if basic => return self.interval("\\}").unwrap_or(Err("no number of repetitions after \\{".into())),
            '<' => Token::Look(Look::WordStartAscii),
            '>' => Token::Look(Look::WordEndAscii),
            'b' => Token::Look(Look::WordAscii),
            'B' => Token::Look(Look::WordAsciiNegate),
            'w' | 'W' => Token::Class(class(&WORD, character == 'W')),
            's' | 'S' => Token::Class(class(&SPACE, character == 'S')),
            '1'..='9' => return Err(format!("\\{character}: there are no back references")),
            literal => Token::Literal(literal),
        })
    }

    /// A number of repetitions up to what ends it; `None` if there is none, and nothing is taken.
    fn interval(&mut self, end: &str) -> Option<Result<Token, String>> {
        let (text, rest) = self.rest.split_once(end)?;
        let (least, most) = text.split_once(',').map_or((text, None), |(least, most)| (least, Some(most)));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(least) || !most.is_none_or(is_number) || text.is_empty() {
            return None;
        }
        let number = |digits: &str| digits.parse::<u32>().ok().filter(|number| *number <= MAX_REPETITIONS);
        self.rest = rest;
        let too_many = || Err(format!("{{{text}}}: more than {MAX_REPETITIONS} repetitions"));
        let Some(min) = (if least.is_empty() { Some(0) } else { number(least) }) else { return Some(too_many()) };
        let max = match most {
            None => Some(min),
            Some("") => None,
            Some(most) => match number(most) {
                Some(most) => Some(most),
                None => return Some(too_many()),
            },
        };
        if max.is_some_and(|max| max < min) {
            return Some(Err(format!("{{{text}}}: the second number is less than the first")));
        }
        Some(Ok(Token::Repeat(min, max)))
    }

    /// A bracket expression, after its `[`.
    fn bracket(&mut self) -> Result<ClassUnicode, String> {
        let unmatched = || String::from("unmatched [, [^, [:, [. or [=");
        let negated = self.take("^");
        let mut ranges = Vec::new();
        let mut is_first = true;
        loop {
            if !is_first && self.take("]") {
                break;
            }
            is_first = false;
            if self.take("[:") {
                let (name, rest) = self.rest.split_once(":]").ok_or_else(unmatched)?;
                self.rest = rest;
                ranges.extend_from_slice(named(name).ok_or_else(|| format!("[:{name}:] is no class of characters"))?);
                continue;
            }
            let low = self.member().ok_or_else(unmatched)?;
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            let high = match is_range && self.take("-") {
                true => self.member().ok_or_else(unmatched)?,
                false => low,
            };
            if high < low {
                return Err(format!("{low}-{high}: the range ends before it starts"));
            }
            ranges.push((low, high));
        }
        if self.case == Case::Same {
            let letters = [('a', 'z', 'A'), ('A', 'Z', 'a')];
            let others: Vec<_> =
                ranges.iter().flat_map(|range| letters.map(|letters| other_case(*range, letters))).collect();
            ranges.extend(others.into_iter().flatten());
        }
        Ok(class(&ranges, negated))
    }

    /// A single character of a bracket expression.
    fn member(&mut self) -> Option<char> {
        for (open, close) in [("[.", ".]"), ("[=", "=]")] {
            if self.take(open) {
                let (text, rest) = self.rest.split_once(close)?;
                self.rest = rest;
                let mut characters = text.chars();
                return characters.next().filter(|_| characters.next().is_none());
            }
        }
        let mut characters = self.rest.chars();
        let member = characters.next()?;
        self.rest = characters.as_str();
        Some(member)
    }

    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

type Range = (char, char);

/// The part of a range that is letters from `first` to `last`, as letters of the other case.
fn other_case((low, high): Range, (first, last, other): (char, char, char)) -> Option<Range> {
    let (low, high) = (low.max(first), high.min(last));
    let moved = |letter: char| char::from(letter as u8 - first as u8 + other as u8);
    (low <= high).then(|| (moved(low), moved(high)))
}

fn class(ranges: &[Range], negated: bool) -> ClassUnicode {
    let mut class = ClassUnicode::new(ranges.iter().map(|(low, high)| ClassUnicodeRange::new(*low, *high)));
    if negated {
        class.negate();
    }
    class
}

const WORD: [Range; 4] = [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
const SPACE: [Range; 2] = [('\t', '\r'), (' ', ' ')];

fn named(name: &str) -> Option<&'static [Range]> {
    Some(match name {
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "digit" => &[('0', '9')],
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "upper" => &[('A', 'Z')],
        "lower" => &[('a', 'z')],
        "space" => &SPACE,
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "print" => &[(' ', '~')],
        "graph" => &[('!', '~')],
        "cntrl" => &[('\0', '\x1f'), ('\x7f', '\x7f')],
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    })
}
