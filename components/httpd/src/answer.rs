//! From a request to the bytes of an answer.

use alloc::rc::Rc;
use alloc::vec::Vec;

use http::{Method, Range, Request, Status, push_number};

use abi::PAGE_BYTES;
use runtime::window::Page;
use sockets::WHOLE_SEGMENTS;

use crate::files::{Files, Open, push_length};
use crate::status::{self, SystemStatus};
use crate::time;

/// Where a body comes from.
enum Source {
    File(Rc<Open>),
    Status(SystemStatus),
}

/// The body that follows the head of an answer.
pub struct Body {
    source: Source,
    offset: u64,
    end: u64,
}

impl Body {
    /// So many of the last bytes are to come again.
    pub fn rewind(&mut self, count: usize) {
        self.offset -= count as u64;
    }

    /// Has the next whole pages of a file, to be sent from where they are; none if there is less, or it is no file. `Err`: it became shorter.
    pub fn pages<'p>(&self, room: &'p mut [Page]) -> Result<Option<&'p [u8]>, ()> {
        let Source::File(file) = &self.source else { return Ok(None) };
        let whole = (self.end - self.offset) / PAGE_BYTES as u64;
        let count = room.len().min(whole as usize);
        if count == 0 {
            return Ok(None);
        }
        let bytes = Page::bytes_mut(&mut room[..count]);
        match file.read(self.offset, bytes) {
            Some(count @ 1..) => Ok(Some(&bytes[..count])),
            _ => Err(()),
        }
    }

    /// So many of the next bytes were sent.
    pub fn advance(&mut self, count: usize) {
        self.offset += count as u64;
    }

    /// Appends the next bytes, at most so many; `false` = there are none. `Err`: the file became shorter.
    pub fn next(&mut self, most: usize, into: &mut Vec<u8>) -> Result<bool, ()> {
        let want = (self.end - self.offset).min(most.saturating_sub(into.len()) as u64) as usize;
        if want == 0 {
            return Ok(self.offset < self.end);
        }
        let start = into.len();
        into.resize(start + want, 0);
        let count = match &self.source {
            Source::File(file) => file.read(self.offset, &mut into[start..]),
            Source::Status(status) => status.read(self.offset, &mut into[start..]),
        };
        let count = count.unwrap_or(0);
        into.truncate(start + count);
        self.offset += count as u64;
        if count == 0 { Err(()) } else { Ok(true) }
    }
}

/// Appends the answer to `into`; the rest comes as a body.
pub fn answer(request: &Request<'_>, files: &mut Files, into: &mut Vec<u8>) -> Option<Body> {
    if request.path == status::PATH {
        return report_status(request, into);
    }
    let Some(file) = files.find(&request.path) else {
        whole(Status::NotFound, request, into);
        return None;
    };
    let lists = |field: Option<&str>| field.map(|field| matches(field, &file.tag));
    if lists(request.if_match) == Some(false) {
        whole(Status::PreconditionFailed, request, into);
        return None;
    }
    // Without a tag the date counts (RFC 9110, 13.1.3).
    let since = request.if_modified_since.and_then(http::parse_date);
    let old = || since.zip(file.modified).is_some_and(|(since, modified)| modified <= since);
    if lists(request.if_none_match).unwrap_or_else(old) {
        begin(Status::NotModified, request.persistent, into);
        into.extend_from_slice(&file.fields);
        into.extend_from_slice(b"\r\n");
        return None;
    }
    // A range of another version than the client has is of no use to it.
    let same = request.if_range.is_none_or(|version| {
        version == file.tag || file.modified.is_some() && http::parse_date(version) == file.modified
    });
    let range = match request.range.filter(|_| same && request.method == Method::Get) {
        Some(field) => http::parse_range(field, file.size()),
        None => Range::All,
    };
    let (offset, count) = match range {
        Range::All => {
            begin(Status::Ok, request.persistent, into);
            (0, file.size())
        }
        Range::Part(offset, count) => {
            begin(Status::PartialContent, request.persistent, into);
            content_range(Some((offset, count)), file.size(), into);
            (offset, count)
        }
        Range::Unsatisfiable => {
            begin(Status::RangeNotSatisfiable, request.persistent, into);
            content_range(None, file.size(), into);
            into.extend_from_slice(b"Content-Length: 0\r\n\r\n");
            return None;
        }
    };
    into.extend_from_slice(&file.fields);
    push_length(into, count);
    into.extend_from_slice(b"\r\n");
    if request.method == Method::Head {
        return None;
    }
    started(Body { source: Source::File(file), offset, end: offset + count }, into)
}

