//! The emulator's plugin that counts instructions: built, loaded, asked. Its protocol stands in `xtask/counter`.
//!
//! It also watches how long a lock is held ([`Watch`]).

use crate::build;
use crate::elf;
use crate::isa::escaped;
use crate::project::{Project, Scratch, read_text, write};
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// The nucleus's part of every space.
pub const NUCLEUS_FROM: u64 = 0xffff_8000_0000_0000;
/// How long the plugin may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks whether the emulator has made the socket.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a machine that rests executes nothing, and how often that is looked at before giving up.
const REST: Duration = Duration::from_micros(100);
const LOOKS: u32 = 10_000;

/// The plugin, ready to be loaded by one run of the emulator.
pub struct Plugin {
    library: PathBuf,
    socket: PathBuf,
    places: Option<PathBuf>,
    recorded: Option<PathBuf>,
    scratch: Scratch,
}

impl Plugin {
    /// Builds it.
    pub fn make(project: &Project) -> Result<Self> {
        let library = build::counter(project)?;
        let scratch = project.scratch()?;
        let socket = scratch.file("counter");
        // Paths of sockets are short; the emulator runs in the same folder as we.
        let socket = socket.strip_prefix(&project.root).unwrap_or(&socket).to_path_buf();
        Ok(Self { library, socket, places: None, recorded: None, scratch })
    }

    /// It watches a lock, too.
    pub fn watching(mut self, places: &Places) -> Result<Self> {
        self.places = Some(places.write(&self.scratch)?);
        Ok(self)
    }

    /// It can record in which order instructions are executed, too.
    pub fn recording(mut self) -> Self {
        self.recorded = Some(self.scratch.file("recorded"));
        self
    }

    /// As the emulator takes it.
    pub fn argument(&self) -> String {
        let word = |name: &str, path: &Option<PathBuf>| {
            path.as_ref().map_or(String::new(), |path| format!(",{name}={}", escaped(path)))
        };
        let more = word("places", &self.places) + &word("recorded", &self.recorded);
        format!("{},socket={}{more}", escaped(&self.library), escaped(&self.socket))
    }

    /// The record, once [`Counter::end_record`] is answered; `xtask/counter/src/record.rs` reports the text.
    pub fn recorded(&self) -> Result<String> {
        let path = self.recorded.as_ref().context("the plugin was not asked to record")?;
        read_text(path).context("the emulator wrote no record")
    }

    /// Waits for the emulator to load it, or to be over.
    pub fn connect(&self, is_over: impl Fn() -> bool) -> Result<Counter<UnixStream>> {
        let stream = loop {
            match UnixStream::connect(&self.socket) {
                Ok(stream) => break stream,
                Err(error) if is_over() => {
                    return Err(error).context("the emulator ended before its counter could be asked");
                }
                Err(_) => thread::sleep(PAUSE),
            }
        };
        stream.set_read_timeout(Some(PATIENCE)).context("a socket without time limit")?;
        Ok(Counter(stream))
    }
}

/// Counts: of instructions, and of those that cost more on hardware than others, in the order of [`COSTLY`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub instructions: u64,
    pub costly: [u64; COSTLY.len()],
    /// Instructions with the lock that is watched.
    pub locked: u64,
}

/// Numbers of the plugin's answers.
const NUMBERS: usize = COSTLY.len() + 2;

/// Kinds of instructions that cost more, in the plugin's order.
pub const COSTLY: [&str; 5] = ["root writes", "invalidations", "barriers", "atomic", "serialising"];

impl Counts {
    fn new([instructions, costly @ .., locked]: [u64; NUMBERS]) -> Self {
        Self { instructions, costly, locked }
    }
}

/// The plugin, ready to watch a lock in one run of the emulator and to write results.
struct Loaded {
    library: PathBuf,
    places: PathBuf,
    results: PathBuf,
    scratch: Scratch,
}

