//! The system as the tools see it.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::ControlFlow;

use runtime::idl::Failure;
use runtime::protocols::file::{FileError, Kind as NodeKind};
use runtime::protocols::stream::StreamError;
use runtime::{program, stream, thread};
use text::call::{Before, Take, Unstarted};
use text::{Flow, Kind, Lost, Named, Sink, System};
use tool::files::{self, File};

use crate::start;

/// How long a pause is, in nanoseconds.
const PAUSE: u64 = 200_000_000;

/// This system.
pub struct Cairn;

/// Why output was not taken.
fn lost(error: Failure<StreamError>) -> Lost {
    match error {
        Failure::Refused(StreamError::Closed) => Lost::Closed,
        error => Lost::Failed(error.to_string()),
    }
}

impl System for Cairn {
    fn each_block(&self, path: &str, take: Take<'_>) -> Result<(), String> {
        files::each_block(path, |block| match take(block) {
            Flow::More => ControlFlow::Continue(()),
            Flow::Enough => ControlFlow::Break(()),
        })
    }

    fn read_at(&self, path: &str, offset: u64, into: &mut [u8]) -> Result<usize, String> {
        let path = files::absolute(path);
        File::open(&path).and_then(|file| file.read(offset, into)).map_err(|error| error.to_string())
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Lost> {
        stream::write(bytes).map_err(lost)
    }

    fn flush(&self) -> Result<(), Lost> {
        stream::STDOUT.lock().flush().map_err(lost)
    }

    fn complain(&self, line: &str) {
        tool::eprintln!("{line}");
    }

    fn look(&self, path: &str) -> Result<Option<Kind>, String> {
        match files::stat(&files::absolute(path)) {
            Ok(stat) if stat.kind == NodeKind::Directory => Ok(Some(Kind::Directory)),
            Ok(stat) if stat.executable => Ok(Some(Kind::Program)),
            Ok(_) => Ok(Some(Kind::File)),
            Err(Failure::Refused(FileError::NotFound)) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn size(&self, path: &str) -> Option<u64> {
        let stat = if path == "-" { None } else { files::stat(&files::absolute(path)).ok() };
        stat.filter(|stat| stat.kind == NodeKind::File).map(|stat| stat.size)
    }

    fn directory(&self, path: &str) -> Result<Vec<Named>, String> {
        let names = files::directory(&files::absolute(path)).map_err(|error| error.to_string())?;
        let named = |it: files::Named| Named {
            kind: if it.is_directory { Kind::Directory } else { Kind::File },
            name: it.name,
        };
        Ok(names.into_iter().map(named).collect())
    }

    fn create(&self, path: &str, before: Before) -> Result<Box<dyn Sink + '_>, String> {
        // It is open until the program ends.
        let path: &'static str = files::absolute(path).leak();
        let file = match before {
            Before::Gone => File::create(path, 0).map(|file| Target { file, end: Some(0) }),
            Before::Kept => File::create_or_keep(path).map(|file| Target { file, end: None }),
        };
        file.map(|file| Box::new(file) as Box<dyn Sink>).map_err(|error| error.to_string())
    }

    fn mark(&self, path: &str) -> Result<(), String> {
        let path = files::absolute(path);
        File::open_to_write(&path).and_then(|file| file.mark()).map_err(|error| error.to_string())
    }

    fn environment(&self) -> Vec<String> {
        program::environment().map(String::from).collect()
    }

    fn start(&self, words: &[&str], environment: &[String]) -> Result<u8, Unstarted> {
        start::run(words, environment)
    }

    fn pause(&self) -> Flow {
        if thread::sleep(PAUSE).is_ok() { Flow::More } else { Flow::Enough }
    }
}

/// A file that is written: from its start on, or always at its end.
struct Target {
    file: File<'static>,
    end: Option<u64>,
}

impl Sink for Target {
    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = match &mut self.end {
            Some(end) => {
                let written = self.file.write(*end, bytes);
                *end += bytes.len() as u64;
                written
            }
            None => self.file.append(bytes),
        };
        written.map_err(|error| error.to_string())
    }
}
