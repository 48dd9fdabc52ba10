//! Commands of this shell that are not of the language: jobs, `kill`, `help`.

use alloc::string::{String, ToString};

use inspection as inspect;
use protocols::parent::State;
use protocols::process::Force;
use runtime::label;
use shelleval::State as ShellState;

use crate::launch::PROC;
use crate::names::{CHLABEL, DECLASSIFY, DROP, EXPLAIN, NEW_COMPARTMENT};
use crate::terminal::say;
use crate::{compartments, explain, jobs};

/// The result of a built-in command.
pub struct Done {
    /// Its status.
    pub status: u64,
    /// Its text for standard output.
    pub text: String,
}

const HELP: &str = "\
Commands of the shell:
  cd [DIRECTORY]        changes the current directory (without: to $HOME)
  pwd                   shows it
  exit [STATUS]         ends a script; at the prompt stops the machine
  help                  this text; PROGRAM --help describes a program
  history               lines typed so far; !! is the last of them
  jobs                  what runs in the background, here and in other shells
  fg [NUMBER]           waits for a background job; Ctrl-C then ends it
  wait                  waits for all background jobs of this shell
  kill [-f] WHAT ...    ends programs and components, by name or by number as ps
                        shows it, and background jobs: kill %1. What cannot be
                        started again is ended by force only: the machine may stop
  pin CPUS PROGRAM ...  runs a program on these CPUs only: pin 0,2-3 ls /
  new-compartment NAME  makes a compartment, with a directory /compartments/NAME
  run --taint NAME PROGRAM ...  runs a program that may read what the compartment has,
                        and tell it to nobody outside of it
  with NAME PROGRAM ... runs a program that owns the compartment: it may tell it to
                        anybody. NAME:0 only proves it, NAME:1 may become tainted.
                        The system's own files are in system. With admin:0 it ends
                        components, as kill does, and sees all that runs
  chlabel NAME FILE ... moves files to a compartment, - to none
  declassify FILE ...   moves files out of their compartments, for all to read
  drop NAME             gives up the ownership of a compartment: then this shell does
                        none of these for it, until it is started again
  explain FROM TO       says whether data may go, and why not: FILE, COMPARTMENT,
                        network, terminal or the number of a program
  sh FILE [WORD ...]    runs a script; sh -c TEXT; FILE does too if it has a /
  . FILE, eval WORD ... run a script, or a text, in this shell
  time COMMAND          says how long it took
  test, [ ... ]         -e -f -d -s -n -z = != -eq -ne -lt -le -gt -ge !
  read [-r] NAME ...    reads a line into variables
  export NAME[=VALUE]   gives a variable to programs
  set [-e] [-u] [-- WORD ...]   options, $1 ...; without: shows all variables
  unset NAME, local NAME[=VALUE], shift, return, break, continue, :, true, false

What can be written:
  a ; b    a && b    a || b    a | b    a &    ! a    # comment
  > FILE   >> FILE   < FILE    2> FILE  2>&1   >&2    { a; b; }    ( a; b )
  if a; then b; elif c; then d; else e; fi       while a; do b; done   until
  for NAME in WORD ...; do b; done               case WORD in a|b*) c;; esac
  NAME() { ...; }   NAME=VALUE   NAME=VALUE a
  'text'   \"text $NAME\"   \\x   * ? [a-z]   ~   $(a)   $((1 + 2))
  $NAME  $1 $# \"$@\" $* $? $0  ${NAME:-b} := :+ :? ${#NAME} ${NAME%b} %% # ##

Keys: arrows, Home, End, Tab completes, Ctrl-A/E/K/U/W/Y, Ctrl-R, Ctrl-L, Ctrl-C,
Ctrl-D.
";

fn done(status: u64, text: impl Into<String>) -> Done {
    Done { status, text: text.into() }
}

fn refuse(name: &str, cause: &str) -> Done {
    say!("shell: {name}: {cause}");
    done(1, "")
}

