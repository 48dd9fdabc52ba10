//! Confinement by a list: which calls of a program are refused, and which were.
//!
//! A call is judged by the object it goes to and by its method, before anything of it is passed on. The name service opens what is on the
//! list, and shows that alone. The parent takes names that are on the list. Of the service that starts programs everything is left but
//! that: a program that it starts is not confined. If there are lists of paths, files at and below those of the one can be read, at and
//! below those of the other all can be done, and nothing else be done with files. The other entries that a program can call are objects of
//! services on the list, and its streams.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use idl::{Code, Reply, Words};
use runtime::abi::{Control, MESSAGE_BYTES};
use runtime::protocols::METHODS;
use runtime::protocols::file::{FileError, FileSystemClient};
use runtime::protocols::listing::{Listing, Writer};
use runtime::protocols::names::{MAX_NAME, NamesClient, NamesError};
use runtime::protocols::parent::{ParentClient, ParentError};
use runtime::protocols::process::{ProcessClient, ProcessError};
use runtime::sync::{Mutex, Once};

/// Requests that are distinguished: a program can ask for any number of names.
const MAX_REFUSALS: usize = 64;

/// The service that has the files.
pub const FILES: &str = runtime::stream::FILES;

/// The services on the list. Not set: there is no list, and nothing is refused.
static LIST: Once<Vec<&'static str>> = Once::new();

/// Paths at and below which files can be read, or be read and changed.
#[derive(Default)]
pub struct Paths {
    pub read: Vec<String>,
    pub write: Vec<String>,
}

/// Not set: all can be done with all files.
static PATHS: Once<Paths> = Once::new();

/// Refused requests with their counts, and the count of those that had no room in the list.
static REFUSALS: Mutex<(Vec<(String, u64)>, u64)> = Mutex::new((Vec::new(), 0));

/// An object on which a list has something to say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// The name service.
    Names,
    /// The parent: the service of the program's creator.
    Parent,
    /// The service that starts programs.
    Process,
    /// The file system, of which a part can be read.
    Files,
    /// Any other: all its methods are allowed.
    Other,
}

impl Object {
    /// That of a portal of this name, or of the service of this name.
    pub fn named(name: &str) -> Self {
        match name {
            "names" => Self::Names,
            "parent" => Self::Parent,
            "proc" => Self::Process,
            FILES if PATHS.get().is_some() => Self::Files,
            _ => Self::Other,
        }
    }

    /// The object behind a portal that this method returns when it is called with this text.
    pub fn brings(self, method: u64, text: &str) -> Self {
        if self == Self::Names && method == NamesClient::OPEN { Self::named(text) } else { Self::Other }
    }
}

/// From now on the program reaches these services only, and of the files, if there are paths, what is at and below these.
pub fn confine(names: Vec<&'static str>, paths: Option<Paths>) {
    LIST.get_or_make(|| names);
    if let Some(paths) = paths {
        PATHS.get_or_make(|| paths);
    }
}

/// Whether there is a list.
pub fn is_there() -> bool {
    LIST.get().is_some()
}

/// Whether the program may reach the service of this name.
pub fn allows(name: &[u8]) -> bool {
    LIST.get().is_none_or(|list| list.iter().any(|known| known.as_bytes() == name))
}

/// Whether a path leads to one of these or below. Without `..` it leads downwards only: there are no links.
fn is_below(path: &[u8], paths: &[String]) -> bool {
    let is_below = |above: &String| {
        let rest = path.strip_prefix(above.trim_end_matches('/').as_bytes());
        rest.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'/'))
    };
    let leads_up = path.split(|byte| *byte == b'/').any(|part| part == b"..");
    !leads_up && paths.iter().any(is_below)
}

/// Whether the program may change what is at this path.
fn may_change(path: &[u8]) -> bool {
    PATHS.get().is_some_and(|paths| is_below(path, &paths.write))
}

/// Whether the program may read what is at this path.
fn may_read(path: &[u8]) -> bool {
    may_change(path) || PATHS.get().is_some_and(|paths| is_below(path, &paths.read))
}

/// The parameter of bytes of this number of a message, if it has one and all of it came: the bytes of all stand one behind the other, and
/// word 0 says how long each is (the crate `idl`).
pub fn parameter(number: usize, word0: u64, bytes: &[u8]) -> &[u8] {
    let length = |number: usize| (word0 >> (16 * (number + 1)) & 0xffff) as usize;
    let start = (0..number).map(length).sum::<usize>();
    bytes.get(start..start + length(number)).unwrap_or_default()
}

/// Whether a program may call this method of the service that starts programs.
fn starts_nothing(method: u64) -> bool {
    use ProcessClient as Process;
    matches!(method, Process::LIST | Process::INSPECT | Process::STOP_MACHINE | Process::KILL_DOMAIN)
}

