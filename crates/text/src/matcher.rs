//! Finds what expressions describe.
//!
//! Of all that begin farthest left the longest is found, as POSIX says. The engine is `regex-automata`'s simulation of an automaton (Pike's
//! machine): a line takes time by its length times that of the expression, whatever they are, and memory by the length of the expression.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::nfa::thompson::{Compiler, Config, WhichCaptures};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{Hir, HirKind, Look};

use crate::pattern::{self, Case, Syntax};

/// Bytes that the automaton of an expression may take.
const MAX_BYTES: usize = 256 * 1024;

/// The part of a line that has to be described.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Any part.
    Any,
    /// A part with no letters, digits or `_` beside it.
    Words,
    /// All of it.
    Line,
}

/// Finds what one of several expressions describes.
pub enum Matcher {
    /// Only these bytes.
    Bytes(Vec<u8>),
    /// An automaton.
    Automaton(Box<Automaton>),
}

/// An automaton, with what it needs while it runs.
pub struct Automaton {
    leftmost: PikeVM,
    leftmost_cache: pikevm::Cache,
    longest: PikeVM,
    longest_cache: pikevm::Cache,
}

impl Matcher {
    /// For expressions, one in each line of each text. `Err` = what is wrong.
    pub fn new(patterns: &[&str], syntax: Syntax, case: Case, extent: Extent) -> Result<Self, String> {
        let lines = patterns.iter().flat_map(|pattern| pattern.split('\n'));
        let all: Result<Vec<Hir>, String> = lines.map(|line| pattern::parse(line, syntax, case)).collect();
        let either = Hir::alternation(all?);
        let whole = match extent {
            Extent::Any => either,
            Extent::Words => around(Look::WordStartHalfAscii, either, Look::WordEndHalfAscii),
            Extent::Line => around(Look::Start, either, Look::End),
        };
        if let HirKind::Literal(literal) = whole.kind() {
            return Ok(Self::Bytes(literal.0.to_vec()));
        }
        Automaton::new(&whole).map(Box::new).map(Self::Automaton)
    }

    /// Whether a part of the line is described.
    pub fn is_in(&mut self, line: &[u8]) -> bool {
        match self {
            Self::Bytes(bytes) => find_bytes(line, bytes).is_some(),
            Self::Automaton(automaton) => automaton.is_in(line),
        }
    }

    /// The first part of the line that is described, from a place on.
    pub fn find(&mut self, line: &[u8], from: usize) -> Option<Range<usize>> {
        match self {
            Self::Bytes(bytes) => {
                let start = from + find_bytes(line.get(from..)?, bytes)?;
                Some(start..start + bytes.len())
            }
            Self::Automaton(automaton) => automaton.find(line, from),
        }
    }
}

fn around(before: Look, inside: Hir, behind: Look) -> Hir {
    Hir::concat(Vec::from([Hir::look(before), inside, Hir::look(behind)]))
}

/// Where bytes are in others.
fn find_bytes(text: &[u8], bytes: &[u8]) -> Option<usize> {
    let Some(first) = bytes.first() else { return Some(0) };
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.iter().position(|byte| byte == first)?;
        if text[at..].starts_with(bytes) {
            return Some(at);
        }
        from = at + 1;
    }
}

impl Automaton {
    fn new(expression: &Hir) -> Result<Self, String> {
        let config = Config::new().utf8(false).nfa_size_limit(Some(MAX_BYTES)).which_captures(WhichCaptures::Implicit);
        let states =
            Compiler::new().configure(config).build_from_hir(expression).map_err(|error| match error.size_limit() {
                Some(limit) => alloc::format!("the expression takes more than {} KiB", limit / 1024),
                None => error.to_string(),
            })?;
        let machine = |kind| {
            let config = pikevm::Config::new().match_kind(kind);
            PikeVM::builder().configure(config).build_from_nfa(states.clone()).map_err(|error| error.to_string())
        };
        let (leftmost, longest) = (machine(MatchKind::LeftmostFirst)?, machine(MatchKind::All)?);
        let (leftmost_cache, longest_cache) = (leftmost.create_cache(), longest.create_cache());
        Ok(Self { leftmost, leftmost_cache, longest, longest_cache })
    }

    fn is_in(&mut self, line: &[u8]) -> bool {
        let input = Input::new(line).earliest(true);
        self.leftmost.search_slots(&mut self.leftmost_cache, &input, &mut []).is_some()
    }

    fn find(&mut self, line: &[u8], from: usize) -> Option<Range<usize>> {
        if from > line.len() {
            return None;
        }
        let mut slots: [Option<NonMaxUsize>; 2] = [None; 2];
        let input = Input::new(line).range(from..);
        self.leftmost.search_slots(&mut self.leftmost_cache, &input, &mut slots)?;
        let start = slots[0]?.get();
        let input = Input::new(line).range(start..).anchored(Anchored::Yes);
        self.longest.search_slots(&mut self.longest_cache, &input, &mut slots)?;
        Some(start..slots[1]?.get())
    }
}
