//! The writer: the same files in the same order give the same bytes. Files of a page and more begin at a
//! page of the archive, so that their pages can be mapped.

use crate::read::is_relative_path;
use crate::{
    EXECUTABLE, HEADER_BYTES, MAGIC, MAX_ARCHIVE_BYTES, MAX_NAME_BYTES, PAGE, TRAILER, TYPE_FILE, TYPE_FOLDER,
};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Place of the number of links among the numbers of a header.
const LINKS: usize = 2;

/// An archive in the making.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    names: BTreeSet<String>,
    /// By the name of a file: its inode number, and where the members with it begin.
    files: BTreeMap<String, (usize, Vec<usize>)>,
    /// Files of a page do not begin at a page.
    packed: bool,
}

/// Why a member cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// Not a relative path of 1 to [`MAX_NAME_BYTES`] bytes without `.`, `..` and empty parts.
    BadName(String),
    /// There is a member of this name already.
    Duplicate(String),
    /// There is no file of this name, with content, that could have a further one.
    NoFile(String),
    /// The archive would exceed [`MAX_ARCHIVE_BYTES`].
    TooLong,
}

impl core::fmt::Display for WriteError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            WriteError::BadName(name) => write!(f, "`{name}` cannot be the name of a file in an archive"),
            WriteError::Duplicate(name) => write!(f, "the archive would hold `{name}` twice"),
            WriteError::NoFile(name) => write!(f, "the archive has no file `{name}` that could have two names"),
            WriteError::TooLong => write!(f, "the archive would exceed {MAX_ARCHIVE_BYTES} bytes"),
        }
    }
}

impl core::error::Error for WriteError {}

impl Writer {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty archive in which no file begins at a page: for Linux, which skips members with names as
    /// long as that takes.
    pub fn packed() -> Self {
        Self { packed: true, ..Self::default() }
    }

    /// Adds a regular file that may be executed.
    pub fn executable(&mut self, name: &str, data: &[u8]) -> Result<(), WriteError> {
        self.check_name(name)?;
        self.member(name, self.names.len(), TYPE_FILE | 0o644 | EXECUTABLE, data)
    }

    /// Adds a regular file.
    pub fn file(&mut self, name: &str, data: &[u8]) -> Result<(), WriteError> {
        self.check_name(name)?;
        let (at, inode) = (self.bytes.len(), self.names.len());
        self.member(name, inode, TYPE_FILE | 0o644, data)?;
        if !data.is_empty() {
            self.files.insert(name.into(), (inode, Vec::from([at])));
        }
        Ok(())
    }

    /// Gives a regular file that was added before a further name, under which it has the same content.
    pub fn link(&mut self, name: &str, file: &str) -> Result<(), WriteError> {
        let (inode, _) = *self.files.get(file).ok_or_else(|| WriteError::NoFile(file.into()))?;
        self.check_name(name)?;
        let at = self.bytes.len();
        self.member(name, inode, TYPE_FILE | 0o644, &[])?;
        if let Some((_, members)) = self.files.get_mut(file) {
            members.push(at);
            let links = format!("{:08X}", members.len());
            for at in members {
                let field = *at + MAGIC.len() + LINKS * 8;
                self.bytes[field..field + 8].copy_from_slice(links.as_bytes());
            }
        }
        Ok(())
    }

    /// Adds a folder. Folders need not be added for the files in them.
    pub fn folder(&mut self, name: &str) -> Result<(), WriteError> {
        self.check_name(name)?;
        self.member(name, self.names.len(), TYPE_FOLDER | 0o644 | EXECUTABLE, &[])
    }

    /// Ends the archive and hands out its bytes.
    pub fn finish(mut self) -> Result<Vec<u8>, WriteError> {
        self.member(TRAILER, 0, 0, &[])?;
        Ok(self.bytes)
    }

    fn check_name(&mut self, name: &str) -> Result<(), WriteError> {
        let bad = !is_relative_path(name) || name.len() > MAX_NAME_BYTES || name.contains('\0') || name == TRAILER;
        if bad {
            return Err(WriteError::BadName(name.into()));
        }
        if self.names.insert(name.into()) { Ok(()) } else { Err(WriteError::Duplicate(name.into())) }
    }

