//! `hexdump`: bytes as numbers.

use alloc::format;
use alloc::string::String;
use core::fmt::Write;

use crate::call::{Call, Exit, Flow};

/// The text of `--help`.
pub const HELP: &str = "\
usage: hexdump [-C] [-v] [-n BYTES] [-s BYTES] [FILE...]

Shows the bytes of files, one after the other, or of standard input (-): in each
line where it begins, and 16 bytes as hexadecimal numbers of two bytes, the
lower one first. Lines like the one before are shown as one *.

  -C        single bytes, and beside them what they are as text
  -n BYTES  only so many
  -s BYTES  without so many at the start
  -v        all lines
";

/// Bytes of a line.
const LINE: usize = 16;

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (options, mut files) = call.options("Cvn:s:")?;
    let has = |letter| options.iter().any(|option| option.0 == letter);
    let (mut left, mut skipped) = (u64::MAX, 0);
    for option in &options {
        match option.0 {
            'n' => left = call.number(*option)?,
            's' => skipped = call.number(*option)?,
            _ => {}
        }
    }
    if files.is_empty() {
        files.push("-");
    }
    let mut dump = Dump {
        is_canonical: has('C'),
        all: has('v'),
        offset: 0,
        line: [0; LINE],
        used: 0,
        before: None,
        starred: false,
    };
    let mut status = 0;
    for file in files {
        let read = call.each_block(file, &mut |mut block| {
            let behind = skipped.saturating_sub(dump.offset).min(block.len() as u64);
            dump.offset += behind;
            block = &block[behind as usize..];
            block = &block[..left.min(block.len() as u64) as usize];
            left -= block.len() as u64;
            for byte in block {
                dump.byte(call, *byte)?;
            }
            Ok(if left == 0 { Flow::Enough } else { Flow::More })
        })?;
        status = read.max(status);
    }
    if dump.offset < skipped {
        return Err(call.fail("-s", "there are fewer bytes"));
    }
    dump.end(call)?;
    Ok(status)
}

struct Dump {
    is_canonical: bool,
    all: bool,
    /// Where the next byte is.
    offset: u64,
    line: [u8; LINE],
    used: usize,
    before: Option<[u8; LINE]>,
    starred: bool,
}

impl Dump {
    fn byte(&mut self, call: &Call<'_>, byte: u8) -> Result<(), Exit> {
        self.line[self.used] = byte;
        self.used += 1;
        self.offset += 1;
        if self.used == LINE { self.line(call) } else { Ok(()) }
    }

    /// Shows what is in the line.
    fn line(&mut self, call: &Call<'_>) -> Result<(), Exit> {
        let used = core::mem::take(&mut self.used);
        if !self.all && used == LINE && self.before == Some(self.line) {
            let star = if core::mem::replace(&mut self.starred, true) { "" } else { "*\n" };
            return call.print(star);
        }
        self.starred = false;
        self.before = Some(self.line);
        let bytes = &self.line[..used];
        let at = self.offset - used as u64;
        let text = if self.is_canonical { canonical(at, bytes) } else { words(at, bytes) };
        call.print(&text)
    }

    fn end(&mut self, call: &Call<'_>) -> Result<(), Exit> {
        if self.used > 0 {
            self.line(call)?;
        }
        match (self.offset, self.is_canonical) {
            (0, _) => Ok(()),
            (offset, true) => call.print(&format!("{offset:08x}\n")),
            (offset, false) => call.print(&format!("{offset:07x}\n")),
        }
    }
}

fn canonical(at: u64, bytes: &[u8]) -> String {
    let mut text = format!("{at:08x} ");
    for place in 0..LINE {
        let gap = if place % 8 == 0 { " " } else { "" };
        // Writing to a string does not fail.
        let _ = match bytes.get(place) {
            Some(byte) => write!(text, "{gap}{byte:02x} "),
            None => write!(text, "{gap}   "),
        };
    }
    text += " |";
    text.extend(bytes.iter().map(|byte| if matches!(byte, 0x20..=0x7e) { char::from(*byte) } else { '.' }));
    text + "|\n"
}

fn words(at: u64, bytes: &[u8]) -> String {
    let mut text = format!("{at:07x}");
    for place in 0..LINE / 2 {
        let byte = |at: usize| bytes.get(at).copied();
        let _ = match (byte(2 * place), byte(2 * place + 1)) {
            (Some(low), high) => write!(text, " {:02x}{low:02x}", high.unwrap_or(0)),
            _ => write!(text, "     "),
        };
    }
    text + "\n"
}