impl Loaded {
    /// Builds it, and passes it the places where the lock is taken and given back.
    fn make(project: &Project, places: &Places) -> Result<Self> {
        let library = build::counter(project)?;
        let scratch = project.scratch()?;
        Ok(Self { library, places: places.write(&scratch)?, results: scratch.file("results"), scratch })
    }

    /// As the emulator takes it; `wanted` is the plugin's word for the results.
    fn argument(&self, wanted: &str) -> String {
        let [library, places, results] = [&self.library, &self.places, &self.results].map(|path| escaped(path));
        format!("{library},places={places},{wanted}={results}")
    }

    fn results(&self) -> Result<String> {
        read_text(&self.results).context("the emulator wrote no results")
    }
}

/// The plugin, ready to say what one run of the emulator counted between marks of the guest.
pub struct Marks {
    loaded: Loaded,
    executed: Option<PathBuf>,
}

impl Marks {
    /// Builds the plugin, and passes it the places where a lock is taken and given back, and whether it is to say which instructions are
    /// executed.
    pub fn make(project: &Project, places: &Places, reports_executed: bool) -> Result<Self> {
        let loaded = Loaded::make(project, places)?;
        let executed = reports_executed.then(|| loaded.scratch.file("executed"));
        Ok(Self { loaded, executed })
    }

    /// As the emulator takes it.
    pub fn argument(&self) -> String {
        let executed = self.executed.as_ref().map_or(String::new(), |path| format!(",executed={}", escaped(path)));
        self.loaded.argument("marked") + &executed
    }

    /// The instructions that were executed between marks, once the emulator has ended by itself.
    pub fn executed(&self) -> Result<Vec<Executed>> {
        let path = self.executed.as_ref().context("the plugin was not asked which instructions are executed")?;
        Executed::parse(&read_text(path).context("the emulator wrote no results")?)
    }

    /// The counts, in the order of the marks, once the emulator has ended by itself.
    pub fn counted(&self) -> Result<Vec<Counts>> {
        Self::parse(&self.loaded.results()?)
    }

    fn parse(text: &str) -> Result<Vec<Counts>> {
        let line = |line: &str| {
            let numbers = line.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
            numbers.try_into().ok().map(Counts::new)
        };
        text.lines().map(|text| line(text).with_context(|| format!("`{text}` is no line of counts"))).collect()
    }
}

/// An instruction that was executed between marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    pub address: u64,
    /// The page of this computer in which it lies: programs may have the same addresses.
    pub page: u64,
    /// The first ones, and zeros.
    pub bytes: [u8; 4],
    pub times: u64,
}

impl Executed {
    fn parse(text: &str) -> Result<Vec<Self>> {
        let line = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let [address, page, bytes, times] = *words.as_slice() else { return None };
            let number = |word| u64::from_str_radix(word, 16).ok();
            let bytes = u32::from_str_radix(bytes, 16).ok()?.to_be_bytes();
            Some(Self { address: number(address)?, page: number(page)?, bytes, times: times.parse().ok()? })
        };
        text.lines().map(|text| line(text).with_context(|| format!("`{text}` is no executed instruction"))).collect()
    }
}

/// The plugin, ready to watch in one run of the emulator how long each CPU holds a lock.
pub struct Watch(Loaded);

/// Where the lock is taken and given back; see the plugin.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Instructions at lower addresses are not looked at.
    pub from: u64,
    /// First instructions with the lock.
    pub taken: Vec<u64>,
    /// Last instructions with the lock.
    pub given: Vec<u64>,
}

impl Places {
    /// Those of the nucleus's lock, of a nucleus in an ELF file.
    pub fn of_nucleus(file: &[u8]) -> Result<Self> {
        let places = |prefix| elf::addresses(file, prefix);
        Ok(Self { from: NUCLEUS_FROM, taken: places("lock_taken")?, given: places("lock_given")? })
    }

