//! The machine that is profiled: talked to over its console and its network, recorded by the emulator's plugin.

use super::peer::{Peer, Sent};
use super::record::Record;
use crate::bench::client::Web;
use crate::conversation::{Conversation, converse};
use crate::counter::{Counter, Plugin};
use crate::emulator::{self, Machine, TimedOut};
use crate::forward::Forward;
use crate::image::Image;
use crate::project::Project;
use anyhow::{Context, Result, bail, ensure};
use regex::Regex;
use std::fmt;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at what the machine prints, or whether it answers.
const PAUSE: Duration = Duration::from_millis(20);
/// A machine in which nothing is executed for so long waits for us; how often to look, at most: something may go on for ever.
const IDLE: Duration = Duration::from_millis(100);
const MOST_LOOKS: usize = 40;
/// Times that a page is asked for, or a text sent.
const REQUESTS: usize = 16;
/// Records that are made at most until one is whole.
const MOST_RECORDS: usize = 5;
/// Times that a server is asked until it answers: each lasts 2 s at most.
const TRIES: usize = 10;
/// The shell's output when it takes a command: the prompt, and what clears the rest of the line.
const PROMPT: &str = r"\r?cairn:/\S*\$ (\x1b\[K)?";

/// The work that is profiled.
#[derive(Clone, Copy)]
pub enum Work<'a> {
    /// A command for the shell.
    Command(&'a str),
    /// This page is asked for, without the first `/`.
    Page(&'a str),
    /// This is sent, and answered; after this command, if there is one.
    Text(Option<&'a str>, Sent<'a>),
}

impl fmt::Display for Work<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => f.write_str(command),
            Self::Page(path) => write!(f, "GET /{path}"),
            Self::Text(_, sent) => sent.fmt(f),
        }
    }
}

/// The result of it.
pub struct Done {
    /// Instructions from the beginning of the record to where the work begins, and those of the work.
    pub window: (u64, u64),
    /// Instructions that the plugin counted while it recorded.
    pub counted: u64,
    /// The output of the command.
    pub printed: String,
    /// How it ended, for people.
    pub reported: String,
    /// The exit status.
    pub status: u8,
}

/// A command that can be typed: it begins with the Enter key, and that key is its end.
pub fn checked(command: &str) -> Result<&str> {
    ensure!(!command.trim().is_empty(), "there is no command to profile: ./x profile --help has examples");
    ensure!(!command.contains(char::is_control), "a command is one line without control characters; `;` joins several");
    Ok(command)
}

/// Boots this image and has `work` done with it.
pub fn boot<T: Send>(
    project: &Project,
    image: &Image,
    memory: &str,
    limit: Duration,
    work: impl FnOnce(&mut Session<'_>) -> Result<T> + Send,
) -> Result<T> {
    let plugin = Plugin::make(project)?.recording();
    let machine = Machine { counter: Some(plugin.argument()), ..Machine::new(memory) };
    let start = Instant::now();
    let (result, output) = converse(image.isa, &emulator::arguments(image, &machine), limit, |console| {
        // The emulator makes the socket before anything else, or ends.
        let counter = plugin.connect(|| console.is_over())?;
        work(&mut Session { console, counter, plugin: &plugin, web: image.web() })
    });
    let result = match result {
        Err(_) if start.elapsed() >= limit => Err(TimedOut(limit.as_secs_f64()).into()),
        result => result,
    };
    result.with_context(|| {
        let last: Vec<&str> = output.lines().rev().take(20).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        format!("the machine's last lines were\n{}", last.join("\n"))
    })
}

/// A machine that runs.
pub struct Session<'a> {
    console: &'a Conversation,
    counter: Counter<UnixStream>,
    plugin: &'a Plugin,
    web: Option<Forward>,
}

