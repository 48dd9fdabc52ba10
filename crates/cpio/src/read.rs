//! The reader: an iterator over members, and lookup by name.

use crate::{
    EXECUTABLE, HEADER_BYTES, MAGIC, MAX_ARCHIVE_BYTES, MAX_NAME_BYTES, PAGE, TRAILER, TYPE_FILE, TYPE_FOLDER,
    TYPE_MASK,
};

/// An archive that is still only bytes.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    bytes: &'a [u8],
}

/// A member of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Path without a leading slash, parts separated by single slashes, no part `.` or `..`.
    pub name: &'a str,
    /// Its kind.
    pub kind: Kind,
    /// A file that somebody may execute.
    pub executable: bool,
    /// Its content; empty for a folder.
    pub data: &'a [u8],
    /// Where `data` begins in the archive, in bytes.
    pub offset: usize,
    /// A number that names of the same file have in common; 0 = this is its only one. The first of them has the
    /// content: see [`Archive::resolve`].
    pub link: u32,
}

/// The kind of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
}

/// Why an archive is refused, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The cause.
    pub kind: ErrorKind,
    /// Byte of the archive at which the guilty member begins; of a bad further name, where it ends.
    pub offset: usize,
}

/// Causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A member does not begin with `070701`.
    BadMagic,
    /// The archive ends within a member, or without a trailer.
    Truncated,
    /// A number of the header is not eight hexadecimal digits.
    BadNumber,
    /// A name is empty, not NUL-terminated, not UTF-8, absolute, or has an empty, `.` or `..` part.
    BadName,
    /// A name is longer than [`MAX_NAME_BYTES`], or the archive than [`MAX_ARCHIVE_BYTES`].
    TooLong,
    /// A member is neither a file nor a folder.
    BadType,
    /// A folder with content, a trailer with content, or padding that is not zero.
    BadPadding,
    /// Two members have the same name.
    Duplicate,
    /// A further name of a file that does not stand before it.
    BadLink,
}

impl ErrorKind {
    /// The description, for people.
    pub const fn text(self) -> &'static str {
        match self {
            ErrorKind::BadMagic => "a member does not begin with 070701",
            ErrorKind::Truncated => "the archive ends too early",
            ErrorKind::BadNumber => "a number of a header is not hexadecimal",
            ErrorKind::BadName => "a name is not a relative path",
            ErrorKind::TooLong => "a name or the archive is too long",
            ErrorKind::BadType => "a member is neither a file nor a folder",
            ErrorKind::BadPadding => "bytes that must be zero or absent are not",
            ErrorKind::Duplicate => "two members have the same name",
            ErrorKind::BadLink => "a further name of a file that does not stand before it",
        }
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "archive, byte {}: {}", self.offset, self.kind.text())
    }
}

impl core::error::Error for Error {}

impl<'a> Archive<'a> {
    /// Takes bytes as an archive; nothing is looked at yet.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Walks the whole archive, the end, duplicate names and links included, and gives the number of members.
    /// Time: quadratic in the number of members (names are compared pairwise, nothing is allocated).
    pub fn check(&self) -> Result<usize, Error> {
        let mut count = 0;
        let mut iterator = self.entries();
        while let Some(entry) = iterator.next() {
            let entry = self.resolve(entry?)?;
            count += 1;
            for later in iterator.clone() {
                let (later, at) = (later?, iterator.offset);
                if later.name == entry.name {
                    return Err(Error { kind: ErrorKind::Duplicate, offset: at });
                }
            }
        }
        Ok(count)
    }

