//! `./x run` says where components and programs were when they died: it reads the kernel log in the memory of the running
//! machine, which is a file, and knows the programs' symbols.

use crate::backtrace::{self, Place};
use crate::elf;
use crate::image::Image;
use crate::isa::{Isa, escaped};
use crate::project::{Project, Scratch, read};
use abi::info::LOG_PARTS;
use anyhow::{Context, Result};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Between two looks at the log.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the machine may take to write what it has counted already.
const WRITING: Duration = Duration::from_millis(2);
/// The nucleus is loaded at a multiple of this.
const ALIGNMENT: u64 = 2 << 20;
/// Lines of the log that are kept.
const KEPT: usize = 40;
/// Where it is loaded at most.
const HIGHEST: u64 = 1 << 30;
/// The log, among the nucleus's symbols.
const LOG: &str = "nucleus::report::log::LOG";
/// Bytes of the parts that are watched: not of what labels forbade.
const LOG_BYTES: usize = LOG_PARTS[0] + LOG_PARTS[1];
/// Where in the log the bytes written to each part are counted.
const WRITTEN: u64 = (LOG_BYTES + LOG_PARTS[2]) as u64;

/// The data needed to watch one run of the emulator.
pub struct Watch {
    memory: PathBuf,
    isa: Isa,
    root: PathBuf,
    /// Physical addresses, from where the nucleus is loaded on, of its code and of its log.
    code: (u64, Vec<u8>),
    log: u64,
    programs: Vec<(String, PathBuf)>,
    _scratch: Scratch,
}

impl Watch {
    /// Reads where the log of this image is.
    pub fn new(project: &Project, image: &Image) -> Result<Self> {
        let scratch = project.scratch()?;
        let file = read(&image.elf)?;
        let pieces = elf::code(&file)?;
        let (code, bytes) = pieces.iter().max_by_key(|(_, bytes)| bytes.len()).context("the nucleus has no code")?;
        let physical = |address| elf::physical(&file, address).context("a symbol of the nucleus lies nowhere");
        Ok(Self {
            memory: scratch.file("memory"),
            isa: project.isa,
            root: project.root.clone(),
            code: (physical(*code)?, bytes[..bytes.len().min(4096)].into()),
            log: physical(elf::address(&file, LOG)?)?,
            programs: image.programs.clone(),
            _scratch: scratch,
        })
    }

    /// The emulator's arguments for a machine whose memory is a file.
    pub fn arguments(&self, size: &str) -> Vec<String> {
        let path = escaped(&self.memory);
        let file = format!("memory-backend-file,id=ram,size={size},mem-path={path},share=on,discard-data=on");
        ["-object", &file, "-machine", "memory-backend=ram"].map(String::from).into()
    }

    /// Does something that starts the machine and waits for its end, and meanwhile reports each death and its place. Gives what that
    /// gave, and the last lines of the log.
    pub fn during<T>(&self, say: impl Fn(String) + Send, work: impl FnOnce() -> T) -> (T, Vec<String>) {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let recorder = scope.spawn(|| self.report(&over, say));
            let result = work();
            over.store(true, Ordering::Relaxed);
            (result, recorder.join().unwrap_or_default())
        })
    }

    /// Gives the last lines of the log.
    fn report(&self, over: &AtomicBool, say: impl Fn(String)) -> Vec<String> {
        let mut reader: Option<Reader> = None;
        // For each program and backtrace, the domain that had it first.
        let mut shown = BTreeMap::new();
        loop {
            let was_over = over.load(Ordering::Relaxed);
            if reader.is_none() {
                reader = self.find();
            }
            if let Some(reader) = &mut reader {
                for line in reader.lines(was_over) {
                    if let Some(text) = self.text(&line, &reader.last, &mut shown) {
                        say(text);
                    }
                    reader.keep(line);
                }
            }
            if was_over {
                return reader.map(|reader| reader.last.into()).unwrap_or_default();
            }
            thread::sleep(PAUSE);
        }
    }

    /// The machine's memory, if it is there and the nucleus in it.
    fn find(&self) -> Option<Reader> {
        let memory = File::open(&self.memory).ok()?;
        let (code, bytes) = &self.code;
        let is_there = |base: &u64| {
            let mut found = vec![0; bytes.len()];
            memory.read_exact_at(&mut found, base + code).is_ok() && found == *bytes
        };
        let base = (0..HIGHEST).step_by(ALIGNMENT as usize).find(is_there)?;
        Some(Reader { memory, log: base + self.log, seen: [0; 2], rest: Default::default(), last: VecDeque::new() })
    }

    /// The text to print for a line of the log that says where a domain died; `before` has the lines before it. A backtrace in
    /// `shown` is not printed again: a component that dies at each restart has the same one each time.
    fn text(
        &self,
        line: &str,
        before: &VecDeque<String>,
        shown: &mut BTreeMap<(String, String), String>,
    ) -> Option<String> {
        let place = Place::read(line)?;
        let mut text = format!("\n{}", place.cause(before.iter().map(String::as_str)));
        let program = self.programs.iter().find(|(name, _)| name == place.name);
        let trace = program.map(|(_, path)| backtrace::text(self.isa, &read(path)?, &place, &self.root));
        match trace {
            Some(Ok(trace)) => match shown.entry((place.name.into(), trace)) {
                Entry::Occupied(first) => writeln!(text, "  the same backtrace as {}", first.get()).ok()?,
                Entry::Vacant(new) => {
                    text.push_str(&new.key().1);
                    new.insert(place.domain.into());
                }
            },
            Some(Err(error)) => writeln!(text, "  no backtrace: {error:#}").ok()?,
            None => writeln!(text, "  no backtrace: the system description names no `{}`", place.name).ok()?,
        }
        Some(text)
    }
}