/// Puts the first bytes after the head; gives what is left.
fn started(mut body: Body, into: &mut Vec<u8>) -> Option<Body> {
    // A file that cannot be read any more fails again when the body is asked for.
    let _ = body.next(WHOLE_SEGMENTS, into);
    (body.offset < body.end).then_some(body)
}

/// The running system: another text each time.
fn report_status(request: &Request<'_>, into: &mut Vec<u8>) -> Option<Body> {
    let Some(status) = SystemStatus::take() else {
        whole(Status::Unavailable, request, into);
        return None;
    };
    begin(Status::Ok, request.persistent, into);
    into.extend_from_slice(b"Content-Type: application/json\r\nCache-Control: no-store\r\n");
    let end = status.size();
    push_length(into, end);
    into.extend_from_slice(b"\r\n");
    if request.method == Method::Head {
        return None;
    }
    started(Body { source: Source::Status(status), offset: 0, end }, into)
}

/// Whether a list of tags holds this one (weak comparison, RFC 9110, 8.8.3.2).
fn matches(list: &str, tag: &str) -> bool {
    list.split(',').map(str::trim).any(|item| item == "*" || item.strip_prefix("W/").unwrap_or(item) == tag)
}

fn content_range(part: Option<(u64, u64)>, size: u64, into: &mut Vec<u8>) {
    into.extend_from_slice(b"Content-Range: bytes ");
    match part {
        Some((offset, count)) => {
            push_number(into, offset);
            into.push(b'-');
            push_number(into, offset + count - 1);
        }
        None => into.push(b'*'),
    }
    into.push(b'/');
    push_number(into, size);
    into.extend_from_slice(b"\r\n");
}

/// The status line, and the fields that every answer has.
fn begin(status: Status, persistent: bool, into: &mut Vec<u8>) {
    for part in ["HTTP/1.1 ", status.line(), "\r\nServer: Cairn\r\n"] {
        into.extend_from_slice(part.as_bytes());
    }
    time::push_date(into);
    into.extend_from_slice(if persistent { b"Connection: keep-alive\r\n" } else { b"Connection: close\r\n" });
}

/// An answer that is only a status, to a request.
fn whole(status: Status, request: &Request<'_>, into: &mut Vec<u8>) {
    page(status, request.persistent, request.method == Method::Get, into);
}

/// An answer that is only a status, and the last one.
pub fn refuse(status: Status, into: &mut Vec<u8>) {
    page(status, false, true, into);
}

fn page(status: Status, persistent: bool, with_body: bool, into: &mut Vec<u8>) {
    const BEFORE: &str = "<!doctype html><meta charset=\"utf-8\"><title>";
    const BETWEEN: &str = "</title><h1>";
    const AFTER: &str = "</h1>\n";
    begin(status, persistent, into);
    if status == Status::MethodNotAllowed {
        into.extend_from_slice(b"Allow: GET, HEAD\r\n");
    }
    let parts = [BEFORE, status.line(), BETWEEN, status.line(), AFTER];
    into.extend_from_slice(b"Content-Type: text/html; charset=utf-8\r\n");
    push_length(into, parts.iter().map(|part| part.len() as u64).sum());
    into.extend_from_slice(b"\r\n");
    if with_body {
        parts.iter().for_each(|part| into.extend_from_slice(part.as_bytes()));
    }
}
