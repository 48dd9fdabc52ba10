//! A web server: files of `/www` by HTTP/1.1 (RFC 9112) on port 80.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::vec::Vec;

use interfaces::file::{FileClient, FileSystemClient};
use interfaces::net::{ConnectionClient, ListenerClient, NetClient};
use runtime::connection::{Connection, Name};
use runtime::entry::Owned;
use runtime::thread;
use runtime::{Direct, Entry};

runtime::entry!(main);

static NET: NetClient<Connection<Name<'static>>> = NetClient(Connection::named("net"));
static FILES: FileSystemClient<Connection<Name<'static>>> = FileSystemClient(Connection::named("ramfs"));

const PORT: u64 = 80;
const BACKLOG: u64 = 8;
/// Bytes of the longest request head.
const MAX_HEAD: usize = 4096;
/// Bytes read from a file at once.
const PIECE: usize = 2048;
/// How long to wait before listening is tried again, in nanoseconds.
const PAUSE: u64 = 50_000_000;

fn main() -> u8 {
    loop {
        // Ends when the network dies: the next one knows nothing of the listener.
        if let Ok(listener) = NET.listen(PORT, BACKLOG) {
            let listener = Owned::new(listener.into());
            let client = ListenerClient(Direct(listener.entry()));
            while let Ok(connection) = client.accept() {
                let connection = Owned::new(connection.into());
                serve(connection.entry());
            }
        }
        let _ = thread::sleep(PAUSE);
    }
}

/// Answers the requests of one connection, until its end.
fn serve(entry: Entry) {
    let connection = ConnectionClient(Direct(entry));
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let Some(end) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            match connection.read(&mut buffer) {
                Ok(count @ 1..) if head.len() + count <= MAX_HEAD => head.extend_from_slice(&buffer[..count]),
                _ => break,
            }
            continue;
        };
        let goes_on = answer(&connection, &head[..end + 2]);
        head.drain(..end + 4);
        if !goes_on {
            break;
        }
    }
    let _ = connection.close();
}

fn send(connection: &ConnectionClient<Direct>, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match connection.write(&bytes[..bytes.len().min(PIECE)]) {
            Ok(count @ 1..) => bytes = bytes.get(count..).unwrap_or_default(),
            _ => return false,
        }
    }
    true
}

/// Answers one request; whether another may follow.
fn answer(connection: &ConnectionClient<Direct>, head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let Ok(line) = core::str::from_utf8(line) else { return refuse(connection, "400 Bad Request") };
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return refuse(connection, "400 Bad Request");
    };
    if !matches!(method, "GET" | "HEAD") {
        return refuse(connection, "501 Not Implemented");
    }
    let path = target.split('?').next().unwrap_or_default();
    if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return refuse(connection, "400 Bad Request");
    }
    let path = if path == "/" { "/index.html" } else { path };
    let Ok(file) = FILES.open(&format!("/www{path}"), 0) else { return refuse(connection, "404 Not Found") };
    let file = Owned::new(file.into());
    let file = FileClient(Direct(file.entry()));
    let Ok(stat) = file.stat() else { return refuse(connection, "404 Not Found") };
    let kind = if path.ends_with(".html") { "text/html; charset=utf-8" } else { "application/octet-stream" };
    let mut message =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", stat.size).into_bytes();
    if method == "HEAD" {
        return send(connection, &message);
    }
    let mut done = 0;
    let mut piece = [0; PIECE];
    while done < stat.size {
        let want = (stat.size - done).min(PIECE as u64) as usize;
        match file.read(done, &mut piece[..want]) {
            Ok(count @ 1..) => {
                message.extend_from_slice(&piece[..count]);
                done += count as u64;
            }
            // Shorter than was said: only the end of the connection can tell.
            _ => return false,
        }
        if !send(connection, &message) {
            return false;
        }
        message.clear();
    }
    message.is_empty() || send(connection, &message)
}

/// An answer without a page, and the end.
fn refuse(connection: &ConnectionClient<Direct>, status: &str) -> bool {
    send(connection, format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes());
    false
}
