//! A trace of labels in domains that are there: `./x labels replay FILE --machine`. After each message, that it was taken or not and the
//! labels of the receiver are compared with what the trace says.
//!
//! The boot archive has the trace at [`PATH`], a line for each step: the number of its line in FILE, what is done, and numbers. A label is
//! its default and its entries, as `3,17:0,18:-1`; `-` stands for what the trace leaves out.
//!
//! Each domain is a [`Subject`], the receiver of its ports, and of one by which we make it the owner of a handle.

use abi::rights::WRITE;
use abi::{Error, op as numbers};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Display, Write};
use core::str::SplitWhitespace;
use cpio::Archive;
use flow::specification::{Label, Labels};
use flow::{Handle, Level};
use runtime::entry::Owned;
use runtime::op;
use runtime::port::{self, Options};
use runtime::serial::Serial;
use runtime::{Entry, program, table};

use crate::raw;
use crate::subject::{Answer, Outcome, Page, Subject, label_of, text};

/// Where the boot archive has the trace.
const PATH: &str = "trace";
/// Frames of a domain's account, and of the one for code.
const FRAMES: u64 = 3_072;
const CODE_FRAMES: u64 = 256;
/// Where domains have the labels of a message, and the label of the port that is made.
const LABELS: [u64; 4] = [120, 121, 122, 123];
/// Where each has the port by which it gets handles; others come after that.
const GIVEN: u64 = 124;
/// A message has no bytes, and none waits beside it.
const SIZE: u64 = 1 << 16;
/// Steps after which it prints how many it has done.
const PRINTED: usize = 1_000;

/// Both sides of a difference, for people.
fn differ(what: &str, trace: impl Display, machine: impl Display) -> String {
    format!("{what}: the trace says {trace}, the machine {machine}")
}

/// A level of the nucleus as traces have it: -1 is ★.
fn shown(level: u64) -> i8 {
    Level::ALL.get(level as usize).map_or(i8::MAX, |level| level.number())
}

/// The words of a line.
struct Line<'a>(SplitWhitespace<'a>);

impl<'a> Line<'a> {
    fn word(&mut self) -> Outcome<&'a str> {
        self.0.next().ok_or("the line is too short".into())
    }
    fn number(&mut self) -> Outcome<u64> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("{word} is no number"))
    }
    fn handle(&mut self) -> Outcome<Handle> {
        Handle::new(self.number()?).ok_or("a handle of too many bits".into())
    }
    fn level(&mut self) -> Outcome<Level> {
        level(self.word()?)
    }
    /// None if the trace leaves it out.
    fn label(&mut self) -> Outcome<Option<Label>> {
        let word = self.word()?;
        if word == "-" {
            return Ok(None);
        }
        let mut parts = word.split(',');
        let mut label = Label::of(level(parts.next().unwrap_or(""))?);
        for part in parts {
            let (handle, of) = part.split_once(':').ok_or("an entry without a level")?;
            let handle = handle.parse().ok().and_then(Handle::new).ok_or("an entry without a handle")?;
            label.set(handle, level(of)?);
        }
        Ok(Some(label))
    }
}

fn level(word: &str) -> Outcome<Level> {
    word.parse().ok().and_then(Level::from_number).ok_or_else(|| format!("{word} is no level"))
}

/// A domain of the trace.
struct Domain {
    subject: Subject,
    /// To its port for handles, from us.
    given: Owned,
    /// Entries to ports of others, by handle.
    senders: BTreeMap<Handle, u64>,
}

/// A port: its owner, and its index there.
struct Port {
    owner: u64,
    index: u64,
}

struct World {
    page: Page,
    free: Owned,
    domains: BTreeMap<u64, Domain>,
    ports: BTreeMap<Handle, Port>,
    taken: usize,
    vanished: usize,
}

/// The status of a call that has to succeed.
fn succeeds(what: &str, answer: Outcome<Answer>) -> Outcome<u64> {
    match answer? {
        [0, word, _] => Ok(word),
        [status, ..] => Err(format!("{what}: {}", Error::from_status(status).err().map_or("?", |error| error.text()))),
    }
}

/// Of a change that the domain may make or not.
fn may_fail(what: &str, answer: Outcome<Answer>) -> Outcome<()> {
    match answer? {
        [status, ..] if status == Error::NotOwned as u64 => Ok(()),
        answer => succeeds(what, Ok(answer)).map(drop),
    }
}

impl World {
    fn new() -> Outcome<Self> {
        let (page, free) = Page::with_account(CODE_FRAMES)?;
        Ok(Self { page, free, domains: BTreeMap::new(), ports: BTreeMap::new(), taken: 0, vanished: 0 })
    }

    fn domain(&self, number: u64) -> Outcome<&Domain> {
        self.domains.get(&number).ok_or_else(|| format!("there is no domain {number}"))
    }

