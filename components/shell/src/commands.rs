//! Commands of the shell itself: those that change it, and `help`.

use alloc::string::{String, ToString};

use inspection as inspect;
use interfaces::file::Kind;
use interfaces::parent::State;
use interfaces::process::Force;
use runtime::stream::FILE_SYSTEM;
use shellparse::tokens::is_name;

use crate::jobs;
use crate::launch::PROC;
use crate::session::Session;
use crate::terminal::say;

/// What a built-in command did.
pub struct Done {
    /// Its status.
    pub status: u64,
    /// What it says to standard output.
    pub text: String,
}

const HELP: &str = "\
Commands of the shell:
  cd [DIRECTORY]        changes the current directory (without: to $HOME)
  pwd                   shows it
  exit [STATUS]         stops the machine
  help                  this text; PROGRAM --help tells about a program
  history               lines typed so far
  jobs                  what runs in the background
  fg [NUMBER]           waits for a background job; Ctrl-C then ends it
  wait                  waits for all background jobs
  kill [-f] WHAT ...    ends programs and components, by name or by number as ps
                        shows it, and background jobs: kill %1. What cannot be
                        started again is ended by force only: the machine may stop
  pin CPUS PROGRAM ...  runs a program on these CPUs only: pin 0,2-3 ls /
  allow PROGRAM ...     runs a program that may end components, as kill does
  export NAME[=VALUE]   gives a variable to programs
  set [NAME=VALUE]      sets a variable, or shows all
  unset NAME            removes a variable

What can be written:
  a ; b    a && b    a || b    a | b    a &    # comment
  > FILE   >> FILE   < FILE    2> FILE
  'text'   \"text $NAME\"   \\x   $NAME   ${NAME}   $?   NAME=VALUE

Keys: arrows, Home, End, Tab completes, Ctrl-A/E/K/U/W/Y, Ctrl-L, Ctrl-C, Ctrl-D.
";

fn done(status: u64, text: impl Into<String>) -> Option<Done> {
    Some(Done { status, text: text.into() })
}

fn refuse(name: &str, cause: &str) -> Option<Done> {
    say!("shell: {name}: {cause}");
    done(1, "")
}

/// Runs the command if it is one of the shell's own. `alone` = not in a pipeline.
pub fn run(session: &mut Session, words: &[String], alone: bool) -> Option<Done> {
    let (name, arguments) = words.split_first()?;
    let first = arguments.first().map(String::as_str);
    match name.as_str() {
        "pwd" => done(0, alloc::format!("{}\n", session.directory)),
        "help" => done(0, alloc::format!("{HELP}\nPrograms:\n{}", programs())),
        "history" => {
            let lines = session.history.iter().enumerate();
            done(0, lines.map(|(number, line)| alloc::format!("{:>4}  {line}\n", number + 1)).collect::<String>())
        }
        "jobs" => done(0, jobs::list()),
        "set" if first.is_none() => {
            let lines = session.variables.iter().map(|(name, variable)| {
                let export = if variable.exported { "export " } else { "" };
                alloc::format!("{export}{name}={}\n", shellparse::quote(&variable.value))
            });
            done(0, lines.collect::<String>())
        }
        // The others change the shell: in a pipeline each would be a shell of its own.
        "cd" | "exit" | "fg" | "wait" | "set" | "export" | "unset" if !alone => {
            refuse(name, "cannot be part of a pipeline")
        }
        "cd" => cd(session, first),
        "exit" => {
            let Ok(status) = first.map_or(Ok(session.status), str::parse) else {
                return refuse(name, "the status is a number");
            };
            session.leave = Some(status & 0xff);
            done(status & 0xff, "")
        }
        "fg" => {
            let number = match first.map(|text| text.trim_start_matches('%').parse()) {
                None => None,
                Some(Ok(number)) => Some(number),
                Some(Err(_)) => return refuse(name, "the job is a number"),
            };
            match jobs::bring_to_foreground(number) {
                Some(status) => done(status, ""),
                None => refuse(name, "no such job"),
            }
        }
        "wait" => {
            let mut status = 0;
            for number in jobs::numbers() {
                status = jobs::bring_to_foreground(Some(number)).unwrap_or(status);
            }
            done(status, "")
        }
        "kill" => done(kill(arguments), ""),
        "set" | "export" => {
            for word in arguments {
                let (variable, value) = match word.split_once('=') {
                    Some((variable, value)) => (variable, Some(value.to_string())),
                    None => (word.as_str(), session.variable(word)),
                };
                if !is_name(variable) {
                    return refuse(name, &alloc::format!("{variable}: not a name"));
                }
                session.set(variable, &value.unwrap_or_default(), name == "export");
            }
            done(0, "")
        }
        "unset" => {
            for word in arguments {
                session.variables.remove(word);
            }
            done(0, "")
        }
        _ => None,
    }
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

fn cd(session: &mut Session, to: Option<&str>) -> Option<Done> {
    let to = to.map_or_else(|| session.variable("HOME").unwrap_or_else(|| "/".to_string()), ToString::to_string);
    let path = session.absolute(&to);
    match FILE_SYSTEM.stat(&path) {
        Ok(stat) if stat.kind == Kind::Directory => {
            session.directory = path;
            done(0, "")
        }
        Ok(_) => refuse("cd", &alloc::format!("{to}: not a directory")),
        Err(error) => refuse("cd", &alloc::format!("{to}: {error}")),
    }
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
