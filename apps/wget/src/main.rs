//! `wget`: fetches a page.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use runtime::op;
use runtime::protocols::file::EXECUTABLE;
use sockets::{Session, target};
use tool::{Arguments, eprintln, files};

runtime::entry!(main);

const HELP: &str = "\
usage: wget [-s] [-O FILE [-x]] http://HOST[:PORT][/PATH]

Fetches a page by HTTP/1.1 and writes it to FILE; without -O, to standard output.
The status is 1 if the answer is not one of success.

  -O FILE  where to write
  -x       mark FILE as a program
  -s       say the answer's head on standard error output
";

/// How long nothing may come, in nanoseconds.
const PATIENCE: u64 = 10_000_000_000;
/// Bytes of the longest head.
const MAX_HEAD: usize = 8192;

fn main() -> u8 {
    let mut arguments = Arguments::new("wget", HELP);
    let file = match arguments.value("-O") {
        Ok(file) => file,
        Err(status) => return status,
    };
    let (head, is_program) = (arguments.flag("-s"), arguments.flag("-x"));
    let Some(address) = arguments.one("an address") else { return tool::USAGE };
    let Some((host, port, path)) = parts(address) else {
        return arguments.wrong("an address is http://HOST[:PORT][/PATH]");
    };
    match fetch(host, port, path, head, file.map(|file| (file, is_program))) {
        Ok(status) if status.starts_with('2') => 0,
        Ok(status) => arguments.fail(address, status),
        Err(cause) => arguments.fail(address, cause),
    }
}

/// Host, port and path of an address.
fn parts(address: &str) -> Option<(&str, u16, &str)> {
    let rest = address.strip_prefix("http://").unwrap_or(address);
    let (place, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let (host, port) = match place.rfind(':') {
        Some(at) if !place[at..].contains(']') => (&place[..at], place[at + 1..].parse().ok()?),
        _ => (place, 80),
    };
    (!host.is_empty()).then_some((host, port, path))
}

/// Fetches; gives the status line's number and reason.
fn fetch(host: &str, port: u16, path: &str, head: bool, file: Option<(&str, bool)>) -> Result<String, String> {
    let text = |refusal: sockets::Refusal| refusal.to_string();
    let session = Session::open().map_err(text)?;
    let to = target::endpoint(&session, host, port).map_err(text)?;
    let stream = session.connect(0, to).map_err(text)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Cairn\r\nConnection: close\r\n\r\n");
    stream.write_all(&session, request.as_bytes(), op::clock() + PATIENCE).map_err(text)?;
    let mut bytes = Vec::new();
    let mut piece = [0; 4000];
    let mut read = |into: &mut Vec<u8>| -> Result<usize, String> {
        let count = session.until(op::clock() + PATIENCE, || stream.read(&mut piece)).map_err(text)?;
        into.extend_from_slice(&piece[..count]);
        Ok(count)
    };
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if bytes.len() > MAX_HEAD || read(&mut bytes)? == 0 {
            return Err("not an answer of HTTP/1".into());
        }
    };
    let fields = String::from_utf8_lossy(&bytes[..end]).into_owned();
    if head {
        eprintln!("{fields}\n");
    }
    let (version, status) =
        fields.lines().next().and_then(|line| line.split_once(' ')).ok_or("not an answer of HTTP/1")?;
    if !version.starts_with("HTTP/1.") {
        return Err("not an answer of HTTP/1".into());
    }
    let length = fields.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = bytes.split_off(end + 4);
    let path = file.map(|(file, is_program)| (files::absolute(file), if is_program { EXECUTABLE } else { 0 }));
    let output = match &path {
        Some((path, flags)) => Some(files::File::create(path, *flags).map_err(|cause| format!("{path}: {cause}"))?),
        None => None,
    };
    let mut count = 0;
    loop {
        match &output {
            Some(output) => output.write(count as u64, &body).map_err(|cause| cause.to_string())?,
            None => runtime::stream::write(&body).map_err(|cause| cause.to_string())?,
        }
        count += body.len();
        body.clear();
        if length.is_some_and(|length| count >= length) || read(&mut body)? == 0 {
            break;
        }
    }
    match length {
        Some(length) if count < length => Err(format!("the connection ended after {count} of {length} bytes")),
        _ => Ok(status.to_string()),
    }
}