    fn enters(&self, number: u64, index: usize, words: [u64; 6]) -> Outcome<Answer> {
        self.domain(number)?.subject.enters(&self.page, index, words)
    }

    /// A domain makes a label, in this place. Labels cannot be copied from table to table.
    fn make_label(&self, number: u64, label: &Label, place: u64) -> Outcome<()> {
        // There may be one of the message before.
        let _ = op::entry_remove(self.domain(number)?.subject.domain.entry(), Entry(place as usize));
        let does = |words| succeeds("a label", self.enters(number, numbers::LABEL, words)).map(drop);
        does([numbers::LABEL_NEW, label.default as u64, place, 0, 0, 0])?;
        let mut entries = label.entries.iter();
        entries.try_for_each(|(handle, level)| does([numbers::LABEL_PUT, place, handle.number(), *level as u64, 0, 0]))
    }

    /// A domain begins, or begins again, without ports.
    fn begin(&mut self, number: u64) -> Outcome<()> {
        self.ports.retain(|_, port| port.owner != number);
        self.domains.remove(&number);
        let [send, receive] = [Level::One, Level::Two].map(Label::of);
        let labels = Labels { send, receive, is_explicit: false };
        let subject = Subject::new(&self.page, self.free.entry(), FRAMES, &labels, &Label::of(Level::Three))?;
        succeeds("a port", subject.enters(&self.page, numbers::PORT_NEW, [0, SIZE, GIVEN, 0, 0, 0]))?;
        let given = Owned::new(table::allocate().map_err(text)?);
        op::entry_copy(subject.domain.entry(), Entry(GIVEN as usize), Entry::OWN, given.entry(), WRITE)
            .map_err(text)?;
        self.domains.insert(number, Domain { subject, given, senders: BTreeMap::new() });
        Ok(())
    }

    /// A message of ours makes a domain the owner of a handle.
    fn give_handle(&self, number: u64, handle: Handle) -> Outcome<()> {
        let mut owned = Label::of(Level::Three);
        owned.set(handle, Level::Star);
        let label = label_of(&owned)?;
        let options = Options { decontaminate_send: Some(label.entry()), ..Options::default() };
        port::send(self.domain(number)?.given.entry(), &[], &options).map_err(text)?;
        succeeds("a handle", self.enters(number, GIVEN as usize, [numbers::RECEIVE, 0, 0, 0, 0, 0])).map(drop)
    }

    fn new_port(&mut self, number: u64, handle: Handle, label: &Label) -> Outcome<()> {
        self.give_handle(number, handle)?;
        if let Some(port) = self.ports.remove(&handle) {
            let owner = self.domain(port.owner)?.subject.domain.entry();
            op::entry_remove(owner, Entry(port.index as usize)).map_err(text)?;
        }
        for domain in self.domains.values_mut() {
            domain.senders.remove(&handle);
        }
        let mut label = label.clone();
        label.set(handle, Level::Zero);
        self.make_label(number, &label, LABELS[0])?;
        let index = succeeds("a port", self.enters(number, numbers::PORT_NEW, [0, SIZE, 0, LABELS[0], 0, 0]))?;
        self.ports.insert(handle, Port { owner: number, index });
        Ok(())
    }

    /// The index of a port in the table of a sender.
    fn sender(&mut self, from: u64, handle: Handle, port: (u64, u64)) -> Outcome<u64> {
        let (owner, index) = port;
        if owner == from {
            return Ok(index);
        }
        let sender = self.domain(from)?;
        if let Some(index) = sender.senders.get(&handle) {
            return Ok(*index);
        }
        let (owner, to) = (self.domain(owner)?.subject.domain.entry(), sender.subject.domain.entry());
        let copy = op::entry_copy(owner, Entry(index as usize), to, Entry::OWN, WRITE).map_err(text)?.0 as u64;
        self.domains.get_mut(&from).map(|sender| sender.senders.insert(handle, copy));
        Ok(copy)
    }

    /// Sends, and takes, if there is a port. Whether it was taken, and by whom it would be.
    fn send(&mut self, from: u64, handle: Handle, optional: &[Option<Label>; 4]) -> Outcome<(bool, Option<u64>)> {
        self.domain(from)?;
        let Some(&Port { owner, index }) = self.ports.get(&handle) else { return Ok((false, None)) };
        let mut places = [0; 4];
        for ((label, place), number) in optional.iter().zip(&mut places).zip(LABELS) {
            if let Some(label) = label {
                self.make_label(from, label, number)?;
                *place = number;
            }
        }
        let port = self.sender(from, handle, (owner, index))?;
        let [cs, ds, v, dr] = places;
        let words = [numbers::SEND, cs | ds << 32, v | dr << 32, 0, 0, 0];
        match self.enters(from, port as usize, words)? {
            [status, ..] if status == Error::NotOwned as u64 => return Ok((false, Some(owner))),
            answer => succeeds("a message", Ok(answer))?,
        };
        match self.enters(owner, index as usize, [numbers::RECEIVE, 0, 0, 0, 0, 0])? {
            [status, ..] if status == Error::Timeout as u64 => Ok((false, Some(owner))),
            answer => succeeds("a message that is taken", Ok(answer)).map(|_| (true, Some(owner))),
        }
    }