    /// The members in order. After an error the iterator is at its end.
    pub const fn entries(&self) -> Entries<'a> {
        Entries { bytes: self.bytes, offset: 0, done: false }
    }

    /// The member as it is, or, if it is a further name of a file, with the content of that file.
    pub fn resolve(&self, entry: Entry<'a>) -> Result<Entry<'a>, Error> {
        if entry.link == 0 || !entry.data.is_empty() {
            return Ok(entry);
        }
        for before in self.entries() {
            let before = before?;
            if before.offset >= entry.offset {
                break;
            }
            if before.link == entry.link && !before.data.is_empty() && before.kind == Kind::File {
                return Ok(Entry { data: before.data, offset: before.offset, ..entry });
            }
        }
        Err(Error { kind: ErrorKind::BadLink, offset: entry.offset })
    }

    /// The member with this name, not resolved. `Ok(None)` if there is none; an error only if a member before it is bad.
    pub fn find(&self, name: &str) -> Result<Option<Entry<'a>>, Error> {
        for entry in self.entries() {
            let entry = entry?;
            if entry.name == name {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

/// Iterator over members.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    offset: usize,
    done: bool,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let start = self.offset;
        match member(self.bytes, start) {
            Ok(Member::Entry(entry, end)) => {
                self.offset = end;
                Some(Ok(entry))
            }
            Ok(Member::Trailer) => {
                self.done = true;
                None
            }
            Err(kind) => {
                self.done = true;
                Some(Err(Error { kind, offset: start }))
            }
        }
    }
}

enum Member<'a> {
    Entry(Entry<'a>, usize),
    Trailer,
}

/// Reads the member at `start`, which is a multiple of four.
fn member(archive: &[u8], start: usize) -> Result<Member<'_>, ErrorKind> {
    if archive.len() > MAX_ARCHIVE_BYTES {
        return Err(ErrorKind::TooLong);
    }
    let header = slice(archive, start, HEADER_BYTES)?;
    if !header.starts_with(MAGIC) {
        return Err(ErrorKind::BadMagic);
    }
    let mut numbers = [0_u32; 13];
    for (number, digits) in numbers.iter_mut().zip(header[MAGIC.len()..].chunks_exact(8)) {
        *number = hexadecimal(digits)?;
    }
    let (mode, size, name_bytes) = (numbers[1], numbers[6] as usize, numbers[11] as usize);
    if name_bytes > MAX_NAME_BYTES + PAGE {
        return Err(ErrorKind::TooLong);
    }
    let name_start = start + HEADER_BYTES;
    let field = slice(archive, name_start, name_bytes)?;
    let length = field.iter().position(|&byte| byte == 0).ok_or(ErrorKind::BadName)?;
    let (name, rest) = field.split_at(length);
    if length > MAX_NAME_BYTES {
        return Err(ErrorKind::TooLong);
    }
    if rest.iter().any(|&byte| byte != 0) {
        return Err(ErrorKind::BadName);
    }
    let name = core::str::from_utf8(name).map_err(|_| ErrorKind::BadName)?;
    let offset = padded(archive, name_start + name_bytes)?;
    let data = slice(archive, offset, size)?;
    if name == TRAILER {
        let rest = &archive[offset..];
        return if size == 0 && rest.iter().all(|&byte| byte == 0) {
            Ok(Member::Trailer)
        } else {
            Err(ErrorKind::BadPadding)
        };
    }
    if !is_relative_path(name) {
        return Err(ErrorKind::BadName);
    }
    let kind = match mode & TYPE_MASK {
        TYPE_FILE => Kind::File,
        TYPE_FOLDER if size == 0 => Kind::Folder,
        TYPE_FOLDER => return Err(ErrorKind::BadPadding),
        _ => return Err(ErrorKind::BadType),
    };
    let link = if numbers[2] > 1 && kind == Kind::File { numbers[0] } else { 0 };
    let executable = kind == Kind::File && mode & EXECUTABLE != 0;
    let end = padded(archive, offset + size)?;
    Ok(Member::Entry(Entry { name, kind, executable, data, offset, link }, end))
}

/// `bytes[start..start + length]` or `Truncated`; both operands are far below overflow.
fn slice(bytes: &[u8], start: usize, length: usize) -> Result<&[u8], ErrorKind> {
    let end = start.checked_add(length).ok_or(ErrorKind::Truncated)?;
    bytes.get(start..end).ok_or(ErrorKind::Truncated)
}

/// The next multiple of four; the bytes skipped must be there and zero.
fn padded(bytes: &[u8], position: usize) -> Result<usize, ErrorKind> {
    let end = position.checked_next_multiple_of(4).ok_or(ErrorKind::Truncated)?;
    let skipped = slice(bytes, position, end - position)?;
    if skipped.iter().all(|&byte| byte == 0) { Ok(end) } else { Err(ErrorKind::BadPadding) }
}

fn hexadecimal(digits: &[u8]) -> Result<u32, ErrorKind> {
    digits.iter().try_fold(0_u32, |number, &digit| {
        let value = (digit as char).to_digit(16).ok_or(ErrorKind::BadNumber)?;
        Ok(number << 4 | value)
    })
}