    /// Writes them as the plugin reads them; gives the file.
    fn write(&self, scratch: &Scratch) -> Result<PathBuf> {
        let lines =
            |word: &'static str, all: &[u64]| all.iter().map(|at| format!("{word} {at:#x}\n")).collect::<String>();
        let text = format!("from {:#x}\n{}{}", self.from, lines("taken", &self.taken), lines("given", &self.given));
        let path = scratch.file("places");
        write(&path, text.as_bytes())?;
        Ok(path)
    }
}

/// The findings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// Times that the lock was held.
    pub times: u64,
    /// Instructions executed meanwhile, of all these times.
    pub instructions: u64,
    /// Times that it was taken while held, or given back by a CPU that had not taken it.
    pub strayed: u64,
    /// Instructions of the longest time.
    pub longest: u64,
    /// Its first and last instruction.
    pub within: (u64, u64),
    /// The CPU that held it then.
    pub cpu: u64,
    /// Addresses of each sixteenth of its instructions.
    pub samples: Vec<u64>,
}

impl Watch {
    /// Builds the plugin, and passes it the place to look at.
    pub fn make(project: &Project, places: &Places) -> Result<Self> {
        Loaded::make(project, places).map(Self)
    }

    /// As the emulator takes it.
    pub fn argument(&self) -> String {
        self.0.argument("results")
    }

    /// The findings, once the emulator has ended by itself.
    pub fn holds(&self) -> Result<Holds> {
        Holds::parse(&self.0.results()?)
    }
}

impl Holds {
    fn parse(text: &str) -> Result<Self> {
        let mut holds = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |place: usize| -> Result<u64> {
                let word = words.get(place).with_context(|| format!("`{line}` is too short"))?;
                let number = match word.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => word.parse(),
                };
                number.with_context(|| format!("`{line}` has no number there"))
            };
            match words[0] {
                "holds" => holds.times = number(1)?,
                "instructions" => holds.instructions = number(1)?,
                "strayed" => holds.strayed = number(1)?,
                "longest" => {
                    holds.longest = number(1)?;
                    holds.within = (number(2)?, number(3)?);
                    holds.cpu = number(4)?;
                }
                "at" => holds.samples.push(number(1)?),
                _ => bail!("`{line}` is no result of the plugin"),
            }
        }
        ensure!(holds.times > 0, "the lock was never held: it is taken elsewhere");
        Ok(holds)
    }
}

/// A connection to the plugin.
pub struct Counter<S>(S);

impl<S: Read + Write> Counter<S> {
    /// The counts of instructions that the guest has begun since power-on.
    pub fn counts(&mut self) -> Result<Counts> {
        self.ask(b'?')
    }

    /// From here on the order of instructions is recorded; records from before are forgotten.
    pub fn begin_record(&mut self) -> Result<Counts> {
        self.ask(b'(')
    }

    /// Until here.
    pub fn end_record(&mut self) -> Result<Counts> {
        self.ask(b')')
    }

    fn ask(&mut self, question: u8) -> Result<Counts> {
        let mut answer = [0; 8 * NUMBERS];
        self.0
            .write_all(&[question])
            .and_then(|()| self.0.read_exact(&mut answer))
            .context("the counter does not answer")?;
        let mut numbers = answer.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        Ok(Counts::new(std::array::from_fn(|_| numbers.next().unwrap_or_default())))
    }

    /// Instructions that the guest has begun since power-on.
    pub fn instructions(&mut self) -> Result<u64> {
        self.counts().map(|counts| counts.instructions)
    }

    /// Waits until the guest executes nothing for a while.
    pub fn wait_for_rest(&mut self) -> Result<()> {
        let mut last = self.instructions()?;
        for _ in 0..LOOKS {
            thread::sleep(REST);
            let now = self.instructions()?;
            if now == last {
                return Ok(());
            }
            last = now;
        }
        bail!("the machine never rests: it has executed {last} instructions, and goes on")
    }