impl Session<'_> {
    /// Does the work when the machine is idle; gives what was recorded, too.
    pub fn profile(&mut self, work: Work<'_>) -> Result<(Done, Record)> {
        match work {
            Work::Command(command) => self.command(command),
            Work::Page(path) => self.page(path),
            Work::Text(command, sent) => self.text(command, sent),
        }
    }

    /// The last record.
    fn record(&self) -> Result<Record> {
        Record::parse(&self.plugin.recorded()?)
    }

    fn command(&mut self, command: &str) -> Result<(Done, Record)> {
        self.prompt(0).context("the shell takes no commands")?;
        self.wait_until_idle()?;
        let recorded = self.counter.begin_record()?.instructions;
        // Before the window: so the stacks of programs that wait for input are known from the bottom on.
        self.console.send(command)?;
        self.wait_until_idle()?;
        let printed = self.console.printed();
        let begin = self.counter.counts()?.instructions;
        self.console.send("\n")?;
        let text = self.prompt(printed).context("the command did not come back to the prompt")?;
        self.counter.wait_for_rest()?;
        let end = self.counter.end_record()?.instructions;
        let record = self.record()?;
        let status = self.status()?;
        let printed = text.trim_start_matches('\n').to_string();
        let reported = format!("status {status}");
        Ok((
            Done { window: (begin - recorded, end - begin), counted: end - recorded, printed, reported, status },
            record,
        ))
    }

    /// The status of the last command.
    fn status(&mut self) -> Result<u8> {
        let printed = self.console.printed();
        self.console.send("echo $?\n")?;
        let text = self.prompt(printed)?;
        let status = text.lines().find_map(|line| line.trim().parse().ok());
        let status: u64 = status.with_context(|| format!("the shell reports no status, but `{text}`"))?;
        // As the shell ends a machine: a status with more bits stays a failure.
        Ok(u8::try_from(status).unwrap_or(1))
    }

    /// Waits for the prompt; gives what was printed since so many bytes, without it.
    fn prompt(&self, printed: usize) -> Result<String> {
        let prompt = Regex::new(PROMPT)?;
        loop {
            let text = self.console.since(printed);
            if let Some(before) = before_prompt(&prompt, &text) {
                return Ok(before.into());
            }
            if self.console.is_over() {
                bail!("the machine printed `{}` last", text.lines().last().unwrap_or_default());
            }
            thread::sleep(PAUSE);
        }
    }

    fn page(&mut self, path: &str) -> Result<(Done, Record)> {
        let address = self.web.context("a page needs a system with a network; systems/default.toml is one")?.address();
        let mut web = loop {
            let answered = Web::connect(address).and_then(|mut web| {
                web.ask(path)?;
                web.any_answer().map(|_| web)
            });
            match answered {
                Ok(web) => break web,
                Err(error) if self.console.is_over() => return Err(error.context(format!("/{path} did not come"))),
                Err(_) => thread::sleep(PAUSE),
            }
        };
        self.requests(|counter| {
            web.ask(path)?;
            let answer = web.any_answer().with_context(|| format!("/{path} came once, and not again"))?;
            counter.wait_for_rest()?;
            Ok(format!("{}, {} bytes", answer.0.trim_start_matches("HTTP/1.1 "), answer.1.len()))
        })
    }

    fn text(&mut self, command: Option<&str>, sent: Sent<'_>) -> Result<(Done, Record)> {
        if let Some(command) = command {
            self.prompt(0).context("the shell takes no commands")?;
            let printed = self.console.printed();
            self.console.send(&format!("{command}\n"))?;
            self.prompt(printed)
                .context("the command did not come back to the prompt: a server needs ` &` after it")?;
        }
        let mut peer = Peer::new(sent);
        let mut tries = 0;
        while let Err(error) = peer.ask() {
            tries += 1;
            if self.console.is_over() || tries == TRIES {
                let Forward { protocol, guest, .. } = sent.forward;
                return Err(error.context(format!("{protocol} port {guest} of the machine, asked {tries} times")));
            }
            thread::sleep(IDLE);
        }
        self.requests(|counter| {
            // The end of the answer before may have come late.
            peer.take_rest()?;
            let first = peer.ask().context("the server answered once, and not again")?;
            counter.wait_for_rest()?;
            Ok(format!("{} bytes came back", first + peer.take_rest()?))
        })
    }

    /// Has many requests made, each until nothing more is executed for it, and takes the one in the middle: how much is executed for one
    /// depends on when its frames come. Those before it show the callers in programs that wait for it.
    fn requests(&mut self, mut ask: impl FnMut(&mut Counter<UnixStream>) -> Result<String>) -> Result<(Done, Record)> {
        let mut records = 0;
        loop {
            self.wait_until_idle()?;
            let mut counts = vec![self.counter.begin_record()?.instructions];
            let mut reported = String::new();
            for _ in 0..REQUESTS {
                reported = ask(&mut self.counter)?;
                counts.push(self.counter.instructions()?);
            }
            let counted = self.counter.end_record()?.instructions - counts[0];
            records += 1;
            // An instruction that is executed while a record begins or ends may be recorded and not counted.
            let record = self.record()?;
            if records == MOST_RECORDS || record.agrees_with(counted).is_ok() {
                let window = median(&counts);
                return Ok((Done { window, counted, printed: String::new(), reported, status: 0 }, record));
            }
        }
    }

    /// Waits until nothing is executed for a while, or not much longer than that.
    fn wait_until_idle(&mut self) -> Result<()> {
        let mut last = self.counter.instructions()?;
        for _ in 0..MOST_LOOKS {
            thread::sleep(IDLE);
            let now = self.counter.instructions()?;
            if now == last {
                break;
            }
            last = now;
        }
        self.counter.wait_for_rest()
    }
}