/// True for `a`, `a/b`; false for the empty path, `/a`, `a//b`, `a/`, `./a`, `a/..`.
pub(crate) fn is_relative_path(name: &str) -> bool {
    name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn sample() -> Vec<u8> {
        let mut writer = Writer::new();
        writer.file("boot/sigma0", b"\x7fELF...").unwrap();
        writer.folder("etc").unwrap();
        writer.file("etc/motd", b"hello\n").unwrap();
        writer.file("etc/none", b"").unwrap();
        writer.finish().unwrap()
    }

    fn error_of(bytes: &[u8]) -> Error {
        Archive::new(bytes).check().unwrap_err()
    }

    #[test]
    fn a_written_archive_reads_back() {
        let bytes = sample();
        let archive = Archive::new(&bytes);
        assert_eq!(archive.check(), Ok(4));
        let names: Vec<_> = archive.entries().map(|entry| entry.unwrap().name).collect();
        assert_eq!(names, ["boot/sigma0", "etc", "etc/motd", "etc/none"]);
        let motd = archive.find("etc/motd").unwrap().unwrap();
        assert_eq!((motd.kind, motd.data), (Kind::File, &b"hello\n"[..]));
        assert_eq!(&bytes[motd.offset..motd.offset + 6], b"hello\n");
        assert_eq!(archive.find("etc").unwrap().unwrap().kind, Kind::Folder);
        assert_eq!(archive.find("etc/absent"), Ok(None));
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = sample();
        let last = bytes.iter().rposition(|&byte| byte != 0).unwrap();
        for length in 0..=last {
            assert_eq!(error_of(&bytes[..length]).kind, ErrorKind::Truncated, "{length} bytes");
        }
    }

    #[test]
    fn bad_magic() {
        let mut bytes = sample();
        bytes[5] = b'7';
        assert_eq!(error_of(&bytes), Error { kind: ErrorKind::BadMagic, offset: 0 });
    }

    #[test]
    fn bad_number() {
        let mut bytes = sample();
        bytes[20] = b'g';
        assert_eq!(error_of(&bytes).kind, ErrorKind::BadNumber);
        bytes[20] = b'+';
        assert_eq!(error_of(&bytes).kind, ErrorKind::BadNumber);
    }

    #[test]
    fn bad_names() {
        for name in ["/oot/sigma0", "./ot/sigma0", "../t/sigma0", "boot//igma0", "boot/sigma/", "b\0ot/sigma0"] {
            let mut bytes = sample();
            bytes[HEADER_BYTES..HEADER_BYTES + name.len()].copy_from_slice(name.as_bytes());
            assert_eq!(error_of(&bytes).kind, ErrorKind::BadName, "{name:?}");
        }
        let mut bytes = sample();
        bytes[HEADER_BYTES] = 0xff;
        assert_eq!(error_of(&bytes).kind, ErrorKind::BadName);
        bytes = sample();
        bytes[HEADER_BYTES + "boot/sigma0".len()] = b'x';
        assert_eq!(error_of(&bytes).kind, ErrorKind::BadName);
    }

    #[test]
    fn a_name_of_no_bytes_and_one_too_long() {
        let field = 6 + 11 * 8;
        let mut bytes = sample();
        bytes[field..field + 8].copy_from_slice(b"00000000");
        assert_eq!(error_of(&bytes).kind, ErrorKind::BadName);
        bytes[field..field + 8].copy_from_slice(b"00001100");
        assert_eq!(error_of(&bytes).kind, ErrorKind::TooLong);
        let mut bytes = Vec::from(&sample()[..HEADER_BYTES]);
        bytes[field..field + 8].copy_from_slice(b"00000101");
        bytes.resize(HEADER_BYTES + MAX_NAME_BYTES + 1, b'x');
        bytes.resize(HEADER_BYTES + MAX_NAME_BYTES + 400, 0);
        assert_eq!(error_of(&bytes).kind, ErrorKind::TooLong);
    }

    #[test]
    fn a_size_beyond_the_end_is_truncated() {
        let field = 6 + 6 * 8;
        let mut bytes = sample();
        bytes[field..field + 8].copy_from_slice(b"FFFFFFFF");
        assert_eq!(error_of(&bytes).kind, ErrorKind::Truncated);
    }

    #[test]
    fn further_names_lead_to_the_file() {
        let mut writer = Writer::new();
        writer.file("b", b"other").unwrap();
        writer.file("a", b"content").unwrap();
        writer.link("c", "a").unwrap();
        writer.link("d/e", "a").unwrap();
        let bytes = writer.finish().unwrap();
        let archive = Archive::new(&bytes);
        assert_eq!(archive.check(), Ok(4));
        let resolved = |name| archive.resolve(archive.find(name).unwrap().unwrap()).unwrap();
        assert_eq!((resolved("a").data, resolved("b").data), (&b"content"[..], &b"other"[..]));
        for name in ["c", "d/e"] {
            assert_eq!((resolved(name).name, resolved(name).data), (name, &b"content"[..]));
            assert_eq!(resolved(name).offset, resolved("a").offset);
        }
        // Each of the three says so.
        let saying = |mode_and_links: &[u8; 16]| bytes.windows(16).filter(|window| window == mode_and_links).count();
        assert_eq!((saying(b"000081A400000003"), saying(b"000081A400000001")), (3, 1));
        assert_eq!(bytes.windows(8).filter(|window| *window == b"content\0").count(), 1);
    }

    #[test]
    fn a_further_name_of_no_file_is_refused() {
        let links = |bytes: &mut [u8], at: usize| bytes[at + 22..at + 30].copy_from_slice(b"00000002");
        let mut bytes = sample();
        let none = bytes.windows(8).position(|window| window == b"etc/none").unwrap() - HEADER_BYTES;
        links(&mut bytes, none);
        assert_eq!(error_of(&bytes).kind, ErrorKind::BadLink);
        // Nor one that leads to itself, to a folder, or to what stands after it.
        let folder = bytes.windows(4).position(|window| window == b"etc\0").unwrap() - HEADER_BYTES;
        links(&mut bytes, folder);
        let inode = bytes[folder + 6..folder + 14].to_vec();
        bytes[none + 6..none + 14].copy_from_slice(&inode);
        assert_eq!(error_of(&bytes).kind, ErrorKind::BadLink);
        let mut writer = Writer::new();
        writer.file("first", b"").unwrap();
        writer.file("second", b"content").unwrap();
        let mut bytes = writer.finish().unwrap();
        let second = bytes.windows(6).position(|window| window == b"second").unwrap() - HEADER_BYTES;
        for at in [0, second] {
            links(&mut bytes, at);
            bytes[at + 6..at + 14].copy_from_slice(b"00000009");
        }
        assert_eq!(error_of(&bytes).kind, ErrorKind::BadLink);
    }

    #[test]
    fn links_and_devices_are_refused() {
        let field = 6 + 8;
        let mut bytes = sample();
        bytes[field..field + 8].copy_from_slice(b"0000A1FF");
        assert_eq!(error_of(&bytes).kind, ErrorKind::BadType);
    }

    #[test]
    fn padding_must_be_zero() {
        let mut bytes = sample();
        let motd = Archive::new(&bytes).find("etc/motd").unwrap().unwrap().offset;
        bytes[motd + 6] = 1;
        assert_eq!(error_of(&bytes).kind, ErrorKind::BadPadding);
        bytes = sample();
        *bytes.last_mut().unwrap() = 1;
        assert_eq!(error_of(&bytes).kind, ErrorKind::BadPadding);
    }

    #[test]
    fn duplicates_are_found() {
        let mut bytes = sample();
        let at = bytes.windows(8).position(|window| window == b"etc/none").unwrap();
        bytes[at..at + 8].copy_from_slice(b"etc/motd");
        assert_eq!(error_of(&bytes).kind, ErrorKind::Duplicate);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let archive = Archive::new(&bytes);
            prop_assert!(archive.check().is_err());
            prop_assert!(archive.find("x").is_err());
        }

        #[test]
        fn damage_never_panics(position in 0_usize..1000, value in any::<u8>(), cut in 0_usize..1000) {
            let mut bytes = sample();
            let position = position % bytes.len();
            bytes[position] = value;
            bytes.truncate(cut);
            if let Ok(count) = Archive::new(&bytes).check() {
                prop_assert!(count <= 4);
            }
        }

        #[test]
        fn files_are_read_as_written(
            files in proptest::collection::btree_map("[a-z]{1,9}(/[a-z]{1,9}){0,3}", proptest::collection::vec(any::<u8>(), 0..99), 0..9)
        ) {
            let mut writer = Writer::new();
            for (name, data) in &files {
                writer.file(name, data).unwrap();
            }
            let bytes = writer.finish().unwrap();
            let archive = Archive::new(&bytes);
            prop_assert_eq!(archive.check(), Ok(files.len()));
            for (entry, (name, data)) in archive.entries().zip(&files) {
                let entry = entry.unwrap();
                prop_assert_eq!(entry.name, name);
                prop_assert_eq!(entry.data, &data[..]);
            }
        }
    }
}
