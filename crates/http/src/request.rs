//! The head of a request.

use alloc::string::String;

use crate::path::target_path;
use crate::status::Status;

/// Bytes of the longest head.
pub const MAX_HEAD: usize = 8192;
/// Bytes of the longest request target.
const MAX_TARGET: usize = 2048;
/// Header fields, at most.
const MAX_FIELDS: usize = 64;

/// The method of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// The file.
    Get,
    /// Only what is known about it.
    Head,
}

/// A request that can be answered. Text is borrowed from the head.
#[derive(PartialEq, Eq, Debug)]
pub struct Request<'a> {
    /// The requested method.
    pub method: Method,
    /// Of what: decoded, begins with `/`.
    pub path: String,
    /// Another request may follow on this connection.
    pub persistent: bool,
    /// `Range`.
    pub range: Option<&'a str>,
    /// `If-Range`.
    pub if_range: Option<&'a str>,
    /// `If-None-Match`.
    pub if_none_match: Option<&'a str>,
    /// `If-Match`.
    pub if_match: Option<&'a str>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<&'a str>,
}

/// The result of parsing bytes.
#[derive(PartialEq, Eq, Debug)]
pub enum Parsed<'a> {
    /// The beginning of a head.
    Partial,
    /// A request, in so many bytes.
    Request(Request<'a>, usize),
    /// Something that is answered with this status, and the end of the connection.
    Refused(Status),
}

/// Reads the head at the beginning of `bytes`.
pub fn parse(bytes: &[u8]) -> Parsed<'_> {
    let head = &bytes[..bytes.len().min(MAX_HEAD)];
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(head) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD => {
            let target = request.path.map_or_else(|| first_line(head), str::len);
            return if target > MAX_TARGET { Parsed::Refused(Status::UriTooLong) } else { Parsed::Partial };
        }
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Parsed::Refused(Status::HeadersTooLarge);
        }
        Err(httparse::Error::Version) => return Parsed::Refused(Status::VersionNotSupported),
        Err(_) => return Parsed::Refused(Status::BadRequest),
    };
    match judge(&request) {
        Ok(request) => Parsed::Request(request, length),
        Err(status) => Parsed::Refused(status),
    }
}

/// Bytes of a first line that has not ended.
fn first_line(head: &[u8]) -> usize {
    head.iter().position(|byte| *byte == b'\n').map_or(head.len(), |_| 0)
}

