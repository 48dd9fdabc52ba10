//! Requests of all kinds, good and bad, each with the answer that it must get.

use super::client::{Answer, Client, request};
use super::site::Site;
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Requests in one piece.
const PIPELINED: usize = 100;

fn soon() -> Instant {
    Instant::now() + PATIENCE
}

/// All of them, and a page after each.
pub fn hostile(site: &Site) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for (name, bytes, status) in refused() {
        refusal(site, &bytes, status).with_context(|| format!("{name}, to be answered with {status}"))?;
        Client::connect(site.port)?.get("/", site.index(), "", soon()).with_context(|| format!("after {name}"))?;
        lines.push(format!("{name}: {status}"));
    }
    type Case = fn(&Site) -> Result<()>;
    let cases: [(&str, Case); 8] = [
        ("cut off", cut_off),
        ("pipelined", pipelined),
        ("ranges", ranges),
        ("conditions", conditions),
        ("heads", heads),
        ("close and keep-alive", closing),
        ("byte by byte", byte_by_byte),
        ("no such page", absent),
    ];
    for (name, case) in cases {
        case(site).context(name)?;
        Client::connect(site.port)?.get("/", site.index(), "", soon()).with_context(|| format!("after {name}"))?;
        lines.push(format!("{name}: ok"));
    }
    Ok(lines)
}