/// Runs one of [`crate::names::OWN`] in this shell: `words[0]` is its name.
pub fn run(state: &ShellState, words: &[String], history: &[String]) -> Done {
    let shell = &state.shell;
    let Some((name, arguments)) = words.split_first() else { return done(0, "") };
    let first = arguments.first().map(String::as_str);
    match name.as_str() {
        "help" => done(0, alloc::format!("{HELP}\nPrograms:\n{}", programs())),
        "history" => {
            let lines = history.iter().enumerate();
            done(0, lines.map(|(number, line)| alloc::format!("{:>4}  {line}\n", number + 1)).collect::<String>())
        }
        "jobs" => done(0, jobs::list(shell)),
        "fg" => {
            let number = match first.map(|text| text.trim_start_matches('%').parse()) {
                None => None,
                Some(Ok(number)) => Some(number),
                Some(Err(_)) => return refuse(name, "the job is a number"),
            };
            match jobs::bring_to_foreground(shell, number) {
                Some(status) => done(status, ""),
                None => refuse(name, "no such job"),
            }
        }
        "wait" => {
            let mut status = 0;
            for number in jobs::numbers(shell) {
                status = jobs::bring_to_foreground(shell, Some(number)).unwrap_or(status);
            }
            done(status, "")
        }
        NEW_COMPARTMENT => match arguments {
            [compartment] => finish(name, compartments::make(compartment).err()),
            _ => usage("new-compartment NAME"),
        },
        CHLABEL => match arguments {
            [compartment, paths @ ..] if !paths.is_empty() => {
                let joined = match compartment.as_str() {
                    "-" => Ok(0),
                    other => compartments::handle(other).map(label::secret),
                };
                match joined {
                    Ok(joined) => finish(name, compartments::change(&state.directory, paths, joined)),
                    Err(cause) => refuse(name, &cause),
                }
            }
            _ => usage("chlabel COMPARTMENT|- FILE..."),
        },
        EXPLAIN => match arguments {
            [from, to] => match explain::explain(&state.directory, from, to) {
                Ok((allowed, text)) => done(u64::from(!allowed), text),
                Err(cause) => refuse(name, &cause),
            },
            _ => usage(
                "explain FROM TO; each is FILE (with a /), COMPARTMENT, network, terminal or the number of a program",
            ),
        },
        DROP => match arguments {
            [compartment] => finish(name, compartments::drop(compartment).err()),
            _ => usage("drop COMPARTMENT"),
        },
        DECLASSIFY if arguments.is_empty() => usage("declassify FILE..."),
        DECLASSIFY => finish(name, compartments::change(&state.directory, arguments, 0)),
        _ => done(kill(arguments), ""),
    }
}

fn usage(text: &str) -> Done {
    say!("usage: {text}");
    done(2, "")
}

/// Says what went wrong.
fn finish(name: &str, failures: impl IntoIterator<Item = String>) -> Done {
    let mut status = 0;
    for cause in failures {
        say!("shell: {name}: {cause}");
        status = 1;
    }
    done(status, "")
}

/// Ends what the words name; gives the status.
fn kill(arguments: &[String]) -> u64 {
    let (force, words) = match arguments.split_first() {
        Some((option, words)) if option == "-f" => (Force::Forced, words),
        _ => (Force::Gentle, arguments),
    };
    if words.is_empty() || words.iter().any(|word| word.starts_with('-')) {
        say!("usage: kill [-f] PROGRAM|COMPONENT|NUMBER|%JOB...");
        return 2;
    }
    let mut status = 0;
    for word in words {
        if let Err(cause) = end(word, force) {
            say!("kill: {word}: {cause}");
            status = 1;
        }
    }
    status
}

fn end(word: &str, force: Force) -> Result<(), String> {
    if let Some(job) = word.strip_prefix('%') {
        return if job.parse().is_ok_and(jobs::end) { Ok(()) } else { Err("no such job".into()) };
    }
    let number = match word.parse() {
        Ok(number) => number,
        Err(_) => {
            let domains = inspect::domains().map_err(|error| error.to_string())?;
            inspect::only(&domains, word).map_err(|cause| match inspect::state(word) {
                Ok(State::Waits) => "it does not run; it is started later",
                Ok(State::Dead) => "it does not run, and nobody starts it again",
                _ => cause,
            })?
        }
    };
    PROC.kill_domain(number, force).map_err(|error| error.to_string())
}

/// The names of programs, in lines.
fn programs() -> String {
    let mut text = String::from(" ");
    let mut column = 1;
    for (name, _) in crate::complete::names("/bin") {
        if column + name.len() + 1 > 76 {
            text.push_str("\n ");
            column = 1;
        }
        text.push(' ');
        text.push_str(&name);
        column += name.len() + 1;
    }
    text.push('\n');
    text
}