/// The text before the line with the prompt, which is its end: the shell draws it again below what jobs print.
fn before_prompt<'a>(prompt: &Regex, text: &'a str) -> Option<&'a str> {
    let found = prompt.find_iter(text).last()?;
    let line = text[..found.start()].rfind('\n').map_or(0, |end| end + 1);
    (found.end() == text.len()).then(|| &text[..line])
}

/// Of what is between one count and the next, the middle one, without the first: what comes before it since the first count, and how much it is.
fn median(counts: &[u64]) -> (u64, u64) {
    let first = counts.first().copied().unwrap_or_default();
    let mut windows: Vec<(u64, u64)> = counts.windows(2).skip(1).map(|two| (two[0] - first, two[1] - two[0])).collect();
    windows.sort_by_key(|(_, within)| *within);
    windows.get(windows.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_line() {
        assert_eq!(checked("ls / | wc").unwrap(), "ls / | wc");
        for (bad, cause) in [("", "no command"), (" ", "no command"), ("ls\nls", "one line"), ("l\t", "one line")] {
            let error = checked(bad).unwrap_err().to_string();
            assert!(error.contains(cause), "{bad:?}: {error}");
        }
    }

    #[test]
    fn the_window_is_the_one_in_the_middle() {
        assert_eq!(median(&[100, 1000, 1030, 1040, 1060]), (940, 20));
        assert_eq!(median(&[100, 1000, 1030]), (900, 30));
        assert_eq!(median(&[100]), (0, 0));
    }

    #[test]
    fn prompts_are_distinguished_from_output() {
        let prompt = Regex::new(PROMPT).unwrap();
        for (text, is_prompt) in [
            ("cairn:/$ ", true),
            ("a\ncairn:/tmp$ ", true),
            ("a\n\rcairn:/tmp$ \x1b[K", true),
            ("cairn:/$ ls", false),
            ("cairn:/$ ls\nbin/\n", false),
            ("$ ", false),
        ] {
            assert_eq!(before_prompt(&prompt, text).is_some(), is_prompt, "{text:?}");
        }
    }
}
