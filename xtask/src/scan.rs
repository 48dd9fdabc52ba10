//! Separates the code of a Rust file from comments and texts. Assembly may be looked at in the same way: its comments begin
//! as those of Rust do.

/// Lines, from 1, in which `word` stands as code.
pub fn lines_with_word(source: &str, word: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let code = without_comments(source, Texts::Blank);
    for (number, line) in code.lines().enumerate() {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let stands_alone = |at: usize| {
            let before = line.as_bytes()[..at].last();
            let after = line.as_bytes().get(at + word.len());
            !before.is_some_and(|&byte| is_word(byte)) && !after.is_some_and(|&byte| is_word(byte))
        };
        if line.match_indices(word).any(|(at, _)| stands_alone(at)) {
            found.push(number + 1);
        }
    }
    found
}

/// A word, a number, or a sign; `::`, `->` and `=>` are one each.
#[derive(Clone, Debug)]
pub struct Token {
    /// How it is written.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
}

/// The tokens of source from which comments and texts are gone.
pub fn tokens(code: &str) -> Vec<Token> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if ["::", "->", "=>"].iter().any(|sign| rest.starts_with(sign)) {
                2
            } else {
                first.len_utf8()
            };
            let (text, after) = rest.split_at(length);
            tokens.push(Token { text: text.into(), line: number + 1 });
            rest = after.trim_start();
        }
    }
    tokens
}

/// The treatment of texts and characters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// They stay.
    Kept,
    /// They become spaces.
    Blank,
}

/// The source with comments replaced by spaces, and texts and characters, too; lines stay where they are. Of other letters
/// than those of ASCII nothing is left.
pub fn without_comments(source: &str, texts: Texts) -> String {
    let bytes = source.as_bytes();
    let mut kept = String::with_capacity(source.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let mut becomes = Texts::Blank;
        let end = at
            + if rest.starts_with(b"//") {
                rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
            } else if rest.starts_with(b"/*") {
                block_comment(rest)
            } else if let Some(length) = raw_text(rest, at.checked_sub(1).map(|before| bytes[before])) {
                becomes = texts;
                length
            } else if rest[0] == b'"' {
                becomes = texts;
                text(rest)
            } else if rest[0] == b'\'' {
                becomes = texts;
                character(rest)
            } else {
                kept.push(if rest[0].is_ascii() { rest[0] as char } else { ' ' });
                at += 1;
                continue;
            };
        let skipped = &bytes[at..end.min(bytes.len())];
        kept.extend(skipped.iter().map(|&byte| match byte {
            b'\n' => '\n',
            byte if becomes == Texts::Kept && byte.is_ascii() => byte as char,
            _ => ' ',
        }));
        at = end;
    }
    kept
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Bytes of `r"…"`, `r#"…"#` and so on; none if it is something else.
fn raw_text(rest: &[u8], before: Option<u8>) -> Option<usize> {
    let in_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() && byte != b'b' || byte == b'_');
    if rest[0] != b'r' || in_word {
        return None;
    }
    let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let end = [&b"\""[..], &vec![b'#'; hashes]].concat();
    let content = &rest[2 + hashes..];
    let length = content.windows(end.len()).position(|window| window == end).unwrap_or(content.len());
    Some(2 + hashes + length + end.len())
}

fn text(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// Bytes of a character such as `'"'`, or of a lifetime.
fn character(rest: &[u8]) -> usize {
    match rest {
        [_, b'\\', ..] => rest.iter().skip(3).position(|&byte| byte == b'\'').map_or(1, |at| at + 4),
        [_, first, ..] => {
            let width = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
            let lifetime = 1 + rest[1..].iter().take_while(is_word).count();
            if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { lifetime }
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::lines_with_word;

    #[test]
    fn code_is_found() {
        assert_eq!(lines_with_word("fn f() {\n    unsafe { g() }\n}\nunsafe fn g() {}", "unsafe"), [2, 4]);
        assert_eq!(lines_with_word("#[unsafe(no_mangle)]", "unsafe"), [1]);
        assert_eq!(lines_with_word("let c = '\"'; unsafe {} // \"", "unsafe"), [1]);
        assert_eq!(lines_with_word("let c = '\\''; unsafe {}", "unsafe"), [1]);
        assert_eq!(lines_with_word("fn f<'a>(x: &'a str) { unsafe {} }", "unsafe"), [1]);
        assert_eq!(lines_with_word("let x = r\"\\\"; unsafe {}", "unsafe"), [1]);
        assert_eq!(lines_with_word("fn f<'unsafe>(x: &'unsafe u8) {}\nunsafe", "unsafe"), [2]);
    }

    #[test]
    fn comments_and_texts_are_not() {
        for source in [
            "// unsafe",
            "/* a /* unsafe */ unsafe */",
            "let x = \"unsafe \\\" unsafe\";",
            "let x = r#\"unsafe \" unsafe\"#;",
            "#![forbid(unsafe_code)]",
            "fn not_unsafe() {}",
            "let x = \"'\"; let y = \"unsafe\";",
        ] {
            assert!(lines_with_word(source, "unsafe").is_empty(), "{source}");
        }
    }
}
