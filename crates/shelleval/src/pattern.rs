//! Patterns: `*`, `?`, `[…]`, and `\` before a character that stands for itself (POSIX.1-2024, Shell Command Language, 2.14).

use alloc::string::String;

/// Appends characters that stand for themselves.
pub fn push_quoted(pattern: &mut String, text: &str) {
    for c in text.chars() {
        if "*?[]\\!-:".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
}

/// The text that a pattern is if nothing in it is special.
pub fn unquoted(pattern: &str) -> String {
    let mut text = String::new();
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        text.push(if c == '\\' { characters.next().unwrap_or('\\') } else { c });
    }
    text
}

/// Whether it matches more than one text.
pub fn is_special(pattern: &str) -> bool {
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            '*' | '?' => return true,
            '[' if characters.as_str().contains(']') => return true,
            _ => {}
        }
    }
    false
}

/// Whether it matches all of the text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // Where the last `*` stands, and the text that it does not match yet.
    let mut star: Option<(&str, &str)> = None;
    loop {
        if let Some(rest) = pattern.strip_prefix('*') {
            pattern = rest;
            star = Some((rest, text));
            continue;
        }
        let Some(c) = text.chars().next() else { return pattern.is_empty() };
        let (found, rest) = one(pattern, c);
        if found {
            pattern = rest;
            text = &text[c.len_utf8()..];
            continue;
        }
        let Some((after, from)) = star else { return false };
        let Some(skipped) = from.chars().next() else { return false };
        let from = &from[skipped.len_utf8()..];
        star = Some((after, from));
        pattern = after;
        text = from;
    }
}

/// Whether the first element of a pattern (none is `*`) matches the character, and what follows the element.
fn one(pattern: &str, c: char) -> (bool, &str) {
    let mut rest = pattern.chars();
    let found = match rest.next() {
        None => false,
        Some('?') => true,
        Some('\\') => rest.next().unwrap_or('\\') == c,
        Some('[') => {
            if let Some((found, after)) = bracket(rest.as_str(), c) {
                return (found, after);
            }
            c == '['
        }
        Some(literal) => literal == c,
    };
    (found, rest.as_str())
}

/// After `[`: whether the set has the character, and what follows it. `None` if it is never closed.
fn bracket(set: &str, c: char) -> Option<(bool, &str)> {
    let (negated, mut rest) = match set.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, set),
    };
    let mut found = false;
    let mut first = true;
    loop {
        if !first && let Some(after) = rest.strip_prefix(']') {
            return Some((found != negated, after));
        }
        first = false;
        if let Some(class) = rest.strip_prefix("[:")
            && let Some((name, after)) = class.split_once(":]")
        {
            found |= is_of_class(name, c);
            rest = after;
            continue;
        }
        let (from, after) = element(rest)?;
        rest = after;
        let mut to = from;
        if let Some(range) = rest.strip_prefix('-')
            && !range.starts_with(']')
        {
            (to, rest) = element(range)?;
        }
        found |= (from..=to).contains(&c);
    }
}

/// A character of a set, and what follows.
fn element(set: &str) -> Option<(char, &str)> {
    let mut rest = set.chars();
    let c = match rest.next()? {
        '\\' => rest.next()?,
        c => c,
    };
    Some((c, rest.as_str()))
}

fn is_of_class(name: &str, c: char) -> bool {
    match name {
        "alpha" => c.is_ascii_alphabetic(),
        "digit" => c.is_ascii_digit(),
        "alnum" => c.is_ascii_alphanumeric(),
        "upper" => c.is_ascii_uppercase(),
        "lower" => c.is_ascii_lowercase(),
        "space" => c.is_ascii_whitespace() || c == '\x0b',
        "blank" => c == ' ' || c == '\t',
        "punct" => c.is_ascii_punctuation(),
        "xdigit" => c.is_ascii_hexdigit(),
        "cntrl" => c.is_ascii_control(),
        "graph" => c.is_ascii_graphic(),
        "print" => c.is_ascii_graphic() || c == ' ',
        _ => false,
    }
}
