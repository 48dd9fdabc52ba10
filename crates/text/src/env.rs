//! `env`: the environment, and programs with another one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::call::{Call, Exit, Unstarted};

/// The text of `--help`.
pub const HELP: &str = "\
usage: env [-i] [-u NAME]... [NAME=VALUE]... [PROGRAM [ARGUMENT...]]

Runs a program with another environment, and ends with its status. Without a
program, shows the environment.

  -i       begins with an empty environment
  -u NAME  without this variable

Status: that of the program; 125 env was called wrongly, 126 the program could
not be started, 127 it does not exist.
";

/// The status when env itself fails.
pub const TROUBLE: u8 = 125;
const NOT_STARTED: Exit = Exit(126);
const NOT_FOUND: Exit = Exit(127);

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let mut environment = call.system.environment();
    let mut words = call.words();
    // Options end at the first word that is none: those after it are the program's.
    loop {
        words = match words {
            ["-i" | "-", rest @ ..] => {
                environment.clear();
                rest
            }
            ["-u", name, rest @ ..] => {
                remove(&mut environment, name);
                rest
            }
            ["--", rest @ ..] => {
                words = rest;
                break;
            }
            [word, ..] if word.starts_with('-') => {
                let cause = if *word == "-u" { "-u needs a value" } else { &format!("unknown option {word}") };
                call.wrong(cause);
                return Err(Exit(TROUBLE));
            }
            _ => break,
        };
    }
    while let [word, rest @ ..] = words
        && let Some((name, _)) = word.split_once('=')
    {
        if name.is_empty() {
            return Err(call.fail(word, "a variable needs a name"));
        }
        let known = environment.iter_mut().find(|variable| variable.split('=').next() == Some(name));
        match known {
            Some(variable) => *variable = String::from(*word),
            None => environment.push(String::from(*word)),
        }
        words = rest;
    }
    let [program, ..] = words else {
        for variable in environment {
            call.print(&format!("{variable}\n"))?;
        }
        return Ok(0);
    };
    call.flush()?;
    call.system.start(words, &environment).map_err(|cause| match cause {
        Unstarted::NotFound(cause) => {
            call.fail(program, cause);
            NOT_FOUND
        }
        Unstarted::Failed(cause) => {
            call.fail(program, cause);
            NOT_STARTED
        }
    })
}

fn remove(environment: &mut Vec<String>, name: &str) {
    environment.retain(|variable| variable.split('=').next() != Some(name));
}
