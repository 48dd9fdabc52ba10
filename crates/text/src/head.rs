//! `head`: the first lines or bytes.

use alloc::format;
use alloc::vec::Vec;

use crate::call::{Call, Exit, Flow, NUMBER, shown};

/// The text of `--help`.
pub const HELP: &str = "\
usage: head [-n LINES | -c BYTES] [-q] [-v] [FILE...]

Writes the first ten lines of files, or of standard input (-).

  -n LINES  so many lines; -LINES is the same
  -c BYTES  so many bytes
  -q, -v    never, always a title above each file; else if there are several
";

/// How much is written.
#[derive(Clone, Copy)]
enum Most {
    Lines(u64),
    Bytes(u64),
}

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (options, files) = call.options("n:c:qv#")?;
    let mut most = Most::Lines(10);
    let mut titles = Titles::new(&files);
    for option in options {
        match option.0 {
            'n' | NUMBER => most = Most::Lines(call.number(option)?),
            'c' => most = Most::Bytes(call.number(option)?),
            letter => titles.option(letter),
        }
    }
    titles.each(call, files, |file| match most {
        Most::Lines(lines) => first_lines(call, file, lines),
        Most::Bytes(bytes) => first_bytes(call, file, bytes),
    })
}

fn first_lines(call: &Call<'_>, file: &str, mut left: u64) -> Result<u8, Exit> {
    call.each_block(file, &mut |block| {
        let mut end = 0;
        while left > 0 && end < block.len() {
            let line = block[end..].iter().position(|byte| *byte == b'\n');
            end = line.map_or(block.len(), |at| end + at + 1);
            left -= u64::from(line.is_some());
        }
        call.write(&block[..end])?;
        Ok(if left == 0 { Flow::Enough } else { Flow::More })
    })
}

fn first_bytes(call: &Call<'_>, file: &str, mut left: u64) -> Result<u8, Exit> {
    call.each_block(file, &mut |block| {
        let part = &block[..left.min(block.len() as u64) as usize];
        left -= part.len() as u64;
        call.write(part)?;
        Ok(if left == 0 { Flow::Enough } else { Flow::More })
    })
}

/// The titles above files, of `head` and `tail`.
pub(crate) struct Titles {
    shown: bool,
    any: bool,
}

impl Titles {
    /// Those of these files.
    pub(crate) fn new(files: &[&str]) -> Self {
        Self { shown: files.len() > 1, any: false }
    }

    /// `-q` or `-v`.
    pub(crate) fn option(&mut self, letter: char) {
        self.shown = letter == 'v';
    }

    /// Does something to each file, under its title; without files, to standard input. Gives the status.
    pub(crate) fn each<'f>(
        &mut self,
        call: &Call<'_>,
        files: Vec<&'f str>,
        mut work: impl FnMut(&'f str) -> Result<u8, Exit>,
    ) -> Result<u8, Exit> {
        let mut status = 0;
        let files = if files.is_empty() { Vec::from(["-"]) } else { files };
        for file in files {
            self.write(call, file)?;
            status = work(file)?.max(status);
        }
        Ok(status)
    }

    /// Writes the title of a file, if it is to be shown and the file can be read.
    fn write(&mut self, call: &Call<'_>, file: &str) -> Result<(), Exit> {
        let is_there = file == "-" || matches!(call.system.look(file), Ok(Some(_)));
        if !self.shown || !is_there {
            return Ok(());
        }
        let space = if core::mem::replace(&mut self.any, true) { "\n" } else { "" };
        call.print(&format!("{space}==> {} <==\n", shown(file)))
    }
}