/// The requests answered with a status and the end of the connection.
fn refused() -> Vec<(&'static str, Vec<u8>, u16)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let fields = |fields: &str| request("GET", "/", fields).into_bytes();
    let garbage: Vec<u8> = (0..4096_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    vec![
        ("garbage", [&garbage[..], b"\r\n\r\n"].concat(), 400),
        ("zeroes", vec![0; 512], 400),
        ("TLS", text("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n"), 400),
        ("no host", text("GET / HTTP/1.1\r\n\r\n"), 400),
        ("two hosts", fields("Host: other\r\n"), 400),
        ("a target without a slash", text("GET index.html HTTP/1.1\r\nHost: x\r\n\r\n"), 400),
        ("a way out of the site", request("GET", "/../etc/motd", "").into_bytes(), 400),
        ("a hidden way out of the site", request("GET", "/%2e%2e/etc/motd", "").into_bytes(), 400),
        ("an escape that is none", request("GET", "/%zz", "").into_bytes(), 400),
        ("a space before a colon", fields("A : b\r\n"), 400),
        ("a negative length", fields("Content-Length: -1\r\n"), 400),
        ("a long target", request("GET", &format!("/{}", "a".repeat(3000)), "").into_bytes(), 414),
        ("a target without an end", text(&format!("GET /{}", "a".repeat(7000))), 414),
        ("a long field", fields(&format!("A: {}\r\n", "a".repeat(9000))), 431),
        ("a field without an end", text(&format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}", "a".repeat(20_000))), 431),
        ("many fields", fields(&"A: b\r\n".repeat(100)), 431),
        ("POST", request("POST", "/", "Content-Length: 3\r\n").into_bytes(), 405),
        ("OPTIONS", request("OPTIONS", "/", "").into_bytes(), 405),
        ("a method that nobody knows", request("BREW", "/", "").into_bytes(), 501),
        ("chunks", fields("Transfer-Encoding: chunked\r\n"), 501),
        ("a body", fields("Content-Length: 5\r\n"), 413),
        ("a version that nobody knows", text("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), 505),
    ]
}

fn refusal(site: &Site, bytes: &[u8], status: u16) -> Result<()> {
    let mut client = Client::connect(site.port)?;
    client.send(bytes)?;
    let answer = client.answer(soon(), false)?;
    ensure!(answer.status == status, "the status is {}", answer.status);
    ensure!(!answer.is_kept(), "the connection is to be kept");
    if status == 405 {
        ensure!(answer.field("allow") == Some("GET, HEAD"), "it does not say what is allowed");
    }
    client.ended(soon())
}

/// Requests that end early get nothing but the end.
fn cut_off(site: &Site) -> Result<()> {
    let whole = request("GET", "/", "");
    for length in [0, 1, 5, 16, whole.len() - 1] {
        let mut client = Client::connect(site.port)?;
        client.send(&whole.as_bytes()[..length])?;
        client.finish()?;
        client.ended(soon()).with_context(|| format!("after {length} bytes"))?;
    }
    Ok(())
}

/// Answers come in the order of the requests.
fn pipelined(site: &Site) -> Result<()> {
    let mut client = Client::connect(site.port)?;
    let files: Vec<_> = site.files.iter().collect();
    let kinds = files.len() + 2;
    let mut all = String::new();
    for number in 0..PIPELINED {
        all += &match files.get(number % kinds) {
            Some((path, _)) => request("GET", path, ""),
            None if number % kinds == files.len() => request("HEAD", "/", ""),
            None => request("GET", "/absent", ""),
        };
    }
    client.send(all.as_bytes())?;
    for number in 0..PIPELINED {
        let until = soon();
        match files.get(number % kinds) {
            Some((path, expected)) => {
                client.expect(expected, until).map(drop).with_context(|| format!("{number}: {path}"))?
            }
            None if number % kinds == files.len() => {
                let answer = client.answer(until, true).with_context(|| format!("{number}: a head"))?;
                has(&answer, 200, "content-length", &site.index().len().to_string())?;
            }
            None => {
                let answer = client.answer(until, false).with_context(|| format!("{number}: no page"))?;
                ensure!(answer.status == 404, "{number}: the status is {}", answer.status);
            }
        }
    }
    client.finish()?;
    client.ended(soon())
}

/// An answer with a status and a field.
fn has(answer: &Answer, status: u16, field: &str, value: &str) -> Result<()> {
    ensure!(answer.status == status, "the status is {} and not {status}", answer.status);
    let found = answer.field(field);
    ensure!(found == Some(value), "{field} is {found:?} and not {value}");
    Ok(())
}

fn ask(client: &mut Client, fields: &str) -> Result<Answer> {
    client.send(request("GET", "/", fields).as_bytes())?;
    client.answer(soon(), false)
}

fn ranges(site: &Site) -> Result<()> {
    let mut client = Client::connect(site.port)?;
    let (index, size) = (site.index(), site.index().len());
    let parts = [
        ("0-9", 0, 10),
        ("0-0", 0, 1),
        ("-5", size - 5, size),
        ("7-", 7, size),
        ("10-999999999", 10, size),
        ("-999999999", 0, size),
    ];
    for (range, from, to) in parts {
        let answer = ask(&mut client, &format!("Range: bytes={range}\r\n")).context(range)?;
        has(&answer, 206, "content-range", &format!("bytes {from}-{}/{size}", to - 1)).context(range)?;
        ensure!(answer.body == index[from..to], "{range}: not that part");
    }
    for range in [format!("{size}-"), "-0".into(), format!("{}-{}", size + 5, size + 9)] {
        let answer = ask(&mut client, &format!("Range: bytes={range}\r\n")).with_context(|| range.clone())?;
        has(&answer, 416, "content-range", &format!("bytes */{size}")).context(range)?;
        ensure!(answer.body.is_empty(), "a refusal with a body");
    }
    // A malformed range counts as none, and of several parts the whole file may be sent (RFC 9110, 14.2).
    for fields in ["Range: lines=0-1\r\n", "Range: bytes=9-1\r\n", "Range: bytes=x\r\n", "Range: bytes=0-1,3-4\r\n"] {
        let answer = ask(&mut client, fields)?;
        ensure!(answer.status == 200 && answer.body == index, "{fields}: {}", answer.status);
    }
    Ok(())
}

fn conditions(site: &Site) -> Result<()> {
    let mut client = Client::connect(site.port)?;
    let answer = ask(&mut client, "")?;
    let tag = answer.field("etag").context("no tag")?.to_string();
    let cases = [
        (format!("If-None-Match: {tag}\r\n"), 304),
        (format!("If-None-Match: W/{tag}\r\n"), 304),
        (format!("If-None-Match: \"a\", {tag}\r\n"), 304),
        ("If-None-Match: *\r\n".into(), 304),
        ("If-None-Match: \"a\"\r\n".into(), 200),
        (format!("If-Match: {tag}\r\n"), 200),
        ("If-Match: *\r\n".into(), 200),
        ("If-Match: \"a\"\r\n".into(), 412),
        (format!("If-Range: {tag}\r\nRange: bytes=1-2\r\n"), 206),
        ("If-Range: \"a\"\r\nRange: bytes=1-2\r\n".into(), 200),
        (format!("If-None-Match: {tag}\r\nRange: bytes=1-2\r\n"), 304),
    ];
    for (fields, status) in cases {
        let answer = ask(&mut client, &fields).with_context(|| fields.clone())?;
        ensure!(answer.status == status, "{fields}: the status is {} and not {status}", answer.status);
        match status {
            200 => ensure!(answer.body == site.index(), "{fields}: another page"),
            206 => ensure!(answer.body == site.index()[1..3], "{fields}: another part"),
            304 => has(&answer, 304, "etag", &tag)?,
            _ => {}
        }
    }
    Ok(())
}

/// `HEAD` is answered as `GET`, without the body.
fn heads(site: &Site) -> Result<()> {
    let mut client = Client::connect(site.port)?;
    for (path, bytes) in &site.files {
        client.send(request("HEAD", path, "").as_bytes())?;
        let answer = client.answer(soon(), true)?;
        has(&answer, 200, "content-length", &bytes.len().to_string()).with_context(|| path.clone())?;
    }
    client.send(request("HEAD", "/absent", "").as_bytes())?;
    let answer = client.answer(soon(), true)?;
    ensure!(answer.status == 404, "the status is {}", answer.status);
    client.get("/", site.index(), "", soon()).map(drop)
}

fn closing(site: &Site) -> Result<()> {
    let once = [
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.0\r\nConnection: close\r\n\r\n",
    ];
    for text in once {
        let mut client = Client::connect(site.port)?;
        client.send(text.as_bytes())?;
        let answer = client.expect(site.index(), soon())?;
        ensure!(answer.version == "HTTP/1.1" && !answer.is_kept(), "{text:?}: the connection is to be kept");
        client.ended(soon()).with_context(|| format!("{text:?}"))?;
    }
    let kept = ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"];
    for text in kept {
        let mut client = Client::connect(site.port)?;
        for _ in 0..3 {
            client.send(text.as_bytes())?;
            let answer = client.expect(site.index(), soon())?;
            ensure!(answer.is_kept(), "{text:?}: the connection is not to be kept");
        }
    }
    Ok(())
}

/// A request in segments of one byte.
fn byte_by_byte(site: &Site) -> Result<()> {
    let mut client = Client::connect(site.port)?;
    for byte in request("GET", "/", "").bytes() {
        client.send(&[byte])?;
        std::thread::sleep(Duration::from_millis(1));
    }
    client.expect(site.index(), soon()).map(drop)
}

/// A request for a missing file leaves the connection as it was.
fn absent(site: &Site) -> Result<()> {
    let mut client = Client::connect(site.port)?;
    for path in ["/absent", "/index.html/more", "/index.htm"] {
        client.send(request("GET", path, "").as_bytes())?;
        let answer = client.answer(soon(), false)?;
        ensure!(answer.status == 404 && answer.is_kept(), "{path}: the status is {}", answer.status);
    }
    client.get("/", site.index(), "", soon()).map(drop)
}