/// The name of the method with a number, as `Names.open`; of one that no interface has, the number.
pub fn name(number: u64) -> String {
    let mut methods = METHODS.iter().flat_map(|(_, methods)| *methods);
    methods
        .find(|(method, _)| *method == number)
        .map_or_else(|| format!("method {number:#x}"), |(_, name)| String::from(*name))
}

/// Judges a call: its words, and the bytes that came. `Some` = it is refused: with this answer, and what was asked, for people.
pub fn refusal(object: Object, words: &Words, bytes: &[u8]) -> Option<(Reply, String)> {
    if !is_there() {
        return None;
    }
    let (method, first) = (words[0] & 0xffff, parameter(0, words[0], bytes));
    let (is_allowed, code, of) = match object {
        Object::Names => {
            let is_allowed = match method {
                NamesClient::OPEN => allows(first),
                method => matches!(method, NamesClient::LIST | NamesClient::SHAPE),
            };
            (is_allowed, NamesError::Confined.code(), "names")
        }
        Object::Parent => (method == ParentClient::PUBLISH && allows(first), ParentError::Confined.code(), "parent"),
        Object::Process => (starts_nothing(method), ProcessError::Confined.code(), "proc"),
        Object::Files => {
            let is_allowed = match method {
                // Its flags would be to write.
                FileSystemClient::OPEN if words[1] == 0 => may_read(first),
                FileSystemClient::READ_DIRECTORY | FileSystemClient::STAT => may_read(first),
                FileSystemClient::OPEN
                | FileSystemClient::CREATE
                | FileSystemClient::MAKE_DIRECTORY
                | FileSystemClient::REMOVE => may_change(first),
                FileSystemClient::RENAME => may_change(first) && may_change(parameter(1, words[0], bytes)),
                method => method == FileSystemClient::ROOM,
            };
            (is_allowed, FileError::Confined.code(), FILES)
        }
        Object::Other => return None,
    };
    if is_allowed {
        return None;
    }
    let what = match (object, method) {
        (Object::Names, NamesClient::OPEN) => format!("open \"{}\"", shown(first)),
        (Object::Parent, ParentClient::PUBLISH) => format!("publish \"{}\"", shown(first)),
        (Object::Process, ProcessClient::SPAWN) => format!("start \"{}\"", shown(first)),
        (Object::Files, FileSystemClient::RENAME) => {
            format!("rename \"{}\" to \"{}\"", shown(first), shown(parameter(1, words[0], bytes)))
        }
        (Object::Files, FileSystemClient::OPEN) if words[1] == 0 => format!("read \"{}\"", shown(first)),
        (Object::Files, FileSystemClient::READ_DIRECTORY | FileSystemClient::STAT) => {
            format!("look at \"{}\"", shown(first))
        }
        (Object::Files, _) => format!("change \"{}\"", shown(first)),
        _ => format!("{} of {of}", name(method)),
    };
    note(what.clone());
    Some((Reply::word(code), what))
}

/// Takes out of a list of names those that are not on ours.
pub fn filter(object: Object, method: u64, reply: &mut Reply, area: &mut [u8; MESSAGE_BYTES]) {
    if !is_there() || object != Object::Names || method != NamesClient::LIST || reply.words[0] != 0 {
        return;
    }
    let listed = *area;
    let mut writer = Writer::new(area);
    for record in Listing(&listed[..reply.control.length()]).filter(|record| allows(record.name)) {
        writer.push(record);
    }
    reply.words[1] = writer.used() as u64;
    reply.control = Control::bytes(writer.used());
}

/// A parameter for people.
fn shown(bytes: &[u8]) -> impl core::fmt::Display + '_ {
    bytes[..bytes.len().min(MAX_NAME)].escape_ascii()
}

fn note(what: String) {
    let mut refusals = REFUSALS.lock();
    let (known, more) = &mut *refusals;
    if let Some((_, times)) = known.iter_mut().find(|(text, _)| *text == what) {
        *times += 1;
    } else if known.len() < MAX_REFUSALS {
        known.push((what, 1));
    } else {
        *more += 1;
    }
}

/// There is no room for another portal of the program.
pub fn note_no_room() {
    note(String::from("a portal: there is no room for more in this sandbox"));
}

/// Whether anything was refused.
pub fn has_refused() -> bool {
    !REFUSALS.lock().0.is_empty()
}

/// Shows each request that was refused, with how often; gives how often those that are not distinguished any more were.
pub fn each(mut show: impl FnMut(&str, u64)) -> u64 {
    let refusals = REFUSALS.lock();
    refusals.0.iter().for_each(|(what, times)| show(what, *times));
    refusals.1
}
