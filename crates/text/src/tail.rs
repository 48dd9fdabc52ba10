//! `tail`: the last lines or bytes.

use alloc::collections::VecDeque;

use crate::call::{Call, Exit, Flow, Found, NUMBER, shown};
use crate::head::Titles;
use crate::memory::NoMemory;

/// The text of `--help`.
pub const HELP: &str = "\
usage: tail [-n [+]LINES | -c [+]BYTES] [-f] [-q] [-v] [FILE...]

Writes the last ten lines of files, or of standard input (-).

  -n LINES  so many lines; -LINES is the same; with + from that line on
  -c BYTES  so many bytes; with + from that byte on
  -f        goes on writing what comes to the last file (Ctrl-C ends it)
  -q, -v    never, always a title above each file; else if there are several
";

#[derive(Clone, Copy)]
enum Unit {
    Lines,
    Bytes,
}

/// The part that is written.
#[derive(Clone, Copy)]
enum Part {
    Last(u64),
    /// From this one on; the first is 1.
    From(u64),
}

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (options, files) = call.options("n:c:fqv#")?;
    let (mut unit, mut part) = (Unit::Lines, Part::Last(10));
    let mut follows = false;
    let mut titles = Titles::new(&files);
    for option in options {
        match option.0 {
            'n' | 'c' | NUMBER => {
                unit = if option.0 == 'c' { Unit::Bytes } else { Unit::Lines };
                part = self::part(call, option)?;
            }
            'f' => follows = true,
            letter => titles.option(letter),
        }
    }
    let last = files.last().copied().filter(|file| follows && *file != "-");
    let mut read = 0;
    let status = titles.each(call, files, |file| {
        let mut kept = Kept { unit, part, text: VecDeque::new(), lines: 0, seen: 0 };
        read = 0;
        let status = call.each_block(file, &mut |block| {
            read += block.len() as u64;
            match kept.take(block) {
                Ok(known) => call.write(known).map(|()| Flow::More),
                Err(cause) => Err(call.fail(shown(file), cause)),
            }
        })?;
        let (first, second) = kept.text.as_slices();
        call.write(first)?;
        call.write(second).map(|()| status)
    })?;
    match last {
        Some(file) if status == 0 => follow(call, file, read),
        _ => Ok(status),
    }
}

fn part(call: &Call<'_>, (letter, value): Found<'_>) -> Result<Part, Exit> {
    match value.strip_prefix('+') {
        Some(from) => Ok(Part::From(call.number((letter, from))?)),
        None => Ok(Part::Last(call.number((letter, value.strip_prefix('-').unwrap_or(value)))?)),
    }
}

/// The last part of what was read.
struct Kept {
    unit: Unit,
    part: Part,
    text: VecDeque<u8>,
    /// Ends of lines in the text.
    lines: u64,
    /// Lines or bytes that were there.
    seen: u64,
}

impl Kept {
    /// Takes a block; gives what of it can be written at once.
    fn take<'b>(&mut self, block: &'b [u8]) -> Result<&'b [u8], NoMemory> {
        match (self.part, self.unit) {
            (Part::From(from), Unit::Bytes) => {
                let left = from.saturating_sub(1).saturating_sub(self.seen).min(block.len() as u64);
                self.seen += left;
                Ok(&block[left as usize..])
            }
            (Part::From(from), Unit::Lines) => {
                let mut rest = block;
                while self.seen + 1 < from && !rest.is_empty() {
                    let end = rest.iter().position(|byte| *byte == b'\n');
                    self.seen += u64::from(end.is_some());
                    rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
                }
                Ok(rest)
            }
            (Part::Last(count), Unit::Bytes) => {
                let block = &block[block.len() - count.min(block.len() as u64) as usize..];
                let room = count - block.len() as u64;
                let excess = (self.text.len() as u64).saturating_sub(room) as usize;
                self.text.drain(..excess);
                self.append(block).map(|()| &[][..])
            }
            (Part::Last(count), Unit::Lines) => {
                self.append(block)?;
                self.lines += block.iter().filter(|byte| **byte == b'\n').count() as u64;
                self.drop_lines(count);
                Ok(&[])
            }
        }
    }

    fn append(&mut self, block: &[u8]) -> Result<(), NoMemory> {
        if self.text.capacity() - self.text.len() < block.len() {
            let more = block.len().max(self.text.len() / 4);
            self.text.try_reserve_exact(more).map_err(|_| NoMemory)?;
        }
        self.text.extend(block);
        Ok(())
    }

    /// Lets the first lines go until `count` are left. Text after the last end of a line is a line, too.
    fn drop_lines(&mut self, count: u64) {
        let is_open = self.text.back().is_some_and(|byte| *byte != b'\n');
        let mut excess = (self.lines + u64::from(is_open)).saturating_sub(count);
        if excess == 0 {
            return;
        }
        let mut end = 0;
        for (at, byte) in self.text.iter().enumerate() {
            if excess == 0 {
                break;
            }
            end = at + 1;
            if *byte == b'\n' {
                excess -= 1;
                self.lines -= 1;
            }
        }
        self.text.drain(..end);
    }
}

/// Writes what comes to a file, until it is interrupted or the file cannot be read.
fn follow(call: &Call<'_>, file: &str, mut offset: u64) -> Result<u8, Exit> {
    let mut buffer = [0; 1024];
    loop {
        call.flush()?;
        let read = call.system.read_at(file, offset, &mut buffer);
        match read {
            Ok(0) if call.system.pause() == Flow::Enough => return Ok(0),
            Ok(count) => {
                offset += count as u64;
                call.write(&buffer[..count])?;
            }
            Err(cause) => return Err(call.fail(file, cause)),
        }
    }
}
