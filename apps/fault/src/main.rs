//! `fault KIND`: commits a crime on purpose, so that it can be seen what the system does about it.
//!
//! There are crimes for which a domain dies ([`deaths`]), crimes that the nucleus refuses with an
//! error ([`refusals`]), and states that must not hurt it. `fault --all` commits all of those that leave us
//! alive and says whether the errors are the right ones. Unsafe code is the purpose here.
#![no_std]
#![no_main]

extern crate alloc;

mod deaths;
mod refusals;

use runtime::abi::Error;
use tool::{Arguments, println};

runtime::entry!(main);

/// What must come of it.
enum Expected {
    Death,
    Refusal(Error),
    Harmless,
}

/// A crime.
struct Crime {
    name: &'static str,
    what: &'static str,
    expected: Expected,
    commit: fn() -> Result<(), Error>,
    die: fn(),
}

impl Crime {
    const fn death(name: &'static str, what: &'static str, die: fn()) -> Self {
        Self { name, what, expected: Expected::Death, commit: || Ok(()), die }
    }
    const fn refusal(name: &'static str, what: &'static str, error: Error, commit: fn() -> Result<(), Error>) -> Self {
        Self { name, what, expected: Expected::Refusal(error), commit, die: || {} }
    }
    const fn harmless(name: &'static str, what: &'static str, commit: fn() -> Result<(), Error>) -> Self {
        Self { name, what, expected: Expected::Harmless, commit, die: || {} }
    }

    /// Commits it and tells what happened; true if that is right.
    fn run(&self) -> bool {
        match self.expected {
            Expected::Death => {
                (self.die)();
                println!("{}: nothing happened: that must not be", self.name);
                false
            }
            Expected::Refusal(right) => match (self.commit)() {
                Err(error) if error == right => {
                    println!("{}: refused: {error}", self.name);
                    true
                }
                Err(error) => {
                    println!("{}: refused: {error}, but it should be: {right}", self.name);
                    false
                }
                Ok(()) => {
                    println!("{}: not refused: that must not be", self.name);
                    false
                }
            },
            Expected::Harmless => match (self.commit)() {
                Ok(()) => {
                    println!("{}: no harm done", self.name);
                    true
                }
                Err(error) => {
                    println!("{}: {error}", self.name);
                    false
                }
            },
        }
    }
}

const HELP: &str = "\
usage: fault KIND
       fault --list | --all

Commits a crime on purpose. The domain dies of it, and the shell tells of what,
or the nucleus refuses it, and fault tells the error.

  --list  lists the kinds
  --all   commits everything that is refused, in turn; the status is the number
          of wrong answers
";

fn crimes() -> impl Iterator<Item = &'static Crime> {
    deaths::ALL.iter().chain(refusals::HARMLESS).chain(refusals::ALL)
}

fn main() -> u8 {
    let arguments = Arguments::new("fault", HELP);
    let Some(kind) = arguments.one("KIND") else { return tool::USAGE };
    match kind {
        "--list" => {
            for crime in crimes() {
                let end = match crime.expected {
                    Expected::Death => "dies",
                    Expected::Refusal(_) => "refused",
                    Expected::Harmless => "harmless",
                };
                println!("{:<20} {:<9} {}", crime.name, end, crime.what);
            }
            0
        }
        "--all" => {
            let alive = crimes().filter(|crime| !matches!(crime.expected, Expected::Death));
            let wrong = alive.filter(|crime| !crime.run()).count();
            if wrong == 0 {
                println!("all refused as they should be");
            }
            wrong.min(100) as u8
        }
        kind => match crimes().find(|crime| crime.name == kind) {
            Some(crime) => u8::from(!crime.run()),
            None => arguments.fail(kind, "no such kind; see fault --list"),
        },
    }
}
