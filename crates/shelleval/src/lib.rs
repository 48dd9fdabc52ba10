//! The interpreter of the shell's language, over a [`World`], which has programs, files and streams.
//!
//! | module | what |
//! |---|---|
//! | [`world`] | what the interpreter needs of the system |
//! | [`state`] | variables, functions, arguments, current directory |
//! | [`machine`] | the interpreter's frames |
//! | [`run`] | control flow, pipelines, programs |
//! | [`expand`], [`fields`] | from words to fields |
//! | [`pattern`], [`arithmetic`], [`condition`] | `*`, `$((…))`, `[` |
//! | [`builtins`] | the commands that change the shell |
//!
//! # No recursion
//! Compound commands, functions, `.` and `eval` are frames in a vector ([`machine::Frame`]), not calls: a thread's stack is
//! small, and how deep a script calls itself has a limit and an error. `break`, `return` and `exit` take frames away.
//!
//! # Subshells
//! There is no fork. `( … )` works on a copy of the state, which goes at its end. `$( … )`, a job in the background, and those
//! parts of a pipeline that are not programs are interpreters of their own, with a copy, in threads of the world.
//!
//! # What must hold
//! Whatever a script does, the memory taken has a limit: [`MAX_TEXT`], [`MAX_STATE`], [`MAX_HELD`], [`machine::MAX_FRAMES`],
//! [`machine::MAX_SUBSHELLS`]. Between two steps the world is asked whether it has room, and whether the person wants to stop.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod arithmetic;
mod builtins;
mod condition;
mod expand;
mod fields;
pub mod machine;
pub mod pattern;
mod run;
pub mod state;
pub mod world;

pub use builtins::NAMES;
pub use machine::Machine;
pub use state::{Shell, State};
pub use world::World;

/// Bytes that the words of one command, or what `$(…)` prints, may have.
pub const MAX_TEXT: usize = 32 * 1024;
/// Bytes of all variables, with their names.
pub const MAX_STATE: usize = 64 * 1024;
/// Bytes of all that frames hold: arguments of calls, words of loops, values that come back.
pub const MAX_HELD: usize = 96 * 1024;

/// The overhead of a text besides its bytes.
const OVERHEAD: usize = 48;
