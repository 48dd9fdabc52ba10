//! From a request target to a path, and what a file of that name holds.

use alloc::string::String;
use alloc::vec::Vec;

/// The path of a request target in origin or absolute form (RFC 9112, 3.2), decoded; always begins with `/` and
/// stays below it. `None` = malformed: not UTF-8, a bad escape, an escape of `/`, control characters, or `..`.
pub fn target_path(target: &str) -> Option<String> {
    let path = match target.strip_prefix("http://") {
        Some(rest) => match rest.find('/') {
            Some(at) => &rest[at..],
            None => "/",
        },
        None => target,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if !path.starts_with('/') {
        return None;
    }
    let decoded = decode(path)?;
    let mut clean = String::with_capacity(decoded.len());
    for part in decoded.split('/').skip(1) {
        match part {
            ".." => return None,
            "." => {}
            // Several slashes are one.
            "" => {}
            part => {
                clean.push('/');
                clean.push_str(part);
            }
        }
    }
    if decoded.ends_with('/') || clean.is_empty() {
        clean.push('/');
    }
    Some(clean)
}

fn decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let byte = match byte {
            b'%' => {
                let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
                let byte = (digit(at + 1)? << 4 | digit(at + 2)?) as u8;
                at += 2;
                if byte == b'/' {
                    return None;
                }
                byte
            }
            byte => *byte,
        };
        if byte < b' ' || byte == 0x7f || byte == b'\\' {
            return None;
        }
        decoded.push(byte);
        at += 1;
    }
    String::from_utf8(decoded).ok()
}

/// The media type of a file by its name.
pub fn content_type(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("ico") => "image/x-icon",
        Some("txt" | "md" | "toml") => "text/plain; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("pdf") => "application/pdf",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let path = |target| target_path(target);
        assert_eq!(path("/").as_deref(), Some("/"));
        assert_eq!(path("/a/b?c=/../d").as_deref(), Some("/a/b"));
        assert_eq!(path("/a//b/./c/").as_deref(), Some("/a/b/c/"));
        assert_eq!(path("/%7euser/a%20b#x").as_deref(), Some("/~user/a b"));
        assert_eq!(path("http://host:80/x").as_deref(), Some("/x"));
        assert_eq!(path("http://host").as_deref(), Some("/"));
        let bad = ["", "*", "a", "/..", "/a/../b", "/%2e%2e/x", "/a%2fb", "/%", "/%4", "/%zz", "/%00", "/a\\b", "/%ff"];
        for target in bad {
            assert_eq!(path(target), None, "{target}");
        }
    }

    #[test]
    fn types() {
        assert_eq!(content_type("/a.b/index.html"), "text/html; charset=utf-8");
        assert_eq!(content_type("/a.html/file"), "application/octet-stream");
        assert_eq!(content_type(""), "application/octet-stream");
    }

    proptest::proptest! {
        #[test]
        fn stays_below_the_root(target in "(/|%2e|\\.|%|[a-z]|\\?){0,20}") {
            if let Some(path) = target_path(&target) {
                assert!(path.starts_with('/'));
                assert!(path.split('/').all(|part| part != ".." && part != "."));
            }
        }
    }
}