    /// The difference between a label of a domain and what the trace says of it.
    fn difference(&self, number: u64, which: u64, trace: &Label) -> Outcome<Option<String>> {
        let name = ["s", "r"][which as usize];
        let call = |words| succeeds("labels", self.enters(number, numbers::LABEL, words));
        for (handle, due) in &trace.entries {
            let levels = call([numbers::LABEL_LEVELS, handle.number(), 0, 0, 0, 0])?;
            let level = levels >> (3 * which) & 7;
            if level != *due as u64 {
                let what = format!("{name}, for handle {}", handle.number());
                return Ok(Some(differ(&what, due.number(), shown(level))));
            }
        }
        let word = call([numbers::LABEL_READ, which, 0, 0, 0, 0])?;
        let (count, default) = (word as u32 as usize, word >> 32);
        if default != trace.default as u64 {
            return Ok(Some(differ(&format!("{name}, by default"), trace.default.number(), shown(default))));
        }
        let entries = trace.entries.len();
        Ok((count != entries).then(|| differ(&format!("{name}, handles of other levels"), entries, count)))
    }

    /// Makes a step; gives the difference that it shows.
    fn step(&mut self, line: &mut Line<'_>) -> Outcome<Option<String>> {
        match line.word()? {
            "new_domain" => self.begin(line.number()?)?,
            "new_handle" => self.give_handle(line.number()?, line.handle()?)?,
            "new_port" => {
                let (number, handle) = (line.number()?, line.handle()?);
                self.new_port(number, handle, &line.label()?.ok_or("a port without a label")?)?;
            }
            what @ ("raise_send" | "lower_receive") => {
                let change = if what == "raise_send" { numbers::LABEL_SEND } else { numbers::LABEL_RECEIVE };
                let (number, handle, level) = (line.number()?, line.handle()?, line.level()?);
                let words = [change, handle.number(), level as u64, 0, 0, 0];
                may_fail(what, self.enters(number, numbers::LABEL, words))?;
            }
            "send" => return self.message(line),
            other => return Err(format!("{other} is no step")),
        }
        Ok(None)
    }

    fn message(&mut self, line: &mut Line<'_>) -> Outcome<Option<String>> {
        let (from, handle) = (line.number()?, line.handle()?);
        let optional = [line.label()?, line.label()?, line.label()?, line.label()?];
        let is_due = line.word()? == "true";
        let to = line.word()?;
        let due = [line.label()?, line.label()?];
        let (is_taken, receiver) = self.send(from, handle, &optional)?;
        *if is_taken { &mut self.taken } else { &mut self.vanished } += 1;
        if is_taken != is_due {
            return Ok(Some(differ("delivered", is_due, is_taken)));
        }
        if to != "-" && to.parse().ok() != receiver {
            let receiver = receiver.map_or("nobody".into(), |receiver| format!("{receiver}"));
            return Ok(Some(differ("to", to, receiver)));
        }
        let Some(receiver) = receiver else { return Ok(None) };
        for (which, due) in due.iter().enumerate() {
            if let Some(due) = due
                && let Some(difference) = self.difference(receiver, which as u64, due)?
            {
                return Ok(Some(difference));
            }
        }
        Ok(None)
    }
}

/// The trace, as the boot archive has it.
fn trace() -> Outcome<&'static str> {
    let archive = program::variable("ARCHIVE").and_then(raw::boot_archive).ok_or("no boot archive")?;
    let file = Archive::new(archive).find(PATH).map_err(|error| format!("{error}"))?;
    core::str::from_utf8(file.ok_or("the boot archive has no trace")?.data).map_err(|error| format!("{error}"))
}

/// Makes all steps, up to the first difference; the line that says what came of them.
pub fn line() -> Outcome<String> {
    let trace = trace()?;
    let mut world = World::new()?;
    let lines: Vec<&str> = trace.lines().collect();
    for (done, line) in lines.iter().enumerate() {
        if done % PRINTED == PRINTED - 1 {
            let _ = writeln!(Serial::new(), "replay: {} of {} steps", done + 1, lines.len());
        }
        let mut words = Line(line.split_whitespace());
        let number = words.number()?;
        match world.step(&mut words) {
            Ok(None) => {}
            Ok(Some(difference)) => return Ok(format!("replay: line {number}: {difference}\n")),
            Err(why) => return Err(format!("line {number}: {why}")),
        }
    }
    let World { taken, vanished, .. } = world;
    Ok(format!("replay: {} steps, {taken} messages taken, {vanished} not, no disagreement\n", lines.len()))
}