    fn member(&mut self, name: &str, inode: usize, mode: u32, data: &[u8]) -> Result<(), WriteError> {
        // Four headers' worth of slack covers the small paddings and the trailer to come.
        if self.bytes.len().saturating_add(data.len()) > MAX_ARCHIVE_BYTES - 4 * HEADER_BYTES - MAX_NAME_BYTES - PAGE {
            return Err(WriteError::TooLong);
        }
        // More NULs after the name are part of its field and of no meaning.
        let data_start = self.bytes.len() + (HEADER_BYTES + name.len() + 1).next_multiple_of(4);
        let more = if data.len() >= PAGE && !self.packed { data_start.next_multiple_of(PAGE) - data_start } else { 0 };
        let name_bytes = name.len() + 1 + more;
        // inode, mode, links, user, group, time, size, four device numbers, bytes of name, checksum
        let fields = [inode, mode as usize, 1, 0, 0, 0, data.len(), 0, 0, 0, 0, name_bytes, 0];
        self.bytes.extend_from_slice(MAGIC);
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.resize(self.bytes.len() + 1 + more, 0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
        Ok(())
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let mut writer = Writer::new();
        writer.file("a", b"xyz").unwrap();
        let bytes = writer.finish().unwrap();
        let expected = "070701\
            00000001000081A400000001000000000000000000000000\
            000000030000000000000000000000000000000000000002\
            00000000a\0xyz\0\
            070701\
            000000000000000000000001000000000000000000000000\
            00000000000000000000000000000000000000000000000B\
            00000000TRAILER!!!\0\0\0\0";
        assert_eq!(core::str::from_utf8(&bytes).unwrap(), expected);
    }

    #[test]
    fn files_of_a_page_begin_at_a_page() {
        let mut writer = Writer::new();
        for name in ["a", "ab", "abc", "abcd"] {
            writer.file(name, b"small").unwrap();
            writer.file(&format!("large-{name}"), &[7; PAGE]).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let archive = crate::Archive::new(&bytes);
        assert_eq!(archive.check(), Ok(8));
        let offsets = archive.entries().map(|entry| entry.unwrap()).filter(|entry| entry.data.len() >= PAGE);
        assert_eq!(offsets.map(|entry| entry.offset / PAGE * PAGE == entry.offset).collect::<Vec<_>>(), [true; 4]);
        assert_eq!(archive.find("large-ab").unwrap().unwrap().data, [7; PAGE]);
    }

    #[test]
    fn a_packed_archive_wastes_no_names() {
        let mut writer = Writer::packed();
        writer.executable("program", &[7; PAGE]).unwrap();
        let bytes = writer.finish().unwrap();
        assert_eq!(&bytes[14..22], b"000081ED");
        assert_eq!(&bytes[94..102], b"00000008");
        let archive = crate::Archive::new(&bytes);
        assert_eq!(archive.check(), Ok(1));
        assert_eq!(archive.find("program").unwrap().unwrap().data, [7; PAGE]);
    }

    #[test]
    fn bad_and_duplicate_names_are_refused() {
        let mut writer = Writer::new();
        for name in ["", "/a", "a/", "a//b", ".", "a/../b", "a\0b", TRAILER] {
            assert_eq!(writer.file(name, b""), Err(WriteError::BadName(name.into())));
        }
        writer.file("a", b"").unwrap();
        assert_eq!(writer.folder("a"), Err(WriteError::Duplicate("a".into())));
        writer.file("b", b"content").unwrap();
        assert_eq!(writer.link("a", "b"), Err(WriteError::Duplicate("a".into())));
        // Without content it cannot be determined which of the two has it.
        for none in ["a", "nothing"] {
            assert_eq!(writer.link("c", none), Err(WriteError::NoFile(none.into())));
        }
        writer.link("c", "b").unwrap();
    }
}