/// Reads the log while it is written.
struct Reader {
    memory: File,
    log: u64,
    seen: [u64; 2],
    /// The begins of lines whose ends are not there yet.
    rest: [Vec<u8>; 2],
    /// The last lines.
    last: VecDeque<String>,
}

impl Reader {
    fn written(&self) -> Option<[u64; 2]> {
        let mut bytes = [0; 16];
        self.memory.read_exact_at(&mut bytes, self.log + WRITTEN).ok()?;
        let (words, _) = bytes.as_chunks::<8>();
        Some([words[0], words[1]].map(u64::from_le_bytes))
    }

    /// Lines that were written since the last time. While the machine runs it may have counted more than it has written.
    fn lines(&mut self, over: bool) -> Vec<String> {
        let Some(written) = self.written() else { return Vec::new() };
        if !over && written != self.seen {
            thread::sleep(WRITING);
        }
        let mut bytes = vec![0; LOG_BYTES];
        if written == self.seen || self.memory.read_exact_at(&mut bytes, self.log).is_err() {
            return Vec::new();
        }
        let rings = bytes.split_at(LOG_PARTS[0]);
        let mut lines = Vec::new();
        for (part, ring) in [rings.0, rings.1].into_iter().enumerate() {
            let new = new_bytes(ring, self.seen[part], written[part]);
            self.seen[part] = written[part];
            let rest = &mut self.rest[part];
            rest.extend_from_slice(&new);
            let complete = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let text = String::from_utf8_lossy(&rest[..complete]).into_owned();
            rest.drain(..complete);
            lines.extend(text.lines().map(String::from));
        }
        // Of both parts, in the order of time.
        lines.sort_by_key(|line| time(line));
        lines
    }

    /// Keeps a line that was read.
    fn keep(&mut self, line: String) {
        self.last.push_back(line);
        if self.last.len() > KEPT {
            self.last.pop_front();
        }
    }
}

/// When a line was written, in microseconds.
fn time(line: &str) -> u64 {
    let digits = line.split(']').next().unwrap_or_default().chars().filter(char::is_ascii_digit);
    digits.fold(0, |time, digit| time.wrapping_mul(10) + u64::from(digit.to_digit(10).unwrap_or_default()))
}

/// The bytes of a ring written since `seen`, if they are still there.
fn new_bytes(ring: &[u8], seen: u64, written: u64) -> Vec<u8> {
    let first = seen.max(written.saturating_sub(ring.len() as u64));
    (first..written).map(|at| ring[(at % ring.len() as u64) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_read_where_it_was_written() {
        let ring = b"56781234";
        assert_eq!(new_bytes(ring, 0, 4), b"5678");
        assert_eq!(new_bytes(ring, 6, 12), b"345678");
        assert_eq!(new_bytes(ring, 0, 12), b"12345678");
        assert_eq!(new_bytes(ring, 12, 12), b"");
    }

    #[test]
    fn lines_have_a_time() {
        assert_eq!(time("[12.000345] roottask: 7"), 12_000_345);
        assert_eq!(time("no time"), 0);
    }
}
