//! The interpreter's data: a stack of frames.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::{self, Vec};

use shellparse::{Body, Compound};

use crate::state::{Shell, State, Variable};
use crate::world::{Streams, World};
use crate::{MAX_HELD, OVERHEAD};

/// Compound commands and calls in each other; each takes a few.
pub const MAX_FRAMES: usize = 600;
/// Subshells of their own thread, and scripts, in each other.
pub const MAX_SUBSHELLS: usize = 8;

/// Status of a command that cannot be understood, and of a script that went too far.
pub(crate) const MISUNDERSTOOD: u64 = 2;
/// Status of what was ended by Ctrl-C.
pub(crate) const INTERRUPTED: u64 = 130;
/// Status of a command whose output nobody reads.
pub(crate) const CLOSED: u64 = 141;

/// The work that goes on when all frames above are done.
pub(crate) enum Frame<W: World> {
    /// The lists of a body, from this pipeline of this list on.
    Lists { body: Body, list: usize, pipeline: usize },
    /// The end of `!` and `time`.
    After { negated: bool, since: Option<u64> },
    /// The branches of `if`, from this one on; its condition has run.
    If { compound: Arc<Compound>, clause: usize },
    /// `while` and `until`: the condition has run, or the body.
    Loop { compound: Arc<Compound>, tested: bool, status: u64 },
    /// `for`: the words that are left.
    For { compound: Arc<Compound>, words: vec::IntoIter<String> },
    /// A command whose words are expanded: it runs in this thread.
    Run(Vec<String>),
    /// Streams to come back to.
    Streams(Streams<W>),
    /// Variables to come back to, as after `NAME=value f`.
    Variables(Vec<(String, Option<Variable>)>),
    /// A function returns here: the caller's arguments, and what `local` hid.
    Call { arguments: Arc<[String]>, locals: Vec<(String, Option<Variable>)> },
    /// `.` returns here.
    Source,
    /// `( … )` and scripts end here.
    Subshell(alloc::boxed::Box<State>),
}

impl<W: World> Frame<W> {
    /// Bytes of texts that it holds.
    fn weight(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(|text| text.len() + OVERHEAD).sum();
        let variables = |list: &[(String, Option<Variable>)]| {
            let variable = |variable: &Option<Variable>| variable.as_ref().map_or(0, |variable| variable.value.len());
            list.iter().map(|(name, value)| name.len() + variable(value) + 2 * OVERHEAD).sum::<usize>()
        };
        match self {
            Self::For { words, .. } => texts(words.as_slice()),
            Self::Run(words) => texts(words),
            Self::Variables(list) => variables(list),
            Self::Call { arguments, locals } => texts(arguments) + variables(locals) + OVERHEAD,
            Self::Subshell(_) => 8 * OVERHEAD,
            _ => 0,
        }
    }
}

/// An interpreter.
pub struct Machine<W: World> {
    /// The system.
    pub world: W,
    /// Variables and so on.
    pub state: State,
    /// Where the streams lead now.
    pub streams: Streams<W>,
    pub(crate) frames: Vec<Frame<W>>,
    /// Status of the last `$(…)` in the words of a command.
    pub(crate) substituted: Option<u64>,
    /// Nothing goes on here: the work under way is taken away.
    pub(crate) aborted: bool,
    /// A pipe is its output: it ends when nobody reads what its commands write.
    pub(crate) is_part: bool,
}

impl<W: World> Machine<W> {
    /// One that has nothing to do.
    pub fn new(world: W, state: State, streams: Streams<W>) -> Self {
        Self { world, state, streams, frames: Vec::new(), substituted: None, aborted: false, is_part: false }
    }

    /// A copy for a subshell, in which nothing is under way.
    pub(crate) fn fork(&self, streams: Streams<W>) -> Result<Self, String> {
        let mut state = self.state.clone();
        state.depth = self.deeper()?;
        state.shell = Shell::new();
        Ok(Self::new(self.world.clone(), state, streams))
    }

    /// One level deeper than here.
    pub(crate) fn deeper(&self) -> Result<usize, String> {
        if self.state.depth < MAX_SUBSHELLS {
            return Ok(self.state.depth + 1);
        }
        Err(alloc::format!("pipelines, `$(…)` and scripts in more than {MAX_SUBSHELLS} levels"))
    }

    /// Says something on standard error output.
    pub(crate) fn say(&self, text: &str) {
        let _ = self.world.write(&self.streams[2], alloc::format!("{}: {text}\n", self.state.name).as_bytes());
    }

    /// Says why a command failed.
    pub(crate) fn fail(&mut self, status: u64, text: &str) {
        self.say(text);
        self.state.status = status;
    }

    /// Says why this shell, or subshell, does not go on.
    pub(crate) fn abort(&mut self, text: &str) {
        self.fail(MISUNDERSTOOD, text);
        self.aborted = true;
    }

    /// Puts a frame on top; does nothing, and says so, if there are too many, and nothing after [`Machine::abort`].
    pub(crate) fn push(&mut self, frame: Frame<W>) {
        if self.aborted {
            return self.put_back(frame);
        }
        let weight = frame.weight();
        if self.frames.len() >= MAX_FRAMES {
            self.abort(&alloc::format!("calls and compound commands in more than {MAX_FRAMES} levels"));
            self.put_back(frame);
        } else if weight > 0 && self.frames.iter().map(Frame::weight).sum::<usize>() + weight > MAX_HELD {
            self.abort(&alloc::format!("calls and loops hold more than {MAX_HELD} bytes"));
            self.put_back(frame);
        } else {
            self.frames.push(frame);
        }
    }

    /// Takes frames away up to the first that is so, which stays; whether there was one. The resources that they hold come back.
    pub(crate) fn unwind(&mut self, is: impl Fn(&Frame<W>) -> bool) -> bool {
        while let Some(frame) = self.frames.pop() {
            if is(&frame) {
                self.frames.push(frame);
                return true;
            }
            self.put_back(frame);
        }
        false
    }

    /// Undoes the effect of a frame that is taken away.
    pub(crate) fn put_back(&mut self, frame: Frame<W>) {
        let variables = |state: &mut State, list: Vec<(String, Option<Variable>)>| {
            // The oldest value of a name that stands there twice.
            for (name, variable) in list.into_iter().rev() {
                let _ = state.put(&name, variable);
            }
        };
        match frame {
            Frame::Streams(streams) => self.streams = streams,
            Frame::Variables(list) => variables(&mut self.state, list),
            Frame::Call { arguments, locals } => {
                self.state.arguments = arguments;
                variables(&mut self.state, locals);
            }
            Frame::Subshell(mut state) => {
                state.status = self.state.leave.unwrap_or(self.state.status);
                self.state = *state;
            }
            _ => {}
        }
    }
}
