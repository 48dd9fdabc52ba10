//! Paths and files as programs use them.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use runtime::abi::PAGE_BYTES;
use runtime::abi::window::MAX_PAGES;
use runtime::connection::Connection;
use runtime::idl::Failure;
use runtime::protocols::file::{FileClient, FileError, Kind, Stat, TRUNCATE, WRITE};
use runtime::protocols::listing::Listing;
use runtime::stream::{FILE_SYSTEM, Path};
use runtime::window::Page;

/// Why something could not be done to a file.
pub type Refusal = Failure<FileError>;

/// A buffer of whole pages, which files show to the file server. It has one page, on the stack, until what is read fills it: a short file
/// takes no more.
pub struct Buffer {
    first: Page,
    more: Vec<Page>,
}

impl Buffer {
    /// Of one page.
    pub const fn new() -> Self {
        Self { first: Page::ZERO, more: Vec::new() }
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        if self.more.is_empty() { &mut self.first.0 } else { Page::bytes_mut(&mut self.more) }
    }

    /// So many bytes were read, and are not needed any more. It grows if there is likely to be more; without memory it stays as it is.
    pub fn read(&mut self, count: usize) {
        let pages = self.more.len().max(1);
        if count < pages * PAGE_BYTES || pages >= MAX_PAGES {
            return;
        }
        let mut more = Vec::new();
        if more.try_reserve_exact(4 * pages).is_ok() {
            more.resize(4 * pages, Page::ZERO);
            self.more = more;
        }
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new()
    }
}

/// The absolute path of `path` in the current directory (`PWD` of the environment).
pub fn absolute(path: &str) -> String {
    let variable = if path.starts_with('/') { None } else { runtime::program::variable("PWD") };
    filetree::normalize(variable.unwrap_or("/"), path)
}

/// `path/name`.
pub fn join(path: &str, name: &str) -> String {
    let slash = if path.ends_with('/') { "" } else { "/" };
    alloc::format!("{path}{slash}{name}")
}

/// The part after the last `/`.
pub fn last(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// An open file; opened again if the file server restarts.
pub struct File<'a>(FileClient<Connection<Path<'a>>>);

impl<'a> File<'a> {
    /// Opens for reading.
    pub fn open(path: &'a str) -> Result<Self, Refusal> {
        Self::with(path, 0)
    }

    fn with(path: &'a str, flags: u64) -> Result<Self, Refusal> {
        let entry = FILE_SYSTEM.open(path, flags)?;
        Ok(Self(FileClient(Connection::opened(Path { path, flags }, entry.into()))))
    }

    /// Makes the file, or empties it.
    pub fn create(path: &'a str, flags: u64) -> Result<Self, Refusal> {
        let entry = FILE_SYSTEM.create(path, TRUNCATE | flags)?;
        Ok(Self(FileClient(Connection::opened(Path { path, flags: WRITE }, entry.into()))))
    }

    /// Makes the file, or leaves it as it is.
    pub fn create_or_keep(path: &'a str) -> Result<Self, Refusal> {
        let entry = FILE_SYSTEM.create(path, 0)?;
        Ok(Self(FileClient(Connection::opened(Path { path, flags: WRITE }, entry.into()))))
    }

    /// Opens a file that is there for writing.
    pub fn open_to_write(path: &'a str) -> Result<Self, Refusal> {
        Self::with(path, WRITE)
    }

    /// Marks it as changed now.
    pub fn mark(&self) -> Result<(), Refusal> {
        self.0.truncate(self.0.stat()?.size)
    }

    /// Writes all of it at the end, piece by piece.
    pub fn append(&self, mut bytes: &[u8]) -> Result<(), Refusal> {
        while !bytes.is_empty() {
            let taken = self.0.append(bytes)?;
            bytes = bytes.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Reads from an offset; 0 = at the end.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, Refusal> {
        self.0.read(offset, into)
    }

    /// Writes all of it.
    pub fn write(&self, mut offset: u64, mut bytes: &[u8]) -> Result<(), Refusal> {
        while !bytes.is_empty() {
            let taken = self.0.write(offset, bytes)?;
            if taken == 0 {
                return Err(Failure::Refused(FileError::NoSpace));
            }
            offset += taken as u64;
            bytes = &bytes[taken..];
        }
        Ok(())
    }
}

/// A name in a directory.
pub struct Named {
    /// The name.
    pub name: String,
    /// Is it a directory?
    pub is_directory: bool,
    /// Bytes, or entries.
    pub size: u64,
}

/// The entries of a directory, sorted by name.
pub fn directory(path: &str) -> Result<Vec<Named>, Refusal> {
    let mut names = Vec::new();
    let mut position = 0;
    let mut buffer = [0; 2048];
    loop {
        let (bytes, next) = FILE_SYSTEM.read_directory(path, position, &mut buffer)?;
        names.extend(Listing(&buffer[..bytes]).map(|record| Named {
            name: String::from_utf8_lossy(record.name).into_owned(),
            is_directory: u64::from(record.tag) == Kind::Directory as u64,
            size: record.value,
        }));
        if next == 0 || bytes == 0 {
            names.sort_by(|a, b| a.name.cmp(&b.name));
            return Ok(names);
        }
        position = next;
    }
}

/// Makes a directory.
pub fn make_directory(path: &str) -> Result<(), Refusal> {
    FILE_SYSTEM.make_directory(path)
}

/// Makes a directory and those above it that are missing.
pub fn make_directories(path: &str) -> Result<(), Refusal> {
    let ends = path.bytes().enumerate().skip(1).filter(|(_, byte)| *byte == b'/').map(|(at, _)| at);
    for end in ends.chain([path.len()]) {
        match make_directory(&path[..end]) {
            Ok(()) => {}
            Err(Failure::Refused(FileError::Exists)) if stat(&path[..end])?.kind == Kind::Directory => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The metadata of a path.
pub fn stat(path: &str) -> Result<Stat, Refusal> {
    FILE_SYSTEM.stat(path)
}

/// Reads standard input (`-`) or a file, piece by piece, to its end or until `take` breaks. `Err` = what failed, as text.
pub fn each_block(path: &str, mut take: impl FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), String> {
    let path = if path == "-" { None } else { Some(absolute(path)) };
    let text = |error: Refusal| alloc::format!("{error}");
    let file = path.as_deref().map(File::open).transpose().map_err(text)?;
    let mut buffer = Buffer::new();
    let mut offset = 0;
    loop {
        let count = match &file {
            Some(file) => file.read(offset, buffer.bytes()).map_err(text)?,
            None => runtime::stream::read(buffer.bytes()).map_err(|error| alloc::format!("{error}"))?,
        };
        if count == 0 || take(&buffer.bytes()[..count]).is_break() {
            return Ok(());
        }
        buffer.read(count);
        offset += count as u64;
    }
}

/// All of standard input (`-`) or of a file. `Err` = what failed, as text.
pub fn whole(path: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    each_block(path, |block| {
        bytes.extend_from_slice(block);
        ControlFlow::Continue(())
    })?;
    Ok(bytes)
}
