//! The file a program comes from.

use idl::Failure;
use protocols::file::{FileClient, FileError};
use protocols::process::ProcessError;
use runtime::connection::Connection;
use runtime::label::{self, Labels};
use runtime::stream::{FILE_SYSTEM, Path};

use crate::labels::{CALLERS, log_for_caller};

/// An open program. If the file server is restarted while it is read, it is opened again.
pub struct Source<'a> {
    file: FileClient<Connection<Path<'a>>>,
    bytes: u64,
}

impl<'a> Source<'a> {
    /// Opens it, for a program with these labels, of which its content becomes a part. We may read all files: content that the caller may
    /// not learn is not there.
    pub fn open(path: &'a str, labels: Option<&Labels>) -> Result<Self, ProcessError> {
        let may_observe =
            |path: &str| FILE_SYSTEM.compartment(path).is_ok_and(|compartment| CALLERS.caller_may(compartment).observe);
        let file = FILE_SYSTEM.open(path, 0).map_err(|error| match error {
            // Nor are names in a directory that it may not list.
            _ if !may_observe(path) || path.rmatch_indices('/').any(|(end, _)| !may_observe(&path[..end.max(1)])) => {
                ProcessError::NotFound
            }
            Failure::Refused(FileError::NotFound | FileError::NotADirectory | FileError::BadName) => {
                ProcessError::NotFound
            }
            Failure::Refused(FileError::IsADirectory) => ProcessError::IsADirectory,
            error => unreadable(path, error),
        })?;
        let file = FileClient(Connection::opened(Path { path, flags: 0 }, file.into()));
        let image = file.image().map_err(|error| unreadable(path, error))?;
        if label::is_secret(image.compartment) {
            if !CALLERS.caller_may(image.compartment).observe {
                return Err(ProcessError::NotFound);
            }
            if !labels.is_some_and(|labels| labels.contain(image.compartment)) {
                return Err(ProcessError::Flow);
            }
        }
        if !image.executable {
            return Err(ProcessError::NotExecutable);
        }
        Ok(Self { file, bytes: image.size })
    }

    /// Its path.
    pub fn path(&self) -> &str {
        self.file.0.source().path
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
                Err(error) => return Err(unreadable(self.path(), error)),
            }
        }
        Ok(done)
    }
}

/// The refusal for a program that cannot be read, or not to its end. The log has the cause, if the caller may add a line.
pub fn unreadable(path: &str, error: impl core::fmt::Display) -> ProcessError {
    log_for_caller!("{path}: {error}");
    ProcessError::Unreadable
}