fn judge<'a>(request: &httparse::Request<'_, 'a>) -> Result<Request<'a>, Status> {
    let minor = request.version.ok_or(Status::BadRequest)?;
    let method = match request.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        Some("POST" | "PUT" | "DELETE" | "CONNECT" | "OPTIONS" | "TRACE" | "PATCH") => {
            return Err(Status::MethodNotAllowed);
        }
        _ => return Err(Status::NotImplemented),
    };
    let target = request.path.ok_or(Status::BadRequest)?;
    if target.len() > MAX_TARGET {
        return Err(Status::UriTooLong);
    }
    let path = target_path(target).ok_or(Status::BadRequest)?;
    let mut judged = Request {
        method,
        path,
        persistent: minor == 1,
        range: None,
        if_range: None,
        if_none_match: None,
        if_match: None,
        if_modified_since: None,
    };
    let mut hosts = 0;
    for field in request.headers.iter() {
        let name = field.name;
        // A field that is none of these is ignored, whatever it holds.
        let value = || core::str::from_utf8(field.value).map(str::trim).map_err(|_| Status::BadRequest);
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match name.len() {
            4 if is("host") => {
                value()?;
                hosts += 1;
            }
            5 if is("range") => judged.range = Some(value()?),
            8 if is("if-range") => judged.if_range = Some(value()?),
            8 if is("if-match") => judged.if_match = Some(value()?),
            10 if is("connection") => {
                for option in value()?.split(',').map(str::trim) {
                    if option.eq_ignore_ascii_case("close") {
                        judged.persistent = false;
                    } else if option.eq_ignore_ascii_case("keep-alive") && minor == 0 {
                        judged.persistent = true;
                    }
                }
            }
            13 if is("if-none-match") => judged.if_none_match = Some(value()?),
            14 if is("content-length") => match value()? {
                "0" => {}
                text if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() => {
                    return Err(Status::ContentTooLarge);
                }
                _ => return Err(Status::BadRequest),
            },
            17 if is("transfer-encoding") => return Err(Status::NotImplemented),
            17 if is("if-modified-since") => judged.if_modified_since = Some(value()?),
            _ => {}
        }
    }
    // RFC 9112, 3.2: exactly one, in HTTP/1.1.
    if hosts > 1 || hosts == 0 && minor == 1 {
        return Err(Status::BadRequest);
    }
    Ok(judged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    fn status(text: &str) -> Option<Status> {
        match parse(text.as_bytes()) {
            Parsed::Refused(status) => Some(status),
            Parsed::Request(..) => Some(Status::Ok),
            Parsed::Partial => None,
        }
    }

    #[test]
    fn a_request() {
        let text = b"GET /a%20b?c HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\nIf-None-Match: \"1\"\r\n\r\nGET /";
        let Parsed::Request(request, length) = parse(text) else { panic!("refused") };
        assert_eq!((request.method, request.path.as_str(), request.persistent), (Method::Get, "/a b", true));
        assert_eq!((request.range, request.if_none_match), (Some("bytes=0-1"), Some("\"1\"")));
        assert_eq!(&text[length..], b"GET /");
    }

    #[test]
    fn connections() {
        let persistent = |text: &str| match parse(text.as_bytes()) {
            Parsed::Request(request, _) => request.persistent,
            other => panic!("{other:?}"),
        };
        assert!(persistent("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert!(!persistent("GET / HTTP/1.1\r\nHost: x\r\nconnection: foo, Close\r\n\r\n"));
        assert!(!persistent("GET / HTTP/1.0\r\n\r\n"));
        assert!(persistent("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    }

    #[test]
    fn refusals() {
        let cases = [
            ("", None),
            ("GET", None),
            ("GET / HTTP/1.1\r\nHost: x\r\n", None),
            ("GET / HTTP/1.1\r\n\r\n", Some(Status::BadRequest)),
            ("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", Some(Status::BadRequest)),
            ("GET /../etc HTTP/1.1\r\nHost: x\r\n\r\n", Some(Status::BadRequest)),
            ("GET x HTTP/1.1\r\nHost: x\r\n\r\n", Some(Status::BadRequest)),
            ("\x16\x03\x01\x02", Some(Status::BadRequest)),
            ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", Some(Status::VersionNotSupported)),
            ("POST / HTTP/1.1\r\nHost: x\r\n\r\n", Some(Status::MethodNotAllowed)),
            ("BREW / HTTP/1.1\r\nHost: x\r\n\r\n", Some(Status::NotImplemented)),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", Some(Status::Ok)),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", Some(Status::ContentTooLarge)),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", Some(Status::BadRequest)),
            ("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", Some(Status::NotImplemented)),
            ("GET / HTTP/1.1\r\nHost: x\r\nRange: \u{e9}\r\n\r\n", Some(Status::Ok)),
            ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", Some(Status::BadRequest)),
        ];
        for (text, expected) in cases {
            assert_eq!(status(text), expected, "{text:?}");
        }
    }

    #[test]
    fn too_long() {
        assert_eq!(status(&format!("GET /{} HTTP/1.1\r\n", "a".repeat(3000))), Some(Status::UriTooLong));
        assert_eq!(status(&format!("GET /{}", "a".repeat(3000))), Some(Status::UriTooLong));
        let long = format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}", "a".repeat(MAX_HEAD));
        assert_eq!(status(&long), Some(Status::HeadersTooLarge));
        let many: Vec<_> = (0..70).map(|number| format!("a{number}: b\r\n")).collect();
        assert_eq!(status(&format!("GET / HTTP/1.1\r\n{}\r\n", many.concat())), Some(Status::HeadersTooLarge));
    }

    proptest::proptest! {
        #[test]
        fn anything_is_answered(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }

        #[test]
        fn anything_like_a_request_is_answered(text in "(GET|HEAD|X) [/a%.0-9]{0,9} HTTP/1.[01]\r\n((Range|Host|Connection|If-Match): [ -~]{0,9}\r\n){0,4}\r\n") {
            let _ = parse(text.as_bytes());
        }
    }
}
