//! The file a program comes from.

use interface::Failure;
use interfaces::file::{FileClient, FileError, Kind};
use interfaces::process::ProcessError;
use runtime::connection::Connection;
use runtime::stream::{FILE_SYSTEM, Path};

/// An open program. If the file server is restarted while it is read, it is opened again.
pub struct Source<'a> {
    file: FileClient<Connection<Path<'a>>>,
    bytes: u64,
}

impl<'a> Source<'a> {
    /// Opens it.
    pub fn open(path: &'a str) -> Result<Self, ProcessError> {
        let file = FILE_SYSTEM.open(path, 0).map_err(|error| match error {
            Failure::Refused(FileError::NotFound | FileError::NotADirectory | FileError::BadName) => {
                ProcessError::NotFound
            }
            Failure::Refused(FileError::IsADirectory) => ProcessError::IsADirectory,
            error => unreadable(path, error),
        })?;
        let file = FileClient(Connection::opened(Path { path, flags: 0 }, file.into()));
        let stat = file.stat().map_err(|error| unreadable(path, error))?;
        if stat.kind != Kind::File {
            return Err(ProcessError::IsADirectory);
        }
        if !stat.executable {
            return Err(ProcessError::NotExecutable);
        }
        Ok(Self { file, bytes: stat.size })
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads from an offset; fewer bytes than asked for mean its end.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, ProcessError> {
        let mut done = 0;
        while done < into.len() {
            match self.file.read(offset + done as u64, &mut into[done..]) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) => return Err(unreadable("program", error)),
            }
        }
        Ok(done)
    }
}

fn unreadable(path: &str, error: Failure<FileError>) -> ProcessError {
    runtime::log_about_program!("{path}: {error}");
    ProcessError::Unreadable
}
