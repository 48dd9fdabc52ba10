//! `less`: a text, page by page.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use runtime::stream;
use text::call::{Call, Exit, Flow};
use text::keys::{ASK_SIZE, Keys};
use text::pager::{Next, Pager};
use tool::files::{self, Buffer, File};
use tool::terminal::Terminal;

use crate::system::Cairn;

/// Its name.
pub const NAME: &str = "less";

/// The text of `--help`.
const HELP: &str = "\
usage: less [FILE]

Shows a file, or standard input, page by page. If it does not write to the
terminal, or there is none, it writes all of it.

  space, b            a page forward, back; also f, PageDown and PageUp
  arrows, Return      a line; to the right and left half a screen
  d, u                half a page forward, back
  g, G                start and end; also Home and End
  /TEXT, ?TEXT        the next, the last line before with what the extended
                      regular expression TEXT describes (see grep)
  n, N                the next one that way, the other way
  q                   leaves
";

/// Lines and columns of a terminal that does not say how large it is.
const USUAL: (usize, usize) = (24, 80);

/// The program.
pub fn main(words: &[&str]) -> u8 {
    let call = Call::new(NAME, HELP, 1, words, &Cairn);
    let outcome = if words.first() == Some(&"--help") { call.print(HELP).map(|()| 0) } else { run(&call) };
    outcome.unwrap_or_else(|Exit(status)| status)
}

fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (_, files) = call.options("")?;
    let file = match files[..] {
        [] => "-",
        [file] => file,
        _ => return Err(call.wrong("too many arguments")),
    };
    let Some(terminal) = Terminal::open() else {
        let status = call.each_block(file, &mut |block| call.write(block).map(|()| Flow::More))?;
        return call.flush().map(|()| status);
    };
    if file == "-" && terminal.is_input() {
        return Err(call.wrong("FILE is missing"));
    }
    let path = files::absolute(file);
    let mut source = Source::open(file, &path).map_err(|cause| call.fail(file, cause))?;
    let mut pager = Pager::new(if file == "-" { "" } else { file }, USUAL.0, USUAL.1);
    let mut keys = Keys::default();
    call.write(ASK_SIZE)?;
    loop {
        while pager.wants_more() {
            match source.next() {
                Ok([]) => pager.end(),
                Ok(block) => pager.append(block),
                Err(cause) => {
                    pager.end();
                    pager.say(&cause);
                }
            }
            pager.resume();
        }
        call.write(&pager.draw())?;
        call.flush()?;
        let typed = terminal.read().map_err(|cause| call.fail("terminal", cause))?;
        let pressed: Vec<_> = typed.iter().filter_map(|byte| keys.feed(*byte)).collect();
        for key in pressed {
            if pager.key(key) == Next::Leave {
                call.print("\r\x1b[K")?;
                return call.flush().map(|()| 0);
            }
            pager.resume();
        }
    }
}

/// Where the text comes from, piece by piece.
struct Source<'a> {
    /// `None` = standard input.
    file: Option<File<'a>>,
    offset: u64,
    buffer: Buffer,
}

impl<'a> Source<'a> {
    fn open(name: &str, path: &'a str) -> Result<Self, String> {
        let file = match name {
            "-" => None,
            _ => Some(File::open(path).map_err(|error| error.to_string())?),
        };
        Ok(Self { file, offset: 0, buffer: Buffer::new() })
    }

    /// The next piece; empty at the end. `Err` = why there is none.
    fn next(&mut self) -> Result<&[u8], String> {
        let count = match &self.file {
            Some(file) => file.read(self.offset, self.buffer.bytes()).map_err(|error| error.to_string())?,
            None => stream::read(self.buffer.bytes()).map_err(|error| error.to_string())?,
        };
        self.offset += count as u64;
        Ok(&self.buffer.bytes()[..count])
    }
}