    /// The counts of instructions that the guest executes while `work` is done.
    pub fn during(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<Counts> {
        let before = self.counts()?;
        work(self)?;
        let after = self.counts()?;
        match after.instructions.checked_sub(before.instructions) {
            Some(instructions @ 1..) => {
                let costly = std::array::from_fn(|kind| after.costly[kind] - before.costly[kind]);
                Ok(Counts { instructions, costly, locked: after.locked - before.locked })
            }
            _ => bail!("the counter went from {before:?} to {after:?}: it does not count this machine"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Answers with these numbers, one after the other.
    struct Answers(Vec<u8>);

    impl Write for Answers {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Read for Answers {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.0.len());
            bytes[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    fn counter(numbers: &[u64]) -> Counter<Answers> {
        let answer = |number: &u64| [*number, 0, 0, 0, 0, 2 * number, 0].map(u64::to_le_bytes).concat();
        Counter(Answers(numbers.iter().flat_map(answer).collect()))
    }

    #[test]
    fn answers_are_numbers() {
        assert_eq!(counter(&[0x1234_5678_9abc]).instructions().unwrap(), 0x1234_5678_9abc);
        assert!(counter(&[]).instructions().is_err());
    }

    #[test]
    fn differences_are_of_what_ran() {
        let seven = Counts { instructions: 7, costly: [0, 0, 0, 0, 14], locked: 0 };
        assert_eq!(counter(&[10, 17]).during(|_| Ok(())).unwrap(), seven);
        let ten = counter(&[10, 17, 20]).during(|counter| counter.instructions().map(drop)).unwrap();
        assert_eq!(ten.instructions, 10);
        assert!(counter(&[10, 10]).during(|_| Ok(())).is_err());
        assert!(counter(&[10, 9]).during(|_| Ok(())).is_err());
        assert!(counter(&[10, 17]).during(|_| bail!("no answer")).is_err());
    }

    #[test]
    fn counts_between_marks_are_read() {
        let counts = [Counts { instructions: 7, costly: [1, 2, 3, 4, 5], locked: 6 }, Counts::default()];
        assert_eq!(Marks::parse("7 1 2 3 4 5 6\n0 0 0 0 0 0 0\n").unwrap(), counts);
        for bad in ["7 1 2 3 4 5", "7 1 2 3 4 5 6 7", "many", ""] {
            assert!(Marks::parse(&format!("{bad}\n")).is_err(), "{bad}");
        }
    }

    #[test]
    fn executed_instructions_are_read() {
        let expected = [Executed { address: 0x1000, page: 0x7f, bytes: [0, 0x8b, 0, 1], times: 12 }];
        assert_eq!(Executed::parse("1000 7f 8b0001 12\n").unwrap(), expected);
        for bad in ["1000 7f 8b", "1000 7f 8b0001 x", "1000 7f 8b0001 1 1", "x 7f 8b0001 1", ""] {
            assert!(Executed::parse(&format!("{bad}\n")).is_err(), "{bad}");
        }
    }

    #[test]
    fn results_are_read() {
        let text = "holds 3\ninstructions 50\nstrayed 1\nlongest 40 0xa0 0xb0 2\nat 0xa0\nat 0xa8\n";
        let expected = Holds {
            times: 3,
            instructions: 50,
            strayed: 1,
            longest: 40,
            within: (0xa0, 0xb0),
            cpu: 2,
            samples: vec![0xa0, 0xa8],
        };
        assert_eq!(Holds::parse(text).unwrap(), expected);
        for (bad, cause) in [
            ("", "never held"),
            ("holds 0\n", "never held"),
            ("holds many\n", "no number"),
            ("holds 1\nlongest 4 0x1\n", "too short"),
            ("holds 1\nheld 4\n", "no result"),
        ] {
            let error = format!("{:#}", Holds::parse(bad).unwrap_err());
            assert!(error.contains(cause), "{bad:?}: {error}");
        }
    }

    #[test]
    fn rest_is_when_nothing_is_counted() {
        let mut counter = counter(&[1, 5, 9, 9, 77]);
        counter.wait_for_rest().unwrap();
        assert_eq!(counter.instructions().unwrap(), 77);
        assert!(counter.wait_for_rest().is_err());
    }
}
