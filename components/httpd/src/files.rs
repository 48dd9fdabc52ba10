//! Files that were asked for lately stay open.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use http::push_number;
use protocols::file::{FileClient, FileSystemClient, Kind, Stat};
use runtime::Direct;
use runtime::connection::{Connection, Name};
use runtime::entry::Owned;

use crate::time;

static SYSTEM: FileSystemClient<Connection<Name<'static>>> = FileSystemClient(Connection::named("ramfs"));

/// The root of all served files.
const ROOT: &str = "/www";
/// Files that stay open.
const OPEN: usize = 32;

/// An open file.
pub struct Open {
    path: String,
    entry: Owned,
    stat: Stat,
    /// `ETag`, with its quotes.
    pub tag: String,
    /// When it was changed last, in seconds since 1970, if that is known.
    pub modified: Option<u64>,
    /// The fields that describe the file, each with its line end; without its length.
    pub fields: Vec<u8>,
}

impl Open {
    fn client(&self) -> FileClient<Direct> {
        FileClient(Direct(self.entry.entry()))
    }

    /// Bytes.
    pub const fn size(&self) -> u64 {
        self.stat.size
    }

    /// Reads from an offset; `None` = it cannot be read any more.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Option<usize> {
        self.client().read(offset, into).ok()
    }

    fn is_current(&self) -> bool {
        self.client().stat().is_ok_and(|stat| stat == self.stat)
    }
}

/// See the module.
pub struct Files {
    /// Used last at the end.
    open: Vec<Rc<Open>>,
}

impl Files {
    /// None.
    pub const fn new() -> Self {
        Self { open: Vec::new() }
    }

    /// The file that a path of a request names.
    pub fn find(&mut self, path: &str) -> Option<Rc<Open>> {
        if let Some(place) = self.open.iter().rposition(|open| open.path == path) {
            let found = self.open.remove(place);
            if found.is_current() {
                self.open.push(found.clone());
                return Some(found);
            }
        }
        let found = Rc::new(search(path)?);
        if self.open.len() == OPEN {
            self.open.remove(0);
        }
        self.open.push(found.clone());
        Some(found)
    }
}

/// A directory is served by its `index.html`; `.html` may be left out.
fn search(path: &str) -> Option<Open> {
    let plain = path.strip_suffix('/').unwrap_or(path);
    let mut names = alloc::vec![format!("{ROOT}{plain}/index.html")];
    if plain == path {
        names.splice(0..0, [format!("{ROOT}{path}"), format!("{ROOT}{path}.html")]);
    }
    names.iter().find_map(|name| open(path, name))
}

fn open(path: &str, name: &str) -> Option<Open> {
    let entry = Owned::new(SYSTEM.open(name, 0).ok()?.into());
    let stat = FileClient(Direct(entry.entry())).stat().ok().filter(|stat| stat.kind == Kind::File)?;
    let modified = time::of(stat.modified);
    // The time of day distinguishes files that two boots have under the same name.
    let tag = format!("\"{:x}-{:x}-{:x}\"", modified.unwrap_or(0), stat.modified, stat.size);
    let mut fields = Vec::new();
    if let Some(modified) = modified {
        fields.extend_from_slice(b"Last-Modified: ");
        fields.extend_from_slice(&http::write_date(modified));
        fields.extend_from_slice(b"\r\n");
    }
    for part in ["Content-Type: ", http::content_type(name), "\r\nETag: ", &tag, "\r\nAccept-Ranges: bytes\r\n"] {
        fields.extend_from_slice(part.as_bytes());
    }
    Some(Open { path: path.into(), entry, stat, tag, modified, fields })
}

/// `Content-Length`, with its line end.
pub fn push_length(into: &mut Vec<u8>, length: u64) {
    into.extend_from_slice(b"Content-Length: ");
    push_number(into, length);
    into.extend_from_slice(b"\r\n");
}
